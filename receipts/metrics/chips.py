"""The memory of one launch, by physical chip and phase: each chip beside its peers, and the account as JSON values.

Bytes throughout. Live memory, the pool and what was in use are ranked each by itself and never mixed. A figure for
several chips together (``memory.aggregate``) belongs to no single chip, and enters no ranking.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, get_args

from receipts.receipt.measurement import Memory, MemoryPhase
from receipts.stats.distributions import median

if TYPE_CHECKING:
    from receipts.receipt import Parsed


Metric = Literal["used", "peak", "pool", "headroom"]
PHASES: Final[tuple[MemoryPhase, ...]] = get_args(MemoryPhase)
METRICS: Final[tuple[Metric, ...]] = get_args(Metric)
LEAVES: Final[Mapping[Metric, str]] = {"used": "bytes_used", "peak": "peak_bytes", "pool": "peak_reserved_bytes"}
TITLES: Final[Mapping[Metric, str]] = {
    "used": "in use",
    "peak": "live peak",
    "pool": "pool peak",
    "headroom": "headroom (limit less live peak)",
}
STEPS: Final = 10  # peaks that are this near in time are one moment: the first steps after warm-up


class Chip(NamedTuple):
    """One chip in one phase, in bytes. ``rows`` are its positions in ``memory.chips``: two where it is listed twice.

    Of a chip that is listed twice each figure is the larger one, and the limit the smaller: its tightest reading.
    """

    chip: int
    phase: MemoryPhase
    used: int | None
    limit: int | None
    peak: int | None
    pool: int | None
    step: int | None
    rows: tuple[int, ...]

    @property
    def headroom(self) -> int | None:
        """What its limit leaves above its live peak; negative where that is above the limit (R403)."""
        return self.limit - self.peak if self.limit is not None and self.peak is not None else None

    @property
    def left(self) -> float | None:
        """`headroom` as a share of the limit."""
        limit, peak = self.limit, self.peak
        return (limit - peak) / limit if limit and peak is not None else None

    def read(self, metric: Metric) -> int | None:
        """One of the four figures."""
        value: int | None = getattr(self, metric)
        return value


class Ranking(NamedTuple):
    """Chips of one phase by one figure, in bytes. ``leaders`` have the highest value: several where they are equal."""

    leaders: tuple[int, ...]
    highest: int
    lowest_chip: int
    lowest: int
    middle: float
    chips: int

    @property
    def skew(self) -> float | None:
        """How far the leader lies above the median of all chips, as a share of it; None for a lone chip."""
        return self.highest / self.middle - 1 if self.chips > 1 and self.middle else None


class Moment(NamedTuple):
    """When peaks were reached: the chips that peaked first, at which step, and the step by which all had.

    ``stated`` is how many chips state their step.
    """

    step: int
    chips: tuple[int, ...]
    last_step: int
    stated: int

    @property
    def together(self) -> bool:
        """Whether all peaked at one step."""
        return self.step == self.last_step


class Lone(NamedTuple):
    """Chips that stand apart from their peers, and the median that they stand apart from."""

    chips: tuple[Chip, ...]
    middle: float


def tightness(item: Chip) -> tuple[float, int]:
    """The order of chips by the share that is left, the tightest first."""
    left = item.left
    return (left if left is not None else 1.0), item.chip


class Phase:
    """Every chip that has a row in one phase, in the order of ordinals, and what is wrong with the list.

    ``missing`` are chips known to have taken part that have no row here, ``unnamed`` how many more lack one without
    its being known which, ``strange`` how many chips stand here beyond those that took part.
    """

    def __init__(self, name: MemoryPhase, chips: Sequence[Chip], known: frozenset[int], stated: int | None) -> None:
        self.name = name
        self.chips = tuple(chips)
        here = {item.chip for item in chips}
        self.missing: tuple[int, ...] = tuple(sorted(known - here))
        self.unnamed: int = max(0, stated - len(known | here)) if stated is not None else 0
        self.strange: int = max(0, len(here) - stated) if stated is not None else 0
        self.doubled: tuple[int, ...] = tuple(item.chip for item in chips if len(item.rows) > 1)

    def __repr__(self) -> str:
        return f"Phase({self.name!r}, {len(self.chips)} chips)"

    @property
    def whole(self) -> bool:
        """Whether every chip is listed here exactly once; unknown where no chip count is stated."""
        return not (self.missing or self.unnamed or self.strange or self.doubled)

    def get(self, chip: int) -> Chip | None:
        """The chip of that ordinal."""
        return next((item for item in self.chips if item.chip == chip), None)

    def ranking(self, metric: Metric) -> Ranking | None:
        """Chips by one figure; None if no chip states it."""
        ranked = [(value, item.chip) for item in self.chips if (value := item.read(metric)) is not None]
        if not ranked:
            return None
        highest = max(value for value, _ in ranked)
        lowest, lowest_chip = min(ranked)
        leaders = tuple(chip for value, chip in ranked if value == highest)
        middle = median([float(value) for value, _ in ranked])
        return Ranking(leaders, highest, lowest_chip, lowest, middle, len(ranked))

    @property
    def tightest(self) -> Chip | None:
        """The chip that keeps the least of its limit: it need not be the one with the highest peak."""
        # A chip without a limit or a peak has nothing that could be left.
        return min([item for item in self.chips if item.limit and item.peak is not None], key=tightness, default=None)

    @property
    def moment(self) -> Moment | None:
        """Which chips peaked earlier; None if no step is stated."""
        moments = [(item.step, item.chip) for item in self.chips if item.step is not None]
        if not moments:
            return None
        first = min(step for step, _ in moments)
        chips = tuple(chip for step, chip in moments if step == first)
        return Moment(first, chips, max(step for step, _ in moments), len(moments))

    def lone(self, tolerance: float) -> Lone:
        """Chips whose live peak lies farther than a share of the median from it, where they are few."""
        return _apart([(item, float(item.peak)) for item in self.chips if item.peak is not None], tolerance)

    def lone_in_time(self, tolerance: float) -> Lone:
        """Chips that peak far from the median step: beyond ten steps, and beyond a share of it."""
        return _apart([(item, float(item.step)) for item in self.chips if item.step is not None], tolerance, STEPS)


def _apart(rows: Sequence[tuple[Chip, float]], tolerance: float, least: float = 0.0) -> Lone:
    """Chips farther from the median than the tolerance, where they are few: half of the chips are not outliers."""
    values = [value for _, value in rows]
    middle = median(values) if rows else 0.0
    near = max(least, tolerance * middle)
    if not rows or (max(values) - middle <= near and middle - min(values) <= near):
        return Lone((), middle)
    lone = tuple(item for item, value in rows if abs(value - middle) > near)
    few = len(rows) >= 3 and len(lone) <= max(1, len(rows) // 4)
    return Lone(lone if few else (), middle)


# Of a row, in the order of `Chip`.
_FIGURES: Final = itemgetter(
    *("chip", "phase", "bytes_used", "bytes_limit", "peak_bytes", "peak_reserved_bytes", "step")
)


# A count is whatever somebody wrote: beyond this many, chips without a row are counted and not named.
MAX_NAMED: Final = 16_384


class Account:
    """The memory of one launch by phase, in the order of a run; phases without a row are left out.

    ``stated`` is how many chips took part, None if it is not stated. ``rows`` are the document's, each by itself.
    """

    def __init__(self, memory: Memory | None, stated: int | None) -> None:
        rows = (memory.chips if memory is not None else None) or ()
        self.rows: tuple[Chip, ...] = tuple(
            [Chip._make((*_FIGURES(vars(row)), (index,))) for index, row in enumerate(rows)]
        )
        self.stated = stated
        self.aggregate = memory.aggregate if memory is not None else None
        seen = {row.chip for row in self.rows}
        # Ordinals that took part for certain. They may have gaps: chips 8, 9, 12 and 13 are four of four.
        if stated is None or len(seen) == stated or (len(seen) < stated and any(chip >= stated for chip in seen)):
            known = frozenset(seen)
        else:
            known = frozenset(range(min(stated, MAX_NAMED)))
        phases: dict[MemoryPhase, dict[int, Chip]] = {}
        for row in self.rows:
            by_chip = phases.setdefault(row.phase, {})
            by_chip[row.chip] = _tighter(by_chip[row.chip], row) if row.chip in by_chip else row
        self.phases: tuple[Phase, ...] = tuple(
            Phase(name, [phases[name][chip] for chip in sorted(phases[name])], known, stated)
            for name in PHASES
            if name in phases
        )

    def __repr__(self) -> str:
        return f"Account({self.stated} chips, {', '.join(phase.name for phase in self.phases) or 'no rows'})"

    def __bool__(self) -> bool:
        return bool(self.phases)

    def get(self, name: str) -> Phase | None:
        """The phase of that name, where it has rows."""
        return next((phase for phase in self.phases if phase.name == name), None)

    @property
    def tightest(self) -> Chip | None:
        """The chip and phase with the least of a limit left."""
        chips = [phase.tightest for phase in self.phases]
        return min([item for item in chips if item is not None], key=tightness, default=None)

    def worst(self, metric: Metric) -> Phase | None:
        """The phase in which the figure is highest (of headroom: least), the later one where two are equal."""
        ranked = [(phase, ranking) for phase in self.phases if (ranking := phase.ranking(metric)) is not None]
        if metric == "headroom":
            return min(reversed(ranked), key=lambda item: item[1].lowest, default=(None,))[0]
        return max(reversed(ranked), key=lambda item: item[1].highest, default=(None,))[0]

    def by_chip(self, metric: Metric, phases: Iterable[str]) -> dict[int, int]:
        """Each chip's highest figure over some phases (of headroom: its least), in bytes."""
        wanted, values = set(phases), dict[int, int]()
        choose = min if metric == "headroom" else max
        for phase in self.phases:
            for item in phase.chips if phase.name in wanted else ():
                value = item.read(metric)
                if value is not None:
                    values[item.chip] = choose(value, values.get(item.chip, value))
        return dict(sorted(values.items()))

    @cached_property
    def peaks(self) -> dict[int, int]:
        """Each chip's highest live peak over all phases, in bytes."""
        return self.by_chip("peak", PHASES)


def account(parsed: Parsed) -> Account:
    """The account of a receipt; that of a launch is `receipts.metrics.Launch.account`."""
    stated = parsed.stated.get("hardware.chips")
    return Account(parsed.receipt.memory, int(stated) if stated is not None else None)


def highest(memory: Memory | None, leaf: str) -> int | None:
    """The fullest chip's figure over all phases, in bytes; None if no chip states it."""
    rows = (memory.chips if memory is not None else None) or ()
    return max([value for row in rows if (value := getattr(row, leaf)) is not None], default=None)


def _tighter(one: Chip, other: Chip) -> Chip:
    first = one if other.peak is None or (one.peak is not None and one.peak >= other.peak) else other
    limits = [limit for limit in (one.limit, other.limit) if limit is not None]
    return first._replace(
        used=_larger(one.used, other.used),
        peak=_larger(one.peak, other.peak),
        pool=_larger(one.pool, other.pool),
        limit=min(limits, default=None),
        rows=(*one.rows, *other.rows),
    )


def _larger(one: int | None, other: int | None) -> int | None:
    return max((value for value in (one, other) if value is not None), default=None)


def account_json(memory: Account) -> dict[str, Any]:
    """The account as JSON values, every amount in bytes."""
    return {
        "chips": memory.stated,
        "phases": [_phase_json(phase) for phase in memory.phases],
        "tightest": _tightest_json(memory.tightest),
        "aggregate": memory.aggregate.model_dump(exclude_none=True) if memory.aggregate is not None else None,
    }


def _phase_json(phase: Phase) -> dict[str, Any]:
    rows = [
        {
            "chip": item.chip,
            "bytes_used": item.used,
            "bytes_limit": item.limit,
            "peak_bytes": item.peak,
            "peak_reserved_bytes": item.pool,
            "headroom_bytes": item.headroom,
            "step": item.step,
        }
        for item in phase.chips
    ]
    ranked = {leaf: ranking for name, leaf in LEAVES.items() if (ranking := phase.ranking(name)) is not None}
    moment = phase.moment
    return {
        "phase": phase.name,
        "chips": rows,
        "missing": list(phase.missing),
        "missing_unnamed": phase.unnamed,
        "doubled": list(phase.doubled),
        "beyond_stated": phase.strange,
        "ranking": {leaf: {**item._asdict(), "skew": item.skew} for leaf, item in ranked.items()},
        "earliest": moment._asdict() if moment is not None else None,
        "tightest": _tightest_json(phase.tightest),
    }


def _tightest_json(item: Chip | None) -> dict[str, Any] | None:
    if item is None:
        return None
    return {"chip": item.chip, "phase": item.phase, "headroom_bytes": item.headroom, "left": item.left}
