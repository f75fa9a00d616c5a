"""The page of a run: its verdict with the reasons, steps, memory, configuration, how to repeat it, who quotes it."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from receipts.base.errors import UsageError
from receipts.metrics.chips import account
from receipts.plugins.serve.operation import Call
from receipts.plugins.serve.view import View, in_words, may
from receipts.publish.page import Figure, Section
from receipts.publish.pictures.steps import Trace, steps_picture

if TYPE_CHECKING:
    from receipts.api.receipt import Receipt


TITLE: Final = 120  # letters of a label; the whole is among what is stated
REASONS: Final = ("failure", "errors", "missing")  # what a reader looks for first


def one_run(call: Call) -> View:
    """One receipt: verdict and reasons first, answers, steps, memory, configuration, how to run it again, quotes."""
    from receipts.questions.repro import recipe

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
    """The map of memory by chip; None for a launch of one chip, or of none that states any."""
    if len({item.chip for phase in account(receipt.parsed).phases for item in phase.chips}) < 2:
        return None
    (first, *_) = call.store.chips(receipt.id).page().sections
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
