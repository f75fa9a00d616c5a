"""Pages of runs: one, two beside each other, or more than two against the oldest.

That of one has its verdict with the reasons, steps, memory, configuration, how to repeat it, and who quotes it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from receipts import metrics
from receipts.base.errors import UsageError
from receipts.metrics.chips import account
from receipts.plugins.serve.operation import Call
from receipts.plugins.serve.view import View, in_words, may, run, url
from receipts.publish.comparison import bridge_command
from receipts.publish.page import Figure, Link, Page, Section, marked, table_of
from receipts.publish.pictures import forest
from receipts.publish.pictures.steps import Ran, Trace, launches_picture, steps_picture
from receipts.publish.readings import named, number

if TYPE_CHECKING:
    from receipts.api.receipt import Receipt

TITLE: Final = 120  # letters of a label; the whole is among what is stated
REASONS: Final = ("failure", "errors", "missing")  # what a reader looks for first


def one_run(call: Call) -> View:
    """One receipt: verdict and reasons first, answers, steps, memory, configuration, how to run it again, quotes."""
    from receipts.questions.commands import recipe

    receipt = call.store.get(call.name)
    published = call.store.opened.published
    shown = receipt.page(facts=True)
    sections = [_titled(item) for item in in_words(shown).sections]
    steps = _steps(call, receipt)
    sections[1:1] = [item for item in (steps, _chips(call, receipt)) if item is not None]
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


def _titled(section: Section) -> Section:
    if section.id == "facts":
        return replace(section, title="Configuration and everything that is stated", fold="all stated leaves")
    return replace(section, title="At a glance") if section.id == "answers" else section


def _chips(call: Call, receipt: Receipt) -> Section | None:
    """The map of memory by chip; None for a launch of one chip, of none that states any, or where nothing draws it."""
    draw = getattr(call.store, "chips", None)
    if draw is None or len({item.chip for phase in account(receipt.parsed).phases for item in phase.chips}) < 2:
        return None
    (first, *_) = draw(receipt.id).page().sections
    return replace(first, id="chips", title="Memory by chip, as the chips stand") if first.figures else None


def _steps(call: Call, receipt: Receipt) -> Section | None:
    trace = Trace.of(call.server.rulebook.launch(receipt.parsed))
    if len(trace.seconds) < 2:
        return None
    caption = ("Step times; what is shaded is steady and counts",)
    figure = Figure("steps-trace", caption, lambda name: steps_picture([trace], name=name, title="Steps"))
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
    shown = in_words(answer.page())
    figure, sections = forest.of_comparison(answer.verdict), list(shown.sections)
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
