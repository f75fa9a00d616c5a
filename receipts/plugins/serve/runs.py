"""Pages of runs: stored receipts by conditions, one receipt with its steps, and two or more beside each other."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from receipts import metrics
from receipts.api.questions.receipts import list_receipts
from receipts.base.errors import UsageError
from receipts.base.units import counted
from receipts.plugins.serve.operation import Call
from receipts.plugins.serve.view import RATE, ROWS, View, may, moment, run, url
from receipts.publish.page import Figure, Link, Page, Section, marked, table_of
from receipts.publish.pictures import forest, svg
from receipts.publish.pictures.chart import BELOW, WIDTH, Panel, Scale, below, frame, nice, upward
from receipts.publish.pictures.svg import MARKS, Canvas
from receipts.publish.readings import number
from receipts.store.query.reports import FACETS

if TYPE_CHECKING:
    from receipts.api.receipt import Receipt
    from receipts.store import Entry as Stored
    from receipts.store.decisions import Pin


STEPS_HEIGHT: Final = 180.0
MAX_POINTS: Final = 400  # points; of more steps the slowest of each stretch is drawn
_STEPS_LEFT: Final = 60.0
_STEPS_TOP: Final = 30.0


def steps_picture(seconds: Sequence[float], steady: Sequence[int], *, name: str, title: str) -> str | None:
    """Milliseconds by step, the steady ones shaded; None for fewer than two steps."""
    if len(seconds) < 2 or max(seconds) <= 0:
        return None
    alt = f"{len(seconds)} steps, the slowest {max(seconds) * 1e3:.4g} ms"
    if steady:
        alt += f"; {len(steady)} of them are steady"
    stretch = -(-len(seconds) // MAX_POINTS)
    starts = range(0, len(seconds), stretch)
    slowest = [max(range(at, min(at + stretch, len(seconds))), key=seconds.__getitem__) for at in starts]

    def paint(canvas: Canvas) -> None:
        ticks = upward([seconds[at] * 1e3 for at in slowest])
        size = (WIDTH - _STEPS_LEFT - 12.0, STEPS_HEIGHT - _STEPS_TOP - BELOW)
        plot = Panel(_STEPS_LEFT, _STEPS_TOP, *size, Scale(0.0, len(seconds) - 1.0), Scale(0.0, max(ticks)))
        ends = [(plot.at(start, 0.0)[0], plot.at(stop, 0.0)[0]) for start, stop in _stretches(steady)]
        shades = [(left, plot.top, max(1.0, right - left), plot.height) for left, right in ends]
        canvas.boxes(shades, fill=MARKS[0].light, alpha=0.15)
        frame(canvas, plot, title="step time, ms", ticks=ticks)
        canvas.line([plot.at(at, seconds[at] * 1e3) for at in slowest], colour=MARKS[0].light)
        steps = [at for at in nice(0.0, len(seconds) - 1.0, 6) if at < len(seconds) and at == int(at)]
        below(canvas, plot, [(at, f"{at:,.0f}") for at in steps], "step")

    return svg.inline_svg(paint, name=name, width=WIDTH, height=STEPS_HEIGHT, title=title, alt=alt)


def _stretches(steps: Sequence[int]) -> Iterator[tuple[int, int]]:
    """Runs of steps that follow each other, each with its first and last."""
    start = 0
    for at in range(1, len(steps) + 1):
        if at == len(steps) or steps[at] != steps[at - 1] + 1:
            yield steps[start], steps[at - 1]
            start = at


TITLE: Final = 120  # letters of a label; the whole is among what is stated
REASONS: Final = ("failure", "errors", "missing")  # what a reader looks for first


def one_run(call: Call) -> View:
    """One receipt: verdict and reasons first, answers, steps, memory, configuration, how to run it again, quotes."""
    from receipts.questions.repro import recipe

    receipt = call.store.get(call.name)
    published = call.store.opened.published
    shown = receipt.page(facts=True)
    sections = [_titled(item) for item in shown.sections]
    steps = _steps(call, receipt)
    sections[1:1] = [steps] if steps is not None else []
    sections.sort(key=lambda item: item.id not in REASONS)
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
    facts += tuple(
        ("", (f"pinned as @{item.name}{f': {item.note}' if item.note else ''}",)) for item in _pins(call, receipt.id)
    )
    return View(replace(shown, title=shown.title[:TITLE], facts=facts, sections=tuple(sections)), "run", values)


def _pins(call: Call, receipt: str) -> list[Pin]:
    return [item for item in call.store.opened.pins().values() if item.receipt == receipt]


def _titled(section: Section) -> Section:
    if section.id == "facts":
        return replace(section, title="Configuration and everything that is stated", fold="all stated leaves")
    return replace(section, title="At a glance") if section.id == "answers" else section


def _steps(call: Call, receipt: Receipt) -> Section | None:
    launch = call.server.rulebook.launch(receipt.parsed)
    segment, seconds = launch.segment, launch.durations
    steady = segment.of(range(len(seconds))) if segment is not None and segment.status == "steady" else []
    if len(seconds) < 2:
        return None
    caption = ("Step times; what is shaded is steady and counts",)
    figure = Figure("steps-trace", caption, lambda name: steps_picture(seconds, steady, name=name, title="Steps"))
    return Section("steps", "Steps", figures=(figure,))


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
        return _other_side(call, sides)
    metric = given.get("metric") or metrics.DEFAULT
    answer = call.store.compare(sides[0], sides[1], metric=metric)
    shown = answer.page()
    effects = [
        forest.ForestRow(item.metric, item.ratio, low, high, item.effect.delta, answer.status == "accepted")
        for item in answer.verdict.results
        if item.ratio and (low := item.effect.low) and (high := item.effect.high)
    ]
    sections = list(shown.sections)
    if effects and answer.status != "rejected":
        hollow = "" if answer.status == "accepted" else ". Hollow: not settled"
        caption = (f"B over A with 95 % intervals; what lies in the shaded band is no change that matters{hollow}",)
        figure = Figure("effects", caption, partial(_drawn, effects))
        sections = [replace(item, figures=(figure,)) if item.id == "effect" else item for item in sections]
    launches = sorted(
        ((item.receipt.run.started, side, item) for side in ("A", "B") for item in getattr(answer.sides, side.lower())),
        key=lambda part: (part[0], part[1]),
    )
    rows = ((side, f"{at:%Y-%m-%d %H:%M:%S}", run(item.id, item.name[:60])) for at, side, item in launches)
    table = table_of("Launches", "side | started, UTC | launch", rows)
    sections.append(Section("launches", "Launches in time", tables=(table,)))
    values = {"a": ", ".join(sides[0]), "b": ", ".join(sides[1]), "metric": metric, "metrics": list(metrics.METRICS)}
    return View(replace(shown, sections=tuple(sections)), "compare", values)


def _other_side(call: Call, sides: Sequence[Sequence[str]]) -> View:
    """A comparison of which one side is named: what differs from that in one setting is a click away."""
    values = dict(zip("ab", map(", ".join, sides), strict=True))
    if not any(sides):
        return View(Page("Compare", ("Name two receipts, or tick them in the list of runs",)), "compare", values)
    known = values["a"] or values["b"]
    rows = (
        (
            Link((item["label"] or item["receipt"][:12])[:60], url("/compare", [("a", known), ("b", item["receipt"])])),
            ", ".join(f"{one['path']} {one['from']} → {one['to']}" for one in item["members"]) or item["axis"],
            marked(item["status"]),
            f"{len(item['launches']):,}",
        )
        for item in call.store.neighbours(known).to_dict()["neighbours"]
    )
    empty = "No stored run differs in one setting alone; name the other one above."
    table = table_of("", "compare with | what changed | verdict | #launches", rows, empty=empty)
    sections = (Section("near", "One setting away", tables=(table,)),)
    return View(Page("Compare", ("Choose the other run",), sections=sections), "compare", values)


def _drawn(effects: Sequence[forest.ForestRow], name: str) -> str | None:
    return forest.picture(effects, name=name, title="Effects", fewest=1)


def _several(text: str) -> list[str]:
    """``3f9c, 81aa`` is two receipts, as on a command line."""
    words = [text] if text.startswith("label=") else text.split(",")
    return [word.strip() for word in words if word.strip()]


def _sweep(call: Call, ticked: Sequence[str]) -> View:
    """More than two: each against the oldest of them."""
    base, *others = reversed(ticked)
    rows = []
    for other in others[: call.server.settings.limits.swept]:
        answer = call.store.compare(base, other)
        ratio = f"×{answer.ratio:.4g}" if answer.ratio is not None and answer.status != "rejected" else "~"
        link = run(other, answer.verdict.label_b[:60])
        changed = ", ".join(answer.verdict.counted) or "no axis"
        rows.append((link, changed, ratio, answer.verdict.effect, marked(answer.status)))
    table = table_of("Each against the oldest", "run | changed | #B over A | effect | verdict", rows)
    steps = ((f"receipts bridge {base[:12]} {others[-1][:12]}", "Split the whole difference"),)
    page = Page("Compare", (f"{len(rows)} runs against {base[:12]}",), next=steps)
    return View(replace(page, sections=(Section("sweep", "Sweep", tables=(table,)),)), "compare", {"a": "", "b": ""})


def runs(call: Call) -> View:
    """Stored receipts by conditions, folded by configuration; two that are ticked are compared, more swept."""
    text = call.request.query_params.get("q", "")
    conditions = [f"{name}={value}" for name in FACETS if (value := call.request.query_params.get(name))]
    cursor = call.request.query_params.get("cursor") or None
    listed = list_receipts(call.store.session, [*text.split(), *conditions], limit=ROWS, cursor=cursor)
    rows, following = listed.entries, listed.following
    chosen = [(name, value) for name in ("q", *FACETS) if (value := call.request.query_params.get(name))]
    held = call.server.counts()
    filters = [
        (
            name,
            [(value, count, url("/runs", _with(chosen, name, value)), (name, value) in chosen) for value, count in by],
        )
        for name, by in held.items()
    ]
    more = url("/runs", [*chosen, ("cursor", following)]) if following else ""
    values = {"query": text, "filters": filters, "folds": list(_folds(call, rows)), "more": more, "clear": bool(chosen)}
    part = following is not None or "cursor" in call.request.query_params
    headline = _headline(len(rows), sum(count for _, count in held["status"]), chosen=bool(chosen), part=part)
    return View(Page("Runs", (headline,)), "runs", values)


def _headline(count: int, total: int, *, chosen: bool, part: bool) -> str:
    """How many rows there are; ``total`` counts the whole store, and nobody counted what meets conditions."""
    if not count:
        return "no receipt meets these conditions" if chosen else "no receipt yet; store one: receipts submit run.json"
    if chosen:
        return f"{count} of the receipts that meet these conditions" if part else counted(count, "receipt")
    return f"{count} of {total:,} receipts" if part else counted(count, "receipt")


def _with(chosen: Sequence[tuple[str, str]], name: str, value: str) -> list[tuple[str, str]]:
    rest = [item for item in chosen if item[0] != name]
    return rest if (name, value) in chosen else [*rest, (name, value)]


def _folds(call: Call, rows: Sequence[Stored]) -> Iterator[dict[str, Any]]:
    """Rows by configuration, in the order of the newest launch of each."""
    from receipts.store.query.reports import ReportQueries

    places = ReportQueries(call.store.opened.database).place([item.id for item in rows])
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
            "mark": marked(first.status),
            "outcome": first.outcome,
            "lane": first.lane,
            "hardware": _times(first.chips, first.accelerator),
            "shape": _times(first.sequence_length, first.micro_batch),
            "rate": number(rate, sorted(rates)[len(rates) // 2]) if rates else "~",
            "peak": number(peak, first.peak_bytes) if first.peak_bytes else "~",
            "started": moment(first),
        }


def _times(one: object, other: object) -> str:
    """``8 × h200-sxm``; a side that is not stated is a question mark, and neither is `~`."""
    return f"{one or '?'} × {other or '?'}" if one or other else "~"
