"""Lockstep studies: named sets of axes that move together, with the constraint that must hold."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any

from receipts.axes import Difference
from receipts.base.errors import NotFound, RuleError, near
from receipts.base.files import read_small
from receipts.base.untrusted_text import parse_toml

_KEYS = frozenset({"title", "axes", "equal", "unchanged", "regimes"})


@dataclass(frozen=True, slots=True)
class Study:
    """One study. ``equal`` are products and quotients of leaf paths, the same on both sides.

    ``regimes`` are leaves of the measurement's regime that differ on purpose, with the values of A and of B.
    """

    name: str
    title: str
    axes: tuple[str, ...]
    equal: tuple[str, ...]
    unchanged: tuple[str, ...]
    regimes: Mapping[str, tuple[str, str]] = field(default_factory=dict)

    def broken_by(self, difference: Difference, a: Mapping[str, Any], b: Mapping[str, Any]) -> tuple[str, ...]:
        """Why the study does not hold for a pair, in sentences; empty where it holds."""
        moved = [axis for axis in self.unchanged if axis in difference.axes]
        reasons = [f"{axis} changed, and {self.name} keeps it" for axis in moved]
        for expression in self.equal:
            va, vb = value_of(expression, a), value_of(expression, b)
            if va is None or vb is None:
                reasons.append(f"{expression} is not stated on both sides")
            elif va != vb:
                reasons.append(f"{expression} is {_text(va)} on A and {_text(vb)} on B")
        for path, wanted in self.regimes.items():
            for side, value, stated in zip("AB", wanted, (a.get(path), b.get(path)), strict=True):
                if stated != value:
                    reasons.append(f"{path} is {stated or 'not stated'} on {side}, and {self.name} compares {value}")
        return tuple(reasons)


def value_of(expression: str, stated: Mapping[str, Any]) -> Fraction | None:
    """A product and quotient of leaf paths, exactly; None where a leaf is unstated, no number, or divides by 0."""
    words = expression.split()
    result: Fraction | None = None
    operator = "*"
    for word in words:
        if word in ("*", "/"):
            operator = word
            continue
        value = stated.get(word)
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        if operator == "/" and value == 0:
            return None
        number = Fraction(value)
        result = number if result is None else result * number if operator == "*" else result / number
    return result


def _text(value: Fraction) -> str:
    return str(value) if value.denominator == 1 else f"{float(value):.6g}"


@dataclass(frozen=True, slots=True)
class Studies:
    """The studies of this installation, by name."""

    by_name: Mapping[str, Study]

    def get(self, name: str) -> Study:
        """The study of that name. Raises NotFound."""
        if name not in self.by_name:
            raise NotFound(
                f"there is no study {name!r}; known: {', '.join(sorted(self.by_name))}{near(name, self.by_name)}"
            )
        return self.by_name[name]


def load(files: Iterable[Path]) -> Studies:
    """Read ``studies.toml`` files. Raises RuleError that names the file and the key."""
    studies: dict[str, Study] = {}
    for path in files:
        try:
            table = parse_toml(read_small(path))
        except (OSError, ValueError) as error:
            raise RuleError(f"studies {path}: {error}; mend the file") from None
        for name, entry in table.items():
            if not isinstance(entry, dict) or set(entry) - _KEYS or not {"title", "axes", "equal"} <= set(entry):
                raise RuleError(f"study {name} in {path}: state title, axes, equal and, if any, unchanged and regimes")
            if name in studies:
                raise RuleError(f"study {name} is defined twice; rename one of them")
            studies[name] = Study(
                name,
                entry["title"],
                tuple(entry["axes"]),
                tuple(entry["equal"]),
                tuple(entry.get("unchanged", ())),
                {path: (values[0], values[1]) for path, values in entry.get("regimes", {}).items()},
            )
    return Studies(studies)
