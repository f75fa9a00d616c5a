"""A backup is one state of a store, whole or not there, and a store made of it is the same store."""

from __future__ import annotations

import hashlib
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from sqlalchemy import func, select

import rule_cases as cases
from command_line import Shell
from receipts.base.errors import StoreError, UsageError
from receipts.judging.rulebook import Rulebook
from receipts.receipt import Document
from receipts.store import Store, open_store, schema
from receipts.store import backup as module
from receipts.store.address import address
from receipts.store.backup import backup, restore
from receipts.store.database import connect, reading
from receipts.store.tables import documents, metadata
from receipts.workflows.audit import audit
from receipts.workflows.submit import submit
from store_receipts import publish, ready, sign
from tampering import tamper

pytestmark = pytest.mark.slow

RULEBOOK = Rulebook()


def _fill(url: str) -> None:
    """A store with something in each table but the indexes of axes, and a purge behind it."""
    with open_store(url) as opened:
        base = cases.group(cases.build({}), "a", 5)
        every = [Document(item.raw, item.source) for item in base]
        ids = [item.submitted.id for item in submit(every, opened, RULEBOOK) if item.submitted]
        opened.pin("@golden", ids[0])
        publish(opened, ids[0])
        sign(opened, ids[0])
        opened.seal()
        opened.purge(ids[3], "a token")
        opened.retract(ids[1], "a wrong clock")
        opened.seal()


@pytest.fixture
def store(copied: Callable[..., str]) -> Iterator[Store]:
    """A copy of the store that `_fill` makes."""
    with open_store(copied("backed up", _fill)) as opened:
        yield opened


def _rows(url: str) -> dict[str, list[tuple[object, ...]]]:
    """Every row of every table, in the same values on both engines."""
    engine = connect(address(url))
    with reading(engine) as connection:
        found = {
            table.name: sorted((tuple(row) for row in connection.execute(select(table))), key=repr)
            for table in metadata.sorted_tables
        }
    engine.dispose()
    return found


def test_a_backup_holds_every_row_and_every_seal_holds_in_it(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "kept.sqlite"
    made = backup(store.database.address, file)
    assert (made.place, made.store, made.receipts) == (str(file), store.id, 4)
    rows = _rows(str(file))
    assert rows == _rows(store.url)
    assert all(rows[name] for name in ("erased", "seals", "claims", "purges", "quotes", "decisions"))
    assert schema.check(address(str(file))).problems == ()
    with open_store(str(file), create=False) as kept:
        assert audit(kept, RULEBOOK).faults == ()
        assert audit(kept, RULEBOOK).head == audit(store, RULEBOOK).head
    assert sorted(path.name for path in tmp_path.iterdir() if "kept" in path.name) == ["kept.sqlite"]


def test_a_store_made_of_a_backup_is_the_same_store_on_either_engine(
    store: Store, tmp_path: Path, postgres_store: str, request: pytest.FixtureRequest
) -> None:
    file = tmp_path / "kept.sqlite"
    backup(store.database.address, file)
    targets = [str(tmp_path / "again.sqlite")]
    if store.url.endswith("sqlite"):
        targets.append(postgres_store)  # where the store is on PostgreSQL, this is its own database
    for target in targets:
        made = restore(file, address(target))
        assert made.store == store.id
        assert _rows(target) == _rows(store.url)
        with open_store(target, create=False) as again:
            assert audit(again, RULEBOOK).faults == ()
            taken = again.submit(*ready())
            assert taken.new  # its number follows the last
            assert again.entry(taken.id).seq > 4
            again.seal()
            assert audit(again, RULEBOOK).faults == ()
        assert schema.check(address(target)).problems == ()


def test_a_backup_while_writers_are_active_is_one_state_of_the_store(store_url: str, tmp_path: Path) -> None:
    with open_store(store_url) as store:
        store.submit(*ready())
        stop = threading.Event()
        written: list[str] = []

        def write() -> None:
            with open_store(store_url) as own:
                while not stop.is_set():
                    written.append(own.submit(*ready()).id)

        writers = [threading.Thread(target=write) for _ in range(2)]
        for writer in writers:
            writer.start()
        counts = []
        for number in range(5):
            before = len(written)
            made = backup(store.database.address, tmp_path / f"{number}.sqlite")
            with open_store(made.place, create=False) as kept:
                there = {item.id for item in kept.find()}
            assert set(written[: max(0, before - 2)]) <= there
            engine = connect(address(made.place))
            with reading(engine) as connection:
                totals = {
                    connection.execute(select(func.count()).select_from(metadata.tables[name])).scalar_one()
                    for name in ("receipts", "documents", "verdicts", "subjects")
                }
            engine.dispose()
            assert totals == {made.receipts}
            counts.append(made.receipts)
        stop.set()
        for writer in writers:
            writer.join()
        assert counts == sorted(counts)
        assert counts[-1] > counts[0]


def test_no_file_is_replaced_unless_that_was_asked_for(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "kept.sqlite"
    file.write_text("mine")
    with pytest.raises(UsageError, match="--force"):
        backup(store.database.address, file)
    assert file.read_text() == "mine"
    assert backup(store.database.address, file, force=True).receipts == 4
    if store.url.endswith("sqlite"):
        with pytest.raises(UsageError, match="the store itself"):
            backup(store.database.address, Path(store.url), force=True)


def test_a_file_that_came_meanwhile_is_not_replaced(
    store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "kept.sqlite"
    checked = module._checked

    def late(made: Path, name: object) -> module.Copied:
        file.write_text("theirs")
        return checked(made, name)

    monkeypatch.setattr(module, "_checked", late)
    with pytest.raises(UsageError, match="there is a file already"):
        backup(store.database.address, file)
    assert file.read_text() == "theirs"
    assert [path.name for path in tmp_path.iterdir() if "kept" in path.name] == ["kept.sqlite"]


def test_a_copy_that_is_not_whole_gets_no_name(store: Store, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "kept.sqlite"
    name = "copy_pages" if store.url.endswith("sqlite") else "copy_rows"
    copy = getattr(module, name)

    def damaged(engine: object, made: Path) -> None:
        copy(engine, made)
        content = bytearray(made.read_bytes())
        content[-4 * 4096 :] = b"\xff" * (4 * 4096)
        made.write_bytes(content)

    monkeypatch.setattr(module, name, damaged)
    with pytest.raises(StoreError):
        backup(store.database.address, file)
    assert [path.name for path in tmp_path.iterdir() if "kept" in path.name] == []


def test_a_flipped_bit_in_a_document_is_found_by_a_backup_and_by_a_restore(store: Store, tmp_path: Path) -> None:
    whole = tmp_path / "whole.sqlite"
    backup(store.database.address, whole)
    with reading(store.database.engine) as connection:
        body = bytearray(connection.execute(select(documents.c.body).where(documents.c.receipt == 1)).scalar_one())
    body[len(body) // 2] ^= 1
    for url in (store.url, str(whole)):
        tamper(url, f"UPDATE documents SET body = {_blob(url, bytes(body))} WHERE receipt = 1")
    with pytest.raises(StoreError, match="damaged"):
        backup(store.database.address, tmp_path / "damaged.sqlite")
    with pytest.raises(StoreError, match="damaged"):
        restore(whole, address(str(tmp_path / "again.sqlite")))
    assert sorted(path.name for path in tmp_path.glob("*.sqlite") if path.name != "store.sqlite") == ["whole.sqlite"]


def _blob(url: str, body: bytes) -> str:
    return f"'\\x{body.hex()}'" if url.startswith("postgresql") else f"x'{body.hex()}'"


def test_a_place_that_cannot_be_written_is_said(store: Store, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="there is no folder"):
        backup(store.database.address, tmp_path / "none" / "kept.sqlite")


def test_a_store_is_never_restored_over_another(store: Store, tmp_path: Path) -> None:
    file = tmp_path / "kept.sqlite"
    backup(store.database.address, file)
    before = _rows(store.url)
    with pytest.raises(UsageError, match=r"there is a store already|holds tables already"):
        restore(file, store.database.address)
    assert _rows(store.url) == before
    with pytest.raises(UsageError, match="there is no such file"):
        restore(tmp_path / "none.sqlite", address(str(tmp_path / "new.sqlite")))
    (tmp_path / "text.sqlite").write_text("no database, but long enough to be looked at")
    with pytest.raises(StoreError, match="not an SQLite database"):
        restore(tmp_path / "text.sqlite", address(str(tmp_path / "new.sqlite")))
    assert not (tmp_path / "new.sqlite").exists()


def test_the_commands_say_what_they_made_and_what_is_next(shell: Shell) -> None:
    shell.store("one")
    said = shell("backup", "kept.sqlite")
    assert said.code == 0
    assert "1 receipt, " in said.out
    assert "restore kept.sqlite" in said.err
    assert shell("backup", "kept.sqlite").code == 2
    digest = hashlib.sha256((shell.folder / "kept.sqlite").read_bytes()).hexdigest()
    again = shell("--store", "again.sqlite", "restore", "kept.sqlite", "--json")
    assert again.code == 0
    assert again.json["place"].endswith("again.sqlite")
    assert again.json["receipts"] == 1
    assert hashlib.sha256((shell.folder / "kept.sqlite").read_bytes()).hexdigest() == digest
    assert shell("restore", "kept.sqlite").code == 2
    assert os.access(shell.folder / "again.sqlite", os.W_OK)


def test_a_store_that_is_not_there_is_not_made_by_looking_for_it(shell: Shell) -> None:
    shell.unmade()
    for words in (("backup", "kept.sqlite"), ("db", "reindex"), ("db", "check"), ("db", "upgrade"), ("audit",)):
        said = shell("--store", "none.sqlite", *words)
        assert said.code == 4, words
        assert "there is no store" in said.err, words
        assert list(shell.folder.iterdir()) == [], words


def test_a_backup_and_a_restored_store_are_their_owner_s_alone(shell: Shell) -> None:
    shell.store("one")
    assert shell("backup", "kept.sqlite").code == 0
    assert shell("--store", "again.sqlite", "restore", "kept.sqlite").code == 0
    for name in ("kept.sqlite", "again.sqlite"):
        assert (shell.folder / name).stat().st_mode & 0o777 == 0o600, name
