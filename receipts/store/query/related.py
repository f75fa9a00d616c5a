"""What the store holds of a receipt's kin: its witnesses, whom it witnesses, what it resumed, launches that started on
its host at its instant, and earlier failures of its signature.

SQLite is asked for one receipt at a time. PostgreSQL is asked once for all that come in together: a server spends more
on being asked than on an answer, and most answers are that there is none.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from typing import Any, Final, Literal, NamedTuple

from sqlalchemy import (
    ColumnElement,
    DateTime,
    Select,
    String,
    TableValuedAlias,
    and_,
    bindparam,
    func,
    or_,
    select,
    true,
)

from receipts.axes.settings import LaunchSettings
from receipts.judging.facts import exact_start
from receipts.receipt import Parsed
from receipts.store.entries import safe, standing
from receipts.store.query.signatures import ask_earlier, earlier_of
from receipts.store.sql.postgres import unnested
from receipts.store.sql.statement import Ask, Row, SqlStatement
from receipts.store.tables import documents, receipts

About = Literal["witnesses", "failures", "resumed", "at_once"]


class KinQuery(NamedTuple):
    """What a store is asked of the kin of receipts of these ids. ``placed``: each row begins with the place of its own.

    Of its witnesses, or whom it witnesses, of the launch that it resumed, and of launches ``at_once`` with it come ids,
    packed documents, who submitted them, and who submitted the receipt itself if it is stored, the newest first; or,
    where it is asked of failures, rows that `signatures.earlier` reads.
    """

    ask: Ask
    of: Sequence[str]
    about: About
    placed: bool = False

    def answered(self, rows: Sequence[Row]) -> Mapping[str, Sequence[Row]]:
        """The rows by the id that they were found for."""
        if not self.placed:
            return {self.of[0]: rows}
        answers: dict[str, list[Row]] = {}
        for place, *row in rows:
            answers.setdefault(self.of[place - 1], []).append(tuple(row))
        return answers


_LATER: Final = receipts.alias("later")
# Documents of one receipt's kin that are read, the newest: each is parsed.
MOST_KIN: Final = 20


def _documents(own: ColumnElement[Any], *conditions: ColumnElement[bool], given: Sequence[Any] = ()) -> Select[Any]:
    """Documents of kin of the receipt with the id ``own``, which may be a column of a table that is ``given``.

    The newest are chosen before any document is read. They are numbered and not limited: with a limit PostgreSQL may
    walk all receipts from the newest.
    """
    place = func.row_number().over(order_by=receipts.c.seq.desc()).label("place")
    kin = select(receipts.c.seq, place).where(*conditions).correlate(*given).subquery("kin")
    actor = select(_LATER.c.actor).where(_LATER.c.id == own).correlate(*given).scalar_subquery()
    return (
        select(receipts.c.id, documents.c.codec, documents.c.body, receipts.c.actor, actor.label("own"))
        .select_from(kin)
        .join(receipts, receipts.c.seq == kin.c.seq)
        .join(documents, documents.c.receipt == kin.c.seq)
        .where(kin.c.place <= MOST_KIN)
        .order_by(kin.c.seq.desc())
    )


def _naming(own: ColumnElement[Any], launch: ColumnElement[Any], *given: TableValuedAlias) -> Select[Any]:
    """Witnesses that stand and name a receipt."""
    return _documents(own, receipts.c.witness_for.in_((own, launch)), standing(), given=given)


WITNESSES: Final = SqlStatement(_naming(bindparam("id"), bindparam("launch")))
_TARGET: Final = or_(receipts.c.id == bindparam("target"), and_(receipts.c.launch == bindparam("target"), standing()))
WITNESSED: Final = SqlStatement(_documents(bindparam("id"), _TARGET))
_OWN: Final = select(_LATER.c.seq).where(_LATER.c.id == bindparam("id")).scalar_subquery()
AT_ONCE: Final = SqlStatement(
    _documents(
        bindparam("id"),
        receipts.c.started == bindparam("started"),
        receipts.c.host == bindparam("host"),
        receipts.c.launch != bindparam("launch"),
        receipts.c.seq < func.coalesce(_OWN, 2**62),  # what came first is not changed by what comes later
        standing(),
    )
)


def questions(group: Sequence[Parsed], settings: Mapping[str, LaunchSettings], *, together: bool) -> Iterator[KinQuery]:
    """What to ask of the kin of some receipts, where that is anything; ``together`` of PostgreSQL alone.

    ``settings`` are those of the receipts, by id.

    One look-up of kin a receipt: a witness shows its own path, and no other is asked to witness it.
    """
    plain, signed = list[Parsed](), list[tuple[str, Ask]]()
    for item in {item.id: item for item in group}.values():  # one that comes twice has its failures once
        target = item.receipt.run.witness_for
        if target is not None:
            yield KinQuery((WITNESSED, {"target": safe(target), "id": item.id}), [item.id], "witnesses")
        else:
            plain.append(item)
        run = item.receipt.run
        if run.resumed_from is not None:
            yield KinQuery((WITNESSED, {"target": safe(run.resumed_from), "id": item.id}), [item.id], "resumed")
        if exact_start(item):
            instant = {"started": run.started, "host": safe(run.host), "launch": safe(run.launch), "id": item.id}
            yield KinQuery((AT_ONCE, instant), [item.id], "at_once")
        asked = ask_earlier(item, settings[item.id])
        signed += [(item.id, asked)] if asked is not None else []
    if not together:
        for item in plain:
            names = {"id": item.id, "launch": safe(item.receipt.run.launch)}
            yield KinQuery((WITNESSES, names), [item.id], "witnesses")
        for name, asked in signed:
            yield KinQuery(asked, [name], "failures")
        return
    if plain:
        ids = [item.id for item in plain]
        every = {"id": ids, "launch": [safe(item.receipt.run.launch) for item in plain]}
        yield KinQuery((_witnesses_of_many(), every), ids, "witnesses", placed=True)
    if signed:
        given = {name: [one[name] for _, (_, one) in signed] for name in signed[0][1][1]}
        yield KinQuery((_earlier_of_many(), given), [name for name, _ in signed], "failures", placed=True)


@cache
def _witnesses_of_many() -> SqlStatement:
    asked = unnested({"id": String(), "launch": String()})
    return _of_each(asked, _naming(asked.c.id, asked.c.launch, asked))


@cache
def _earlier_of_many() -> SqlStatement:
    asked = unnested({"signature": String(), "launch": String(), "started": DateTime(timezone=True)})
    return _of_each(asked, earlier_of(asked.c.signature, asked.c.launch, asked.c.started))


def _of_each(asked: TableValuedAlias, query: Select[Any]) -> SqlStatement:
    each = query.correlate(asked).lateral("found")
    return SqlStatement(select(asked.c.place, *each.c).select_from(asked.join(each, true())))
