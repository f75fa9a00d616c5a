"""What failed, and which shapes fit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from receipts.base.errors import NotFound, UsageError
from receipts.base.units import counted
from receipts.publish.page import Mark, Page, Section, table_of
from receipts.serve.cursor import page as page_of
from receipts.serve.operation import Call
from receipts.serve.pages.view import ROWS, View, moment, run
from receipts.serve.problems import status_of

if TYPE_CHECKING:
    from receipts.store import Entry as Stored


def failures(call: Call) -> View:
    """What failed, with its cost; which shapes fit by sequence and micro batch; whether another would."""
    given = call.request.query_params
    held = call.server.counts()
    lanes = [name for name, _ in held["lane"]]
    lane = given.get("lane") or (lanes[0] if lanes else "")
    if lane and lane not in lanes:
        raise NotFound(f"no receipt has lane {lane!r}")
    outcomes = [name for name, _ in held["outcome"] if name != "ok"]
    every: list[Stored] = []
    for outcome in outcomes:
        every += page_of(call.store.opened, [f"lane={lane}", f"outcome={outcome}"], limit=ROWS + 1)[0]
    rows = sorted(every, key=lambda item: item.started, reverse=True)[:ROWS]
    sections = [_envelope(call, lane), failed(rows)] if lane else []
    values: dict[str, Any] = {"lane": lane, "lanes": lanes, "plan": given.get("plan", "")}
    status = 200
    if given.get("plan"):
        try:
            page = call.store.preflight(given["plan"]).page()
            values["fits"] = (page.headline, page.lead)
        except (NotFound, UsageError) as error:
            values["fits"], status = ((str(error),), ()), status_of(error)
    costs = [hours for item in rows if (hours := _chip_hours(item)) is not None]
    cost = f"{sum(costs):,.1f} chip-hours" if costs else "at an unknown cost"
    if len(costs) < len(rows) and costs:
        cost += f" in the {len(costs)} whose cost is known"
    which = "the newest " if len(every) > len(rows) else ""
    number = counted(len(rows), "failed launch", "failed launches")
    headline = f"{which}{number} of {lane}, {cost}" if rows else "no launch failed"
    return View(Page("Failures and envelope", (headline,), sections=tuple(sections)), "failures", values, status)


def _chip_hours(item: Stored) -> float | None:
    """What a launch cost; None where its end or its chips are unknown."""
    if item.finished is None or item.finished <= item.started or item.chips is None:
        return None
    return (item.finished - item.started).total_seconds() / 3600 * item.chips


def failed(rows: Sequence[Stored]) -> Section:
    """Failed launches, the newest first, with what each cost."""
    # Times count as numbers, so that no line breaks in them.
    header = "run | outcome | phase | class | chips | sequence × micro | #chip-hours | #started, UTC"
    lines = (
        (
            run(item.id, item.name[:60]),
            item.outcome,
            item.failure_phase or "~",
            item.failure_class or "~",
            f"{item.chips or '?'} × {item.accelerator or '?'}",
            f"{item.sequence_length or '?'} × {item.micro_batch or '?'}",
            "~" if (hours := _chip_hours(item)) is None else f"{hours:,.2f}",
            moment(item),
        )
        for item in rows
    )
    return Section("failed", "What failed", tables=(table_of("Newest first", header, lines, empty="nothing failed"),))


def _envelope(call: Call, lane: str) -> Section:
    """Sequence by micro batch, for each model, depth and number of chips: how many launches fit, how many did not."""
    from receipts.axes.shape import described

    store = call.store.opened
    last: dict[tuple[Any, ...], str] = {}
    cells: dict[tuple[Any, ...], dict[tuple[int, int], list[int]]] = {}
    for item in call.server.cached(f"reached {lane}", lambda: call.server.opened.query.reached(lane)):
        if item.sequence_length is None or item.micro_batch is None:
            continue
        where = (item.accelerator, item.chips, item.depth, item.key)
        last[where] = item.last
        counts = cells.setdefault(where, {}).setdefault((item.sequence_length, item.micro_batch), [0, 0])
        counts[item.outcome != "ok"] += item.launches
    tables = []
    for where, held in list(cells.items())[: call.server.settings.limits.shapes]:
        accelerator, chips, depth, _ = where
        known = described(store.parsed(last[where]).stated)
        name = ": ".join(filter(None, (known.name or known.family, known.model, known.layout)))
        micro = sorted({size for _, size in held})
        rows = (
            (f"{length:,}", *(_fits(held.get((length, size))) for size in micro))
            for length in sorted({length for length, _ in held})
        )
        header = " | ".join(("#sequence", *(f"micro {size}" for size in micro)))
        tables.append(table_of(f"{name}; {chips or '?'} × {accelerator or '?'}, depth {depth or '?'}", header, rows))
    sentences = () if tables else ("No launch of this lane states its shape.",)
    return Section("envelope", "Envelope", sentences, tables=tuple(tables))


def _fits(counts: list[int] | None) -> Mark | str:
    if counts is None:
        return ""
    worked, failed = counts
    if worked and failed:
        return Mark("open", f"{worked:,} fit, {failed:,} did not")
    return Mark("yes", f"{worked:,} fit") if worked else Mark("no", f"{failed:,} did not fit")
