"""The results of a report: launches of a frontier with their numbers, answers, and change since the interval began."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime
from typing import TYPE_CHECKING

from receipts import metrics
from receipts.axes.lineage import ran_on
from receipts.axes.shape import described, substrate_of, target_of
from receipts.judging.verdict import Level, Question
from receipts.metrics.registry import Taint
from receipts.publish.report.data import BestResult, FrontierMove
from receipts.questions.answers import answers
from receipts.questions.regime import work
from receipts.questions.week.frontier import Best, Leader, rate
from receipts.questions.week.reader import Item
from receipts.questions.week.ref import Cut, ref_of

if TYPE_CHECKING:
    from receipts.questions.week.links import Links
    from receipts.questions.week.reader import ReportReader

_RATE = "tokens_per_second_per_chip"


def result(
    item: Item, since: datetime | None, leader: Leader | None = None, change: FrontierMove | None = None
) -> BestResult:
    """A launch as a result, read from its document; what ran from ``since`` on is of the interval.

    With ``leader`` it stands for that configuration: rate and MFU are those of all of its launches together.
    """
    row, launch = item.entry, item.launch
    per_chip, mfu, peak = (launch.read(metrics.get(name)) for name in (_RATE, "mfu", "peak_bytes"))
    share = None if item.spoilt(Taint.MFU) else mfu.value
    level = leader.level if leader is not None else None
    if level is not None and share is not None and per_chip.value:
        share *= level.value / per_chip.value
    heavy = [finding for finding in item.verdict.findings if finding.level is not Level.SHOWN]
    evidence = {finding.code for finding in heavy if finding.question in (Question.PATH, Question.EFFECT)}
    open_codes = evidence or {finding.code for finding in heavy}
    known = described(item.parsed.stated)
    return BestResult(
        receipt=item.ref,
        answers=tuple(answers(item.parsed, item.lane, item.verdict, item.facts, item.reader.rulebook.rules)),
        shape=str(launch.settings.shape),
        family=known.family,
        model=known.name,
        axes=known.model,
        layout=known.layout,
        accelerator=row.accelerator,
        sequence_length=row.sequence_length,
        chips=row.chips,
        standing=leader.standing if leader is not None else "reported",
        target=named.name if (named := target_of(item.parsed, item.lane)) is not None else None,
        is_substrate=substrate_of(item.parsed, item.lane) is not None,
        tokens_per_second_per_chip=level.value if level is not None else per_chip.value,
        rate_source=per_chip.source,
        mfu=share,
        mfu_basis=_basis(item) if share is not None else None,
        peak_bytes=None if item.spoilt(Taint.MEMORY) else peak.value,
        in_week=in_interval(item, since),
        provenance=row.provenance,
        open_questions=tuple(sorted(open_codes)),
        work=work(launch, item.verdict.findings, item.reader.rulebook.rules),
        change=change,
        launches=level.launches if level is not None else None,
        sessions=level.sessions if level is not None else None,
        low=level.low if level is not None else None,
        high=level.high if level is not None else None,
        fastest=ref_of(leader.fastest) if leader is not None and leader.level.launches > 1 else None,
        fastest_rate=rate(leader.fastest) if leader is not None and leader.level.launches > 1 else None,
        micro_batch=row.micro_batch,
        depth=row.depth,
        lineage=str(ran_on(item.parsed, item.lane) or ""),
    )


def peak(leader: Leader, reader: ReportReader) -> BestResult:
    """The fastest launch of a configuration that does not lead its shape: the best of its launches, and no more."""
    item = reader.item(leader.fastest)
    beside = replace(result(item, reader.since, leader), standing="peak", low=None, high=None, fastest=None)
    reached = result(item, reader.since)
    return replace(beside, tokens_per_second_per_chip=rate(leader.fastest), mfu=reached.mfu, fastest_rate=None)


def in_interval(item: Item, since: datetime | None) -> bool:
    """Whether a launch ran in the interval."""
    return since is None or (item.entry.finished or item.entry.started) >= since


def _basis(item: Item) -> str:
    """What an MFU divides by: formula, FLOPs a token, and the peak."""
    stated = item.launch.stated
    formula = stated.get("measurement.stated.formula", "formula not stated")
    flops = stated.get("measurement.stated.flops_per_token")
    dtype = stated.get("measurement.stated.peak_dtype", stated.get("numerics.compute_dtype", "type not stated"))
    peak = item.launch.peak
    each = f", {flops / 1e9:,.4g} GFLOP/token" if flops else ""
    over = f", of {peak / 1e12:,.4g} TFLOP/s {dtype}" if peak else ", peak not stated"
    return f"{formula}{each}{over}"


def change(best: Best, links: Links) -> FrontierMove:
    """What the interval did to the best of a shape."""
    now, before = best.now, best.before
    if before is None:
        return FrontierMove("new", None, None, None, None, None, None, ())
    was = before.level.value
    if not best.moved:
        return FrontierMove("same", before.item.ref, was, None, None, None, None, ())
    plain = now.level.value / was
    verdict = links.between(before.item, now.item, _RATE)
    if verdict is None:
        return FrontierMove("better", before.item.ref, was, plain, None, None, None, ())
    result = next((item for item in verdict.results if item.metric == _RATE), None)
    bounded = result is not None and result.effect.low is not None and result.effect.high is not None
    return FrontierMove(
        state="equal" if result is not None and result.effect.kind == "equivalent" else "better",
        was=before.item.ref,
        was_rate=was,
        ratio=result.ratio if result is not None and bounded else plain,
        low=result.effect.low if result is not None and bounded else None,
        high=result.effect.high if result is not None and bounded else None,
        comparable=verdict.comparable,
        moved=verdict.counted,
    )


def chosen(items: Sequence[Item], most: int, since: datetime | None) -> Cut[Item]:
    """Launches for a page, those of the interval kept first."""
    keep = {item.entry.id for item in sorted(items, key=lambda item: not in_interval(item, since))[:most]}
    return Cut(tuple(item for item in items if item.entry.id in keep), len(items) - len(keep))
