"""``receipts preflight``, ``fit`` and ``ceiling``: whether a plan fits its chips, before it is paid for.

``preflight`` answers from launches that are known to work or to fail, ``fit`` from an estimate of what fills the
memory, ``ceiling`` with the largest shapes that a lane sustained and the nearest that ran out of memory.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from receipts.base import files
from receipts.base.errors import NotFound, UsageError
from receipts.base.units import moment
from receipts.cli import output
from receipts.cli.session import Answer, Session, from_stdin, is_file, laid_out, named_plan, verb

if TYPE_CHECKING:
    from receipts.questions.fit import MemoryEstimate
    from receipts.questions.preflight import PreflightAnswer, Rung
    from receipts.store import Store


_MOST = 16 * 1024 * 1024  # bytes of candidates


@verb("preflight")
@click.argument("plan", required=False, metavar="PLAN|ID")
@click.option(
    "--next", "smaller", type=click.Path(dir_okay=False), help="Write the next smaller plan of the lane's ladder here."
)
@click.option(
    "--rank",
    type=click.Path(dir_okay=False, allow_dash=True),
    help="Order the plans of a JSONL file, most likely to work first.",
)
@click.option("--out", type=click.Path(dir_okay=False), help="With --rank: write the reordered lines here.")
def preflight(
    session: Session, plan: str | None, smaller: str | None, rank: str | None, out: str | None
) -> Answer | int:
    """Say whether a plan is known to work or to fail, and what to try if it fails.

    Launches are looked up by their signature: one hash over code, hardware, model, parallelism, batch and features. If
    no launch has the plan's signature, launches that differ only in micro batch, sequence length or optional features
    decide: a smaller one that ran out of memory, or a larger one that worked. If there are none, the estimate of
    receipts fit decides.

    Examples:
      receipts preflight plan.json
      receipts preflight plan.json --next smaller.json
      receipts preflight 3f9c --json
      receipts preflight --rank candidates.jsonl
      receipts preflight --rank candidates.jsonl --out ordered.jsonl

    A plan is what `receipts init` writes, filled in; a receipt is a plan, too. Exit codes: 0 known or likely to work, 1
    known or predicted to fail, 2 not a plan, 3 unknown. With --rank: 1 if every candidate is known or predicted to
    fail.
    """
    if (plan is None) == (rank is None):
        raise UsageError("name a plan, or candidates with --rank; see: receipts preflight --help")
    if rank is not None:
        if smaller is not None:
            raise UsageError("--next belongs to one plan, and --rank orders several; ask for one of them")
        if session.team is not None:
            session.team.refuse({"--rank": rank})
        return _rank(session, rank, out)
    if out is not None:
        raise UsageError("--out belongs to --rank; the next rung's plan is written by --next FILE")
    return _one(session, plan or "", smaller)


def _known(session: Session, *, needed: bool) -> Store | None:
    """The store; None where there is none yet, and the estimate alone can tell something of a file."""
    from receipts.store.address import address

    file = address(session.store_url).file
    if file is not None and not file.exists() and not needed and not session.asks_store:
        output.note("there is no store yet: nothing is known of earlier launches, and the estimate alone tells")
        return None
    return session.store


def _one(session: Session, word: str, smaller: str | None) -> Answer | int:
    from receipts.publish.preflight import page
    from receipts.questions.plan import parse_plan, read_plan
    from receipts.questions.preflight import answered

    if session.team is not None:
        session.team.refuse({"--next": smaller})
        return session.team.preflight(word, as_json=session.as_json)
    store = _known(session, needed=not is_file(word))
    if word == "-":
        plan = parse_plan(from_stdin())
    else:
        plan = read_plan(word, None if is_file(word) else store)
    known = answered(plan, session.rulebook.lanes.of(plan.receipt.run.lane), store)
    answer, rung = known.answer, known.rung
    if answer.by is None and is_file(word):
        laid_out(session, plan)  # no launch shows that it can be
    if smaller is not None:
        _write(smaller, rung, answer)
    return Answer(known.as_data, lambda: page(plan, answer, rung, smaller), answer.code)


def _write(path: str, rung: Rung | None, answer: PreflightAnswer) -> None:
    """Write the next plan whole or not at all; an existing file is kept."""
    if rung is None or rung.plan is None:
        from receipts.publish.preflight import STATES

        why = "no rung is left: record the frontier" if rung is not None else f"the plan is {STATES[answer.status][1]}"
        output.note(f"{path} is not written: {why}")
        return
    files.write(path, rung.plan)


def _rank(session: Session, source: str, out: str | None) -> Answer:
    from receipts.publish.preflight import ranking
    from receipts.questions.preflight import as_lines, candidates, preflight, ranked

    try:
        if source == "-":
            raw = files.read_bounded(sys.stdin.buffer, _MOST)
        else:
            raw = files.read_small(Path(source), _MOST)
    except OSError as error:
        raise UsageError(f"{source} cannot be read: {error.strerror}") from None
    given = candidates(raw, "standard input" if source == "-" else source)
    store, lanes = _known(session, needed=False), session.rulebook.lanes
    order = ranked(given, lambda plan: preflight(plan, lanes.of(plan.receipt.run.lane), store))
    if out is not None:
        files.write(out, as_lines(order), over=True)
    code = 1 if all(item.answer.code == 1 for item in order) else 0
    return Answer(lambda: [item.as_data() for item in order], lambda: ranking(order), code)


@verb("fit")
@click.argument("plan")
@click.argument("other", required=False)
@click.option("--against", metavar="RECEIPT", help="Show which part grows from RECEIPT to PLAN, beside measured peaks.")
@click.option("--svg", type=click.Path(dir_okay=False), help="Write the stacked bar as SVG.")
@click.option(
    "--calibrate", is_flag=True, help="Scale by the measured peaks of the lane's stored launches, with an interval."
)
@click.option("--aot", is_flag=True, help="Compile the train step for TPU v6e and show the compiler's bytes.")
@click.option(
    "--oom",
    type=click.Path(dir_okay=False),
    help="With --aot: if it does not fit, write that failure as a receipt here.",
)
def fit(
    session: Session,
    plan: str,
    other: str | None,
    against: str | None,
    svg: str | None,
    calibrate: bool,
    aot: bool,
    oom: str | None,
) -> Answer:
    """Estimate the memory of PLAN on its fullest chip; with OTHER, show which part grows.

    PLAN and OTHER are receipts, or plans as ``receipts init`` writes them: files, ids, labels or pins. A label may name
    launches of one configuration.

    Examples:
      receipts init tpu-maxtext > plan.json     # fill in model, parallelism and batch
      receipts fit plan.json
      receipts fit plan.json --svg plan.svg --json
      receipts fit before.json after.json       # which bucket grows
      receipts fit plan.json --against 3f9c     # the same from a launch, beside its measured peak
      receipts fit 3f9c --calibrate             # by the lane's own measured peaks
      receipts fit plan.json --aot              # ask the TPU compiler as well

    The estimate is for the fullest chip at the fullest moment of a step. Values that the plan does not state are listed
    with the value assumed. The budget is the runtime's limit, not the chip's physical memory. Exit codes: 0 it fits, 1
    it does not, 2 wrong call or input, 3 too little is stated to decide.
    """
    from receipts.base import plugins
    from receipts.publish.fit import page
    from receipts.questions.fit import calibrations, estimate, estimates_as_data, with_shrinks

    if oom is not None and not aot:
        raise UsageError("--oom writes what the compiler refuses; give --aot with it")
    if against is not None:
        if other is not None:
            raise UsageError("fit A B compares the two already; leave out --against, or name one plan")
        plan, other = against, plan
    if aot and other is not None:
        raise UsageError("--aot compiles one plan; give one, and compare the two without it")
    lanes = session.rulebook.lanes
    plans = [named_plan(session, word) for word in (plan, other) if word is not None]
    names = [lanes.of(item.receipt.run.lane).name for item in plans]
    known = calibrations(session.store, lanes, names) if calibrate else {}
    estimates = [
        with_shrinks(estimate(item, lane := lanes.of(item.receipt.run.lane), known.get(lane.name)), item, lane)
        for item in plans
    ]
    compiler: Any = plugins.service("compiler", "fit --aot") if aot else None
    answer: Any = compiler.ask_compiler(plans[0], lanes.of(estimates[0].lane), estimates[0]) if compiler else None
    if compiler and oom is not None and answer.failure is not None:
        _write_refusal(oom, compiler.oom_receipt(plans[0], estimates[0], answer))
    if svg is not None:
        _draw_fit(svg, estimates)
    return Answer(
        lambda: estimates_as_data(estimates, compiler.answer_json(answer) if compiler else None, calibrated=calibrate),
        lambda: page(estimates, compiler.section(answer) if compiler else None, calibrated=calibrate),
        _fit_code(estimates, answer),
    )


def _draw_fit(path: str, estimates: list[MemoryEstimate]) -> None:
    from receipts.publish.fit import picture

    figure = picture(estimates)
    if figure is None:
        raise UsageError(f"--svg {path}: too little is stated to draw; without --svg the call says what is missing")
    output.picture(path, figure)


def _write_refusal(path: str, receipt: dict[str, Any]) -> None:
    import json

    files.write(path, json.dumps(receipt, indent=2) + "\n")
    output.note(f"wrote {path}; then: receipts check {path}")


def _fit_code(estimates: list[MemoryEstimate], answer: Any) -> int:
    """Of two plans the second decides: it is the one that is asked about. A compiler's answer outranks an estimate."""
    if answer is not None:
        return 0 if answer.compiled.total is not None else 1
    return {True: 0, False: 1, None: 3}[estimates[-1].fits]


@verb("ceiling")
@click.option("--lane", "-l", required=True, metavar="LANE", help="The lane's name.")
@click.option("--since", metavar="DATE", help="Only launches that started on this day or later.")
def ceiling(session: Session, lane: str, since: str | None) -> Answer:
    """Show the largest shapes that a lane sustained, the nearest that ran out of memory, and the gap between.

    A shape is sequence length, micro batch and depth. Each model (by its axes, not its name), accelerator, layout,
    recompute policy, precision, optimizer and number of chips has its own shapes. Only measured training launches that
    were neither superseded nor retracted count.

    Examples:
      receipts ceiling --lane tpu-torch-xla
      receipts ceiling --lane nvidia-megatron --since 2026-03-01
      receipts ceiling --lane nvidia-megatron --json

    validated: three launches on two days or two hosts; repeated: two launches; peak: one.
    Exit codes: 0 a shape was sustained repeatedly, 2 no such lane, 3 none was.
    """
    from receipts.base.errors import near
    from receipts.publish.report.template import page
    from receipts.questions.ceiling import as_data, ceilings

    begin = moment("--since", since) if since is not None else None
    known = ceilings(session.store, lane, since=begin)
    groups, shapeless = known.reached
    lanes = session.rulebook.lanes.names()
    if not groups and not shapeless and lane not in lanes:
        hint = near(lane, lanes)
        raise NotFound(f"no launch of a lane {lane!r}, and no such lane is declared; see: receipts lanes{hint}")
    return Answer(
        lambda: as_data(lane, known.reached, known.described, known.pressures),
        lambda: page("weekly/ceilings.j2", {"lane": session.rulebook.lanes.of(lane), "ceilings": known}),
        0 if any(item.grade != "peak" for group in groups for item in group.ceilings) else 3,
    )
