"""``receipts show``: one receipt, headed by the five answers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from receipts.base.units import amount
from receipts.cli import output
from receipts.cli.session import Session, is_file, named, parsed_file, pass_session

if TYPE_CHECKING:
    from receipts.axes.lane import Lane
    from receipts.judging.facts import Facts
    from receipts.judging.verdict import ReceiptVerdict
    from receipts.metrics.chips import Chip
    from receipts.questions.answers import Answers
    from receipts.receipt import Parsed
    from receipts.store import Decision

MOST_ROWS = 64  # of chips and phases, before a table shows one phase
FEW_ROWS = 16

EPILOG = """\b
Examples:
  receipts show 3f9c
  receipts show @golden --facts
  receipts show run.json
  receipts show 3f9c --raw > run.json"""


@click.command("show", epilog=EPILOG)
@click.argument("receipt", metavar="ID|FILE")
@click.option("--facts", "all_facts", is_flag=True, help="Also list every stated leaf.")
@click.option("--raw", is_flag=True, help="Print the document's bytes as they came.")
@click.option("--json", "as_json", is_flag=True, help="Print answers, verdict and stated leaves as JSON.")
@pass_session
def command(session: Session, receipt: str, all_facts: bool, raw: bool, as_json: bool) -> int:
    """Show one receipt: what ran, where, on which path, what was measured, and the rules' verdict."""
    from receipts.judging.facts import Facts

    if is_file(receipt):
        found = parsed_file(receipt)
        if session.asks_store and not raw:
            with session.open_store() as store:
                shown = [_Shown(found, store.query.facts(found))]
        else:
            shown = [_Shown(found, Facts())]
    else:
        with session.open_store(sought=[receipt]) as store:
            shown = [
                _Shown(one, store.query.facts([one]), store.published.decisions([one.id]))
                for one in named(store, receipt)
            ]
    for item in shown:
        if raw:
            _print_raw(item.parsed.raw)
        elif as_json:
            _print_json(session, item)
        else:
            _print(session, item, all_facts)
    return 0


class _Shown(NamedTuple):
    """A receipt, the facts about it, and what was decided on it."""

    parsed: Parsed
    facts: Facts
    decisions: Sequence[Decision] = ()


def _print_raw(document: bytes) -> None:
    """The bytes as they came; on a terminal, made harmless for it."""
    if sys.stdout.isatty():
        output.line("\n".join(output.clean(part) for part in document.decode().splitlines()))
    else:
        sys.stdout.buffer.write(document)


def _judged(session: Session, item: _Shown) -> tuple[Lane, ReceiptVerdict, Answers]:
    from receipts.judging.judge import judge_receipt
    from receipts.questions.answers import answers

    lane = session.rulebook.lanes.of(item.parsed.receipt.run.lane)
    verdict = judge_receipt(item.parsed, lane, session.rulebook.rules, item.facts)
    return lane, verdict, answers(item.parsed, lane, verdict, item.facts, session.rulebook.rules)


def _print_json(session: Session, item: _Shown) -> None:
    from receipts.judging.verdict_json import to_json
    from receipts.metrics.chips import account
    from receipts.metrics.chips.as_json import to_json as memory_json

    _, verdict, five = _judged(session, item)
    output.as_json(
        {
            "id": item.parsed.id,
            "answers": dict(five.rows()),
            "verdict": to_json(verdict),
            "stated": dict(item.parsed.stated),
            "memory": memory_json(account(item.parsed)),
            "decisions": [one._asdict() for one in item.decisions],
        }
    )


def _print(session: Session, item: _Shown, all_facts: bool) -> None:
    from receipts.cli.check import print_verdict
    from receipts.publish.decisions import decisions

    parsed = item.parsed
    lane, verdict, five = _judged(session, item)
    _head(parsed, lane, item.facts)
    output.line()
    _answers(five)
    _measured(parsed, lane)
    _failed(parsed)
    _memory(parsed)
    if all_facts:
        output.heading("Stated")
        output.table(("leaf", "value"), [(path, _value(value)) for path, value in parsed.stated.items()])
    output.sections(decisions(item.decisions))
    output.heading("Verdict")
    print_verdict(verdict)


def _head(parsed: Parsed, lane: Lane, facts: Facts) -> None:
    """Which launch this is, whether it still stands, and what witnesses it."""
    run = parsed.receipt.run
    name = output.clean(run.label or run.launch)
    if len(name) > output.width():
        output.wrapped(name, 0)
    else:
        output.line(output.paint(name, "head"))
    output.line(f"  id {parsed.id}")
    output.wrapped(f"{run.kind} · {run.outcome} · {run.provenance} · started {_when(parsed)} · lane {lane.name}", 2)
    standing = facts.superseded.get(parsed.id)
    if standing is not None:
        output.wrapped(f"no longer stands: {f'see {standing[0][:12]}, ' if standing[0] else ''}{standing[1]}")
    if run.supersedes is not None:
        target = run.supersedes.target
        which = "the earlier receipt of its launch" if target == run.launch else output.clean(target)[:12]
        output.wrapped(f"supersedes {which}: {output.clean(run.supersedes.reason)}", 2)
    _witnesses(parsed, lane, facts)


def _answers(five: Answers) -> None:
    """Each question beside its answer, or above it where that would leave the answer too narrow a column."""
    size = max(len(question) for question, _ in five.rows())
    for question, answer in five.rows():
        if size + 4 > output.width() // 2:
            output.wrapped(question, 2, 2)
            output.wrapped(answer, 4, 4)
        else:
            output.wrapped(f"{question.ljust(size)}  {answer}", 2, size + 4)


def _witnesses(parsed: Parsed, lane: Lane, facts: Facts) -> None:
    """Which launches show this one's path, and what they lend; or whose path this one shows."""
    from receipts.judging.rule import Case
    from receipts.metrics import Launch

    case = Case(Launch(parsed, lane), lane, facts)
    known = {item.id: item for item in facts.witnesses}
    for name in case.borrowed.lenders:
        leaves = [path.rpartition(".")[2] for path, by in case.borrowed.by.items() if by == name]
        lends = f"lends {', '.join(leaves)}" if leaves else "saw the same path"
        output.wrapped(f"witnessed by {name[:12]} {output.clean(known[name].name)}: {lends}", 2)
    for refused in case.borrowed.refused:
        name = f"{refused.witness.id[:12]} {output.clean(refused.witness.name)}"
        output.wrapped(f"not witnessed by {name}: {output.clean(refused.why)}", 2)
    named = parsed.receipt.run.witness_for
    if named is not None:
        other = case.witnessed
        which = f"{other.id[:12]} {output.clean(other.name)}" if other else f"{output.clean(named)}, not known here"
        output.wrapped(f"witnesses {which}", 2)


def _when(parsed: Parsed) -> str:
    run = parsed.receipt.run
    return output.clean(run.started_stated or f"{run.started:%Y-%m-%d %H:%M %Z}")


def _value(value: Any) -> str:
    if isinstance(value, list) and len(value) > 6:
        return f"{len(value)} values, {value[0]} … {value[-1]}"
    return output.clean(str(value))[:200]


def _measured(parsed: Parsed, lane: Lane) -> None:
    from receipts import metrics

    launch = metrics.Launch(parsed, lane)
    rows = []
    for name in metrics.METRICS:
        metric = metrics.get(name)
        reading = launch.shown(metric)
        if reading.value is not None:
            said = f" ({reading.text})" if reading.text else ""
            rows.append((metric.title, metrics.shown(metric, reading.value), f"{reading.source}{said}"))
    output.heading("Measured")
    output.table(("metric", "value", "from"), rows, right=(1,), empty="nothing that a metric can be read from")
    if launch.segment is not None:
        summary = launch.summary
        if summary is not None:
            output.wrapped(
                f"steady segment: {summary.n} of {len(launch.durations)} steps; median {summary.median * 1e3:.4g} ms, "
                f"mean {summary.mean * 1e3:.4g}, p95 {summary.p95 * 1e3:.4g}, p99 {summary.p99 * 1e3:.4g}"
            )
            output.wrapped(_correlation(launch.segment.of(launch.durations), summary.lag1))
        else:
            output.wrapped(f"{launch.segment.status}: {launch.segment.reason}")


def _correlation(steady: Sequence[float], lag1: float | None) -> str:
    """How alike neighbouring steps are: why a thousand steps are not a thousand samples."""
    from receipts.stats.launch import FEWEST_BATCHES, independent_batch

    if lag1 is None:
        return "autocorrelation of neighbouring steps: none, they are all equal or fewer than three"
    size = independent_batch(steady)
    if size is None:
        told = f"no {FEWEST_BATCHES} batches of them have independent means"
    elif size == 1:
        told = "nearly independent"
    else:
        told = f"means of {size} steps each are nearly independent"
    return f"autocorrelation of neighbouring steps: {lag1:.2f}; {told}"


def _failed(parsed: Parsed) -> None:
    failure = parsed.receipt.failure
    if failure is None:
        return
    output.heading("Failure")
    for key, value in failure.model_dump(by_alias=True, exclude_none=True, exclude={"ladder"}).items():
        shown = amount(value) if key.endswith("_bytes") else output.clean(str(value))
        output.wrapped(f"{key.replace('_', ' ')}: {shown}", 2, 6)
    for rung in failure.ladder or ():
        alone = f", rank {rung.rank} alone" if rung.rank is not None else ""
        output.wrapped(f"then {rung.rung}: {rung.launch}{alone}{f' ({rung.reason})' if rung.reason else ''}", 2, 6)
    from receipts.estimate.families import attribution

    blocks = attribution(parsed.stated)
    if blocks is not None:
        output.wrapped(f"pressure: {blocks}", 2, 6)


def _memory(parsed: Parsed) -> None:
    """Every phase in a sentence, and chips as a table: of many chips the fullest phase, or its tightest chips."""
    from receipts.metrics.chips import account, words

    made = account(parsed)
    if not made and made.aggregate is None:
        return
    output.heading("Memory by chip")
    several = any(len(phase.chips) > 1 for phase in made.phases)
    fullest = made.worst("peak") or made.worst("used")
    for phase in made.phases if several else ():
        output.wrapped((words.sentence if phase is fullest else words.brief)(phase), 2, 4)
    for text in () if several else [fault for phase in made.phases for fault in words.faults(phase)]:
        output.wrapped(text, 2, 4)
    if words.aggregate(made):
        output.wrapped(words.aggregate(made), 2, 4)
    shown = [item for phase in made.phases for item in phase.chips]
    if len(shown) > MOST_ROWS and fullest is not None:
        shown = list(fullest.chips)
    if len(shown) > MOST_ROWS:
        output.wrapped(f"the {FEW_ROWS} tightest of {len(shown)} chips:", 2, 4)
        shown = sorted(shown, key=_by_headroom)[:FEW_ROWS]
    if shown:
        _chip_table(shown)
    if several:
        output.wrapped(f"every chip where it stands: receipts chips {parsed.source} --phase PHASE", 2, 4)


def _by_headroom(item: Chip) -> tuple[float, int, int]:
    return (item.left if item.left is not None else 1.0), -(item.peak or item.used or 0), item.chip


def _chip_table(chips: Sequence[Chip]) -> None:
    def gib(value: int | None) -> str:
        return f"{value / 2**30:.2f}" if value is not None else "~"

    figures = [(item.used, item.limit, item.peak, item.pool, item.headroom) for item in chips]
    rows = [
        (str(item.chip), item.phase, *map(gib, amounts), f"{item.step:,}" if item.step is not None else "~")
        for item, amounts in zip(chips, figures, strict=True)
    ]
    names = ("used", "limit", "live peak", "pool peak", "headroom")
    output.table(("chip", "phase", *(f"{name} GiB" for name in names), "step"), rows, right=(0, 2, 3, 4, 5, 6, 7))
