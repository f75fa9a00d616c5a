"""Faults that really happen: killed servers, clients and upgrades, full disks, clocks that go back, damaged pages."""

from __future__ import annotations

import contextlib
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from sqlalchemy import create_engine, func, inspect, select, text
from test_migrations import empty

import postgres_server
from command_line import Shell
from receipts.base.errors import StoreError, Unreachable
from receipts.judging.rulebook import Rulebook
from receipts.receipt import Document
from receipts.store import Store, open_store, schema
from receipts.store.address import address
from receipts.store.backup import backup
from receipts.store.database import connect, reading
from receipts.store.tables import HEAD, documents, receipts, subjects, verdicts
from receipts.workflows.audit import audit
from receipts.workflows.submit import submit
from store_receipts import claim_verdict, parsed, publish, raw, ready
from thorough import unless_thorough

pytestmark = pytest.mark.slow

HERE = Path(__file__).parents[1] / "support"
RULEBOOK = Rulebook()
KILLS = unless_thorough(1, 4)
# Submits a folder in batches, and acknowledges each receipt when the store has said that it is there.
SUBMITS = """
import sys
from pathlib import Path
from receipts.judging.rulebook import Rulebook
from receipts.store import open_store
from receipts.workflows.submit import submit
url, folder = sys.argv[1:]
paths = [str(path) for path in sorted(Path(folder).iterdir())]
with open_store(url) as store:
    for item in submit(paths, store, Rulebook(), resume=True):
        print(item.submitted.id, flush=True)
"""


def _folder(place: Path, count: int) -> Path:
    place.mkdir()
    for number in range(count):
        (place / f"{number:04}.json").write_bytes(raw(run__launch=f"launch {number}", run__label=f"{number}"))
    return place


def _submits(url: str, folder: Path, output: Path) -> subprocess.Popen[bytes]:
    with output.open("wb") as stream:
        call = [sys.executable, "-c", SUBMITS, url, str(folder)]
        return subprocess.Popen(call, stdout=stream, stderr=subprocess.DEVNULL)


def _acknowledged(output: Path) -> set[str]:
    return {line.strip() for line in output.read_text().splitlines(keepends=True) if line.endswith("\n")}


def _whole(url: str) -> set[str]:
    """The ids in a store in which each receipt has its bytes, its verdict and its subject, or is not there at all."""
    engine = connect(address(url))
    with reading(engine) as connection:
        ids = set(connection.execute(select(receipts.c.id)).scalars())
        counts = {
            table.name: connection.execute(select(func.count()).select_from(table)).scalar_one()
            for table in (documents, verdicts, subjects)
        }
    engine.dispose()
    assert set(counts.values()) == {len(ids)}, counts
    with open_store(url, create=False) as store:
        assert audit(store, RULEBOOK).faults == ()
    return ids


@pytest.fixture
def server() -> Iterator[postgres_server.Server]:
    """A server of this test's own that waits for the disk, to be killed and started."""
    try:
        with postgres_server.folder() as base:
            made = postgres_server.Server(base, options="")
            made.start()
            yield made
            with contextlib.suppress(postgres_server.NoPostgres):
                made.stop()
    except postgres_server.NoPostgres as missing:
        if os.environ.get("CI"):
            raise
        pytest.skip(f"needs PostgreSQL: {missing}")


@pytest.mark.slow
def test_a_server_killed_in_the_middle_of_batches_keeps_what_it_acknowledged_and_nothing_half(
    server: postgres_server.Server, tmp_path: Path
) -> None:
    folder = _folder(tmp_path / "documents", 150 * KILLS)
    open_store(server.url).close()
    draw = random.Random(20261121)
    acknowledged: set[str] = set()
    kills = 0
    while len(acknowledged) < 150 * KILLS:
        output = tmp_path / f"out{kills}"
        client = _submits(server.url, folder, output)
        if kills < KILLS:
            wanted = draw.randrange(100, 150)
            while client.poll() is None and output.stat().st_size < 65 * wanted:
                time.sleep(0.002)
            time.sleep(draw.uniform(0, 0.1))
            server.kill()
            client.wait(60)
            server.start()
            kills += 1
        else:
            assert client.wait(300) == 0
        acknowledged |= _acknowledged(output)
        assert acknowledged <= _whole(server.url)
    assert kills == KILLS
    assert len(_whole(server.url)) == 150 * KILLS


@pytest.mark.slow
def test_a_client_killed_in_the_middle_of_batches_goes_on_where_it_was(store_url: str, tmp_path: Path) -> None:
    folder = _folder(tmp_path / "documents", 125 * KILLS)
    open_store(store_url).close()
    draw = random.Random(20261122)
    stored: set[str] = set()
    for kill in range(KILLS):
        output = tmp_path / f"out{kill}"
        client = _submits(store_url, folder, output)
        while client.poll() is None and output.stat().st_size < 65 * 100 * (kill + 1):
            time.sleep(0.002)
        time.sleep(draw.uniform(0, 0.2))
        client.kill()
        client.wait()
        stored = _whole(store_url)
        assert _acknowledged(output) <= stored
    output = tmp_path / "last"
    assert _submits(store_url, folder, output).wait(300) == 0
    assert _acknowledged(output) == _whole(store_url)
    assert len(_whole(store_url)) == 125 * KILLS


def test_a_server_that_stops_is_said_and_one_that_starts_again_is_used(server: postgres_server.Server) -> None:
    with open_store(server.url) as store:
        store.submit(*ready())
        server.stop()
        with pytest.raises(Unreachable, match="the server cannot be reached"):
            store.submit(*ready())
        server.start()
        with contextlib.suppress(Unreachable):
            store.submit(*ready())  # a connection that broke is found when it is used
        assert store.submit(*ready()).new


def test_a_server_that_may_only_be_read_refuses_a_submit_and_nothing_is_kept(
    postgres_store: str, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECEIPTS_SPOOL", str(shell.folder / "spool"))
    path = shell.write("one")
    assert shell("--store", postgres_store, "submit", path).code == 0
    standby = f"{postgres_store}?options=-c%20default_transaction_read_only%3Don"
    assert shell("--store", standby, "list").code == 0
    said = shell("--store", standby, "submit", shell.write("two"))
    assert said.code == 4
    assert "the store may only be read; connect to the primary server" in said.err
    assert not (shell.folder / "spool").exists()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 3 MB; skips where this user may mount none."""
    place = tmp_path / "small"
    place.mkdir()
    mount = shutil.which("mount")
    call = [mount or "mount", "-t", "tmpfs", "-o", "size=3m", "tmpfs", str(place)]
    if os.geteuid() != 0 or mount is None or subprocess.run(call, capture_output=True, check=False).returncode:
        pytest.skip("needs a user who may mount a small file system; a limit on files stands in for it elsewhere")
    try:
        yield place
    finally:
        subprocess.run(["umount", "-l", str(place)], check=False)


def _fill(place: Path, leave: int) -> Path:
    """A file that leaves so many bytes of a file system."""
    filler = place / "filler"
    free = os.statvfs(place).f_bavail * os.statvfs(place).f_frsize
    filler.write_bytes(bytes(max(0, free - leave)))
    return filler


def _submit_for_ever(store: Store, done: list[str]) -> None:
    while True:
        done.append(store.submit(*ready()).id)


def test_a_disk_that_is_full_is_said_and_the_store_is_whole_and_goes_on_when_there_is_room(small_disk: Path) -> None:
    file = small_disk / "store.sqlite"
    base = [parsed(run__label=str(number)) for number in range(40)]
    with open_store(str(file)) as store:
        list(submit([Document(item.raw, "early") for item in base[:5]], store, RULEBOOK))
        filler = _fill(small_disk, 100_000)
        done: list[str] = []
        with pytest.raises(StoreError, match=r"full.*nothing of this was stored"):
            _submit_for_ever(store, done)
        assert {item.id for item in store.find()} >= set(done)
        with pytest.raises(StoreError):
            backup(store.database.address, small_disk / "kept.sqlite")
        assert sorted(item.name for item in small_disk.iterdir() if "kept" in item.name) == []
        filler.unlink()
        assert store.submit(*ready()).new
        assert audit(store, RULEBOOK).faults == ()
        store.seal()
    assert schema.check(address(str(file))).problems == ()


def test_a_spool_on_a_disk_that_is_full_says_that_nothing_was_kept(
    small_disk: Path, shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("RECEIPTS_SPOOL", str(small_disk / "spool"))
    (small_disk / "spool").mkdir()
    _fill(small_disk, 0)
    said = shell("--store", "postgresql://me@127.0.0.1:1/none", "submit", shell.write("one"))
    assert said.code == 4
    assert "neither stored nor kept" in said.err
    assert "nothing is lost" not in said.err
    assert [item for item in (small_disk / "spool").rglob("*") if item.is_file()] == []


class Backwards(datetime):
    """A clock that goes back by an hour each time that somebody looks at it."""

    left = datetime(2026, 3, 1, tzinfo=UTC)

    @classmethod
    def now(cls, tz: object = None) -> datetime:  # type: ignore[override] # the program asks for UTC alone
        cls.left -= timedelta(hours=1)
        return cls.left


def test_a_clock_that_goes_back_changes_nothing_but_the_times(store_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with open_store(store_url) as store:
        for name, module in list(sys.modules.items()):
            if name.startswith("receipts.") and vars(module).get("datetime") is datetime:
                monkeypatch.setattr(module, "datetime", Backwards)
        first = store.submit(*ready(run__launch="one", run__label="first"))
        supersedes = {"target": "one", "reason": "a better window"}
        second = store.submit(*ready(run__launch="one", run__label="second", run__supersedes=supersedes))
        assert second.at < first.at
        assert second.superseded == (first.id,)
        assert [item.id for item in store.find() if item.stands] == [second.id]
        store.pin("@golden", first.id)
        store.pin("@golden", second.id)
        assert store.resolve("@golden") == second.id
        publish(store, second.id)
        store.published.record_claims([claim_verdict("second", second.id, "refuted")])
        last = store.published.last_claim_verdict("second")
        assert last is not None
        assert last.status == "refuted"
        store.published.quote("README.md", [(first.id, "another number")])
        assert [item.says for item in store.published.quotes(first.id)] == ["another number"]
        assert store.published.quotes(second.id) == []
        store.seal()
        store.submit(*ready())
        store.purge(first.id, "a token")
        assert store.seal()
        assert audit(store, RULEBOOK).faults == ()


def _tables(url: str) -> set[str]:
    engine = create_engine(address(url).url)
    try:
        with engine.connect() as connection:
            return set(inspect(connection).get_table_names())
    finally:
        engine.dispose()


KILLED = """
import os, signal, sys
from receipts.store import schema
from receipts.store.address import address

def half(connection, revision):
    file = revision.with_name(f"{revision.name}.{connection.dialect.name}.sql")
    for statement in file.read_text(encoding="utf-8").split("\\n\\n")[:3]:
        connection.exec_driver_sql(statement)
    os.kill(os.getpid(), signal.SIGKILL)

schema.execute = half
schema.upgrade(address(sys.argv[1]))
"""


def test_an_upgrade_killed_half_way_leaves_the_store_as_it_was(store_url: str) -> None:
    url = empty(store_url)
    killed = subprocess.run([sys.executable, "-c", KILLED, url], capture_output=True, check=False)
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    assert _tables(url) == set()
    done = schema.upgrade(address(url))
    assert (done.found, done.wanted) == ("", HEAD)
    assert schema.check(address(url)).problems == ()


UPGRADES = """
import sys
from receipts.store import schema
from receipts.store.address import address
print(repr(schema.upgrade(address(sys.argv[1])).found))
"""


def test_three_upgrades_at_once_make_one_store_and_none_fails(store_url: str) -> None:
    url = empty(store_url)
    call = [sys.executable, "-c", UPGRADES, url]
    three = [subprocess.Popen(call, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) for _ in range(3)]
    answers = [process.communicate(timeout=120) for process in three]
    assert [process.returncode for process in three] == [0, 0, 0], answers
    assert sorted(answer for answer, _ in answers) == sorted(["''\n", *2 * [f"'{HEAD}'\n"]])
    assert schema.check(address(url)).problems == ()


def test_a_damaged_page_is_said_with_what_to_do_and_audited(tmp_path: Path, shell: Shell) -> None:
    file = tmp_path / "damaged.sqlite"
    with open_store(str(file)) as store:
        ids = [store.submit(*ready()).id for _ in range(30)]
        assert shell("--store", str(file), "backup", "kept.sqlite").code == 0
        with store.database.engine.connect() as connection:
            query = "SELECT pageno FROM dbstat WHERE name = 'documents' AND pagetype = 'leaf'"
            pages = list(connection.execute(text(query)).scalars())
    content = bytearray(file.read_bytes())
    for page in pages:
        content[(page - 1) * 4096 : page * 4096] = b"\xff" * 4096
    file.write_bytes(content)
    said = shell("--store", str(file), "show", ids[0])
    assert said.code == 4
    assert "the file is damaged; list where: receipts audit" in said.err
    assert "receipts restore FILE" in said.err
    found = shell("--store", str(file), "audit")
    assert found.code == 1
    assert "receipts restore FILE" in " ".join(found.out.split())
    # A damaged store is not backed up as if it were whole, and the backup that was made before brings it back.
    refused = shell("--store", str(file), "backup", "late.sqlite")
    assert refused.code == 4
    assert not (shell.folder / "late.sqlite").exists()
    assert shell("--store", "back.sqlite", "restore", "kept.sqlite").code == 0
    assert len(_whole("back.sqlite")) == 30
