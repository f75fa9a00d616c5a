"""Two sides beside each other, or several runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from receipts import metrics
from receipts.publish.page import Figure, Page, Section, marked, table_of
from receipts.publish.pictures import forest
from receipts.serve.operation import Call
from receipts.serve.pages.view import View, run


def comparison(call: Call) -> View:
    """B against A: one sentence, effects beside δ, what changed, launches in time, what would settle it."""
    return call.costly(_compared)


def _compared(call: Call) -> View:
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
