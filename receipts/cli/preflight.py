"""``receipts preflight``: whether a plan is known to work or to fail, before it is paid for."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click

from receipts.base import files
from receipts.base.errors import UsageError
from receipts.cli import output
from receipts.cli.session import Session, from_stdin, is_file, laid_out
from receipts.cli.verb import Answer, verb

if TYPE_CHECKING:
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
def command(session: Session, plan: str | None, smaller: str | None, rank: str | None, out: str | None) -> Answer | int:
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
