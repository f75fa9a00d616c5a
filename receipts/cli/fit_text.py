"""How an estimate is told: a table and a bar, what decides, what shrinks it, what was assumed; and the same as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from receipts.base import files
from receipts.base.errors import UsageError
from receipts.base.units import amount, decimal_bytes
from receipts.cli import output
from receipts.estimate.surface import OUTSIDE, Name
from receipts.publish.pictures.geometry import SIGNS, Bar, Part, geometry, text_bar
from receipts.publish.pictures.inline import alone
from receipts.questions.fit import MemoryEstimate, compared, growth
from receipts.questions.fit.compiled import CompilerAnswer, as_json

if TYPE_CHECKING:
    from receipts.questions.fit.calibrate import Calibration

_ORDER = {name: index for index, name in enumerate(Name)}
_MOST = 8  # changes that are told; --json has them all


def print_estimates(estimates: Sequence[MemoryEstimate], answer: CompilerAnswer | None, *, calibrated: bool) -> None:
    """Everything about one estimate, or two side by side."""
    if len(estimates) == 2:
        _tell_two(estimates[0], estimates[1])
    else:
        _tell_one(estimates[0], calibrated=calibrated)
    if answer is not None:
        _tell_compiler(answer)


def _tell_compiler(answer: CompilerAnswer) -> None:
    compiled = answer.compiled
    output.heading(f"The compiler, {compiled.versions}, {compiled.seconds:.0f} s")
    if compiled.total is None:
        failure = answer.failure
        what = f"{failure.class_}: " if failure is not None else ""
        output.wrapped(f"refuses it, {what}{' '.join(compiled.message.split())[:600]}")
        return
    rows = [(name, _amount(value)) for name, value in (
        ("arguments", compiled.argument), ("outputs", compiled.output), ("outputs that are arguments", compiled.alias),
        ("temporaries", compiled.temp), ("code", compiled.code), ("peak and code", compiled.total),
    )]  # fmt: skip
    output.table(("a chip", "bytes"), rows, right=(1,))
    output.wrapped(f"estimated {_amount(answer.estimated)}, {answer.error:+.1%}")


def _amount(value: float | None, like: float | None = None) -> str:
    return "~" if value is None else amount(value, like)


def _tell_one(item: MemoryEstimate, *, calibrated: bool) -> None:
    output.wrapped(f"{item.name} · {item.lane}: {answer(item)}", 0, 2)
    if item.surfaces:
        output.heading("On the fullest chip")
        _table(item)
        _bar([item])
        _marks(item)
        _breakdown(item)
        output.heading("What shrinks it")
        total = item.total_bytes
        rows = [(each.axis, each.change, f"−{_amount(each.saved, total)}", _amount(each.total, total),
                 _fits(item, each.total)) for each in item.shrinks[:_MOST]]  # fmt: skip
        output.table(("axis", "change", "saves", "then", "fits"), rows, right=(2, 3), empty="no single change does")
    if calibrated:
        output.heading("Calibration")
        output.wrapped(calibration_says(item.calibration, item.lane))
    _unstated(item)


def answer(item: MemoryEstimate) -> str:
    """The one-sentence answer."""
    assumed = f", on {len(item.assumed)} assumptions" if item.assumed else ""
    if item.missing:
        return f"too little is stated to say; state {', '.join(item.missing)}"
    if item.budget is None:
        return f"{_amount(item.total_bytes)}{assumed}; no budget: {_no_budget(item)}"
    left = item.headroom_bytes or 0.0
    share = abs(left) / item.budget.bytes
    total = f"{_amount(item.total_bytes)} of {_amount(item.budget.bytes)}"
    if item.fits is None and not item.uncounted:
        return (
            f"unknown: {total}, and {_amount(item.least_bytes)} where the compiler is short of memory; "
            f"ask it with --aot, or launch{assumed}"
        )
    if item.fits is None:
        parts = "part has" if len(item.uncounted) == 1 else "parts have"
        return f"unknown: {len(item.uncounted)} {parts} no formula of its own; counted as listed, {total}{assumed}"
    if not item.fits:
        return f"does not fit: {total}, {_amount(-left)} too much{assumed}"
    tight = f", less than the {item.headroom_wanted:.0%} that the lane keeps free" if item.tight else ""
    return f"fits: {total}, {_amount(left)} ({share:.1%}) left{tight}{assumed}"


def _no_budget(item: MemoryEstimate) -> str:
    if item.accelerator is None:
        return "state hardware.accelerator, or a chip's bytes_limit"
    return f"what {item.accelerator!r} lets a launch hold is not known; state a chip's bytes_limit"


def _table(item: MemoryEstimate) -> None:
    total = item.total_bytes or 1.0
    rows = [
        (SIGNS[_ORDER[each.name]], each.name.value, _amount(each.peak_bytes, total), f"{each.peak_bytes / total:.1%}",
         _amount(each.bytes, total) if each.bytes > 1.001 * each.peak_bytes else "", each.scales)
        for each in item.surfaces
        if each.bytes >= 1
    ]  # fmt: skip
    columns = ("", "surface", "at the peak", "share", "at its own", "scales with")
    shown = len(columns) if output.width() >= 120 else len(columns) - 1
    output.table(columns[:shown], [row[:shown] for row in rows], right=(2, 3, 4))


def _bar(estimates: Sequence[MemoryEstimate]) -> None:
    bars = [_drawn(item) for item in estimates]
    reach = max(bar.reach for bar in bars)
    for bar in bars:
        output.line()
        for text in text_bar(bar, output.width() - 4, reach):
            output.line(f"  {text}")
    labels = [text for text, on in (("│ budget", any(bar.budget for bar in bars)),
                                  ("▲ measured", any(bar.measured for bar in bars))) if on]  # fmt: skip
    if labels:
        output.line(f"  {', '.join(labels)}")


def _marks(item: MemoryEstimate) -> None:
    if item.dominant is not None:
        at = f"at {item.moment}" + (f" on stage {item.stage} of {item.stages}" if item.stages > 1 else "")
        share = item.dominant.peak_bytes / (item.total_bytes or 1.0)
        output.wrapped(f"dominant: {item.dominant.name.value} ({share:.0%}), {at}")
    if item.budget is not None:
        physical = item.budget.physical
        beside = f"; {_amount(physical)} are physical, which is no budget" if physical else ""
        output.wrapped(f"budget: {_amount(item.budget.bytes)}, {item.budget.source}{beside}")
    if item.measured is not None and item.delta is not None:
        kind = "pool" if item.measured.pool else "live"
        chip = "" if item.measured.chip is None else f" on chip {item.measured.chip}"
        output.wrapped(
            f"measured: {_amount(item.measured.bytes)} {kind}{chip}; "
            f"estimated {_amount(compared(item))}, {item.delta:+.1%}"
        )


def _breakdown(item: MemoryEstimate) -> None:
    """Parameters by family, and the scratch of one expert block, from one rank's tokens and from all that send."""
    output.heading("Parameters on that chip")
    rows = [(each.name, each.owner.value, _amount(each.bytes), each.cut) for each in item.families]
    output.table(("tensors", "owner", "bytes", "cut"), rows, right=(2,))
    scratch = item.routing
    if scratch is None:
        return
    output.heading("Routing scratch of one expert block")
    one, ways = scratch.one_source, scratch.sources
    columns = [("tokens of one rank", one)] + [(f"of all {ways} expert ranks", scratch)] * (ways > 1)
    parts = (("counts", "counts"), ("receive", "receive"), ("combine", "combine"), ("together", "total"))
    table = [(title, *(decimal_bytes(getattr(each, name)) for _, each in columns)) for title, name in parts]
    output.table(("buffer", *(title for title, _ in columns)), table, right=tuple(range(1, len(columns) + 1)))
    output.wrapped(
        f"{scratch.capacity:,} rows an expert from each rank, {scratch.local_experts:,} local experts"
        + (f"; each of {ways} expert ranks sends its rows, so receive and combine are held {ways} times" * (ways > 1))
    )


def _fits(item: MemoryEstimate, total: float) -> str:
    return "~" if item.budget is None or item.uncounted else "yes" if total <= item.budget.bytes else "no"


def calibration_says(record: Calibration | None, lane: str) -> str:
    """What the lane's own peaks say of its estimates."""
    if record is None:
        return f"no calibration: fewer than three measured configurations of {lane} in the store"
    return (
        f"× {record.factor:.3f} for {lane}, from {record.launches} launches of {record.groups} configurations; the "
        f"next one is expected between × {record.low:.3f} and × {record.high:.3f} (90 %); each estimated from the "
        f"others, the worst is {record.left_out:.1%} off, the middle one {record.left_out_median:.1%}"
    )


def _unstated(item: MemoryEstimate) -> None:
    if item.assumed:
        output.heading("Not stated, and assumed")
        for each in item.assumed:
            output.wrapped(f"{each.path}: {each.value} ({each.because})", 2, 4)
    if item.uncounted:
        output.heading("Without a formula of its own")
        for text in item.uncounted:
            output.wrapped(text, 2, 4)


def _tell_two(a: MemoryEstimate, b: MemoryEstimate) -> None:
    for name, item in (("A", a), ("B", b)):
        output.wrapped(f"{name} {item.name} · {item.lane}: {answer(item)}", 0, 2)
    if a.missing or b.missing:
        return
    output.heading("Which bucket grows")
    like = max(a.total_bytes or 0.0, b.total_bytes or 0.0)
    rows = [_side_by_side(row.name.value, row.a, row.b, like) for row in growth(a, b)]
    rows += [_side_by_side("estimated live peak", a.live_bytes, b.live_bytes, like)]
    if a.measured is not None or b.measured is not None:
        sizes = [item.measured.bytes if item.measured is not None else None for item in (a, b)]
        rows += [_side_by_side("measured peak", sizes[0], sizes[1], like)]
    output.table(("surface", "A", "B", "B − A"), rows, right=(1, 2, 3), empty="none: the two are alike")
    _bar([a, b])
    beside = {(each.path, each.value) for each in a.assumed} ^ {(each.path, each.value) for each in b.assumed}
    for path, value in sorted(beside):
        output.wrapped(f"assumed in one of them only: {path} = {value}", 2, 4)


def _side_by_side(name: str, a: float | None, b: float | None, like: float) -> tuple[str, str, str, str]:
    """A row of the table of growth; a side that has no such figure is ``~``."""
    if a is None or b is None:
        return name, _amount(a, like), _amount(b, like), "~"
    return name, _amount(a, like), _amount(b, like), f"{'−' if b < a else '+'}{_amount(abs(b - a), like)}"


def _drawn(item: MemoryEstimate) -> Bar:
    parts = tuple(Part(each.name.value, each.peak_bytes, _ORDER[each.name]) for each in item.surfaces)
    budget, peak = item.budget_bytes, item.measured.bytes if item.measured else None
    return Bar(item.name, parts, budget, peak)


def write_svg(path: str, estimates: Sequence[MemoryEstimate]) -> None:
    """The bars as a picture. Raises UsageError where there is nothing to draw, or the file cannot be written."""
    if not all(item.surfaces for item in estimates):
        raise UsageError(f"--svg {path}: too little is stated to draw; without --svg the call says what is missing")
    names = " and ".join(item.name for item in estimates)
    bars = [_drawn(item) for item in estimates]
    text = geometry(bars, title=f"Memory of {names}", says="; ".join(map(answer, estimates)))
    files.write(path, f"{alone(text)}\n", over=True)
    output.note(f"wrote {path}")


def document(estimates: Sequence[MemoryEstimate], answer: CompilerAnswer | None, *, calibrated: bool) -> dict[str, Any]:
    """The answer as JSON: bytes throughout, None where something is unknown."""
    tree: dict[str, Any] = {"estimates": [_data(item, calibrated=calibrated) for item in estimates]}
    if len(estimates) == 2:
        rows = growth(estimates[0], estimates[1])
        tree["growth"] = [{"surface": row.name.value, "a": row.a, "b": row.b, "bytes": row.bytes} for row in rows]
    if answer is not None:
        tree["compiled"] = as_json(answer)
    return tree


def _data(item: MemoryEstimate, *, calibrated: bool) -> dict[str, Any]:
    surfaces = [
        {"surface": each.name.value, "bytes": each.bytes, "peak_bytes": each.peak_bytes, "scales_with": each.scales,
         "live": each.name not in OUTSIDE}
        for each in item.surfaces
    ]  # fmt: skip
    tree: dict[str, Any] = {
        "name": item.name,
        "lane": item.lane,
        "fits": item.fits,
        "tight": item.tight,
        "total_bytes": item.total_bytes,
        "live_bytes": item.live_bytes,
        "least_bytes": item.least_bytes,
        "budget_bytes": item.budget_bytes,
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
        "shrinks": [{"axis": each.axis, "change": each.change, "saves_bytes": each.saved, "total_bytes": each.total}
                    for each in item.shrinks],
        "missing": list(item.missing),
        "assumed": [each._asdict() for each in item.assumed],
        "uncounted": list(item.uncounted),
    }  # fmt: skip
    if calibrated:
        each = item.calibration
        tree["calibration"] = each and {name: getattr(each, name) for name in each.__slots__}
    return tree
