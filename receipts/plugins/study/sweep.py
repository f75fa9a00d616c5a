"""A sweep: launches of a grid laid out by the axes that were varied, each judged against a base.

Cells that differ from the base in more than the varied axes are refused, with the reason. Links join cells that are
one counted axis apart.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

from receipts import metrics
from receipts.axes import difference_under, effective
from receipts.axes.configuration import input_value
from receipts.axes.inputs import PREFIX, leaf
from receipts.base.errors import NotFound, UsageError, every, near
from receipts.base.untrusted_text import UNKNOWN
from receipts.emit.launch_values import normal
from receipts.judging.rule import Topic
from receipts.judging.rulebook import Rulebook, RuleSet
from receipts.judging.verdict import Comparison, Level, Lost, MetricResult, Question
from receipts.publish.page import Cell, Page, Section, points_of, sections_of, table_of
from receipts.publish.readings import ends, named, number, signed
from receipts.publish.text import words
from receipts.questions.comparisons import Comparisons
from receipts.receipt import Parsed
from receipts.receipt.document import UNFAILED

MAX_CELLS = 200


@dataclass(frozen=True, slots=True)
class SweepCell:
    """One configuration of the grid, with the launches that count and those that do not.

    ``against_base`` is None for the base itself.
    """

    coordinates: tuple[str, ...]
    launches: tuple[Parsed, ...]
    against_base: Comparison | None
    refused: str
    lost: tuple[Lost, ...] = ()


@dataclass(frozen=True, slots=True)
class SweepLink:
    """Two cells, by position, that are one axis apart."""

    a: int
    b: int
    axis: str


@dataclass(frozen=True, slots=True)
class Sweep:
    """The grid. ``vary`` are leaf paths; cells stand in the order of their coordinates, the base first."""

    vary: tuple[str, ...]
    cells: tuple[SweepCell, ...]
    links: tuple[SweepLink, ...]


def leaf_path(name: str, receipts: Sequence[Parsed]) -> str:
    """The leaf that a short name means: ``micro_batch`` is ``batch.micro_batch``. Raises if none or several fit."""
    known = {path for item in receipts for path in effective(item)}
    if name in known or any(name.startswith(PREFIX) and input_value(item, name) is not None for item in receipts):
        return name
    candidates = sorted(path for path in known if path.rsplit(".", 1)[-1] == name)
    if not candidates:
        hint = near(name, sorted(known))
        raise NotFound(f"no receipt of the sweep states an axis {name!r}; see: receipts axes --role axis{hint}")
    if len(candidates) > 1:
        raise UsageError(f"{name} may be {' or '.join(candidates)}; name it whole")
    return candidates[0]


def sweep(
    receipts: Sequence[Parsed],
    vary: Sequence[str],
    comparisons: Comparisons,
    metric: str = metrics.DEFAULT,
    base: Parsed | None = None,
    **options: Any,
) -> Sweep:
    """Lay receipts out by the varied axes and judge each cell against the base (the first cell unless named).

    A cell gets the verdict that `receipts.questions.comparisons` gives its launches; ``options`` are further fields of
    a `Request`.
    """
    rulebook, paths = comparisons.rulebook, tuple(every(lambda name: leaf_path(name, receipts), vary))
    groups: dict[tuple[str, ...], list[Parsed]] = {}
    # A launch that ended well represents its cell before one that failed, and the earlier before the later.
    for item in sorted(receipts, key=_precedence):
        groups.setdefault(_coordinates(item, paths), []).append(item)
    if len(groups) > MAX_CELLS:
        raise UsageError(f"the sweep has {len(groups)} cells, more than {MAX_CELLS}; narrow what it selects")
    order = sorted(groups, key=_sortable)
    first = _coordinates(base, paths) if base is not None else order[0]
    if base is not None:
        groups[first] = [base, *(item for item in groups.get(first, []) if item.id != base.id)]
    named = (base.id,) if base is not None else ()
    origin, apart = _alike(groups.pop(first), rulebook)
    alone = comparisons.sides(comparisons.asked(origin), metric, named)
    cells = [SweepCell(first, alone.a, None, apart, alone.lost)]
    for key in order:
        if key in groups:
            group, apart = _alike(groups[key], rulebook)
            sides = comparisons.sides(comparisons.asked(origin, group), metric, named)
            verdict = comparisons.verdict(sides, **options)
            reasons = [item for item in (_reason(verdict, sides.b[0], rulebook.rules), apart) if item]
            cells.append(SweepCell(key, sides.b, verdict, "; ".join(reasons), sides.side_b.lost))
    links = []
    for (i, a), (j, b) in combinations(enumerate(cells), 2):
        lane = rulebook.lanes.of(a.launches[0].receipt.run.lane)
        difference = difference_under(lane, a.launches[0], b.launches[0])
        if len(difference.axes) == 1 and not difference.unknown:
            links.append(SweepLink(i, j, difference.axes[0]))
    return Sweep(paths, tuple(cells), tuple(links))


def _precedence(parsed: Parsed) -> tuple[bool, float, str]:
    run = parsed.receipt.run
    return run.outcome not in UNFAILED, run.started.timestamp(), parsed.name


def _coordinates(parsed: Parsed, paths: Sequence[str]) -> tuple[str, ...]:
    values, texts = effective(parsed), []
    for path in paths:
        value = values.get(path)
        if path.startswith(PREFIX):
            text = input_value(parsed, path)
            value = None if text is None else normal(text)
        shown = ", ".join(map(str, value)) if isinstance(value, tuple) else str(value)
        texts.append("not stated" if value is None else shown)
    return tuple(texts)


def _sortable(key: tuple[str, ...]) -> list[tuple[int, float, str]]:
    keys = []
    for text in key:
        try:
            keys.append((0, float(text), text))
        except ValueError:
            keys.append((1, 0.0, text))
    return keys


def _alike(launches: Sequence[Parsed], rulebook: Rulebook) -> tuple[list[Parsed], str]:
    """Launches of the first one's configuration, and what to say of those that share its cell and not that."""
    lane = rulebook.lanes.of(launches[0].receipt.run.lane)
    alike, failed = [launches[0]], 0
    moved: set[str] = set()
    for item in launches[1:]:
        axes = difference_under(lane, launches[0], item).axes
        moved.update(axes)
        if axes or item.receipt.run.launch in {other.receipt.run.launch for other in alike}:
            continue
        if item.receipt.run.outcome == launches[0].receipt.run.outcome:
            alike.append(item)
        else:
            failed += 1
    reasons = [f"more than one configuration: vary {', '.join(sorted(moved))} as well"] if moved else []
    reasons += [f"{failed} more launches failed"] if failed else []
    return alike, "; ".join(reasons)


def _reason(verdict: Comparison, parsed: Parsed, rules: RuleSet) -> str:
    """Why a cell is refused, in a phrase; empty if it is not."""
    if parsed.receipt.run.outcome not in UNFAILED:
        failure = parsed.receipt.failure
        what = f": {failure.message}" if failure is not None and failure.message else ""
        return f"{parsed.receipt.run.outcome}{what}"[:80]
    if verdict.status != "rejected":
        return ""
    errors = [item for item in verdict.findings if item.level is Level.ERROR and item.question is not Question.NONE]
    if any(item.code in rules.about(Topic.AXES) for item in errors):
        return f"{len(verdict.counted)} axes: {', '.join(verdict.counted)}"
    return f"{errors[0].code} {errors[0].name}" if errors else "rejected"


say = words("sweep")


def sweep_page(sweep: Sweep, metric: str) -> Page:
    """The whole page."""
    reasons: dict[str, list[str]] = {}
    for at, cell in enumerate(sweep.cells):
        if cell.refused:
            reasons.setdefault(cell.refused, []).append(str(at))
    # One cell a row; the last part of an axis names its column.
    varied = " | ".join(map(leaf, sweep.vary))
    header = f"# | {varied} | #launches ^5 | #{named(metrics.get(metric))} ^1"
    header += " | #change | 95 % interval ^3 | verdict | effect ^2 | label… ^4"
    grid = table_of("Grid", header, (_sweep_cell(sweep, at, item, metric) for at, item in enumerate(sweep.cells)))
    pairs = ", ".join(say("link", a=link.a, b=link.b, axis=link.axis) for link in sweep.links)
    sections = sections_of(
        Section("grid", say("grid"), tables=(grid,)),
        Section("refused", say("refused"), points=points_of((", ".join(at), why) for why, at in reasons.items())),
        Section("links", say("links"), (pairs,) if pairs else ()),
    )
    return Page(say("grid"), headline=_sweep_headline(sweep, metric), sections=sections)


def _sweep_headline(sweep: Sweep, metric: str) -> Cell:
    """How many cells came out how, and the best of those that are accepted."""
    statuses: Counter[str] = Counter(cell.against_base.status for cell in sweep.cells if cell.against_base is not None)
    if not statuses:
        return (say("alone"),)
    counts = [say("count", n=statuses[key], status=name) for key, name in say.named("status").items() if statuses[key]]
    base = next(at for at, cell in enumerate(sweep.cells) if cell.against_base is None)
    better = metrics.get(metric).better
    accepted = [
        (result.ratio, at)
        for at, cell in enumerate(sweep.cells)
        if cell.against_base is not None and cell.against_base.status == "accepted"
        if (result := _result(cell, metric)) is not None and result.ratio is not None
    ]
    if accepted:
        best, at = max(accepted) if better == "higher" else min(accepted)
        gains = best > 1.0 if better == "higher" else best < 1.0
        counts.append(say("best", change=signed(best), cell=at) if gains else say("base_best"))
    return (say("headline", n=statuses.total(), base=base, counts=", ".join(counts)),)


def _sweep_cell(sweep: Sweep, at: int, cell: SweepCell, metric: str) -> tuple[str, ...]:
    result, verdict = _result(cell, metric), cell.against_base
    own = result.b.value if result is not None else None
    against = ("base", "", "", "")
    if verdict is not None:
        change = (UNKNOWN, UNKNOWN)
        if result is not None:
            change = (signed(result.ratio), ends(result.effect.low, result.effect.high))
        against = (*change, verdict.status, "refused" if cell.refused else verdict.effect)
    else:  # the base has its value from any comparison with it
        own = next((item.a.value for other in sweep.cells if (item := _result(other, metric)) is not None), None)
    count, lost = len(cell.launches), len(cell.lost)
    return (
        str(at),
        *cell.coordinates,
        f"{count} of {count + lost}" if lost else str(count),
        number(metrics.get(metric), own) if own is not None else "~",
        *against,
        cell.launches[0].receipt.run.label or cell.launches[0].id[:12],
    )


def _result(cell: SweepCell, metric: str) -> MetricResult | None:
    """The result of a cell against the base for one metric; None for the base itself."""
    if cell.against_base is None:
        return None
    return next((item for item in cell.against_base.results if item.metric == metric), None)
