"""The pages of a sweep, of a bisection, and of an experiment.

A sweep: how the cells came out against the base, the grid, and why cells are refused. A bisection: what explains the
change, the steps that showed it, and what to launch next. An experiment: its plan, and what it says after a look.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from receipts import metrics
from receipts.axes.inputs import leaf
from receipts.base.untrusted_text import UNKNOWN
from receipts.publish.page import Cell, Code, Page, Section, lines_of, points_of, sections_of, table_of
from receipts.publish.readings import ends, named, number, signed
from receipts.publish.text import words

if TYPE_CHECKING:
    from receipts.judging.verdict import Comparison, MetricResult
    from receipts.plugins.study.bisection import Bisected
    from receipts.plugins.study.experiment import Experiment
    from receipts.plugins.study.progress import ExperimentProgress
    from receipts.plugins.study.sweep import Sweep, SweepCell


say_of_sweep = words("sweep")


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
    pairs = ", ".join(say_of_sweep("link", a=link.a, b=link.b, axis=link.axis) for link in sweep.links)
    sections = sections_of(
        Section("grid", say_of_sweep("grid"), tables=(grid,)),
        Section(
            "refused", say_of_sweep("refused"), points=points_of((", ".join(at), why) for why, at in reasons.items())
        ),
        Section("links", say_of_sweep("links"), (pairs,) if pairs else ()),
    )
    return Page(say_of_sweep("grid"), headline=_sweep_headline(sweep, metric), sections=sections)


def _sweep_headline(sweep: Sweep, metric: str) -> Cell:
    """How many cells came out how, and the best of those that are accepted."""
    statuses: Counter[str] = Counter(cell.against_base.status for cell in sweep.cells if cell.against_base is not None)
    if not statuses:
        return (say_of_sweep("alone"),)
    counts = [
        say_of_sweep("count", n=statuses[key], status=name)
        for key, name in say_of_sweep.named("status").items()
        if statuses[key]
    ]
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
        counts.append(say_of_sweep("best", change=signed(best), cell=at) if gains else say_of_sweep("base_best"))
    return (say_of_sweep("headline", n=statuses.total(), base=base, counts=", ".join(counts)),)


def _sweep_cell(sweep: Sweep, at: int, cell: SweepCell, metric: str) -> tuple[str, ...]:
    result, verdict = _result(cell, metric), cell.against_base
    own = _own_value(sweep, cell, metric)
    count, lost = len(cell.launches), len(cell.lost)
    return (
        str(at),
        *cell.coordinates,
        f"{count} of {count + lost}" if lost else str(count),
        number(metrics.get(metric), own) if own is not None else "~",
        *(("base", "", "", "") if verdict is None else _against_base(cell, verdict, result)),
        cell.launches[0].receipt.run.label or cell.launches[0].id[:12],
    )


def _against_base(cell: SweepCell, verdict: Comparison, result: MetricResult | None) -> tuple[str, ...]:
    effect = "refused" if cell.refused else verdict.effect
    if result is None:
        return UNKNOWN, UNKNOWN, verdict.status, effect
    return signed(result.ratio), ends(result.effect.low, result.effect.high), verdict.status, effect


def _result(cell: SweepCell, metric: str) -> MetricResult | None:
    """The result of a cell against the base for one metric; None for the base itself."""
    if cell.against_base is None:
        return None
    return next((item for item in cell.against_base.results if item.metric == metric), None)


def _own_value(sweep: Sweep, cell: SweepCell, metric: str) -> float | None:
    if cell.against_base is not None:
        result = _result(cell, metric)
        return result.b.value if result else None
    others = [item for item in (_result(other, metric) for other in sweep.cells) if item is not None]
    return others[0].a.value if others else None


say_of_bisection = words("bisect")


def bisection_page(seen: Bisected) -> Page:
    """The whole page."""
    lead = [say_of_bisection("inseparable", axes=", ".join(item)) for item in seen.inseparable]
    if seen.sets == (("code",),) and seen.commits is not None and seen.plan is None:
        lead.append(say_of_bisection("git", good=seen.commits[0], bad=seen.commits[1]))
    rows = (
        (
            ", ".join(item.moved),
            item.name,
            *((UNKNOWN, UNKNOWN) if (one := item.effect) is None else (signed(one.ratio), ends(one.low, one.high))),
            item.outcome,
        )
        for item in seen.steps
    )
    table = table_of("", "moved… | launch… ^2 | #change | 95 % interval ^1 | outcome", rows)
    sections = sections_of(
        Section("steps", say_of_bisection("steps"), tables=(table,)),
        Section("avoided", say_of_bisection("avoided"), points=points_of(seen.avoided)),
    )
    return Page(
        say_of_bisection("title", n=len(seen.axes)),
        headline=(bisection_headline(seen),),
        lead=tuple(lead),
        sections=sections,
    )


def bisection_headline(seen: Bisected) -> str:
    """The answer in one line."""
    if not seen.changed:
        if seen.plan is not None:
            return say_of_bisection("ends", kind=seen.direct.kind, launches=seen.launches)
        return say_of_bisection("nothing", kind=seen.direct.kind)
    if seen.plan is not None:
        moved = seen.steps[-1].moved if seen.steps else seen.axes
        return say_of_bisection("waiting", axes=", ".join(moved), launches=seen.launches)
    causes = [say_of_bisection("together", axes=", ".join(item)) if len(item) > 1 else item[0] for item in seen.sets]
    if len(causes) == 1:
        return say_of_bisection("explained", change=signed(seen.direct.ratio), axes=causes[0])
    return say_of_bisection("several", change=signed(seen.direct.ratio), n=len(causes), axes="; ".join(causes))


say_of_experiment = words("plan")


def experiment_page(experiment: Experiment, folder: str, hosts: Sequence[str] = ()) -> Page:
    """The plan of an experiment."""
    looks = experiment.looks
    hours = experiment.chip_hours
    cost = say_of_experiment("cost", hours=hours) if hours is not None else say_of_experiment("no_cost")
    df = say_of_experiment("df", df=experiment.sigma_df) if experiment.sigma_df is not None else ""
    count = len(experiment.contrasts)
    sentences = [
        say_of_experiment("power", effect=experiment.effect, power=looks.power, median=looks.median, fixed=looks.fixed),
        say_of_experiment("sigma", sigma=experiment.sigma, df=df, of=experiment.sigma_of),
        say_of_experiment(
            "looks",
            launches=", ".join(map(str, looks.launches)),
            confidences=", ".join(f"{100.0 * item:.2f}" for item in looks.confidences),
            alpha=experiment.alpha,
            holm=say_of_experiment("holm", n=count) if count > 1 else "",
        ),
        say_of_experiment("order", folder=folder),
    ]
    if hosts:
        sentences.append(say_of_experiment("hosts", hosts=", ".join(hosts)))
    rows = (
        (
            arm.name,
            str(len(arm.receipts)),
            str(sum(name == arm.name for _, name, _ in experiment.runs)),
            f"{arm.chip_hours:,.2f}" if arm.chip_hours is not None else "~",
            ", ".join(f"{path} {value}" for path, value in arm.changes.items()) or "as stored",
        )
        for arm in experiment.arms
    )
    table = table_of("", "arm | #stored | #to run | #chip-hours each ^2 | changes… ^1", rows)
    sections = sections_of(
        Section("arms", say_of_experiment("arms"), tuple(sentences), tables=(table,)),
        Section("left-out", say_of_experiment("left_out"), points=points_of(experiment.left_out)),
    )
    headline = say_of_experiment(
        "headline", runs=len(experiment.runs), arms=len(experiment.arms), most=looks.most, cost=cost
    )
    return Page(say_of_experiment("title", id=experiment.id), headline=(headline,), sections=sections)


def progress_page(progress: ExperimentProgress, folder: str) -> Page:
    """What an experiment says now, and what to run next."""
    from receipts.plugins.study.progress import DECIDED

    rows = (
        (
            item.contrast.name,
            item.answer,
            f"{item.n_a} + {item.n_b}",
            signed(item.ratio),
            ends(item.low, item.high),
            item.why,
        )
        for item in progress.answers
    )
    table = table_of("", "question | answer | #launches ^2 | #change | interval ^1 | look… ^3", rows)
    sections = sections_of(
        Section("answers", say_of_experiment("answers"), tables=(table,)),
        Section(
            "runs", say_of_experiment("runs"), points=lines_of(Code(f"{folder}/{name}") for name in progress.next_runs)
        ),
    )
    decided = sum(item.answer in DECIDED for item in progress.answers)
    headline = say_of_experiment("next_headline", status=progress.status, decided=decided, n=len(progress.answers))
    return Page(say_of_experiment("title", id=progress.experiment.id), headline=(headline,), sections=sections)
