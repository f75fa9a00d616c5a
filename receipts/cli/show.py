"""``receipts show``: one receipt, headed by the five answers."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import click

from receipts.cli import output
from receipts.cli.session import Session, is_file, named, parsed_file, pass_session

if TYPE_CHECKING:
    from receipts.axes.lane import Lane
    from receipts.judging.facts import Facts
    from receipts.judging.verdict import ReceiptVerdict
    from receipts.questions.answers import Answers
    from receipts.receipt import Parsed
    from receipts.store import Decision

EPILOG = """\b
Examples:
  receipts show 3f9c
  receipts show @golden --facts
  receipts show run.json
  receipts show 3f9c --raw > run.json"""


@click.command("show", epilog=EPILOG)
@click.argument("receipt", metavar="ID|FILE")
@click.option("--facts", "all_facts", is_flag=True, help="Also list every stated leaf.")
@click.option("--verbose", "-v", "opened", is_flag=True, help="Show every finding in full, and memory by chip.")
@click.option("--raw", is_flag=True, help="Print the document's bytes as they came.")
@click.option("--json", "as_json", is_flag=True, help="Print answers, verdict and stated leaves as JSON.")
@pass_session
def command(session: Session, receipt: str, all_facts: bool, opened: bool, raw: bool, as_json: bool) -> int:
    """Show one receipt: what ran, where, on which path, what was measured, and the rules' verdict."""
    from receipts.judging.facts import Facts

    if is_file(receipt):
        parsed = parsed_file(receipt)
        if session.asks_store and not raw:
            with session.open_store() as store:
                shown = [_Shown(parsed, store.query.facts(parsed))]
        else:
            shown = [_Shown(parsed, Facts())]
    else:
        with session.open_store(looked_up=[receipt]) as store:
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
            _print(session, item, all_facts=all_facts, opened=opened)
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


def _print(session: Session, item: _Shown, *, all_facts: bool, opened: bool) -> None:
    from receipts.publish.receipt import Shown, page
    from receipts.questions.deciding import of_receipt

    lane, verdict, five = _judged(session, item)
    deciding = of_receipt(item.parsed, verdict)
    shown = Shown(item.parsed, lane, verdict, five, item.facts, item.decisions, deciding)
    output.show(page(shown, stated=all_facts), opened=opened)
