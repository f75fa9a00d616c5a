"""``receipts db``: the store's schema, and the indexes that are made from its documents."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from receipts.base.units import counted
from receipts.cli import output
from receipts.cli.session import Session, pass_session
from receipts.publish.page import Facts, Mark, Page

if TYPE_CHECKING:
    from receipts.store.integrity.reindex import Reindexed

EPILOG = """\b
Examples:
  receipts db check
  receipts db reindex
  receipts --store lab.sqlite db upgrade
  receipts db roles | psql postgresql://owner@db/receipts"""


@click.group("db", epilog=EPILOG)
def command() -> None:
    """Upgrade or check the store's schema, rebuild its indexes, or print its roles."""


@command.command(
    "upgrade",
    short_help="Bring the store to this version's schema and index.",
    epilog="\b\nExamples:\n  receipts db upgrade\n  receipts --store lab.sqlite db upgrade",
)
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")
@pass_session
def upgrade(session: Session, as_json: bool) -> int:
    """Bring the store to this version's schema, completely or not at all, and index what is not yet indexed.

    You can stop indexing at any time: receipts db reindex continues it.
    """
    from receipts.store import schema
    from receipts.store.address import address
    from receipts.store.integrity.reindex import coverage

    place = address(session.store_url)
    done = schema.upgrade(place)
    if not as_json:
        if done.found == done.wanted:
            output.line(f"{done.store}: at schema {done.wanted} already")
        else:
            output.line(f"{done.store}: made at schema {done.wanted}")
            if place.file is None:
                output.note("where roles are in use, grant them the new tables: receipts db roles | psql URL")
    left = coverage(place, session.rulebook.lanes)
    reindexed = _reindex(session, everything=False) if left.missing or left.outdated else None
    if as_json:
        output.as_json({**done._asdict(), "reindexed": reindexed._asdict() if reindexed else None})
    elif reindexed is not None:
        output.show(_page(reindexed))
    return 0


@command.command(
    "reindex",
    short_help="Rebuild the indexes from the documents.",
    epilog="\b\nExamples:\n  receipts db reindex\n  receipts --store lab.sqlite db reindex --all",
)
@click.option(
    "--all", "everything", is_flag=True, help="Empty the indexes first, which repairs what was edited or lost in them."
)
@click.option("--json", "as_json", is_flag=True, help="Print what was done as JSON.")
@pass_session
def reindex(session: Session, everything: bool, as_json: bool) -> int:
    """Rebuild the indexes of axes and signatures from the documents. Others may write meanwhile.

    You can stop it at any time; the next call continues. Exit code 1 if a document is damaged.
    """
    reindexed = _reindex(session, everything=everything)
    output.answer(as_json, reindexed._asdict(), lambda: _page(reindexed))
    return 1 if reindexed.damaged else 0


def _reindex(session: Session, *, everything: bool) -> Reindexed:
    from receipts.store.address import address
    from receipts.store.integrity.reindex import reindex

    with output.Progress() as shown:
        return reindex(address(session.store_url), session.rulebook.lanes, everything=everything, progress=shown.at)


def _page(reindexed: Reindexed) -> Page:
    placed = f"{counted(reindexed.receipts, 'receipt')} looked at, {reindexed.placed:,} placed in the axis index"
    damaged = tuple(f"{receipt[:12]} is damaged and left out; see: receipts audit" for receipt in reindexed.damaged)
    return Page("Index", (f"{reindexed.store}: {placed}",), lead=damaged)


@command.command(
    "check",
    short_help="Check schema, triggers and indexes.",
    epilog="\b\nExamples:\n  receipts db check\n  receipts db check --json",
)
@click.option("--json", "as_json", is_flag=True, help="Print the result as JSON.")
@pass_session
def check(session: Session, as_json: bool) -> int:
    """Check the store: schema, triggers, indexes, and the database engine's own check.

    Exit code 1 if something is wrong.
    """
    from receipts.cli.flush import remind
    from receipts.store import schema
    from receipts.store.address import address
    from receipts.store.integrity.reindex import coverage

    place = address(session.store_url)
    state = schema.check(place)
    # The check itself reports a damaged file: counting in it would fail.
    left = coverage(place, session.rulebook.lanes) if not state.problems else None
    if left is not None and left.problem:
        state = state._replace(problems=(*state.problems, left.problem))
    data = {**state._asdict(), "index": left._asdict() if left is not None else None}
    about = f"{state.store}: schema {state.found or 'unknown'}, {counted(state.receipts, 'receipt')}"
    whole: Facts = () if state.problems else (("", (Mark("yes", "whole"),)),)
    output.answer(as_json, data, Page("Schema", (about,), lead=tuple(state.problems), foot=whole))
    remind(session)
    return state.exit_code


ROLES_EPILOG = """\b
Examples:
  receipts db roles | psql postgresql://owner@db/receipts
  receipts db roles --submitter jobs --reader dashboards

Then: GRANT receipts_decider TO alice; GRANT receipts_submitter TO node. Run it again after db upgrade, which may
have added tables. The owner of the tables upgrades, reindexes, purges, imports and restores."""


@command.command("roles", short_help="Print roles for PostgreSQL as SQL.", epilog=ROLES_EPILOG)
@click.option(
    "--submitter", default="receipts_submitter", show_default=True, help="Role that reads and submits receipts."
)
@click.option(
    "--decider", default="receipts_decider", show_default=True, help="Role that also pins, retracts, decides."
)
@click.option("--reader", default="receipts_reader", show_default=True, help="Role that reads.")
@click.option("--schema", "place", default="public", show_default=True, help="PostgreSQL schema of the tables.")
@click.option("--json", "as_json", is_flag=True, help="Print the statements as a JSON list.")
def roles(submitter: str, decider: str, reader: str, place: str, as_json: bool) -> int:
    """Print the SQL of least-privilege roles for a store on PostgreSQL. It opens no store."""
    from receipts.store.sql.roles import statements

    lines = list(statements(submitter, decider, reader, place))
    output.answer(as_json, lines, lambda: output.line("\n".join(f"{statement};" for statement in lines)))
    return 0
