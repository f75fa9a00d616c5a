"""Pages of runs: the list of them; one, two beside each other, or more than two against the oldest.

The page of one has its verdict with the reasons, steps, memory, configuration, how to repeat it, and who quotes it. The
list is found by words and conditions, by facets and days, in the order of a column: by time a page follows another by
the receipt that ends it, and by any other column the newest `SORTED` are put in order.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import replace
from datetime import date, timedelta
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from receipts import metrics
from receipts.api.lists import MAX_CONDITIONS, Cursor, read_cursor
from receipts.base.errors import UsageError
from receipts.base.units import counted
from receipts.metrics.chips import account
from receipts.plugins.serve.operation import Call
from receipts.plugins.serve.view import RATE, ROWS, View, in_words, may, moment, run, url
from receipts.publish import plots
from receipts.publish.comparison import bridge_command
from receipts.publish.page import Figure, Link, Page, Section, marked, table_of
from receipts.publish.plots import Ran, Trace, launches_picture, steps_picture
from receipts.publish.readings import named, number
from receipts.store import Condition, Filters, condition
from receipts.store.query import is_condition
from receipts.store.query.reports import FACETS, ReportQueries

if TYPE_CHECKING:
    from starlette.datastructures import QueryParams

    from receipts.api.receipt import Receipt
    from receipts.store import Entry as Stored
    from receipts.store.query.lists import Order

TITLE: Final = 120  # letters of a label; the whole is among what is stated
REASONS: Final = ("failure", "errors", "missing")  # what a reader looks for first
TITLES: Final[dict[str, dict[str, Any]]] = {
    "facts": {"title": "Configuration and everything that is stated", "fold": "all stated leaves"},
    "answers": {"title": "At a glance"},
}


def one_run(call: Call) -> View:
    """One receipt: verdict and reasons first, answers, steps, memory, configuration, how to run it again, quotes."""
    from receipts.questions.commands import recipe

    receipt = call.store.get(call.name)
    published = call.store.opened.published
    shown = receipt.page(facts=True)
    sections = [replace(item, **TITLES.get(item.id, {})) for item in in_words(shown).sections]
    sections[1:1] = _pictures(call, receipt)
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
        ("", (f"pinned as @{item.name}{f': {item.note}' if item.note else ''}",))
        for item in call.store.opened.pins().values()
        if item.receipt == receipt.id
    )
    return View(replace(shown, title=shown.title[:TITLE], facts=facts, sections=tuple(sections)), "run", values)


def _pictures(call: Call, receipt: Receipt) -> Iterator[Section]:
    """The steps of a launch, where it kept them, and its memory by chip, where it states several and a plugin draws."""
    trace = Trace.of(call.server.rulebook.launch(receipt.parsed))
    if len(trace.seconds) > 1:
        caption = ("Step times; what is shaded is steady and counts",)
        figure = Figure("steps-trace", caption, lambda name: steps_picture([trace], name=name, title="Steps"))
        yield Section("steps", "Steps", figures=(figure,))
    draw = getattr(call.store, "chips", None)
    if draw is not None and len({item.chip for phase in account(receipt.parsed).phases for item in phase.chips}) > 1:
        (first, *_) = draw(receipt.id).page().sections
        if first.figures:
            yield replace(first, id="chips", title="Memory by chip, as the chips stand")


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
    sides = []
    for name in ("a", "b"):
        # `3f9c, 81aa` is two receipts, as on a command line.
        texts = [[text] if text.startswith("label=") else text.split(",") for text in given.getlist(name)]
        sides.append([word.strip() for words in texts for word in words if word.strip()])
    ticked = given.getlist("run")
    if not all(sides) and len(ticked) == 2:
        sides = [[ticked[1]], [ticked[0]]]  # a list has the newest first
    if not all(sides) and len(ticked) > 2:
        return _sweep(call, ticked)
    if not all(sides):
        return _other_side(call, sides)
    metric = given.get("metric") or metrics.DEFAULT
    answer = call.store.compare(sides[0], sides[1], metric=metric)
    shown = in_words(answer.page())
    figure, sections = plots.comparison_figure(answer.verdict), list(shown.sections)
    if figure is not None:
        sections = [replace(item, figures=(figure,)) if item.id == "effect" else item for item in sections]
    launches = sorted(
        ((item.receipt.run.started, side, item) for side in ("A", "B") for item in getattr(answer.sides, side.lower())),
        key=lambda part: (part[0], part[1]),
    )
    of, ran = metrics.get(metric), list[Ran]()
    rows = []
    for at, side, item in launches:
        value = call.server.rulebook.launch(item).read(of).value
        if value is not None:
            ran.append(Ran("AB".index(side), (at - launches[0][0]).total_seconds(), value * of.scale))
        number_of = "~" if value is None else number(of, value)
        rows.append((side, f"{at:%Y-%m-%d %H:%M:%S}", number_of, run(item.id, item.name[:60])))
    table = table_of("Launches", f"side | started, UTC | #{named(of)} | launch", rows)
    rejected = answer.status == "rejected"  # its picture would be believed
    caption, drawn = ("Each launch when it ran, by its side",), partial(launches_picture, ran, ("A", "B"), named(of))
    figure = Figure("launches-turns", caption, lambda name: drawn(name=name), table)
    shape = {"tables": (table,)} if rejected else {"figures": (figure,)}
    sections.append(Section("launches", "Launches" if rejected else "Launches in turns", **shape))
    values: dict[str, Any] = {"a": ", ".join(sides[0]), "b": ", ".join(sides[1]), "metric": metric}
    values |= {"metrics": list(metrics.METRICS), "bridge": "", "rejected": rejected}
    if bridge_command(answer.verdict, call.server.rulebook.rules):
        values["bridge"] = url("/bridge", [("a", answer.verdict.a[0]), ("b", answer.verdict.b[0])])
    if (steps := _overlay(call, answer)) is not None:
        sections.append(steps)
    return View(replace(shown, sections=tuple(sections)), "compare", values)


def _overlay(call: Call, answer: Any) -> Section | None:
    """The steps of one launch of each side over each other; None where one of them kept none."""
    traces: list[Trace] = []
    for side in (answer.sides.a, answer.sides.b):
        launch = next((one for item in side if (one := call.server.rulebook.launch(item)).durations), None)
        if launch is None:
            return None
        traces.append(Trace.of(launch, f"{'AB'[len(traces)]}: {launch.parsed.name[:60]}"))
    caption = ("Step times of the first launch of each side that kept them",)
    figure = Figure("steps-overlay", caption, lambda name: steps_picture(traces, name=name, title="Steps of A and B"))
    return Section("steps", "Steps of A and B", figures=(figure,))


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


SORTED: Final = 2000
MAX_WORDS: Final = 6
FOUND: Final = 12  # values of a facet that are shown
# Columns by what they are sorted by; of numbers and times the largest come first.
COLUMNS: Final = {
    "run": "label",
    "status": "status",
    "lane": "lane",
    "chips": "chips",
    "sequence": "sequence_length",
    "rate": RATE,
    "peak": "peak_bytes",
    "started": "started",
}
WORDS: Final = ("run", "status", "lane")


class Search(NamedTuple):
    """What a list is asked for: words of names, conditions, and of the facets the values that are chosen."""

    text: str
    words: tuple[str, ...]
    conditions: tuple[Condition, ...]
    chosen: dict[str, str]
    days: dict[str, str]
    sort: str
    turned: bool

    @classmethod
    def of(cls, given: QueryParams, pins: dict[str, Any]) -> Search:
        """Read a query; ``@golden`` is the receipt of that pin. Raises UsageError."""
        text, words, conditions = given.get("q", ""), list[str](), list[Condition]()
        for token in tokens(text):
            if token[0] == "@" and token[1:] in pins:
                conditions.append(Condition("id", "=", pins[token[1:]].receipt))
            elif is_condition(token):
                conditions.append(condition(token))
            else:
                words.append(token)
        if len(words) > MAX_WORDS or len(conditions) > MAX_CONDITIONS:
            raise UsageError(f"search for at most {MAX_WORDS} words and {MAX_CONDITIONS} conditions")
        days = {name: value for name in ("since", "until") if (value := given.get(name, ""))}
        conditions += [
            condition(f"started{'>=' if name == 'since' else '<'}{_day(name, at)}") for name, at in days.items()
        ]
        chosen = {name: given[name] for name in FACETS if given.get(name)}
        sort = given.get("sort", "started")
        if sort not in COLUMNS:
            raise UsageError(f"sort={sort[:40]}: runs are sorted by {', '.join(COLUMNS)}")
        return cls(text, tuple(words), tuple(conditions), chosen, days, sort, given.get("turned") == "true")

    def query(self, **more: str) -> str:
        """The path of the list with something else chosen; what is empty is left out."""
        turned = {"turned": "true"} if self.turned else {}
        sort = {"sort": self.sort} if self.sort != "started" else {}
        every = {"q": self.text, **self.chosen, **self.days, **sort, **turned, **more}
        return url("/runs", [(name, value) for name, value in every.items() if value])

    @property
    def filters(self) -> tuple[Condition, ...]:
        """Every condition."""
        return (*self.conditions, *(condition(f"{name}={value}") for name, value in self.chosen.items()))


def tokens(text: str) -> list[str]:
    """The parts of a search, those in quotes whole: ``"grid 02" label="a b"``."""
    lexer = shlex.shlex(text, posix=True)
    lexer.whitespace_split, lexer.commenters, lexer.escape, lexer.quotes = True, "", "", '"'
    try:
        return [item for item in lexer if item]
    except ValueError:  # a quote that nothing closes
        return text.replace('"', " ").split()


def _day(name: str, text: str) -> str:
    """The first moment of a day, or for *until* of the day after it. Raises UsageError."""
    try:
        return f"{date.fromisoformat(text) + timedelta(days=name == 'until')}"
    except (ValueError, OverflowError):
        raise UsageError(f"{name}={text[:40]}: write a day such as 2026-11-21") from None


NOTHING: Final[dict[str, Any]] = {
    "search": Search("", (), (), {}, {}, "started", turned=False),
    "filters": (),
    "folds": (),
    "clear": True,
    "newer": "",
    "older": "",
    "heads": (),
}


class _Part(NamedTuple):
    """Rows of a list, and where those before and after them are; empty where there are none."""

    rows: Sequence[Stored]
    newer: str
    older: str


def runs(call: Call) -> View:
    """Stored receipts, folded by configuration; two that are ticked are compared, more swept."""
    given = call.request.query_params
    search = Search.of(given, call.store.opened.pins())
    held = call.server.facets(search.conditions, search.words)
    if held.whole and (search.conditions or search.words) and not held.total(search.chosen):
        part = _Part((), "", "")
    else:
        part = _by_time(call, search, given) if search.sort == "started" else _sorted(call, search, given)
    filters = []
    for name, by in held.of(search.chosen).items():
        chosen = search.chosen.get(name)  # a click on a value chooses it, or no longer chooses it
        items = [
            (value, count, search.query(**{name: "" if chosen == value else value}), chosen == value)
            for value, count in by
        ]
        filters.append((name, items[:FOUND], len(items) - FOUND))
    heads = []  # each column with the list in its order, turned where it has that already, and its aria-sort
    for name in COLUMNS:
        mine, up = search.sort == name, search.turned != (name in WORDS)
        turned = "true" if mine and not search.turned else ""
        path = search._replace(sort=name, turned=False).query(turned=turned)
        heads.append((name, (path, ("ascending" if up else "descending") if mine else "")))
    values = {
        "search": search,
        "query": search.text,
        "filters": filters,
        "folds": list(_folds(call, part.rows)),
        "newer": part.newer,
        "older": part.older,
        "heads": heads,
        "clear": bool(search.filters or search.words),
    }
    total = held.total(search.chosen)
    headline = _headline(part.rows, total, search, first=not part.newer, whole=held.whole)
    return View(Page("Runs", (headline,)), "runs", values)


def _headline(rows: Sequence[Stored], total: int, search: Search, *, first: bool, whole: bool) -> str:
    """How many receipts there are, and which of them are shown."""
    if not rows:
        met = search.filters or search.words
        return "no receipt meets these conditions" if met else "no receipt yet; store one: receipts submit run.json"
    every = counted(total, "receipt") if whole else f"more than {total:,} receipts"
    if len(rows) == total:
        return every
    by = f", of the newest {SORTED:,} by {search.sort}" if search.sort != "started" and total > SORTED else ""
    return f"{len(rows)}{'' if first else ' more'} of {every}{by}"


def _by_time(call: Call, search: Search, given: QueryParams) -> _Part:
    """A page by time: what follows a receipt, or comes before it."""
    back, cursor = given.get("before"), given.get("before") or given.get("after")
    order: Order = "oldest" if bool(back) != search.turned else "newest"
    after = None
    if cursor:
        at = read_cursor(cursor)
        after = at.moment, at.seq
    rows_read = list(call.store.opened.find(Filters(search.filters, False, order, ROWS + 1, after, search.words)))
    more, rows = len(rows_read) > ROWS, rows_read[:ROWS]
    if back:
        rows.reverse()
    if not rows:
        return _Part(rows, "", "")
    ends = [Cursor(row.started.isoformat(), row.seq).text() for row in (rows[0], rows[-1])]
    before = search.query(before=ends[0]) if (more if back else cursor) else ""
    return _Part(rows, before, search.query(after=ends[1]) if back or more else "")


def _sorted(call: Call, search: Search, given: QueryParams) -> _Part:
    """A page of the newest receipts in the order of a column; what has no value there comes last."""
    column, page = COLUMNS[search.sort], 0
    with suppress(ValueError):
        page = max(0, min(int(given.get("page", "0")), SORTED // ROWS))

    def ids() -> list[str]:
        rows = list(call.store.opened.find(Filters(search.filters, limit=SORTED, words=search.words)))
        known = [row for row in rows if getattr(row, column) is not None]
        known.sort(key=lambda row: getattr(row, column), reverse=search.turned == (search.sort in WORDS))
        return [row.id for row in (*known, *(row for row in rows if getattr(row, column) is None))]

    ordered = call.server.shared((search.filters, search.words, search.sort, search.turned), ids)
    here = ordered[page * ROWS : (page + 1) * ROWS]
    rows = {row.id: row for row in ReportQueries(call.store.opened.database).entries(here)}
    before = search.query(page=str(page - 1)) if page else ""
    after = search.query(page=str(page + 1)) if len(ordered) > (page + 1) * ROWS else ""
    return _Part([rows[name] for name in here if name in rows], before, after)


def _folds(call: Call, rows: Sequence[Stored]) -> Iterator[dict[str, Any]]:
    """Rows by configuration, in the order of the newest launch of each."""
    places = ReportQueries(call.store.opened.database).place([item.id for item in rows])
    groups: dict[object, list[Stored]] = {}
    for item in rows:
        groups.setdefault(places.get(item.id, item.id), []).append(item)
    rate, peak, pins = metrics.get(RATE), metrics.get("peak_bytes"), call.store.opened.pins()
    for items in groups.values():
        first = items[0]
        rates = [value for item in items if (value := item.tokens_per_second_per_chip)]
        yield {
            "id": first.id,
            "name": first.name[:60],
            "pins": [name for name, item in pins.items() if item.receipt in {one.id for one in items}],
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
