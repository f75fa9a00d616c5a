"""What a receipt states, asked for value by value: what is missing and what had to be assumed is written down."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple, TypeVar

# Words for a switch that does nothing, or that is not stated.
OFF = ("", "none", "off", "no", "false", "0")
Value = TypeVar("Value", int, float, bool, str)


class Assumed(NamedTuple):
    """What was taken for a value that the receipt does not state, or that has no formula, and why."""

    path: str
    value: str
    because: str


class EstimateInputs:
    """Stated leaves by path, with a record of every value that was asked for and not there.

    ``missing`` are paths without which nothing can be said; ``assumed`` are paths that something was taken for.
    """

    def __init__(self, stated: Mapping[str, Any]) -> None:
        self.stated = stated
        self._missing: dict[str, None] = {}
        self._assumed: dict[str, Assumed] = {}

    def __repr__(self) -> str:
        return f"EstimateInputs({len(self.stated)} stated, {len(self._missing)} missing, {len(self._assumed)} assumed)"

    @property
    def missing(self) -> tuple[str, ...]:
        """Paths that must be stated, in the order in which they were asked for."""
        return tuple(self._missing)

    @property
    def assumed(self) -> tuple[Assumed, ...]:
        """What was taken for what is not stated, each path once."""
        return tuple(self._assumed.values())

    def need(self, path: str) -> int:
        """A whole number that nothing can stand in for; 0 where it is not stated, and then it is `missing`."""
        value = self.stated.get(path)
        if value is None:
            self._missing[path] = None
            return 0
        return int(value)

    def take(self, path: str, otherwise: Value, because: str) -> Value:
        """The stated value, else ``otherwise``, which is written down with its reason."""
        value: Value | None = self.stated.get(path)
        if value is None:
            self.assume(path, otherwise, because)
            return otherwise
        return value

    def assume(self, path: str, value: object, because: str) -> None:
        """Write an assumption down."""
        text = ("no", "yes")[value] if isinstance(value, bool) else f"{value:,}" if isinstance(value, int) else value
        self._assumed.setdefault(path, Assumed(path, str(text), because))

    def word(self, *paths: str) -> str:
        """The first of these that is stated, in lower case; empty where none is."""
        return next((str(self.stated[path]).lower() for path in paths if self.stated.get(path) is not None), "")
