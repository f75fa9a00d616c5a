"""An explanation: the judged effect, the table of the traces, what is not in them, and why it must not be read.

`explain` gathers all of a comparison; `explanation_as_data` is what ``--json`` prints of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

from receipts.plugins.why.difference import Difference, TracedLaunch, common_ranks, difference
from receipts.plugins.why.profile import EXTRACT, Profile, apart, read_profiles
from receipts.plugins.why.refusals import Refusal, of_pair, of_residual, of_side, refusal
from receipts.plugins.why.sections import TRACES
from receipts.receipt import Parsed
from receipts.receipt.parse import listed_digests
from receipts.store.evidence import kept_files

if TYPE_CHECKING:
    from receipts.judging.verdict import Comparison
    from receipts.store import Store

METRIC: Final = "step_seconds"
XPLANE, TRACE_JSON = "JAX xplane", "JAX trace.json"
Status = Literal["explained", "refused", "nothing"]


@dataclass(frozen=True, slots=True)
class Explanation:
    """What `receipts why` answers. Times are nanoseconds a step; ``measured`` is as it was judged."""

    a: str
    b: str
    effect: str
    measured: tuple[Fraction, Fraction] | None
    noise: Fraction
    axes: tuple[str, ...]
    refusals: tuple[Refusal, ...]
    table: Difference | None
    sides: tuple[tuple[TracedLaunch, ...], tuple[TracedLaunch, ...]]
    nothing: str = ""
    anyway: bool = False
    span: bool = False  # the table is of whole traces, which mark no step

    @property
    def status(self) -> Status:
        """Whether there is a table that explains, a refusal, or nothing to explain."""
        return "nothing" if self.nothing else "refused" if self.refusals else "explained"

    @property
    def residual(self) -> Fraction | None:
        """What of the measured difference is not in the traces."""
        if self.measured is None or self.table is None or self.span:
            return None
        return self.measured[1] - self.measured[0] - self.table.change

    @property
    def shown(self) -> Difference | None:
        """The table, where it may be shown: one that was refused only on demand."""
        return self.table if self.status == "explained" or self.anyway else None

    @property
    def exit_code(self) -> int:
        """0 explained, 1 refused as a rejected comparison is, 3 there is no trace, or no effect."""
        if self.status == "explained":
            return 0
        names = {item.name for item in self.refusals}
        return 3 if self.nothing or names <= {"no-trace", "few-steps", "unproven"} else 1


def profiles_of(store: Store | None, receipt: Parsed, files: Iterable[Path] = ()) -> list[Profile]:
    """The profiles of a receipt's traces: from the store, else from ``files`` or those it keeps, by their digests."""
    from receipts.emit.files import sha256
    from receipts.ingest.evidence import read

    extracts: dict[str, bytes] = {}
    if store is not None and store.entries([receipt.id]):
        extracts = {item.digest: item.raw for item in store.extracts(receipt.id, EXTRACT)}
    with ExitStack() as stack:
        kept = kept_files(store.database.address) if store is not None else None
        places = {sha256(str(path)): path for path in files}
        # What was read without the plugin, or on a machine that keeps the file and did not read it.
        missing = [item.sha256 for item in receipt.receipt.evidence or () if item.sha256 and item.kind in TRACES]
        if kept is not None:
            for digest in kept.held(missing) - extracts.keys() - places.keys():
                places[digest] = stack.enter_context(kept.file(digest))
        for digest in sorted(listed_digests(receipt) & places.keys() - extracts.keys()):
            for reading in read(places[digest]).readings:
                if EXTRACT in reading.extracts:
                    extracts[digest] = reading.extracts[EXTRACT]
    return [profile for _, raw in sorted(extracts.items()) for profile in read_profiles(raw)]


def traced(store: Store | None, side: Sequence[Parsed], files: Iterable[Path] = ()) -> tuple[TracedLaunch, ...]:
    """The launches of a side that have traces."""
    launches = []
    for receipt in side:
        profiles = profiles_of(store, receipt, files)
        if any(item.producer == XPLANE for item in profiles):
            # The trace.json beside it has the same events without the program.
            profiles = [item for item in profiles if item.producer != TRACE_JSON]
        # Which device a launch was given says nothing: the first of one is laid beside the first of the other.
        devices = sorted({item.device for item in profiles}, key=lambda name: (len(name), name))
        ranks: dict[str, list[Profile]] = {}
        for profile in profiles:
            rank, place = profile.facts.get("rank"), devices.index(profile.device)
            name = "host" if profile.host else f"device {place}"
            ranks.setdefault(f"rank {rank}" if isinstance(rank, int) else name, []).append(profile)
        if ranks:
            launches.append(TracedLaunch(receipt.id, receipt.name, apart(ranks)))
    return tuple(launches)


def explain(
    verdict: Comparison,
    sides: tuple[Sequence[Parsed], Sequence[Parsed]],
    store: Store | None,
    *,
    files: Sequence[Path] = (),
    anyway: bool = False,
    span: bool = False,
) -> Explanation:
    """Explain the difference of the steps of two sides by the verdict on them."""
    result = next((item for item in verdict.results if item.metric == METRIC), None)
    measured, noise = None, Fraction(0)
    if result is not None and result.a.value is not None and result.b.value is not None:
        measured = _nanoseconds(result.a.value), _nanoseconds(result.b.value)
        low, high = result.effect.low, result.effect.high
        if low is not None and high is not None and math.isfinite(high - low):
            noise = measured[0] * Fraction(high - low) / 2
    kind = result.effect.kind if result is not None else "unproven"
    axes = verdict.counted
    a, b = (traced(store, side, files) for side in sides)
    receipts = {item.id: item for side in sides for item in side}
    refusals = [*of_side("A", a, receipts, span=span), *of_side("B", b, receipts, span=span)]
    if verdict.status == "rejected":
        offense = next((item for item in verdict.findings if item.level == "E" and item.waived is None), None)
        why = f"{offense.code} {offense.found}" if offense is not None else "see receipts compare"
        refusals.insert(0, refusal("rejected", why=why))
    table = None
    if a and b:
        refusals += of_pair(a, b, axes)
        change = measured[1] - measured[0] if measured is not None and not span else None
        table = _table(a, b, change, axes)
        if measured is not None and table is not None and not span:
            refusals += of_residual(measured, (table.a, table.b), noise)
    nothing = ""
    if kind == "equivalent":
        nothing = "the two are equivalent"
    elif kind == "ambiguous":
        nothing = f"the two are not distinguishable: {result.effect.why if result is not None else kind}"
    elif kind == "unproven":
        why = result.effect.why if result is not None else "neither side has step times"
        refusals.append(refusal("unproven", why=why))
    return Explanation(
        verdict.label_a,
        verdict.label_b,
        kind,
        measured,
        noise,
        tuple(axes),
        tuple(dict.fromkeys(refusals)),
        table,
        (a, b),
        nothing,
        anyway,
        span,
    )


def _table(
    a: Sequence[TracedLaunch], b: Sequence[TracedLaunch], change: Fraction | None, axes: Sequence[str]
) -> Difference | None:
    """The table, if there is a step of a common rank in every launch."""
    ranks = common_ranks(a, b)
    every = [profiles for launch in (*a, *b) for rank, profiles in launch.profiles.items() if rank in ranks]
    if not ranks or not all(any(profile.kept for profile in profiles) for profiles in every):
        return None
    return difference(a, b, change, axes)


def _nanoseconds(seconds: float) -> Fraction:
    return Fraction(round(seconds * 1e9))


def explanation_as_data(item: Explanation) -> dict[str, Any]:
    """The explanation as JSON: times are whole numbers of ``denominator`` parts of a nanosecond, and add up."""
    table = item.shown
    data: dict[str, Any] = {
        "status": item.status,
        "a": item.a,
        "b": item.b,
        "effect": item.effect,
        "axes": list(item.axes),
        "nothing": item.nothing or None,
        "refusals": [refusal._asdict() for refusal in item.refusals],
        "measured": None,
        "table": None,
    }
    if item.measured is not None:
        own, other = (int(value) for value in item.measured)
        data["measured"] = {"a_ns": own, "b_ns": other, "change_ns": other - own, "noise_ns": round(item.noise)}
    if table is not None:
        scale = math.lcm(*(value.denominator for line in table.lines for value in (line.a, line.b)))
        data["table"] = {
            "denominator": scale,
            "of": "span" if item.span else "step",
            "ranks": list(table.ranks),
            "slowest": list(table.slowest),
            "launches": [len(side) for side in item.sides],
            "steps": [list(steps_of(side, table.ranks)) for side in item.sides],
            "a": _scaled(table.a, scale),
            "b": _scaled(table.b, scale),
            "change": _scaled(table.change, scale),
            "residual_ns": float(item.residual) if item.residual is not None else None,
            "common_ratio": table.common,
            "not_moved": list(table.still),
            "classed": [shares_of(side) for side in item.sides],
            "lines": [
                {
                    "class": line.name,
                    "a": _scaled(line.a, scale),
                    "b": _scaled(line.b, scale),
                    "change": _scaled(line.change, scale),
                    "noise_ns": float(line.noise),
                    "standing": line.standing,
                    "axis": line.axis or None,
                    "note": line.note or None,
                    "kernels": [
                        {"name": name or None, "a_ns": float(a), "b_ns": float(b)} for name, a, b in line.rows[:20]
                    ],
                }
                for line in table.lines
            ],
        }
    return data


def _scaled(value: Fraction, scale: int) -> int:
    return int(value * scale)


def steps_of(side: Sequence[TracedLaunch], ranks: Sequence[str]) -> tuple[int, int]:
    """The steps of a side that the table rests on, and all whole steps that were traced."""
    profiles = [profile for launch in side for rank in ranks for profile in launch.profiles[rank]]
    return sum(len(profile.kept) for profile in profiles), sum(len(profile.steps) for profile in profiles)


def shares_of(side: Sequence[TracedLaunch]) -> Mapping[str, float]:
    """The shares of the working time that operators, names, and nothing classed."""
    rows = [item.told for launch in side for own in launch.profiles.values() for item in own]
    sums = [sum(column) for column in zip(*rows, strict=True)]
    return {name: value / (sum(sums) or 1) for name, value in zip(("operator", "name", "other"), sums, strict=True)}
