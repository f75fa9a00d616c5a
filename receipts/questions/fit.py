"""What a launch would hold on its fullest chip, whether that fits, what shrinks it, and how far it lies from measured.

`receipts.estimate` does the arithmetic on plain values; here it meets receipts, lanes, accelerators and the store. A
lane is calibrated by how far its measured peaks lie from their estimates, and how well that carries to a next launch.
As data, bytes throughout, None where something is unknown.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from receipts.axes.lane import Lane
from receipts.axes.shape import SEQUENCE_LENGTH
from receipts.estimate.estimate import ParameterFamily, fullest, least, most, parameter_families, routing_block
from receipts.estimate.inputs import Assumed
from receipts.estimate.resolve import Circumstances, resolve
from receipts.estimate.saved_tensors import RoutingScratch
from receipts.estimate.setup import Setup
from receipts.estimate.shrink import Shrink, pairs, shrinks
from receipts.estimate.surface import OUTSIDE, Surface, SurfaceName
from receipts.receipt import Parsed
from receipts.receipt.accelerators import find_accelerator
from receipts.stats.log_ratio import predicted

if TYPE_CHECKING:
    from receipts.axes.lane import Lanes
    from receipts.store import Store


MIN_POINTS = 3  # measured launches: with two, leaving one out leaves nothing to see spread in
SHARE = 0.90


@dataclass(frozen=True, slots=True)
class CalibrationPoint:
    """One measured launch: estimated live bytes, measured live peak in bytes, and what to call it.

    ``group`` holds launches that are repeats of one configuration: they are one point of evidence, not many.
    """

    estimated: float
    measured: float
    name: str = ""
    group: str = ""


@dataclass(frozen=True, slots=True)
class Calibration:
    """``factor`` turns an estimate into the expected peak; the next launch lies between ``low`` and ``high`` of it.

    The interval holds a share `SHARE` of next launches (Student's t on ``groups`` − 1 degrees). ``left_out`` is the
    worst error of a configuration estimated from the others, and ``left_out_median`` the middle one; shares.
    """

    factor: float
    low: float
    high: float
    groups: int
    launches: int
    left_out: float
    left_out_median: float


def calibrate(points: Sequence[CalibrationPoint]) -> Calibration | None:
    """The calibration of these launches; None for fewer than `MIN_POINTS` configurations.

    The mean of log(measured / estimated) over configurations, each the mean of its repeats. The interval is that of a
    next configuration: mean ± t · s · sqrt(1 + 1/n).
    """
    ratios = _ratios(points)
    if len(ratios) < MIN_POINTS:
        return None
    logs = list(ratios.values())
    one_more = predicted(logs)
    middle, reach = one_more.log_ratio, one_more.half_width(SHARE)
    errors = sorted(calibrations_left_out(points).values())
    return Calibration(
        factor=math.exp(middle),
        low=math.exp(middle - reach),
        high=math.exp(middle + reach),
        groups=len(logs),
        launches=len(points),
        left_out=errors[-1],
        left_out_median=errors[len(errors) // 2],
    )


def calibrations_left_out(points: Sequence[CalibrationPoint]) -> dict[str, float]:
    """The error of each configuration when the factor comes from all others: |estimate · factor / measured − 1|."""
    ratios = _ratios(points)
    errors = {}
    for group, own in ratios.items():
        others = [value for other, value in ratios.items() if other != group]
        if others:
            errors[group] = abs(math.exp(_mean(others) - own) - 1)
    return errors


def _ratios(points: Sequence[CalibrationPoint]) -> dict[str, float]:
    groups: dict[str, list[float]] = {}
    for index, point in enumerate(points):
        if point.estimated > 0 and point.measured > 0:
            groups.setdefault(point.group or f"#{index}", []).append(math.log(point.measured / point.estimated))
    return {group: _mean(values) for group, values in groups.items()}


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


READ_FROM_A_CHIP = ("measured", "quoted")  # provenances of a peak that some launch had
READ = 5000  # launches read to calibrate a lane, the newest
# Two launches that agree in these are repeats of one configuration for a calibration.
_SHAPE = ("model", "numerics", "parallelism", "batch", "hardware.accelerator", "hardware.chips", "path.intended")


@dataclass(frozen=True, slots=True)
class Budget:
    """What a chip may hold in bytes, and who says so. ``physical`` is the chip's HBM, which is never the budget."""

    bytes: int
    source: str
    physical: int | None = None


@dataclass(frozen=True, slots=True)
class Measured:
    """The highest peak that a receipt has of one chip, in bytes; ``pool`` where only reserved memory was read."""

    bytes: int
    pool: bool
    chip: int | None = None


@dataclass(frozen=True, slots=True)
class MemoryEstimate:
    """What one receipt or plan would hold on its fullest chip.

    ``surfaces`` in bytes; empty where ``missing`` names what must be stated first. ``live_bytes`` is what an allocator
    would call live at the peak, ``total_bytes`` with the runtime's reserve and the allocator's overhead, both times the
    calibration's factor where there is one; ``least_bytes`` and ``most_bytes`` bound what a compiler and unstated
    settings may make of it. ``fits`` is None where nothing can be said. ``stage`` is the pipeline stage and ``moment``
    the part of the step that decide.
    ``assumed`` are unstated values with what was taken instead, ``uncounted`` what has no formula of its own.
    ``families`` are the parameters on the deciding stage, ``routing`` the scratch of one expert block there.
    """

    name: str
    lane: str
    surfaces: tuple[Surface, ...] = ()
    live_bytes: float | None = None
    total_bytes: float | None = None
    least_bytes: float | None = None
    most_bytes: float | None = None
    accelerator: str | None = None
    budget: Budget | None = None
    headroom_wanted: float = 0.0
    stage: int = 0
    stages: int = 1
    moment: str = ""
    missing: tuple[str, ...] = ()
    assumed: tuple[Assumed, ...] = ()
    uncounted: tuple[str, ...] = ()
    measured: Measured | None = None
    shrinks: tuple[Shrink, ...] = ()
    pairs: tuple[Shrink, ...] = ()
    families: tuple[ParameterFamily, ...] = ()
    routing: RoutingScratch | None = None
    calibration: Calibration | None = None

    @property
    def budget_bytes(self) -> int | None:
        """Bytes that a chip may hold."""
        return self.budget.bytes if self.budget is not None else None

    @property
    def headroom_bytes(self) -> float | None:
        """What the budget leaves; negative where it does not fit."""
        if self.total_bytes is None or self.budget is None:
            return None
        return self.budget.bytes - self.total_bytes

    @property
    def fits(self) -> bool | None:
        """Whether it fits; None where too little is stated, a part has no formula, or only the compiler can tell."""
        if self.total_bytes is None or self.budget is None or self.uncounted:
            return None
        if max(self.total_bytes, self.most_bytes or 0.0) <= self.budget.bytes:
            return True
        least_bytes = self.total_bytes if self.least_bytes is None else self.least_bytes
        return False if least_bytes > self.budget.bytes else None

    @property
    def tight(self) -> bool:
        """Whether it fits, with less headroom than the lane wants to see."""
        left = self.headroom_bytes
        return left is not None and self.budget is not None and 0 <= left < self.headroom_wanted * self.budget.bytes

    @property
    def dominant(self) -> Surface | None:
        """The surface with the most bytes at the peak."""
        return max(self.surfaces, key=lambda item: item.peak_bytes, default=None)

    @property
    def delta(self) -> float | None:
        """(estimated − measured) / measured, pool with pool and live with live; None where nothing was measured."""
        if self.measured is None or self.live_bytes is None:
            return None
        return compared(self) / self.measured.bytes - 1


def compared(estimate: MemoryEstimate) -> float:
    """The estimated bytes that stand against the measured peak: live, or live and the allocator's overhead."""
    live = estimate.live_bytes or 0.0
    if estimate.measured is None or not estimate.measured.pool:
        return live
    return live + sum(item.peak_bytes for item in estimate.surfaces if item.name is SurfaceName.OVERHEAD)


def predicted_rows(estimate: MemoryEstimate) -> list[dict[str, Any]]:
    """The surfaces at the peak as rows of a receipt's ``memory.predicted``; those that hold nothing are left out."""
    rows = ((item.name.value, round(item.peak_bytes)) for item in estimate.surfaces)
    return [{"surface": name, "bytes": size} for name, size in rows if size]


def circumstances(lane: Lane) -> Circumstances:
    """What the lane tells the arithmetic."""
    return Circumstances(lane.name, lane.frameworks, lane.convention)


def setup_of(parsed: Parsed, lane: Lane) -> Setup | None:
    """The resolved setup of a receipt or plan; None where something that has no stand-in is not stated."""
    return resolve(parsed.stated, circumstances(lane)).setup


def estimate(parsed: Parsed, lane: Lane, calibration: Calibration | None = None) -> MemoryEstimate:
    """The estimate of a receipt or a plan, without what shrinks it. Nothing is read but the receipt and the lane."""
    inputs = resolve(parsed.stated, circumstances(lane))
    result = MemoryEstimate(
        name=parsed.name,
        lane=lane.name,
        accelerator=parsed.stated.get("hardware.accelerator"),
        budget=budget(parsed.stated, lane),
        headroom_wanted=lane.headroom,
        missing=inputs.missing,
        assumed=inputs.assumed,
        uncounted=inputs.uncounted,
        measured=measured(parsed),
        calibration=calibration,
    )
    if inputs.setup is None:
        return result
    stage = fullest(inputs.setup)
    surfaces = stage.surfaces()
    factor = calibration.factor if calibration is not None else 1.0
    live = stage.live * factor
    outside = sum(item.peak_bytes for item in surfaces if item.name in OUTSIDE)
    return replace(
        result,
        surfaces=surfaces,
        live_bytes=live,
        total_bytes=live + outside,
        least_bytes=min(live + outside, least(inputs.setup)) if calibration is None else live + outside,
        most_bytes=max(live + outside, most(inputs.setup)) if calibration is None else live + outside,
        stage=stage.stage,
        stages=inputs.setup.layout.pipeline,
        moment=stage.peak,
        families=parameter_families(inputs.setup, stage.stage),
        routing=routing_block(inputs.setup, stage.stage),
    )


def with_shrinks(item: MemoryEstimate, parsed: Parsed, lane: Lane) -> MemoryEstimate:
    """The estimate with what shrinks it: single changes, and pairs that fit where no single one does.

    Pairs that keep the sequence length come first: the others change what is asked.
    """
    setup, budget_bytes = setup_of(parsed, lane), item.budget_bytes
    if setup is None:
        return item
    single = tuple(each for each in shrinks(setup) if lane.applies(each.axis))
    over = budget_bytes is not None and min((item.total_bytes or 0.0, *(one.total for one in single))) > budget_bytes
    both = pairs(setup) if over else ()
    fitting = (each for each in both if each.total <= (budget_bytes or 0) and all(map(lane.applies, each.axes)))
    return replace(item, shrinks=single, pairs=tuple(sorted(fitting, key=lambda each: SEQUENCE_LENGTH in each.axes)))


def budget(stated: Mapping[str, Any], lane: Lane) -> Budget | None:
    """What a chip may hold: the runtime's limit as read, else as this accelerator's runtimes give it, else HBM less
    the lane's headroom. The physical figure is never the budget: 141 GB of an H200 are 139.7 GiB to its runtime.
    """
    chip = find_accelerator(stated.get("hardware.accelerator"))
    physical = chip.hbm_bytes if chip is not None else None
    limits = [value for path, value in stated.items() if path.startswith("memory.chips[") and path.endswith("_limit")]
    if limits:
        return Budget(int(min(limits)), "the runtime's limit, as the receipt has it", physical)
    if stated.get("failure.limit_bytes") and stated.get("failure.class") in (
        "compile_hbm",
        "runtime_alloc",
        "capacity",
    ):
        return Budget(int(stated["failure.limit_bytes"]), "the limit that the failure names", physical)
    if chip is None:
        return None
    if chip.memory_limits:
        limit = chip.memory_limits[0]
        return Budget(limit.low_bytes, f"the limit that {limit.reporter} gives on {chip.key}", physical)
    if physical is None:
        return None
    return Budget(int(physical * (1 - lane.headroom)), f"HBM of {chip.key} less {100 * lane.headroom:.0f} %", physical)


def measured(parsed: Parsed) -> Measured | None:
    """The highest live peak of any chip and phase, else the highest pool; None where no chip's memory was read.

    One figure for several chips is taken where it is said to be the highest of them. What nobody read from a chip, the
    numbers of an illustration or a projection, is no measure.
    """
    if parsed.receipt.run.provenance not in READ_FROM_A_CHIP:
        return None
    memory = parsed.receipt.memory
    for name, pool in (("peak_bytes", False), ("peak_reserved_bytes", True)):
        rows = [row for row in (memory.chips if memory is not None else None) or () if getattr(row, name) is not None]
        if rows:
            top = max(rows, key=lambda row: int(getattr(row, name)))
            return Measured(int(getattr(top, name)), pool, top.chip)
    one = memory.aggregate if memory is not None else None
    if (
        one is not None
        and one.kind in ("live", "reserved")
        and (one.over == "max" or parsed.stated.get("hardware.chips") == 1)
    ):
        return Measured(int(one.bytes), one.kind == "reserved")
    return None


def point(parsed: Parsed, lane: Lane) -> CalibrationPoint | None:
    """A receipt as evidence for calibration: it states enough, it ended well, and a chip's peak was read."""
    if parsed.receipt.run.outcome != "ok" or parsed.receipt.run.provenance != "measured":
        return None
    estimated = estimate(parsed, lane)
    if estimated.measured is None or estimated.live_bytes is None:
        return None
    return point_of(parsed, estimated, estimated.measured.bytes)


def point_of(parsed: Parsed, estimate: MemoryEstimate, measured_bytes: float) -> CalibrationPoint:
    """An estimate and a measured peak as evidence; launches that agree in every axis of shape are one configuration."""
    shape = tuple((path, value) for path, value in sorted(parsed.stated.items()) if path.startswith(_SHAPE))
    return CalibrationPoint(compared(estimate), float(measured_bytes), parsed.name, str(shape))


def calibrations(store: Store, lanes: Lanes, names: Iterable[str]) -> dict[str, Calibration | None]:
    """The calibration of each lane from the store's own receipts, at most `READ` of them, the newest."""
    from receipts.store import Filters, condition

    by_version: dict[str, Calibration | None] = {}
    for name in dict.fromkeys(names):
        wanted = tuple(condition(text) for text in (f"lane={name}", "outcome=ok", "provenance=measured"))
        rows = store.find(Filters(wanted, limit=READ))
        points = [point(store.parsed(row.id), lanes.of(name)) for row in list(rows)]
        by_version[name] = calibrate([item for item in points if item is not None])
    return by_version


@dataclass(frozen=True, slots=True)
class Growth:
    """How one surface differs between two estimates, in bytes at their peaks; positive where B holds more."""

    name: SurfaceName
    a: float
    b: float

    @property
    def bytes(self) -> float:
        """B less A."""
        return self.b - self.a


def growth(a: MemoryEstimate, b: MemoryEstimate) -> tuple[Growth, ...]:
    """Which bucket grows from A to B: surfaces that differ, the largest change first."""
    before = {item.name: item.peak_bytes for item in a.surfaces}
    after = {item.name: item.peak_bytes for item in b.surfaces}
    rows = [Growth(name, before[name], after[name]) for name in SurfaceName if name in before and name in after]
    return tuple(sorted((row for row in rows if abs(row.bytes) >= 1), key=lambda row: -abs(row.bytes)))


def estimates_as_data(
    estimates: Sequence[MemoryEstimate], compiled: Mapping[str, Any] | None, *, calibrated: bool
) -> dict[str, Any]:
    """One estimate, or two and what grows between them; with the compiler's answer."""
    tree: dict[str, Any] = {"estimates": [_estimate_as_data(item, calibrated=calibrated) for item in estimates]}
    if len(estimates) == 2:
        rows = growth(estimates[0], estimates[1])
        tree["growth"] = [{"surface": row.name.value, "a": row.a, "b": row.b, "bytes": row.bytes} for row in rows]
    if compiled is not None:
        tree["compiled"] = compiled
    return tree


def _estimate_as_data(item: MemoryEstimate, *, calibrated: bool) -> dict[str, Any]:
    surfaces = [
        {"surface": each.name.value, "bytes": each.bytes, "peak_bytes": each.peak_bytes, "scales_with": each.scales,
         "live": each.name not in OUTSIDE}
        for each in item.surfaces
    ]  # fmt: skip
    first = ("name", "lane", "fits", "tight", "total_bytes", "live_bytes", "least_bytes", "most_bytes", "budget_bytes")
    tree: dict[str, Any] = {name: getattr(item, name) for name in first} | {
        "budget_source": item.budget.source if item.budget else None,
        "physical_bytes": item.budget.physical if item.budget else None,
        "headroom_bytes": item.headroom_bytes,
        "dominant": item.dominant.name.value if item.dominant else None,
        "moment": item.moment or None,
        "stage": item.stage,
        "surfaces": surfaces,
        "measured_bytes": item.measured.bytes if item.measured else None,
        "measured_kind": ("pool" if item.measured.pool else "live") if item.measured else None,
        "delta": item.delta,
        "parameters": [
            {"family": each.name, "owner": each.owner.value, "bytes": each.bytes, "ways": each.ways,
             "shard": each.shard}
            for each in item.families
        ],
        "routing_block": item.routing and asdict(item.routing),
        **{
            name: [{"axis": each.axis, "change": each.change, "saves_bytes": each.saved, "total_bytes": each.total}
                   for each in changes]
            for name, changes in (("shrinks", item.shrinks), ("pairs", item.pairs))
        },
        "missing": list(item.missing),
        "assumed": [each._asdict() for each in item.assumed],
        "uncounted": list(item.uncounted),
    }  # fmt: skip
    if calibrated:
        each = item.calibration
        tree["calibration"] = each and {name: getattr(each, name) for name in each.__slots__}
    return tree
