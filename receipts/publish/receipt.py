"""The page of one receipt: its verdict first, the five answers, what was measured, why it failed, what is missing.

Memory is a sentence a phase and a table of chips. The origin of a leaf is a file and its line, the job, a probe, a
person, a page, or a witness.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from receipts import metrics
from receipts.axes.inputs import leaf
from receipts.axes.lineage import ran_on
from receipts.axes.shape import substrate_of
from receipts.base.units import amount
from receipts.ingest.leaves import parts
from receipts.judging.findings import Grouped, grouped
from receipts.judging.rule import Case
from receipts.judging.verdict import Level, ReceiptVerdict
from receipts.metrics import Launch
from receipts.metrics.arithmetic import ARITHMETIC
from receipts.metrics.degrees import PIPELINE, batch_ways, owned
from receipts.publish import offenses
from receipts.publish.offenses import entry
from receipts.publish.page import Cell, Page, Section, lines_of, marked, named_rows, points_of, sections_of, table_of
from receipts.publish.readings import named, number
from receipts.publish.text import gib, words
from receipts.publish.text import number as number_of
from receipts.publish.verdict import decisions, fallen, grade, offense, status
from receipts.questions.answers import measured
from receipts.receipt.document import UNFAILED
from receipts.receipt.names import WITNESSED
from receipts.receipt.parse import intact

if TYPE_CHECKING:
    from receipts.axes.lane import Lane
    from receipts.judging.facts import Facts
    from receipts.questions.answers import Answers, StepWork
    from receipts.receipt import Parsed
    from receipts.store import Decision

say = words("receipt")


def setting(parsed: Parsed, lane: Lane) -> Iterator[str]:
    """The sentences of one receipt, those for which it states enough."""
    rank = owned(parsed.stated)
    if rank:
        yield say("owned", parts=rank)
    # The share of a step that pipeline stages wait, of the schedules that its formula is for.
    stated = parsed.stated
    stages, schedule = stated.get(PIPELINE) or 1, str(stated.get("parallelism.schedule") or "1f1b")
    micro, whole = stated.get("batch.micro_batch"), stated.get("batch.global_batch")
    counts = {stated["batch.accumulation"]} if stated.get("batch.accumulation") else set()
    if not counts and micro and whole:
        counts = {whole // (micro * ways) for ways in batch_ways(stated, lane) if whole % (micro * ways) == 0}
    plain = re.fullmatch(r"(?:non.)?interleaved|(?:(?:non.)?interleaved.?)?1f1b|gpipe", schedule, re.IGNORECASE)
    if stages > 1 and len(counts) == 1 and plain:
        (count,), virtual = counts, stated.get("parallelism.virtual_pipeline") or 1
        share = ARITHMETIC["pipeline-bubble"].value(stages=stages, micro_batches=count, virtual=virtual)
        yield say("bubble", share=share, stages=stages, micro_batches=count)
    # What the router did: how unevenly it loaded experts, and what it dropped.
    ratio, dropped, padded = (
        parsed.stated.get(f"measurement.routing.{name}")
        for name in ("load_ratio", "dropped_share", "padded_to_capacity")
    )
    parts = []
    if ratio is not None:
        parts.append(say("load", ratio=ratio))
    if dropped is not None:
        parts.append(say("dropped", share=dropped))
    if padded is not None:
        parts.append(say("padded") if padded else say("unpadded"))
    if parts:
        yield say("routing", parts=", ".join(parts))
    lineage = ran_on(parsed, lane)
    if lineage is not None:
        yield say("lineage", lineage=lineage)
    substrate = substrate_of(parsed, lane)
    if substrate is not None:
        yield say("substrate", name=substrate.name)


def regime(work: StepWork) -> str:
    """The regime that a launch ran in; what would tell it where it is not known."""
    return ", ".join(work.regimes) or say("no_regime", missing=" and ".join(work.missing))


MAX_ROWS = 64  # of chips and phases, before a table shows one phase
MAX_ROWS_OPEN = 16


def memory(parsed: Parsed, *, folded: bool) -> Section:
    """The section; empty for a receipt that states no memory. Of many chips it shows the fullest or the tightest."""
    from receipts.metrics import chip_pressure
    from receipts.metrics.chips import account

    whole = account(parsed)
    chips = {item.chip for phase in whole.phases for item in phase.chips}
    several = any(len(phase.chips) > 1 for phase in whole.phases)
    shown = [item for phase in whole.phases for item in phase.chips]
    fullest = whole.worst("peak") or whole.worst("used")
    if len(shown) > MAX_ROWS and fullest is not None:
        shown = list(fullest.chips)
    if several:
        sentences = [
            (chip_pressure.sentence if item is fullest else chip_pressure.brief)(item) for item in whole.phases
        ]
    else:
        sentences = [fault for phase in whole.phases for fault in chip_pressure.faults(phase)]
    if together := chip_pressure.aggregate(whole):
        sentences.append(together)
    if len(shown) > MAX_ROWS:
        sentences.append(say("tightest", few=MAX_ROWS_OPEN, n=len(shown)))
        shown.sort(
            key=lambda item: (1.0 if item.left is None else item.left, -(item.peak or item.used or 0), item.chip)
        )
        shown = shown[:MAX_ROWS_OPEN]
    after = (say("every_chip", source=parsed.source),) if several else ()
    header = (
        "#chip | phase | used [GiB] ^2 | limit [GiB] ^1 | live peak [GiB] | pool peak [GiB] ^3 | headroom [GiB]"
        " | #step ^4"
    )
    rows = (
        (
            str(item.chip),
            item.phase,
            *map(gib, (item.used, item.limit, item.peak, item.pool, item.headroom)),
            f"{item.step:,}" if item.step is not None else "~",
        )
        for item in shown
    )
    table = table_of("Memory by chip", header, rows, after)
    fold = say("memory_fold", n=len(chips)) if folded else ""
    return Section("memory", say("memory"), tuple(sentences), tables=(table,) if shown else (), fold=fold)


class Origins:
    """The origin of every leaf of one receipt, in words."""

    def __init__(self, parsed: Parsed) -> None:
        run, self._of = parsed.receipt.run, dict[str, str]()
        if run.provenance != "measured":
            self._else: str = run.provenance
            return
        if run.recorded is None or not intact(parsed):
            self._else = say("origin_typed") if run.recorded is None else say("origin_edited")
            return
        sources = run.recorded.sources
        self._else = say("origin_stated" if run.recorded.by == "ingest" and sources is None else "origin_job")
        for file in parsed.receipt.evidence or ():
            for path, where in (file.read or {}).items():
                self._of.setdefault(path, say("origin_read", file=file.uri or file.kind, where=where))
        named = {"caller": say("origin_job"), "recorder": say("origin_recorder")}
        for path, name in (sources or {}).items():
            known = {} if path.endswith(".*") else self._of  # of a map's entries a file shows few
            who = named.get(name) or say("origin_probe", name=name)
            self._of[path] = known.get(path) or who
            self._of.setdefault(f"notes.{name}", who)
        held = (parsed.receipt.notes or {}).get("ingest.stated_by_user")
        self._of |= dict.fromkeys(held if isinstance(held, tuple) else (), say("origin_stated"))

    def of(self, path: str) -> str:
        """Where the leaf comes from."""
        known = self._of
        return known.get(path) or known.get(path.partition("[")[0]) or known.get(f"{parts(path)[0]}.*") or self._else


def origins_section(parsed: Parsed, borrowed: Mapping[str, str]) -> Section:
    """What was seen of the path, each with its origin; ``lent`` are leaves by the witness that lends them."""
    origins = Origins(parsed)
    rows = [
        (
            leaf(path),
            (", ".join(map(str, value)) if isinstance(value, list) else str(value))[:60],
            say("origin_lent", id=borrowed[path][:12]) if path in borrowed else origins.of(path),
        )
        for path, value in parsed.stated.items()
        if path.startswith(f"{WITNESSED}.")
    ]
    return Section("origins", say("origins"), tables=(table_of("", "path | value | from", rows),))


HEADLINE = ("tokens_per_second", "step_seconds", "peak_bytes")
MAX_VALUE = 200
ABOUT = ("schema_version", "run.recorded.", "run.entries.")  # of the document itself


class Shown(NamedTuple):
    """A receipt with everything that its page shows."""

    parsed: Parsed
    lane: Lane
    verdict: ReceiptVerdict
    answers: Answers
    facts: Facts
    work: StepWork
    decisions: Sequence[Decision] = ()
    deciding: str = ""
    submitted: str = ""
    signed: str = ""
    reproduced: str = ""


def page(item: Shown, *, stated: bool = False) -> Page:
    """The whole page; with ``stated`` every leaf that the receipt states."""
    groups = grouped(item.verdict.findings)
    launch = Launch(item.parsed, item.lane)
    failed = item.parsed.receipt.failure is not None
    seen, origins = Case(launch, item.lane, item.facts), Origins(item.parsed)
    rows = (
        (
            path,
            say("values", n=len(value), first=value[0], last=value[-1])
            if isinstance(value, list) and len(value) > 6
            else str(value)[:MAX_VALUE],
            origins.of(path),
        )
        for path, value in item.parsed.stated.items()
        if stated and not path.startswith(ABOUT)
    )
    return Page(
        title=_name(item.parsed),
        headline=(*fallen(item.facts.superseded.get(item.parsed.id)), *_headline(item, launch, groups)),
        facts=tuple(("", (text,)) for text in _about(item, launch)),
        next=((item.deciding, say("decides")),) if item.deciding else (),
        sections=sections_of(
            Section("answers", "", tables=(named_rows(item.answers.rows()),)),
            _measured(launch, item.work),
            *([_failure(item.parsed)] if failed else []),
            origins_section(seen.parsed, seen.borrowed.by),
            memory(item.parsed, folded=not failed and item.verdict.status != "invalid"),
            Section("facts", say("facts"), tables=(table_of("", "leaf | value | from", rows),)),
            Section("errors", say("errors"), entries=tuple(map(entry, groups.at(Level.ERROR)))),
            Section("missing", say("missing"), points=tuple(offenses.remedies(groups.at(Level.OPEN)))),
            *offenses.finding_sections(groups.shown, item.verdict.findings),
            decisions(item.decisions),
        ),
        foot=(("", status(item.verdict)),),
    )


def _name(parsed: Parsed) -> str:
    return parsed.receipt.run.label or parsed.receipt.run.launch


def _headline(item: Shown, launch: Launch, groups: Grouped) -> Cell:
    """The status, and its reason: numbers of a valid receipt, the first error, how it failed, what it lacks."""
    verdict = item.verdict.status
    errors = groups.at(Level.ERROR)
    outcome, failure = item.parsed.receipt.run.outcome, item.parsed.receipt.failure
    parts = []
    if outcome not in UNFAILED:
        phase = getattr(failure, "phase", None)
        requested, used, limit = (getattr(failure, f"{kind}_bytes", None) for kind in ("requested", "used", "limit"))
        sizes = say("requested", requested=amount(requested)) if requested else ""
        sizes += say("used", used=amount(used, limit), limit=amount(limit)) if used and limit else ""
        in_phase = say("in_phase", phase=str(phase).replace("_", " ")) if phase else ""
        called = say.named("outcome").get(outcome, outcome)
        parts.append(say("failed", outcome=called, phase=in_phase, bytes=sizes))
    if errors:
        parts += offense(errors)
    else:
        if not parts:
            shown = [(metric, launch.shown(metric)) for metric in map(metrics.get, HEADLINE)]
            numbers = ", ".join(metrics.shown(metric, one.value) for metric, one in shown if one.value is not None)
            as_stated = any(one.source in ("stated", "derived") for _, one in shown if one.value is not None)
            parts.append((say("stated", numbers=numbers) if as_stated else numbers) or say("nothing"))
        if outcome == "unknown":
            parts.append(say.named("outcome")["unknown"])
        missing = offenses.weighed_lacks(groups)
        if missing and verdict != "valid":
            parts.append(offenses.lacks_sentence(missing, item.parsed.source))
    return (marked(verdict, say(verdict)), f"  {'; '.join(parts)}")


def _about(item: Shown, launch: Launch) -> Iterator[str]:
    """Which launch this is, whether it still counts, and what witnesses it."""
    parsed, run = item.parsed, item.parsed.receipt.run
    yield _name(parsed)
    yield say("id", id=parsed.id)
    started = run.started_stated or f"{run.started:%Y-%m-%d %H:%M %Z}"
    how = {"kind": run.kind, "outcome": run.outcome, "provenance": run.provenance, "started": started}
    title = f" ({item.lane.title})" if item.lane.title else ""
    yield say("run", lane=item.lane.name, title=title, **how)
    if item.submitted:
        yield say("submitted", who=item.submitted)
    if item.signed:
        yield item.signed
    if item.reproduced:
        yield item.reproduced
    if run.supersedes is not None:
        target = run.supersedes.target
        which = say("same_launch") if target == run.launch else target[:12]
        yield say("supersedes", target=which, reason=run.supersedes.reason)
    # Which launches show this one's path, and what they lend; or whose path this one shows.
    case = Case(launch, item.lane, item.facts)
    known = {other.id: other for other in item.facts.witnesses}
    for name in case.borrowed.lenders:
        leaves = [leaf(path) for path, by in case.borrowed.by.items() if by == name]
        lends = say("lends", leaves=", ".join(leaves)) if leaves else say("same_path")
        yield say("witnessed", id=name[:12], name=known[name].name, lends=lends)
    for refused in case.borrowed.refused:
        yield say("not_witnessed", id=refused.witness.id[:12], name=refused.witness.name, why=refused.why)
    if run.witness_for is not None:
        other = case.witnessed
        name = f"{other.id[:12]} {other.name}" if other else say("unknown_launch", name=run.witness_for)
        yield say("witnesses", name=name)
    yield grade(item.verdict)
    yield from setting(item.parsed, item.lane)


def _measured(launch: Launch, work: StepWork) -> Section:
    rows = []
    for name in metrics.METRICS:
        metric = metrics.get(name)
        reading = launch.shown(metric)
        if reading.value is not None:
            text = f" ({reading.text})" if reading.text else ""
            rows.append((named(metric), number(metric, reading.value), f"{reading.source}{text}"))
    tokens = number_of(work.tokens_per_chip)
    after = list(_steps(launch))
    if rows:
        after.append(say("regime_of", regime=regime(work), tokens=tokens))
        names = say.named("measured_as")
        parts = [f"{names.get(path, path)} {value}" for path, value in measured(launch.stated).items()]
        after += [say("how", parts=", ".join(parts))] if parts else []
    table = table_of(say("measured"), "metric | #value | from", rows, tuple(after), say("no_metric"))
    return Section("measured", say("measured"), tables=(table,))


def _steps(launch: Launch) -> Iterator[str]:
    """The steady segment and how alike neighboring steps are: a thousand steps are not a thousand samples."""
    from receipts.stats.steady import MIN_BATCHES, independent_batch

    if launch.segment is None:
        return
    summary = launch.summary
    if summary is None:
        yield say("unsteady", status=launch.segment.status, reason=launch.segment.reason)
        return
    times = {name: getattr(summary, name) * 1e3 for name in ("median", "mean", "p95", "p99")}
    yield say("steady", n=summary.n, all=len(launch.durations), **times)
    if summary.lag1 is None:
        yield say("no_correlation")
        return
    size = independent_batch(launch.segment.of(launch.durations))
    batches = say("independent") if size == 1 else say("batches", size=size)
    if size is None:
        batches = say("no_batches", fewest=MIN_BATCHES)
    yield say("correlation", lag1=summary.lag1, batches=batches)


def _failure(parsed: Parsed) -> Section:
    from receipts.estimate.surface import attribution

    failure = parsed.receipt.failure
    assert failure is not None  # the caller asks only of a launch that failed
    stated = failure.model_dump(by_alias=True, exclude_none=True, exclude={"ladder"})
    leaves = ((key, amount(value) if key.endswith("_bytes") else str(value)) for key, value in stated.items())
    lines = []
    for rung in failure.ladder or ():
        alone = say("alone", rank=rung.rank) if rung.rank is not None else ""
        why = f" ({rung.reason})" if rung.reason else ""
        lines.append(say("ladder", rung=rung.rung, launch=rung.launch, alone=alone, reason=why))
    blocks = attribution(parsed.stated)
    lines += [say("pressure", blocks=blocks)] if blocks is not None else []
    points = points_of((key.replace("_", " "), text) for key, text in leaves) + lines_of(lines)
    return Section("failure", say("failure"), points=points)
