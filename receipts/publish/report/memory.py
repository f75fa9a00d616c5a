"""Memory by chip: the launches of an interval whose tightest chip keeps the least of its limit."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import orjson

from receipts.metrics.chips import account
from receipts.publish.report.data import Headroom
from receipts.publish.report.shelf import Item, Shelf
from receipts.receipt import VERSION, Document, parse_again


class Left(NamedTuple):
    """The least that a chip of a launch keeps of its limit, as a share; None where no chip states both."""

    share: float | None


def headroom(shelf: Shelf, items: Iterable[Item], most: int) -> tuple[list[Headroom], int]:
    """Launches that read their memory chip by chip, the tightest first, and how many are left out.

    One figure for many chips tells of none. Of every document its rows of memory alone are looked at; the receipts
    that are shown are read.
    """
    by_number = {item.entry.seq: item for item in items if item.entry.peak_bytes is not None}
    found: list[tuple[bool, float, str, int]] = []
    for number, raw in shelf.stored.documents(sorted(by_number)):
        left = left_of(raw)
        if left is not None:
            found.append((left.share is None, left.share or 0.0, by_number[number].entry.id, number))
    made = (_headroom(by_number[number]) for *_, number in sorted(found)[:most])
    shown = [item for item in made if item is not None]
    return shown, max(0, len(found) - len(shown))


def left_of(raw: bytes) -> Left | None:
    """What the tightest chip of a document keeps, as `receipts.metrics.chips` has it; None where no chip states a live
    peak.

    A tenth of the time that reading the receipt takes.
    """
    tree = orjson.loads(raw)
    if tree["schema_version"] != VERSION:
        made = account(parse_again(Document(raw, "")))
        tightest = made.tightest
        return Left(tightest.left if tightest is not None else None) if made.worst("peak") is not None else None
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
    made = item.launch.account
    phase = made.worst("peak")
    ranking = phase.ranking("peak") if phase is not None else None
    if phase is None or ranking is None:
        return None
    # A chip with a low limit may be tighter than the one with the highest peak.
    tightest, moment = made.tightest, phase.moment
    apart = moment if moment is not None and not moment.together else None
    return Headroom(
        receipt=item.ref,
        lane=item.entry.lane,
        chips=len(made.peaks),
        chip=tightest.chip if tightest is not None else ranking.leaders[0],
        phase=tightest.phase if tightest is not None else phase.name,
        lowest_peak_bytes=min(made.peaks.values()),
        highest_peak_bytes=ranking.highest,
        leaders=ranking.leaders,
        skew=ranking.skew,
        first_chips=apart.chips if apart is not None else (),
        first_step=apart.step if apart is not None else None,
        last_step=moment.last_step if moment is not None else None,
        faulty=not all(one.whole for one in made.phases),
        limit_bytes=tightest.limit if tightest is not None else None,
        left=tightest.left if tightest is not None else None,
        wanted=item.lane.headroom,
    )
