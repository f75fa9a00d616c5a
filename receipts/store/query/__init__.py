"""Questions to a store; conditions as people type them, such as ``label=grid*``, and which values meet them."""

from __future__ import annotations

import fnmatch
import operator
import re
from collections.abc import Callable, Mapping
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple, cast, get_args

from receipts.axes.effective import flag_text
from receipts.base.errors import UsageError, near
from receipts.judging.verdict import PathAnswer, Status
from receipts.receipt.document import Kind, Outcome, Provenance

Operator = Literal["=", "!=", "<", "<=", ">", ">="]
COMPARE: Final[Mapping[str, Callable[[Any, Any], Any]]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
_CONDITION: Final = re.compile(r"^\s*([^=<>!\s]+?)\s*(!=|<=|>=|=|<|>)\s*(.*?)\s*$", re.DOTALL)
NOT_STATED: Final = "-"
# What has few words: a condition on any other finds nothing, and so is a slip of the pen.
CHOICES: Final[Mapping[str, tuple[str, ...]]] = {
    "status": get_args(Status),
    "path_answer": get_args(PathAnswer),
    "outcome": get_args(Outcome),
    "kind": get_args(Kind),
    "provenance": get_args(Provenance),
}


class Condition(NamedTuple):
    """One condition. `name` is a column, a leaf's path, or the last part of one; `value` is as it was typed.

    A value with ``*``, ``?`` or ``[`` is a pattern; ``-`` means *not stated*.
    """

    name: str
    operator: Operator
    value: str

    def __str__(self) -> str:
        return f"{self.name}{self.operator}{self.value}"


def condition(text: str) -> Condition:
    """Read ``batch.micro_batch=2``, ``chips>=8``, ``label=grid*``. Raises UsageError for anything else."""
    match = _CONDITION.match(text)
    if not match:
        raise UsageError(f"{text!r} is no condition; write NAME=VALUE, such as batch.micro_batch=2 or chips>=8")
    name, sign, value = match.groups()
    item = Condition(name, cast("Operator", sign), value)
    choices = CHOICES.get(item.name.removeprefix("run."), ())
    if choices and not is_pattern(item) and item.value not in (*choices, NOT_STATED):
        raise UsageError(f"{item}: {item.name} is one of {', '.join(choices)}{near(item.value, choices)}")
    return item


def is_condition(text: str) -> bool:
    """Whether a text compares a name with a value."""
    return _CONDITION.match(text) is not None


def is_pattern(item: Condition) -> bool:
    """Whether a condition's value is a pattern."""
    return item.operator in ("=", "!=") and any(sign in item.value for sign in "*?[")


def number(text: str) -> float | None:
    """The number that a text is compared as, of which several texts may be the same; None for other texts."""
    try:
        return float(text.replace(",", "").replace("_", ""))
    except ValueError:
        return None


def meets(value: Any, item: Condition) -> bool:
    """Whether a value meets a condition. What is not stated meets only ``!=`` and ``=-``."""
    if item.value == NOT_STATED and item.operator in ("=", "!="):
        return (value is None) == (item.operator == "=")
    if value is None:
        return item.operator == "!="
    if isinstance(value, list | tuple):
        hits = [meets(member, Condition(item.name, "=", item.value)) for member in value]
        return any(hits) if item.operator == "=" else item.operator == "!=" and not any(hits)
    text = value.isoformat() if isinstance(value, datetime) else flag_text(value)
    if is_pattern(item):
        return fnmatch.fnmatchcase(text, item.value) == (item.operator == "=")
    try:
        left, right = float(text), float(item.value.replace(",", "").replace("_", ""))
    except ValueError:
        return bool(COMPARE[item.operator](text, item.value))
    return bool(COMPARE[item.operator](left, right))
