"""``receipts list``: stored receipts by any axis, lane or outcome."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from receipts.cli import output
from receipts.cli.session import Session
from receipts.cli.verb import Answer, verb

if TYPE_CHECKING:
    from collections.abc import Sequence

    from receipts.store import Condition, Entry, Filters, ListPlan, Store

PAGE = 50


@verb("list")
@click.argument("conditions", nargs=-1, metavar="[NAME=VALUE]…")
@click.option("--limit", "-n", default=PAGE, show_default=True, help="Print at most this many rows; 0 for all.")
@click.option("--all", "-a", "superseded", is_flag=True, help="Also show superseded and retracted receipts.")
@click.option("--order", type=click.Choice(["newest", "oldest", "stored"]), default="newest", show_default=True)
@click.option("--next", "deciding", is_flag=True, help="Also print what would decide each open receipt.")
@click.option("--by", "who", is_flag=True, help="Also print who submitted each receipt.")
def command(
    session: Session, conditions: tuple[str, ...], limit: int, superseded: bool, order: str, deciding: bool, who: bool
) -> Answer:
    """List stored receipts, newest first, by conditions on any column or leaf.

    Examples:
      receipts list
      receipts list status=open --next
      receipts list lane=nvidia-megatron outcome=oom
      receipts list 'label=grid*' batch.micro_batch=4
      receipts list 'chips>=8' 'mfu>0.3' --limit 0
      receipts list flags.NCCL_ALGO=Ring run.finished=- --json

    A value may be a pattern (*, ?); - means not stated.
    """
    from receipts.base.errors import NoStore
    from receipts.publish.tables import listed
    from receipts.store import Filters, condition

    wanted = tuple(condition(text) for text in conditions)
    filters = Filters(wanted, superseded, order, limit + 1 if limit else None)  # type: ignore[arg-type]  # click.Choice holds it to the three
    commands: dict[str, str] = {}
    try:
        if session.team is not None:
            session.team.refuse({"--next": deciding})
            most = limit + 1 if limit else 0
            rows = session.team.listed(conditions, most, superseded=superseded, order=order)
        else:
            rows, commands = _rows(session, filters, limit, deciding=deciding)
    except NoStore:
        if session.store_url is not None:
            raise  # a name that may be mistyped
        return Answer([], notes=("no receipts yet; add one with: receipts submit FILE",))
    more = bool(limit) and len(rows) > limit
    rows = rows[:limit] if limit else rows
    data = [item._asdict() | ({"next": commands.get(item.id) or None} if deciding else {}) for item in rows]
    notes = (f"the first {limit}; --limit 0 prints all",) if more else ()
    return Answer(data, listed(rows, commands, who=who), notes=notes + (() if rows else _mistyped(session, wanted)))


def _mistyped(session: Session, wanted: Sequence[Condition]) -> tuple[str, ...]:
    """The lanes that a condition may mean, where it names one that nobody declared."""
    from receipts.base.errors import near

    lanes = session.rulebook.lanes.names()
    names = [item.value for item in wanted if item.name == "lane" and item.operator == "=" and item.value not in lanes]
    return tuple(f"there is no lane {name!r}{hint}" for name in names if (hint := near(str(name), lanes)))


def _rows(session: Session, filters: Filters, limit: int, *, deciding: bool) -> tuple[list[Entry], dict[str, str]]:
    """The rows of a list, and what would decide the open ones; on standard error, what takes time about it."""
    store = session.store
    plan = store.plan(filters)
    slow = plan.slow and filters.conditions
    if slow:
        output.note(_scanning(plan))
    rows = list(store.find(filters, session.progress.at if slow else None))
    shown = [item for item in rows[: limit or None] if deciding and item.status == "open"]
    return rows, {item.id: _deciding(session, store, item.id) for item in shown}


def _deciding(session: Session, store: Store, receipt: str) -> str:
    """The command that would decide an open receipt, as the present rules judge it."""
    from receipts.judging.judge import judge_receipt
    from receipts.questions.next_command import of_receipt

    parsed = store.parsed(receipt)
    lane = session.rulebook.lanes.of(parsed.receipt.run.lane)
    return of_receipt(parsed, judge_receipt(parsed, lane, session.rulebook.rules, store.query.facts([parsed])))


def _scanning(plan: ListPlan) -> str:
    """What takes time about a list, and what would make it quick."""
    documents = f" and reads documents for {', '.join(plan.documents)}, which no index holds" if plan.documents else ""
    return f"scans {plan.most:,} receipts{documents}; context=, host=, code.commit= or started>= leave fewer to look at"
