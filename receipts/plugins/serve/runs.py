"""The page of a run: its verdict with the reasons, steps, memory, configuration, how to repeat it, who quotes it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from receipts.base.errors import UsageError
from receipts.plugins.serve.operation import Call
from receipts.plugins.serve.view import View, may
from receipts.publish.page import Figure, Section
from receipts.publish.pictures import svg
from receipts.publish.pictures.chart import BELOW, WIDTH, Panel, Scale, below, frame, nice, upward
from receipts.publish.pictures.svg import MARKS, Canvas

if TYPE_CHECKING:
    from receipts.api.receipt import Receipt
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
