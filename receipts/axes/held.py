"""What holds a setting that a receipt does not state: equal inputs of one program, or a common context.

Equal inputs hold what a program decides for itself: with one input changed, whatever else it does is that change. What
a launch runs on they do not decide; that is held where host, driver and wheels are the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Final, Literal

from receipts.axes.effective import is_complete
from receipts.axes.inputs import InputsApart
from receipts.receipt import Parsed

HeldBy = Literal["inputs", "context"] | None
# Parts of a receipt that a program and its inputs decide.
PROGRAM: Final = ("model", "batch", "numerics", "parallelism", "compile", "features", "data", "path")
# Parts that the machine decides, which few launches leave unstated; flags come from wherever a launch was started.
_MACHINE: Final = ("hardware", "platform")


def same_context(a: Parsed, b: Parsed) -> bool:
    """Whether both receipts name one base configuration."""
    return a.receipt.run.context is not None and a.receipt.run.context == b.receipt.run.context


class Held:
    """What holds for two launches; ``left`` and ``right`` are their effective values.

    ``varied`` are leaves that the context does not hold: two values of them were seen under it.
    """

    def __init__(
        self,
        a: Parsed,
        b: Parsed,
        left: Mapping[str, Any],
        right: Mapping[str, Any],
        varied: frozenset[str],
        apart: InputsApart,
    ) -> None:
        self.context = same_context(a, b)
        self.varied = varied
        self._sides = a, b
        self._values = left, right
        self._apart = apart

    def __repr__(self) -> str:
        return f"Held(inputs={self._apart.held}, context={self.context})"

    def neither(self, path: str) -> HeldBy:
        """What holds a leaf that neither side states."""
        head = path.partition(".")[0]
        if self._apart.held and (
            head in PROGRAM
            or (head in _MACHINE and self._one_machine)
            or (head == "patches" and self._one_set_of_wheels)
        ):
            return "inputs"
        return "context" if self.context and path not in self.varied else None

    def one(self, path: str) -> bool:
        """Whether inputs hold a leaf that one side alone states: where at most one change can have moved it."""
        if not self._apart.held or path.partition(".")[0] not in PROGRAM or self._apart.many:
            return False
        if len(self._apart.counted) + self._other_code > 1:
            return False
        # What evidence shows on one side alone is the machine's answer, and no setting.
        witnessed = path.replace("path.", "path.witnessed.", 1)
        return self._one_machine or witnessed == path or not any(witnessed in side.stated for side in self._sides)

    @cached_property
    def _other_code(self) -> bool:
        digests = [values.get("code.imported_digest") for values in self._values]
        return digests[0] is None or digests[0] != digests[1]

    @cached_property
    def _one_machine(self) -> bool:
        a, b = self._sides
        host = a.receipt.run.host
        one_driver = self._values[0].get("platform.driver") == self._values[1].get("platform.driver")
        return host is not None and host == b.receipt.run.host and one_driver and self._one_set_of_wheels

    @cached_property
    def _one_set_of_wheels(self) -> bool:
        left, right = ({p: v for p, v in side.items() if p.startswith("wheels.")} for side in self._values)
        return left == right and all(is_complete(side, "wheels") for side in self._sides)
