"""The views: from a call to a page. Each asks the store what a command asks it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import groupby
from typing import TYPE_CHECKING, Any, NamedTuple

from receipts import metrics
from receipts.base.errors import NotFound, UsageError
from receipts.base.units import counted
from receipts.publish.page import Code, Column, Entry, Figure, Mark, Page, Section, State, Table, row
from receipts.publish.readings import number
from receipts.serve.cursor import page as page_of
from receipts.serve.operation import Call
from receipts.serve.pages import drawing
from receipts.serve.pages.view import View, may, moment, run, url
from receipts.store.query.counts import NAMES

if TYPE_CHECKING:
    from receipts.api.receipt import Receipt
    from receipts.publish.report.shelf import Item
    from receipts.store import Entry as Stored

STATES: dict[str, State] = {"valid": "yes", "open": "open", "invalid": "no", "superseded": "shown"}
ROWS = 50
MOST_OPEN = 300  # open receipts that the inbox reads
RATE = "tokens_per_second_per_chip"


def frontier(call: Call) -> View:
    """A card a lane: proven beside reported results of its newest 26 weeks, and what to do next."""
    rows = call.server.cached("frontier", lambda: call.store.frontier().to_dict())
    lanes = groupby(rows, key=lambda item: item["lane"])
    sections = []
    for lane, held in lanes:
        items = list(held)
        tables = [
            _results(title, [item for item in items if item["proven"] is proven])
            for title, proven in (("Proven", True), ("Reported, not proven", False))
        ]
        questions = {code for item in items if not item["proven"] for code in item["open_questions"]}
        sentences = (f"What is reported waits for {', '.join(sorted(questions))}; see the inbox.",) if questions else ()
        sections.append(Section(f"lane-{lane}", lane, sentences, tables=tuple(part for part in tables if part.rows)))
    proven = sum(item["proven"] for item in rows)
    headline = f"{proven} proven, {len(rows) - proven} reported and not proven"
    lead = () if rows else ("No successful launch states a rate and its shape; add one with: receipts submit run.json",)
    return View(Page("Frontier", (headline,), lead=lead, sections=tuple(sections)))


def _results(title: str, rows: Sequence[dict[str, Any]]) -> Table:
    rate, mfu, peak = (metrics.get(name) for name in (RATE, "mfu", "peak_bytes"))
    columns = (
        *(Column(name) for name in ("run", "model", "chips")),
        Column("sequence", numeric=True),
        Column("rate", metrics.get(RATE).unit, numeric=True),
        Column("MFU", numeric=True),
        Column("peak", "GiB", numeric=True),
        Column("ran", numeric=True),
    )
    lines = [
        row(
            run(item["receipt"], item["label"][:60]),
            item["model"] or "~",
            f"{item['chips'] or '?'} × {item['accelerator'] or '?'}",
            f"{item['sequence_length']:,}" if item["sequence_length"] else "~",
            number(rate, item[RATE]) if item[RATE] else "~",
            number(mfu, item["mfu"]) if item["mfu"] else "~",
            number(peak, item["peak_bytes"]) if item["peak_bytes"] else "~",
            f"{item['ran']:%Y-%m-%d}",
        )
        for item in rows
    ]
    return Table(title, columns, tuple(lines))


def runs(call: Call) -> View:
    """Stored receipts by conditions, folded by configuration; two that are ticked are compared, more swept."""
    text = call.request.query_params.get("q", "")
    conditions = [f"{name}={value}" for name in NAMES if (value := call.request.query_params.get(name))]
    rows, following = page_of(
        call.store.opened,
        [*text.split(), *conditions],
        order="newest",
        limit=ROWS,
        superseded=False,
        cursor=call.request.query_params.get("cursor") or None,
    )
    chosen = [(name, value) for name in ("q", *NAMES) if (value := call.request.query_params.get(name))]
    held = call.server.counts()
    filters = [
        (
            name,
            [(value, count, url("/runs", _with(chosen, name, value)), (name, value) in chosen) for value, count in by],
        )
        for name, by in held.by.items()
    ]
    more = url("/runs", [*chosen, ("cursor", following)]) if following else ""
    values = {"query": text, "filters": filters, "folds": list(_folds(call, rows)), "more": more, "clear": bool(chosen)}
    total = sum(count for _, count in held.by["status"])
    headline = f"{len(rows)} of {total:,} receipts" if rows else "no receipt meets these conditions"
    return View(Page("Runs", (headline,)), "runs", values)


def _with(chosen: Sequence[tuple[str, str]], name: str, value: str) -> list[tuple[str, str]]:
    rest = [item for item in chosen if item[0] != name]
    return rest if (name, value) in chosen else [*rest, (name, value)]


def _folds(call: Call, rows: Sequence[Stored]) -> Iterator[dict[str, Any]]:
    """Rows by configuration, in the order of the newest launch of each."""
    from receipts.store.query.reports import Ran

    places = Ran(call.store.opened).place([item.id for item in rows])
    groups: dict[object, list[Stored]] = {}
    for item in rows:
        groups.setdefault(places.get(item.id, item.id), []).append(item)
    rate, peak = metrics.get(RATE), metrics.get("peak_bytes")
    for items in groups.values():
        first = items[0]
        rates = [value for item in items if (value := item.tokens_per_second_per_chip)]
        yield {
            "id": first.id,
            "name": first.name[:60],
            "launches": [(item.id, item.name, moment(item), item.status, item.outcome) for item in items],
            "mark": Mark(STATES[first.status], first.status),
            "outcome": first.outcome,
            "lane": first.lane,
            "hardware": f"{first.chips or '?'} × {first.accelerator or '?'}",
            "shape": f"{first.sequence_length or '?'} × {first.micro_batch or '?'}",
            "rate": number(rate, sorted(rates)[len(rates) // 2]) if rates else "~",
            "peak": number(peak, first.peak_bytes) if first.peak_bytes else "~",
            "started": moment(first),
        }


def one_run(call: Call) -> View:
    """One receipt: verdict and reasons first, answers, steps, memory, configuration, how to run it again, quotes."""
    from receipts.questions.repro import recipe

    receipt = call.store.get(call.name)
    published = call.store.opened.published
    shown = receipt.page(stated=True)
    sections = [_folded(item) if item.id == "facts" else item for item in shown.sections]
    steps = _steps(call, receipt)
    sections[1:1] = [steps] if steps is not None else []
    script = recipe(receipt.parsed).script()
    quotes = [(item.document, item.says or "") for item in published.quotes(receipt.id)]
    claims = published.claims_on(receipt.id)
    points = (
        [("quoted in", tuple((f"{document}: {text}".rstrip(": "),) for document, text in quotes))] if quotes else []
    )
    points += [("claims", tuple((name,) for name in claims))] if claims else []
    if points:
        sections.append(Section("quotes", "Who quotes it", points=tuple(points)))
    values = {"id": receipt.id, "script": script, "may_decide": may(call, "decide")}
    # The label is the page's title already.
    facts = tuple(item for item in shown.facts if item != ("", (shown.title,)))
    return View(replace(shown, facts=facts, sections=tuple(sections)), "run", values)


def _folded(section: Section) -> Section:
    return replace(section, title="Configuration and everything that is stated", fold="all stated leaves")


def _steps(call: Call, receipt: Receipt) -> Section | None:
    launch = call.server.rulebook.launch(receipt.parsed)
    segment, seconds = launch.segment, launch.durations
    steady = segment.of(range(len(seconds))) if segment is not None and segment.status == "steady" else []
    if len(seconds) < 2:
        return None
    caption = ("Seconds by step; what is shaded is steady and counts",)
    figure = Figure("steps-trace", caption, lambda name: drawing.trace(name, seconds, steady))
    return Section("steps", "Steps", figures=(figure,))


def comparison(call: Call) -> View:
    """B against A: one sentence, effects beside δ, what changed, launches in time, what would settle it."""
    given = call.request.query_params
    sides = [[word for text in given.getlist(name) for word in _several(text)] for name in ("a", "b")]
    ticked = given.getlist("run")
    if not all(sides) and len(ticked) == 2:
        sides = [[ticked[1]], [ticked[0]]]  # a list has the newest first
    if not all(sides) and len(ticked) > 2:
        return _sweep(call, ticked)
    if not all(sides):
        return View(
            Page("Compare", ("Name two receipts, or tick them in the list of runs",)), "compare", {"a": "", "b": ""}
        )
    metric = given.get("metric") or metrics.DEFAULT
    with call.server.gate:
        answer = call.store.compare(sides[0], sides[1], metric=metric)
    shown = answer.page()
    results = [item for item in answer.verdict.results if item.effect.low and item.effect.high and item.ratio]
    effects = [
        drawing.Interval(item.metric, item.ratio or 1.0, item.effect.low or 1.0, item.effect.high or 1.0)
        for item in results
    ]
    delta = next((item.effect.delta for item in results if item.effect.delta), 0.01) or 0.01
    sections = list(shown.sections)
    if effects and answer.status != "rejected":
        caption = ("B over A with 95 % intervals; what lies in the shaded margin is no change that matters",)
        figure = Figure("effects", caption, lambda name: drawing.forest(name, effects, delta))
        sections = [replace(item, figures=(figure,)) if item.id == "effect" else item for item in sections]
    launches = sorted(
        ((item.receipt.run.started, side, item) for side in ("A", "B") for item in getattr(answer.sides, side.lower())),
        key=lambda part: (part[0], part[1]),
    )
    rows = tuple(row(side, f"{at:%Y-%m-%d %H:%M:%S}", run(item.id, item.name[:60])) for at, side, item in launches)
    table = Table("Launches", (Column("side"), Column("started, UTC"), Column("launch")), rows)
    sections.append(Section("launches", "Launches in time", tables=(table,)))
    values = {"a": ", ".join(sides[0]), "b": ", ".join(sides[1]), "metric": metric, "metrics": list(metrics.METRICS)}
    return View(replace(shown, sections=tuple(sections)), "compare", values)


def _several(text: str) -> list[str]:
    """``3f9c, 81aa`` is two receipts, as on a command line."""
    words = [text] if text.startswith("label=") else text.split(",")
    return [word.strip() for word in words if word.strip()]


def _sweep(call: Call, ticked: Sequence[str]) -> View:
    """More than two: each against the oldest of them."""
    base, *others = reversed(ticked)
    rows = []
    with call.server.gate:
        for other in others[: call.server.settings.limits.swept]:
            answer = call.store.compare(base, other)
            ratio = f"×{answer.ratio:.4g}" if answer.ratio is not None and answer.status != "rejected" else "~"
            state: State = {"accepted": "yes", "rejected": "no"}.get(answer.status, "open")  # type: ignore[assignment]
            link = run(other, answer.verdict.label_b[:60])
            changed = ", ".join(answer.verdict.counted) or "no axis"
            rows.append(row(link, changed, ratio, answer.verdict.effect, Mark(state, answer.status)))
    columns = (Column("run"), Column("changed"), Column("B over A", numeric=True), Column("effect"), Column("verdict"))
    table = Table("Each against the oldest", columns, tuple(rows))
    steps = ((f"receipts bridge {base[:12]} {others[-1][:12]}", "Split the whole difference"),)
    page = Page("Compare", (f"{len(rows)} runs against {base[:12]}",), next=steps)
    return View(replace(page, sections=(Section("sweep", "Sweep", tables=(table,)),)), "compare", {"a": "", "b": ""})


def failures(call: Call) -> View:
    """What failed, with its cost; which shapes fit by sequence and micro batch; whether another would."""
    given = call.request.query_params
    held = call.server.counts()
    lanes = [name for name, _ in held.by["lane"]]
    lane = given.get("lane") or (lanes[0] if lanes else "")
    if lane and lane not in lanes:
        raise NotFound(f"no receipt has lane {lane!r}")
    outcomes = [name for name, _ in held.by["outcome"] if name != "ok"]
    rows: list[Stored] = []
    for outcome in outcomes:
        rows += page_of(
            call.store.opened,
            [f"lane={lane}", f"outcome={outcome}"],
            order="newest",
            limit=ROWS,
            superseded=False,
            cursor=None,
        )[0]
    rows = sorted(rows, key=lambda item: item.started, reverse=True)[:ROWS]
    sections = [_envelope(call, lane), _failed(rows)] if lane else []
    values: dict[str, Any] = {"lane": lane, "lanes": lanes, "plan": given.get("plan", "")}
    if given.get("plan"):
        answer = call.store.preflight(given["plan"])
        page = answer.page()
        values["fits"] = (page.headline, page.lead)
    costs = [hours for item in rows if (hours := _chip_hours(item)) is not None]
    cost = f"{sum(costs):,.1f} chip-hours" if costs else "at an unknown cost"
    if len(costs) < len(rows) and costs:
        cost += f" in the {len(costs)} whose cost is known"
    headline = f"{counted(len(rows), 'launch', 'launches')} of {lane} failed, {cost}" if rows else "no launch failed"
    return View(Page("Failures and envelope", (headline,), sections=tuple(sections)), "failures", values)


def _chip_hours(item: Stored) -> float | None:
    """What a launch cost; None where its end or its chips are unknown."""
    if item.finished is None or item.finished <= item.started or item.chips is None:
        return None
    return (item.finished - item.started).total_seconds() / 3600 * item.chips


def _failed(rows: Sequence[Stored]) -> Section:
    # Times count as numbers, so that no line breaks in them.
    columns = (
        *(Column(name) for name in ("run", "outcome", "phase", "class", "chips")),
        Column("sequence × micro"),
        Column("chip-hours", numeric=True),
        Column("started, UTC", numeric=True),
    )
    lines = tuple(
        row(
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
    return Section("failed", "What failed", tables=(Table("Newest first", columns, lines, empty="nothing failed"),))


def _envelope(call: Call, lane: str) -> Section:
    """Sequence by micro batch, for each depth and number of chips: how many launches fit, how many did not."""
    cells: dict[tuple[Any, ...], dict[tuple[int, int], list[int]]] = {}
    for item in call.store.opened.query.reached(lane):
        if item.sequence_length is None or item.micro_batch is None:
            continue
        where = (item.accelerator, item.chips, item.depth, item.key)
        counts = cells.setdefault(where, {}).setdefault((item.sequence_length, item.micro_batch), [0, 0])
        counts[item.outcome != "ok"] += item.launches
    tables = []
    for (accelerator, chips, depth, _), held in list(cells.items())[: call.server.settings.limits.shapes]:
        micro = sorted({size for _, size in held})
        rows = tuple(
            row(f"{length:,}", *(_fits(held.get((length, size))) for size in micro))
            for length in sorted({length for length, _ in held})
        )
        columns = (Column("sequence", numeric=True), *(Column(f"micro {size}") for size in micro))
        tables.append(Table(f"{chips or '?'} × {accelerator or '?'}, depth {depth or '?'}", columns, rows))
    sentences = () if tables else ("No launch of this lane states its shape.",)
    return Section("envelope", "Envelope", sentences, tables=tuple(tables))


def _fits(counts: list[int] | None) -> Mark | str:
    if counts is None:
        return ""
    worked, failed = counts
    if worked and failed:
        return Mark("open", f"{worked} fit, {failed} did not")
    return Mark("yes", f"{worked} fit") if worked else Mark("no", f"{failed} did not fit")


def inbox(call: Call) -> View:
    """Open questions by how many receipts an answer would settle, failed launches of a week, claims that are stale."""
    questions = call.server.cached("inbox", lambda: _open_questions(call))
    points = [
        Entry(
            f"open-{at}",
            (Mark("open", item.words), f" · {counted(len(item.waiting), 'receipt')}{_only(item.alone)}"),
            (("runs", _linked(item.waiting)), ("settle the first", (Code(item.command, command=True),))),
        )
        for at, item in enumerate(questions)
    ]
    week = datetime.now(UTC) - timedelta(days=7)
    failed = page_of(
        call.store.opened,
        [f"started>={week:%Y-%m-%d}", "outcome!=ok"],
        order="newest",
        limit=ROWS,
        superseded=False,
        cursor=None,
    )[0]
    stale = [item for item in call.store.claims().to_dict() if item["status"] in ("stale", "refuted")]
    claims = tuple(row(item["claim"], Mark("no", item["status"]), item["text"][:200]) for item in stale)
    table = Table(
        "Claims", (Column("claim"), Column("status"), Column("says")), claims, empty="no claim is stale or refuted"
    )
    sections = (
        Section("open", "Open questions", (_read(call),) if points else ("Nothing is open.",), entries=tuple(points)),
        replace(_failed(failed), title="Failed in the last seven days"),
        Section("claims", "Stale and refuted claims", tables=(table,)),
    )
    open_, fell = counted(len(points), "open question"), counted(len(failed), "failed launch", "failed launches")
    headline = f"{open_}, {fell}, {counted(len(stale), 'claim')} stale or refuted"
    return View(Page("Inbox", (headline,), sections=sections))


def _read(call: Call) -> str:
    total = dict(call.server.counts().by["status"]).get("open", 0)
    which = (
        f"the newest {MOST_OPEN} of {total:,} open receipts" if total > MOST_OPEN else counted(total, "open receipt")
    )
    return f"Questions of {which}, the ones first that would settle most; a receipt may wait for several."


def _only(alone: int) -> str:
    return f", {alone} of them for nothing else" if alone else ""


def _linked(ids: Sequence[tuple[str, str]]) -> tuple[Any, ...]:
    cells: list[Any] = []
    for receipt, name in ids[:6]:
        cells += [", " if cells else "", run(receipt, name[:40])]
    return (*cells, f" and {len(ids) - 6} more") if len(ids) > 6 else tuple(cells)


class _Question(NamedTuple):
    """What open receipts wait for: those that wait, those that wait for nothing else, and a command for the first."""

    words: str
    waiting: list[tuple[str, str]]
    alone: int
    command: str


def _open_questions(call: Call) -> list[_Question]:
    """Each question of the newest open receipts; the ones whose answer settles most come first."""
    from receipts.publish.report.shelf import Shelf
    from receipts.questions.deciding import of_receipt

    now = datetime.now(UTC)
    rows, _ = page_of(
        call.store.opened, ["status=open"], order="newest", limit=MOST_OPEN, superseded=False, cursor=None
    )
    groups: dict[str, list[Item]] = {}
    alone: Counter[str] = Counter()
    for item in Shelf(call.store.opened, call.server.rulebook, now, (), now).items(rows):
        waiting = {f"{one.code} {one.name.replace('_', ' ')}" for one in item.verdict.findings if one.level == "I"}
        for words in waiting:
            groups.setdefault(words, []).append(item)
        alone.update(waiting if len(waiting) == 1 else ())
    ordered = sorted(groups.items(), key=lambda part: (-alone[part[0]], -len(part[1]), part[0]))
    return [
        _Question(
            words,
            [(item.entry.id, item.entry.name) for item in items],
            alone[words],
            of_receipt(items[0].parsed, items[0].verdict),
        )
        for words, items in ordered
    ]


def changed(call: Call, form: Any) -> str:
    """Set a pin or record a decision; gives where to go. Raises UsageError and NotFound."""
    opened = call.store.opened
    receipt = opened.resolve(call.name)
    if form.get("pin"):
        opened.pin(str(form["pin"]), receipt, str(form.get("note") or "") or None)
    elif form.get("decision"):
        opened.published.decide(receipt, str(form["decision"]), str(form.get("reason") or ""))
    else:
        raise UsageError("name a pin, or choose a decision and give a reason")
    return f"/runs/{receipt}"
