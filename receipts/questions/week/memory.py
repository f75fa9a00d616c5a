"""Memory by chip: the launches of a stretch whose tightest chip keeps the least of its limit."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, NamedTuple

import orjson

from receipts.metrics.chips import account
from receipts.questions.week.data import Cut, Ref
from receipts.questions.week.reader import Item, ReportReader
from receipts.receipt import VERSION, Document, parse_again


@dataclass(frozen=True, slots=True)
class Headroom:
    """Memory of one launch by physical chip: who leads, how far peaks lie apart, and what the tightest chip keeps.

    `leaders` have the highest live peak, `skew` is how far that lies above the median chip of its phase, and
    `first_chips` peaked at `first_step` where the last chip did at `last_step`. `left` is the share of its limit that
    the tightest chip keeps, `wanted` what the lane wants kept. `faulty` says that a chip is missing or is listed twice.
    """

    receipt: Ref
    lane: str
    chips: int
    chip: int
    phase: str
    lowest_peak_bytes: int
    highest_peak_bytes: int
    leaders: tuple[int, ...]
    skew: float | None
    first_chips: tuple[int, ...]
    first_step: int | None
    last_step: int | None
    faulty: bool
    limit_bytes: int | None
    left: float | None
    wanted: float

    @property
    def is_tight(self) -> bool:
        """Whether less is left than the lane wants."""
        return self.left is not None and self.left < self.wanted


class Left(NamedTuple):
    """The least that a chip of a launch keeps of its limit, as a share; None where no chip states both."""

    share: float | None


def headroom(reader: ReportReader, items: Iterable[Item], most: int) -> Cut[Headroom]:
    """Launches that read their memory chip by chip, the tightest first.

    One figure for many chips tells of none. Of every document its rows of memory alone are looked at; the receipts
    that are shown are read.
    """
    by_number = {item.entry.seq: item for item in items if item.entry.peak_bytes is not None}
    ranked: list[tuple[bool, float, str, int]] = []
    for seq, raw in reader.stored.documents(sorted(by_number)):
        left = left_of(raw)
        if left is not None:
            ranked.append((left.share is None, left.share or 0.0, by_number[seq].entry.id, seq))
    rows = (_headroom(by_number[seq]) for *_, seq in sorted(ranked)[:most])
    shown = tuple(item for item in rows if item is not None)
    return Cut(shown, max(0, len(ranked) - len(shown)))


def left_of(raw: bytes) -> Left | None:
    """What the tightest chip of a document keeps, as `receipts.metrics.chips` has it; None where no chip states a live
    peak.

    A tenth of the time that reading the receipt takes.
    """
    tree = orjson.loads(raw)
    if tree["schema_version"] != VERSION:
        memory = account(parse_again(Document(raw, "")))
        tightest = memory.tightest
        return Left(tightest.left if tightest is not None else None) if memory.worst("peak") is not None else None
    peaks: dict[Any, int] = {}
    limits: dict[Any, int] = {}
    for row in (tree.get("memory") or {}).get("chips") or ():
        place = (row["chip"], row["phase"])
        peak, limit = row.get("peak_bytes"), row.get("bytes_limit")
        if peak is not None:
            peaks[place] = max(peak, peaks.get(place, peak))
        if limit is not None:
            limits[place] = min(limit, limits.get(place, limit))
    shares = [(limits[place] - peak) / limits[place] for place, peak in peaks.items() if limits.get(place)]
    return Left(min(shares, default=None)) if peaks else None


def _headroom(item: Item) -> Headroom | None:
    memory = item.launch.account
    phase = memory.worst("peak")
    ranking = phase.ranking("peak") if phase is not None else None
    if phase is None or ranking is None:
        return None
    # A chip with a low limit may be tighter than the one with the highest peak.
    tightest, moment = memory.tightest, phase.moment
    apart = moment if moment is not None and not moment.together else None
    return Headroom(
        receipt=item.ref,
        lane=item.entry.lane,
        chips=len(memory.peaks),
        chip=tightest.chip if tightest is not None else ranking.leaders[0],
        phase=tightest.phase if tightest is not None else phase.name,
        lowest_peak_bytes=min(memory.peaks.values()),
        highest_peak_bytes=ranking.highest,
        leaders=ranking.leaders,
        skew=ranking.skew,
        first_chips=apart.chips if apart is not None else (),
        first_step=apart.step if apart is not None else None,
        last_step=moment.last_step if moment is not None else None,
        faulty=not all(one.whole for one in memory.phases),
        limit_bytes=tightest.limit if tightest is not None else None,
        left=tightest.left if tightest is not None else None,
        wanted=item.lane.headroom,
    )
