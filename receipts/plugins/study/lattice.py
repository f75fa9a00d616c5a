"""Every configuration that has some counted axes as B and the others as A, stored or not, as bits of a number."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final

from receipts import metrics
from receipts.axes.configuration import Configuration
from receipts.axes.effective import OPEN_MAPS, axis_of
from receipts.axes.lane import Lane
from receipts.base.errors import InputError
from receipts.judging.comparison import Request, compare
from receipts.judging.rulebook import Rulebook
from receipts.metrics import Launch
from receipts.plugins.study.chain import Judge
from receipts.questions.plan import before_run, parse_plan, write_plan
from receipts.questions.preflight import preflight
from receipts.receipt import Document, Parsed, Role
from receipts.receipt.leaves import find_leaf

Changes = dict[str, Any]


class Lattice:
    """The configurations between two receipts as plans: bit n is set where axis n is as B has it.

    What follows an axis, or does not count beside it, moves with it.
    """

    def __init__(self, judge: Judge, rulebook: Rulebook, counted: Sequence[str]) -> None:
        self.axes = tuple(counted)
        self.full = (1 << len(self.axes)) - 1
        self._a, self._b = judge.a, judge.b
        self._lane = judge.lane
        self._store = judge.store
        self._rulebook = rulebook
        self._plans: dict[int, Parsed | str] = {}
        self._efforts: dict[int, float] = {}

    def __repr__(self) -> str:
        return f"Lattice({', '.join(self.axes)})"

    def place(self, item: Configuration) -> int | None:
        """The number of a configuration; None where it has an axis as neither side has it."""
        number = 0
        for at, axis in enumerate(self.axes):
            part = item.parts.get(axis)
            if part == self._b.configuration.parts.get(axis):
                number |= 1 << at
            elif part != self._a.configuration.parts.get(axis):
                return None
        return number

    def moved(self, number: int) -> tuple[str, ...]:
        """The axes that are as B has them."""
        return tuple(axis for at, axis in enumerate(self.axes) if number >> at & 1)

    def whole(self, number: int) -> bytes:
        """What `Configuration.whole` is there, with all that moves along."""
        moved = {item for axis in self.moved(number) for item in (axis, *self._along[axis])}
        return self._a.configuration.mixed(self._b.configuration, moved).whole

    @cached_property
    def _along(self) -> Mapping[str, frozenset[str]]:
        """What moves with each counted axis: each axis that does not count, with the first one that it follows."""
        along: dict[str, set[str]] = {axis: set() for axis in self.axes}
        configuration = self._a.configuration
        for other in sorted(configuration.apart(self._b.configuration) - set(self.axes)):
            heads = [axis for axis in self.axes if other in configuration.followers(axis)]
            along[(heads or list(self.axes))[0]].add(other)
        return {axis: frozenset(items) for axis, items in along.items()}

    @cached_property
    def changes(self) -> Mapping[str, Changes]:
        """Leaves by counted axis, with the values that B typed where A typed others; None takes a leaf out."""
        left, right = dict(_typed(self._a.parsed)), dict(_typed(self._b.parsed))
        changes: dict[str, Changes] = {axis: {} for axis in self.axes}
        heads = {item: axis for axis in self.axes for item in (axis, *self._along[axis])}
        for path in sorted({*left, *right}):
            head = heads.get(axis_of(path.replace("path.intended.", "path.", 1)))
            if head is not None and left.get(path) != right.get(path):
                changes[head][path] = right.get(path)
        return changes

    def plan(self, number: int) -> Parsed | str:
        """The plan of a configuration, typed as A with B's changes; or why there can be none."""
        if number not in self._plans:
            self._plans[number] = self._plan_of(number)
        return self._plans[number]

    def _plan_of(self, number: int) -> Parsed | str:
        changes: Changes = {}
        for axis in self.moved(number):
            if not self.changes[axis]:
                return f"both sides ask for the same {axis}, so that no plan can choose between what they ran"
            changes |= self.changes[axis]
        try:
            raw = write_plan(self._a.parsed, {**changes, "run.label": self.label(number)})
        except InputError as error:
            return "; ".join(f"{problem.at}: {problem.what}" for problem in error.problems)
        return parse_plan(Document(raw, self.label(number)))

    def failure(self, number: int) -> str:
        """Why nothing can be launched there, or is known or predicted to fail; empty where nothing says so."""
        plan = self.plan(number)
        if isinstance(plan, str):
            return plan
        answer = preflight(plan, self._lane, self._store)
        return answer.why if answer.status in ("failed", "predicted") else ""

    def label(self, number: int) -> str:
        """What moved, in short: the last word of each leaf with its value."""
        leaves = [item for axis in self.moved(number) for item in self.changes[axis].items()]
        return ", ".join(f"{path.rpartition('.')[2]} {_short(value)}" for path, value in leaves) or "as A"

    def one_apart(self, one: int, other: int) -> bool:
        """Whether a comparison would count one axis between two plans; True where one of them cannot be written."""
        left, right = self.plan(one), self.plan(other)
        if isinstance(left, str) or isinstance(right, str):
            return True
        verdict = compare([left], [right], self._rulebook, Request())
        return len(verdict.counted) == 1 and not verdict.difference.unknown

    def chip_seconds(self, number: int) -> float | None:
        """About how many chip-seconds a step takes there: the ends' own, by the tokens of a step; None if unknown."""
        return self._tokens(number) * self._per_token if self._per_token is not None else None

    def effort(self, number: int) -> float:
        """What one is cheaper than another by: chip-seconds, else tokens a step."""
        if number not in self._efforts:
            self._efforts[number] = self.chip_seconds(number) or self._tokens(number)
        return self._efforts[number]

    def _tokens(self, number: int) -> float:
        moved = self.moved(number)
        side = {path: (self._b if path in moved else self._a).parsed for path in _STEP}
        tokens = 1.0
        for path, parsed in side.items():
            tokens *= parsed.stated.get(path) or 1
        return tokens

    @cached_property
    def _per_token(self) -> float | None:
        """Chip-seconds a token, the mean of the ends that tell it."""
        rates = [item for end in (self._a.parsed, self._b.parsed) if (item := _chip_seconds(end, self._lane))]
        return sum(rates) / len(rates) if rates else None


_STEP: Final = ("batch.global_batch", "batch.sequence_length")


def _chip_seconds(parsed: Parsed, lane: Lane) -> float | None:
    step = Launch(parsed, lane).read(metrics.get("step_seconds")).value
    chips = parsed.stated.get("hardware.chips")
    if step is None or chips is None:
        return None
    tokens = 1.0
    for path in _STEP:
        tokens *= parsed.stated.get(path) or 1
    return float(chips) * step / tokens


def _typed(parsed: Parsed) -> Iterator[tuple[str, Any]]:
    """Leaves that an experimenter typed, with their values as a plan states them."""
    for section, content in before_run(parsed).items():
        if section in OPEN_MAPS:
            yield from ((f"{section}.{key}", value) for key, value in content.items() if key != "complete")
        elif isinstance(content, dict) and section != "run":
            yield from _leaves(content, f"{section}.")


def _leaves(content: Mapping[str, Any], prefix: str) -> Iterator[tuple[str, Any]]:
    for key, value in content.items():
        leaf = find_leaf(prefix + key)
        if isinstance(value, dict) and leaf is None:
            yield from _leaves(value, f"{prefix}{key}.")
        elif leaf is not None and leaf.role is Role.AXIS:
            yield prefix + key, value


def _short(value: Any) -> str:
    if value is None:
        return "unset"
    if isinstance(value, dict):
        return str(value.get("version", value.get("value", "…")))
    text = str(value).lower() if isinstance(value, bool) else str(value)
    return f"{text[:12]}…" if len(text) > 24 else text
