"""What a server cannot take is kept on this machine, whole, and stored exactly once when the server is back."""

from __future__ import annotations

import io
import json
import os
import resource
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psycopg
import pytest

import postgres_server
from command_line import Shell
from receipts.base.errors import StoreError, Unreachable
from receipts.judging.rulebook import Rulebook
from receipts.store import open_store
from receipts.store.address import address
from receipts.workflows import spool
from receipts.workflows.submit import submit
from store_receipts import raw

pytestmark = pytest.mark.slow

AWAY = "postgresql+psycopg://me:hunter2@127.0.0.1:1/none"
RULEBOOK = Rulebook()


@pytest.fixture
def away(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """The program with a store whose server does not answer."""
    monkeypatch.setenv("RECEIPTS_STORE", AWAY)
    monkeypatch.setenv("RECEIPTS_SPOOL", str(shell.folder / "spool"))
    return shell


def _files(shell: Shell) -> list[Path]:
    return sorted((shell.folder / "spool").rglob("*.receipt"))


def test_a_submit_that_reaches_no_server_keeps_the_documents_and_says_so(away: Shell) -> None:
    paths = [away.write(name) for name in ("one", "two")]
    (away.folder / "no.json").write_text('{"run": 1}')
    said = away("submit", paths[0], "no.json", paths[1])
    assert said.code == 4
    assert "the server cannot be reached" in said.err
    assert "nothing is lost: 2 kept in" in said.err
    assert "receipts flush" in said.err
    assert "no.json: " in said.err
    assert "hunter2" not in said.err
    assert [file.name for file in _files(away)] == sorted(f"{item}.receipt" for item in away.made.values())
    for file in _files(away):
        head, _, body = file.read_bytes().partition(b"\n")
        assert body in {Path(path).read_bytes() for path in paths}
        assert json.loads(head)["store"] == "postgresql+psycopg://127.0.0.1:1/none"
        assert b"hunter2" not in file.read_bytes()
        assert file.stat().st_mode & 0o077 == 0


def test_what_drains_the_spool_names_the_store_that_was_named(away: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("RECEIPTS_STORE")
    said = away("--store", AWAY, "submit", away.write("one"))
    assert f"receipts --store '{AWAY.replace('hunter2', '***')}' flush" in said.err


def test_what_comes_on_standard_input_is_kept_as_it_came(away: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    body = raw()
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(body)))
    said = away("submit", "-", "--json")
    assert said.code == 4
    assert said.json[0]["spooled"] is True
    (file,) = _files(away)
    assert file.read_bytes().partition(b"\n")[2] == body
    assert away("submit", "-", "--json").code == 4  # an empty input is refused, and keeps nothing
    assert len(_files(away)) == 1


def test_a_wrong_password_or_database_is_no_network_that_is_down(postgres_url: str, away: Shell) -> None:
    wrong = postgres_url.rpartition("/")[0] + "/none"
    said = away("--store", wrong, "submit", away.write("one"))
    assert said.code == 4
    assert "the server refused" in said.err
    assert _files(away) == []
    for text in ("password authentication failed", "no pg_hba.conf entry", "role does not exist"):
        assert not isinstance(_told(text), Unreachable)
    passing = (
        "the database system is starting up",
        "Connection refused",
        "SSL connection has been closed unexpectedly",
    )
    for text in passing:
        assert isinstance(_told(text), Unreachable)


def _told(text: str) -> StoreError:
    import psycopg
    from sqlalchemy.exc import OperationalError

    from receipts.store.database import driver_errors

    with pytest.raises(StoreError) as found, driver_errors(address(AWAY)):
        raise OperationalError("SELECT", None, psycopg.OperationalError(f"connection failed: FATAL:  {text}"))
    return found.value


def test_a_file_that_cannot_be_opened_is_kept_nowhere(away: Shell) -> None:
    said = away("--store", str(away.folder / "none" / "store.sqlite"), "submit", away.write("one"))
    assert said.code == 4
    assert "kept" not in said.err
    assert _files(away) == []


@pytest.fixture
def back(away: Shell, postgres_store: str, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """Three documents that wait for a server which is back."""
    target = address(postgres_store).target
    assert target is not None
    documents = [spool.Document(raw(run__label=name), name) for name in ("one", "two", "three")]
    assert len(list(spool.keep(documents, target))) == 3
    monkeypatch.setenv("RECEIPTS_STORE", postgres_store)
    open_store(postgres_store).close()
    return away


def _stored(url: str) -> list[str]:
    with open_store(url, create=False) as store:
        return sorted(str(item.label) for item in store.find())


def test_a_flush_stores_what_waits_and_leaves_nothing(back: Shell, postgres_store: str) -> None:
    assert "3 kept earlier still wait" in back("db", "check").err
    said = back("flush")
    assert said.code == 0
    assert len(said.lines) == 3
    assert _stored(postgres_store) == ["one", "three", "two"]
    assert _files(back) == []
    again = back("flush")
    assert (again.code, again.lines) == (0, ["nothing is waiting to be stored"])
    assert "wait" not in back("db", "check").err


def test_a_submit_that_reaches_the_server_tells_of_what_waits(back: Shell) -> None:
    said = back("submit", back.write("late"))
    assert said.code == 0
    assert "3 kept earlier still wait for this store; store them with: receipts flush" in said.err


def test_what_was_stored_before_its_file_went_is_stored_once(back: Shell, postgres_store: str) -> None:
    """A flush that is killed between the store's answer and the file's end leaves the file."""
    before = {file: file.read_bytes() for file in _files(back)}
    assert back("flush").code == 0
    for file, content in before.items():
        file.write_bytes(content)
    assert [item["new"] for item in back("flush", "--json").json["flushed"]] == [False] * 3
    assert len(_stored(postgres_store)) == 3
    assert _files(back) == []


def test_flushes_at_once_store_each_document_once(away: Shell, postgres_store: str) -> None:
    target = address(postgres_store).target
    assert target is not None
    list(spool.keep([spool.Document(raw(), str(number)) for number in range(60)], target))
    open_store(postgres_store).close()
    new: list[bool] = []
    failed: list[BaseException] = []

    def flush() -> None:
        try:
            with open_store(postgres_store) as store:
                for item in spool.flush(lambda documents: submit(documents, store, Rulebook()), target):
                    assert item.outcome.submitted is not None
                    new.append(item.outcome.submitted.new)
        except BaseException as error:
            failed.append(error)

    threads = [threading.Thread(target=flush) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert new.count(True) == 60
    assert len(_stored(postgres_store)) == 60
    assert _files(away) == []


def test_what_the_store_refuses_stays_with_the_reason(away: Shell, postgres_store: str) -> None:
    target = address(postgres_store).target
    assert target is not None
    documents = [spool.Document(raw(run__launch="one", run__label=name), name) for name in ("first", "second")]
    list(spool.keep(documents, target))
    open_store(postgres_store).close()
    said = away("--store", postgres_store, "flush")
    assert said.code == 2
    assert "has a receipt with other bytes" in said.err
    (kept,) = spool.waiting(target, refused=True)
    assert kept.refused is not None
    assert "has a receipt with other bytes" in kept.refused
    assert spool.count(target) == 0
    assert away("--store", postgres_store, "flush").code == 0
    again = away("--store", postgres_store, "flush", "--again")
    assert again.code == 2
    (stored,) = _stored(postgres_store)
    with open_store(postgres_store) as store:
        store.purge(store.resolve(f"label={stored}"), "to make room")
    assert away("--store", postgres_store, "flush", "--again").code == 0
    assert spool.waiting(target, refused=True) == []


def test_a_file_of_the_spool_that_is_not_whole_is_told_and_stops_no_other(back: Shell, postgres_store: str) -> None:
    torn = _files(back)[0]
    torn.write_bytes(torn.read_bytes()[:-10])
    said = back("flush")
    assert said.code == 2
    assert str(torn) in said.err
    assert len(_stored(postgres_store)) == 2
    assert _files(back) == [torn]


def test_a_flush_that_names_no_server_says_which_documents_wait_for_one(back: Shell) -> None:
    said = back("--store", "store.sqlite", "flush")
    assert said.code == 2
    assert "3 for postgresql+psycopg://127.0.0.1" in said.err
    for file in _files(back):
        file.unlink()
    assert back("--store", "store.sqlite", "flush").lines == ["nothing is waiting to be stored"]


def test_a_store_whose_disk_is_full_has_what_was_submitted_kept_elsewhere(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECEIPTS_SPOOL", str(shell.folder / "spool"))
    paths = [
        shell.write(f"one-{number}", notes={f"n{at}": os.urandom(4_000).hex() for at in range(9)})
        for number in range(4)
    ]
    before, size = resource.getrlimit(resource.RLIMIT_FSIZE), (shell.folder / "store.sqlite").stat().st_size
    # A limit on the size of files stands in for a full disk: the spool's files are smaller.
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        full = shell("submit", *paths)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert full.code == 4
    assert "when the disk has room, store them with: receipts flush" in full.err
    assert len(_files(shell)) == 4
    assert shell("flush", "--json").json["waiting"] == 0
    assert len(_stored(str(shell.folder / "store.sqlite"))) == 4


def test_a_spool_that_cannot_be_written_says_that_nothing_was_kept(
    away: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    (away.folder / "file").write_text("no folder")
    monkeypatch.setenv("RECEIPTS_SPOOL", str(away.folder / "file" / "spool"))
    said = away("submit", away.write("one"))
    assert said.code == 4
    assert "neither stored nor kept" in said.err
    assert "nothing is lost" not in said.err


def test_of_many_documents_those_that_a_full_spool_did_not_take_are_named(
    away: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = spool._write

    def first_alone(where: Path, receipt: str, *rest: Any) -> Path:
        if list(where.glob("*.receipt")):
            raise StoreError(f"{where}: the spool cannot be written; {receipt[:12]} is neither stored nor kept")
        return write(where, receipt, *rest)

    monkeypatch.setattr(spool, "_write", first_alone)
    names = [away.write(name) for name in ("one", "two", "three", "four")]
    said = away("submit", *names)
    assert said.code == 4
    assert f"nor are the 2 after it: {names[2]}, {names[3]}" in said.err
    assert "1 kept in" in said.err
    assert "nothing is lost" not in said.err
    told = away("submit", *names, "--json").json
    assert [("spooled" in item, item["source"]) for item in told] == [(False, name) for name in names[1:]]


def test_pending_remembers_what_was_given_and_not_settled() -> None:
    items = spool.Pending(range(5))
    assert [next(items), next(items), next(items)] == [0, 1, 2]
    items.settle()
    assert list(items.rest()) == [1, 2, 3, 4]


def test_workers_that_get_no_connection_spool_all_documents(
    postgres_store: str, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store(postgres_store, create=True), psycopg.connect(postgres_store.replace("+psycopg", "")) as owner:
        owner.execute("CREATE ROLE lonely LOGIN CONNECTION LIMIT 1 IN ROLE pg_read_all_data, pg_write_all_data")
    try:
        host = postgres_store.partition("@")[2]
        monkeypatch.setenv("RECEIPTS_STORE", f"postgresql+psycopg://lonely@{host}")
        monkeypatch.setenv("RECEIPTS_SPOOL", str(shell.folder / "spool"))
        said = shell("submit", *(shell.write(f"run{n}") for n in range(3)), "--jobs", "2")
        assert said.code == 4
        assert "nothing is lost: 3 kept in" in said.err
        assert len(_files(shell)) == 3
        assert "Traceback" not in said.err
    finally:
        with psycopg.connect(postgres_store.replace("+psycopg", "")) as owner:
            owner.execute("DROP ROLE lonely")


def test_a_process_killed_while_it_keeps_leaves_whole_files_only(tmp_path: Path) -> None:
    code = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from receipts.workflows import spool\nfrom store_receipts import raw\n"
        "documents = (spool.Document(raw(), 'x') for _ in range(10**6))\n"
        "for item in spool.keep(documents, 'store'): print(item.id, flush=True)"
    )
    environment = {**os.environ, "RECEIPTS_SPOOL": str(tmp_path)}
    call = [sys.executable, "-c", code, str(Path(__file__).parents[1] / "support")]
    for lines in (3, 21):
        with subprocess.Popen(call, stdout=subprocess.PIPE, text=True, env=environment) as process:
            assert process.stdout is not None
            told = [process.stdout.readline().strip() for _ in range(lines)]
            process.kill()
        files = {path.name.removesuffix(".receipt"): path for path in tmp_path.rglob("*.receipt")}
        assert set(told) <= set(files)
        assert all(spool._read(path) is not None for path in files.values())


@pytest.fixture
def server() -> Iterator[postgres_server.Server]:
    """A server of this test's own, to be stopped and started."""
    try:
        with postgres_server.folder() as base:
            made = postgres_server.Server(base)
            made.start()
            yield made
            made.stop()
    except postgres_server.NoPostgres as missing:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"needs PostgreSQL: {missing}")


@pytest.mark.slow
def test_a_server_that_goes_in_the_middle_of_a_submit_loses_nothing(
    away: Shell, server: postgres_server.Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    from receipts.workflows import submit as module

    (away.folder / "many").mkdir()
    for number in range(130):
        (away.folder / "many" / f"{number:03}.json").write_bytes(raw(run__label=f"{number:03}"))
    real, calls = module.write, []

    def write(*given: Any, **options: Any) -> object:
        calls.append(1)
        if len(calls) == 2:
            server.kill()
        return real(*given, **options)

    monkeypatch.setattr(module, "write", write)
    said = away("--store", server.url, "submit", "many")
    assert said.code == 4, said.err
    assert "30 kept in" in said.err
    server.start()
    assert len(_stored(server.url)) == 100
    assert away("--store", server.url, "flush").code == 0
    assert _stored(server.url) == [f"{number:03}" for number in range(130)]
    assert _files(away) == []
