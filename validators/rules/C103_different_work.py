"""# C103 different_work

*Why.* A step of 65,536 tokens is shorter than one of 262,144, and that teaches nothing. Nor does a loss that fell for
longer, or a training time to another target.

*Rejected.* Step time of 131,072 tokens a step against 262,144, when recompute is the changed axis. A last loss after
300 steps against one after 100. The training time to a validation loss of 3.28 against that to 3.40, after other
numbers of steps.

*Accepted.* Equal tokens a step; or the changed axis is itself the global batch or the sequence length, which determines
them; or the metric is tokens per second, which needs no equal work. Losses after equal numbers of steps or tokens.
Training times to one validation loss, within half a percent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Final, NamedTuple

from receipts.judging.rule import COMPARABLE, E, I, Offense, PairCase, rule
from receipts.metrics import Launch

_TOKENS = "measurement.tokens_per_step"
_BATCH = ("batch.global_batch", "batch.sequence_length")


class _Work(NamedTuple):
    """What must be equal, to within a share; the leaves that make it and may be the changed axis; what to do."""

    of: Callable[[Launch], float | None]
    apart: float
    made_of: tuple[str, ...]
    do: str


_WORK: Final[Mapping[str, _Work]] = {
    _TOKENS: _Work(
        lambda launch: launch.tokens_per_step,
        0.0,
        _BATCH,
        "compare tokens_per_second, or run both at one batch and sequence length",
    ),
    # A log may lose its last lines.
    "measurement.steps": _Work(lambda launch: launch.steps_trained, 0.01, _BATCH, "train both for equal steps"),
    "measurement.loss.validation": _Work(
        lambda launch: launch.stated.get("measurement.loss.validation"), 0.005, (), "train both to one target"
    ),
}


@rule("C103", "different_work", E, on="pair", question=COMPARABLE)
def different_work(pair: PairCase) -> Iterator[Offense]:
    """What the metric calls equal work, where it differs or is unstated."""
    launches = (*pair.group_a, *pair.group_b)
    for path in pair.metric.equal_work:
        work = _WORK[path]
        moved = any(axis in pair.counted for axis in work.made_of) or _by_one_input(pair)
        if moved or (path != _TOKENS and _equal_tokens(launches)):
            continue
        sides = ([work.of(launch) for launch in group] for group in (pair.group_a, pair.group_b))
        a, b = ([value for value in values if value is not None] for values in sides)
        expected = f"equal work for {pair.metric.name}"
        if a and b:
            if max(*a, *b) - min(*a, *b) > work.apart * max(*a, *b):
                yield Offense(path, f"{_shown(a)} on A, {_shown(b)} on B", expected, work.do)
        elif a or b or not pair.holds(*_unstated(pair, path)):
            missing = " and ".join(name for name, values in (("A", a), ("B", b)) if not values)
            do = f"state {path}{', or global_batch and sequence_length' if path == _TOKENS else ''}"
            yield Offense(path, f"not stated on {missing}", expected, do, level=I)


def _by_one_input(pair: PairCase) -> bool:
    """Whether the one change is an input that no leaf states, so that the work follows from it."""
    return pair.difference.from_inputs and len(pair.counted) == 1 and pair.counted[0].startswith("inputs.")


def _equal_tokens(launches: tuple[Launch, ...]) -> bool:
    """Whether all were trained on equally many tokens."""
    totals = {(launch.steps_trained or 0) * (launch.tokens_per_step or 0) for launch in launches}
    return len(totals) == 1 and 0 not in totals


def _unstated(pair: PairCase, path: str) -> Iterator[str]:
    """What is not stated of a leaf, and of the leaves that make tokens."""
    made_of = _BATCH if path == _TOKENS else ()
    return (item for item in (path, *made_of) if pair.values(item) == (None, None))


def _shown(values: list[float]) -> str:
    return " to ".join(f"{value:,}" for value in dict.fromkeys((min(values), max(values))))
