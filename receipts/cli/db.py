"""``receipts db``, ``backup`` and ``restore``: the store as a database.

Its schema, the indexes that are made from its documents, its roles, and the whole store in one file and back.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from receipts.base.units import counted
from receipts.cli.session import Answer, Session, group, verb
from receipts.publish.page import Facts, Mark, Page

if TYPE_CHECKING:
    from receipts.store.address import Address
    from receipts.store.backup import Copied
    from receipts.store.index import Reindexed


@group("db")
def db() -> None:
    """Upgrade or check the store's schema, rebuild its indexes, or print its roles.

    Examples:
      receipts db check
      receipts db reindex
      receipts --store lab.sqlite db upgrade
      receipts db roles | psql postgresql://owner@db/receipts
    """


@verb("upgrade", of=db)
def upgrade(session: Session) -> Answer:
    """Bring the store to this version's schema, completely or not at all, and index what is not yet indexed.

    You can stop indexing at any time: receipts db reindex continues it.

    Examples:
      receipts db upgrade
      receipts --store lab.sqlite db upgrade
    """
    from receipts.store import schema
    from receipts.store.address import address
    from receipts.store.index import coverage

    place = address(session.store_url)
    done = schema.upgrade(place)
    known = done.found == done.wanted
    left = coverage(place, session.rulebook.lanes)
    reindexed = _reindex(session, everything=False) if left.missing or left.outdated else None
    answer = f"{'at' if known else 'made at'} schema {done.wanted}{' already' * known}: {done.store}"
    shown = [Page("Schema", (answer,)), *([_index_page(reindexed)] if reindexed else [])]
    grant = "where roles are in use, grant them the new tables: receipts db roles | psql URL"
    data = {**done._asdict(), "reindexed": reindexed._asdict() if reindexed else None}
    return Answer(data, shown, notes=(grant,) if place.file is None and not known else ())


@verb("reindex", of=db)
@click.option(
    "--all", "everything", is_flag=True, help="Empty the indexes first, which repairs what was edited or lost in them."
)
def reindex(session: Session, everything: bool) -> Answer:
    """Rebuild the indexes of axes and signatures from the documents. Others may write meanwhile.

    You can stop it at any time; the next call continues. Exit code 1 if a document is damaged.

    Examples:
      receipts db reindex
      receipts --store lab.sqlite db reindex --all
    """
    reindexed = _reindex(session, everything=everything)
    return Answer(reindexed._asdict(), lambda: _index_page(reindexed), 1 if reindexed.damaged else 0)


def _reindex(session: Session, *, everything: bool) -> Reindexed:
    from receipts.store.address import address
    from receipts.store.index import reindex

    place, lanes = address(session.store_url), session.rulebook.lanes
    return reindex(place, lanes, everything=everything, progress=session.progress.at)


def _index_page(reindexed: Reindexed) -> Page:
    placed = f"{counted(reindexed.receipts, 'receipt')} looked at, {reindexed.placed:,} placed in the axis index"
    damaged = tuple(f"{receipt[:12]} is damaged and left out; see: receipts audit" for receipt in reindexed.damaged)
    return Page("Index", (f"{reindexed.store}: {placed}",), lead=damaged)


@verb("check", of=db)
def check(session: Session) -> Answer:
    """Check the store: schema, triggers, indexes, and the database engine's own check.

    Exit code 1 if something is wrong.

    Examples:
      receipts db check
      receipts db check --json
    """
    from receipts.cli.submit import waiting
    from receipts.store import schema
    from receipts.store.address import address
    from receipts.store.index import coverage

    place = address(session.store_url)
    state = schema.check(place)
    # The check itself reports a damaged file: counting in it would fail.
    left = coverage(place, session.rulebook.lanes) if not state.problems else None
    if left is not None and left.problem:
        state = state._replace(problems=(*state.problems, left.problem))
    data = {**state._asdict(), "index": left._asdict() if left is not None else None}
    about = f"{state.store}: schema {state.found or 'unknown'}, {counted(state.receipts, 'receipt')}"
    whole: Facts = () if state.problems else (("", (Mark("yes", "whole"),)),)
    shown = Page("Schema", (about,), lead=tuple(state.problems), foot=whole)
    return Answer(data, shown, state.exit_code, tuple(waiting(session)))


@verb("roles", of=db)
@click.option(
    "--submitter", default="receipts_submitter", show_default=True, help="Role that reads and submits receipts."
)
@click.option(
    "--decider", default="receipts_decider", show_default=True, help="Role that also pins, retracts, decides."
)
@click.option("--reader", default="receipts_reader", show_default=True, help="Role that reads.")
@click.option("--schema", "place", default="public", show_default=True, help="PostgreSQL schema of the tables.")
def roles(session: Session, submitter: str, decider: str, reader: str, place: str) -> Answer:
    """Print the SQL of least-privilege roles for a store on PostgreSQL. It opens no store.

    Examples:
      receipts db roles | psql postgresql://owner@db/receipts
      receipts db roles --submitter jobs --reader dashboards

    Then: GRANT receipts_decider TO alice; GRANT receipts_submitter TO node. Run it again after db upgrade, which may
    have added tables. The owner of the tables upgrades, reindexes, purges, imports and restores.
    """
    from receipts.store.sql.guards import role_statements

    lines = list(role_statements(submitter, decider, reader, place))
    return Answer(lines, "\n".join(f"{statement};" for statement in lines))


@verb("backup")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
@click.option("--force", is_flag=True, help="Replace an existing file.")
def backup(session: Session, file: Path, force: bool) -> Answer:
    """Write the whole store to one SQLite file, as of one moment. Others may write meanwhile.

    The copy is checked before it gets its name. If the check fails, no file is left. Kept files of evidence are copied
    to FILE.evidence.

    Examples:
      receipts backup receipts-2026-03-08.sqlite
      receipts --store postgresql+psycopg://owner@db/receipts backup lab.sqlite
      receipts --store lab.sqlite audit

    The file is itself a store: every command takes it with --store FILE.
    """
    from receipts.store.address import address
    from receipts.store.backup import backup
    from receipts.store.evidence import copy_all, files_beside, kept_files

    session.progress.tick()
    target = file.expanduser().absolute()
    copy = backup(address(session.store_url), target, force=force)
    copy_all(kept_files(address(session.store_url)), files_beside(target))
    return _copied(copy, f"it comes back with: receipts --store STORE restore {file}")


@verb("restore")
@click.argument("file", metavar="FILE", type=click.Path(path_type=Path))
def restore(session: Session, file: Path) -> Answer:
    """Make a new store from a backup, completely or not at all.

    It is the same store, with the same id and the same row numbers, so every seal still holds. Every row is audited
    first; if one is not as it was written, nothing is restored (receipts --store FILE audit lists what is wrong).

    Examples:
      receipts --store new.sqlite restore receipts-2026-03-08.sqlite
      receipts --store postgresql+psycopg://owner@db/empty restore lab.sqlite

    A backup of an SQLite store can be restored to PostgreSQL, and the other way round.
    """
    from receipts.store import open_store
    from receipts.store.address import address
    from receipts.store.backup import restore
    from receipts.store.evidence import copy_all, files_beside, kept_files
    from receipts.workflows.audit import refuse_changed

    source = file.expanduser().absolute()

    def whole(place: Address) -> None:
        with open_store(str(place), create=False) as store:
            refuse_changed(store, session.rulebook, str(file), session.progress.at)

    restored = restore(source, address(session.store_url), whole)
    copy_all(files_beside(source), kept_files(address(session.store_url)))
    return _copied(restored, "every row is as it was written; hold it against a root: receipts audit --expect ROOT")


def _copied(copy: Copied, note: str) -> Answer:
    held = f"{counted(copy.receipts, 'receipt')}, {counted(copy.rows, 'row')} in all"
    return Answer(copy._asdict(), f"{copy.place}: {held}", notes=(note,))
