"""Killed writers, many writers, and stores that are missing, foreign, damaged, full, closed, too old or too new."""

from __future__ import annotations

import contextlib
import hashlib
import os
import random
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from sqlalchemy import create_engine, func, select, text

from receipts.base.errors import StoreError, UsageError
from receipts.store import Store, open_store, schema
from receipts.store.address import address
from receipts.store.database import connect, reading
from receipts.store.entries import unpack
from receipts.store.tables import documents, receipts, subjects, verdicts
from store_receipts import judged, parsed, raw, ready
from thorough import unless_thorough

pytestmark = pytest.mark.slow

COUNT = unless_thorough(40, 200)  # documents of a submit that is killed again and again
TOGETHER = unless_thorough(20, 50)  # documents that eight submitters bring at once
TESTS = Path(__file__).parents[1] / "support"
# One process imports the program once and forks every submitter, which makes a round take as long as its submits.
FORKS = """
import os, sys, time
from pathlib import Path
url, folder, tests = sys.argv[1:]
sys.path.insert(0, tests)
from store_receipts import judged
from receipts.receipt import parse, read
from receipts.store import open_store, schema

ready = [judged(parse(read(path))) for path in sorted(Path(folder).glob("*.json"))]

_LOOK = os.WEXITED | os.WNOHANG | os.WNOWAIT

def submit_all(output, start):
    code = 1
    try:
        with open_store(url) as store, open(output, "w") as stream:
            for launch, verdict in ready[start:]:
                made = store.submit(launch, verdict)
                stream.write(made.id + (" new  " if made.new else " known") + "\\n")
                stream.flush()
        code = 0
    except BaseException as error:
        Path(output).write_text(repr(error))
    finally:
        os._exit(code)

for line in sys.stdin:
    start, kill_at, delay, *outputs = line.split()
    children = []
    for output in outputs:
        Path(output).touch()
        child = os.fork()
        if child == 0:
            submit_all(output, int(start))
        children.append(child)
    if kill_at != "never":
        while os.stat(outputs[0]).st_size < 70 * int(kill_at) and os.waitid(os.P_PID, children[0], _LOOK) is None:
            time.sleep(0.0005)
        time.sleep(float(delay))
        os.kill(children[0], 9)
    codes = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
    print(*codes, flush=True)
"""


class Submitters:
    """Processes that submit a folder's documents to a store, each acknowledging every one in a file of its own."""

    def __init__(self, url: str, folder: Path) -> None:
        call = [sys.executable, "-c", FORKS, url, str(folder), str(TESTS)]
        self._process = subprocess.Popen(call, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def run(self, outputs: list[Path], start: int = 0, kill_at: int | str = "never", delay: float = 0) -> list[int]:
        """Let one submitter an output run from a document on, and kill the first some seconds after so many lines.

        Gives the exit codes.
        """
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(f"{start} {kill_at} {delay} {' '.join(map(str, outputs))}\n")
        self._process.stdin.flush()
        return [int(word) for word in self._process.stdout.readline().split()]

    def close(self) -> None:
        self._process.communicate(timeout=30)


def _documents(folder: Path, count: int) -> Path:
    folder.mkdir()
    for number in range(count):
        (folder / f"{number:03}.json").write_bytes(raw(run__label=f"{number}", run__launch=f"launch {number}"))
    return folder


def _whole(url: str) -> set[str]:
    """The ids in a store, each with bytes that hash to it and one verdict."""
    assert schema.check(address(url)).problems == ()
    engine = connect(address(url))
    with reading(engine) as connection:
        query = select(receipts.c.id, documents.c.codec, documents.c.body).outerjoin(documents)
        rows = connection.execute(query).all()
        counts = [
            connection.execute(select(func.count()).select_from(table)).scalar_one()
            for table in (documents, verdicts, subjects)
        ]
    engine.dispose()
    for row in rows:
        assert hashlib.sha256(unpack(row.codec, row.body, row.id)).hexdigest() == row.id
    assert counts == [len(rows)] * 3
    return {row.id for row in rows}


def test_a_killed_submitter_loses_nothing_that_it_acknowledged_and_leaves_nothing_half(
    store_url: str, tmp_path: Path
) -> None:
    folder = _documents(tmp_path / "documents", COUNT)
    draw = random.Random(20261121)
    with contextlib.closing(Submitters(store_url, folder)) as submitters:
        acknowledged: set[str] = set()
        kills = 0
        stored: set[str] = set()
        while len(stored) < COUNT:
            output = tmp_path / f"out{kills}"
            # The delay spreads kills over the whole of a submit, which takes one to a few milliseconds.
            (code,) = submitters.run([output], max(0, len(stored) - 5), draw.randrange(5, 30), draw.uniform(0, 0.004))
            kills += 1
            assert code in (0, -signal.SIGKILL), output.read_text()
            lines = [line for line in output.read_text().splitlines(keepends=True) if line.endswith("\n")]
            acknowledged |= {line.split()[0] for line in lines}
            stored = _whole(store_url)
            assert acknowledged <= stored
        assert kills >= COUNT // 25
        assert submitters.run([tmp_path / "last"]) == [0], (tmp_path / "last").read_text()
    assert len(_whole(store_url)) == COUNT


def test_eight_processes_that_submit_the_same_files_store_each_once_and_none_fails(
    store_url: str, tmp_path: Path
) -> None:
    folder = _documents(tmp_path / "documents", TOGETHER)
    outputs = [tmp_path / f"out{number}" for number in range(8)]
    with contextlib.closing(Submitters(store_url, folder)) as submitters:
        # The store is not there yet: they make it together, too.
        codes = submitters.run(outputs)
    assert codes == [0] * 8, [output.read_text()[-500:] for output in outputs]
    told = [line.split() for output in outputs for line in output.read_text().splitlines()]
    assert len(told) == 8 * TOGETHER
    assert len([line for line in told if line[1] == "new"]) == TOGETHER
    assert len(_whole(store_url)) == TOGETHER


def test_a_store_that_is_not_there_is_made_only_where_that_was_asked_for(tmp_path: Path) -> None:
    file = tmp_path / "store.sqlite"
    with pytest.raises(StoreError, match="no store yet; make one with: receipts submit"):
        open_store(str(file), create=False)
    assert list(tmp_path.iterdir()) == []
    open_store(str(file)).close()
    open_store(f"sqlite:///{file}", create=False).close()


def test_a_new_store_writes_ahead_and_waits_for_the_disk(tmp_path: Path) -> None:
    with open_store(str(tmp_path / "s.sqlite")) as store, store.database.engine.connect() as connection:
        pragmas = [connection.exec_driver_sql(f"PRAGMA {name}").scalar() for name in ("journal_mode", "synchronous")]
        assert pragmas == ["wal", 2]
        assert connection.exec_driver_sql("PRAGMA foreign_keys").scalar() == 1


def test_the_users_own_store_is_made_with_its_folder_and_the_environment_names_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with open_store() as store:
        assert Path(store.url).is_file()
        assert Path(store.url).is_relative_to(Path.home().parent)
    monkeypatch.setenv("RECEIPTS_STORE", str(tmp_path / "new" / "folder" / "other.sqlite"))
    with open_store() as store:
        assert store.url == str(tmp_path / "new" / "folder" / "other.sqlite")


def test_a_folder_that_is_missing_is_named_and_not_made(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match=f"there is no folder {tmp_path}/none; make it with: mkdir -p"):
        open_store(str(tmp_path / "none" / "store.sqlite"))
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("url", ["mysql://host/db", "sqlite://", "sqlite:///:memory:", "://", "http://x"])
def test_a_url_of_another_kind_is_refused_with_the_kinds_there_are(url: str) -> None:
    with pytest.raises(UsageError, match="sqlite:///"):
        open_store(url)


def test_a_password_is_never_shown() -> None:
    assert "hunter2" not in str(address("postgresql://me:hunter2@host/db"))
    assert address("postgres://host/db").url.drivername == "postgresql+psycopg"


def test_a_server_that_cannot_be_reached_is_said_without_a_traceback() -> None:
    with pytest.raises(StoreError, match="the server cannot be reached") as refused:
        open_store("postgresql+psycopg://me:hunter2@127.0.0.1:1/none")
    assert "hunter2" not in str(refused.value)


@pytest.mark.parametrize("content", [b"no database at all" * 100, b"x"])
def test_a_file_that_is_no_sqlite_database_is_refused_and_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    file = tmp_path / "store.sqlite"
    file.write_bytes(content)
    with pytest.raises(StoreError, match="not an SQLite database"):
        open_store(str(file))
    assert file.read_bytes() == content


def test_a_folder_in_place_of_the_file_is_refused(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be opened"):
        open_store(str(tmp_path))


def test_a_database_of_another_program_is_refused_and_left_as_it_is(store_url: str) -> None:
    engine = create_engine(store_url)
    with engine.begin() as connection:
        connection.execute(text("CREATE TABLE experiments (id INTEGER)"))
    with pytest.raises(StoreError, match=r"another program keeps its tables here \(experiments\)"):
        open_store(store_url)
    with pytest.raises(StoreError, match="no store of receipts"):
        open_store(store_url, create=False)
    with engine.connect() as connection:
        tables = schema.inspect(connection).get_table_names()
    engine.dispose()
    assert tables == ["experiments"]


@pytest.mark.parametrize("revision", ["0000", "0008", "9999"])
def test_a_store_of_another_schema_is_refused_with_what_to_do(store_url: str, revision: str) -> None:
    open_store(store_url).close()
    engine = create_engine(store_url)
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = :found"), {"found": revision})
    engine.dispose()
    for use in (lambda: open_store(store_url), lambda: schema.upgrade(address(store_url))):
        with pytest.raises(StoreError, match=rf"at schema {revision}(.|\n)*receipts export(.|\n)* import") as refused:
            use()
        assert refused.value.exit_code == 4
    assert schema.check(address(store_url)).exit_code == 1


@contextlib.contextmanager
def _as_nobody() -> Iterator[None]:
    """The rights of an ordinary user: root may write everywhere."""
    before = os.geteuid()
    if before == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(before)


def test_a_store_that_may_only_be_read_is_read_and_refuses_a_submit(tmp_path: Path) -> None:
    folder = tmp_path / "shared"
    folder.mkdir()
    file = folder / "store.sqlite"
    late = ready()  # made here: an ordinary user may not be let to the folder that the tests lie in
    with open_store(str(file)) as store:
        made = store.submit(*ready())
    for place in (*tmp_path.parents, tmp_path):
        if place.owner() == tmp_path.owner() and place != Path("/"):
            place.chmod(place.stat().st_mode | 0o055)
    file.chmod(0o444)
    folder.chmod(0o555)
    try:
        with _as_nobody(), open_store(str(file), create=False) as store:
            assert store.document(made.id)
            with pytest.raises(StoreError, match="may only be read"):
                store.submit(*late)
            with pytest.raises(StoreError, match=r"cannot be opened|may only be read"):
                open_store(str(folder / "new.sqlite"))
    finally:
        folder.chmod(0o755)


def _submit_for_ever(store: Store) -> None:
    while True:
        store.submit(*ready())


def test_a_full_disk_is_said_and_leaves_the_store_whole(tmp_path: Path) -> None:
    file = tmp_path / "store.sqlite"
    with open_store(str(file)) as store:
        first = store.submit(*ready())
        before = resource.getrlimit(resource.RLIMIT_FSIZE)
        # A limit on the size of files stands in for a full disk: writes fail in the same place.
        resource.setrlimit(resource.RLIMIT_FSIZE, (file.stat().st_size + 4096, before[1]))
        try:
            with pytest.raises(StoreError, match=r"full.*nothing of this was stored"):
                _submit_for_ever(store)
        finally:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        assert store.submit(*ready()).new
        assert first.id in {entry.id for entry in store.find()}
    _whole(str(file))


def test_a_damaged_file_is_reported_by_check(tmp_path: Path) -> None:
    file = tmp_path / "store.sqlite"
    with open_store(str(file)) as store:
        for _ in range(20):
            store.submit(*ready())
    content = bytearray(file.read_bytes())
    content[-3 * 4096 :] = bytes(3 * 4096)
    file.write_bytes(content)
    try:
        problems = schema.check(address(str(file))).problems
    except StoreError as error:
        problems = (str(error),)
    assert any("damaged" in problem for problem in problems)


def test_a_missing_trigger_is_reported_by_check(store_url: str) -> None:
    open_store(store_url).close()
    assert schema.check(address(store_url)).exit_code == 0
    engine = create_engine(store_url)
    with engine.begin() as connection:
        on = "" if store_url.startswith("sqlite") else " ON receipts"
        connection.execute(text(f"DROP TRIGGER receipts_no_update{on}"))
    engine.dispose()
    (problem,) = schema.check(address(store_url)).problems
    assert "receipts_no_update" in problem


def test_a_writer_waits_for_another_and_does_not_fail(tmp_path: Path) -> None:
    file = tmp_path / "store.sqlite"
    with open_store(str(file)) as store:
        holder = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
        holder.execute("BEGIN IMMEDIATE")
        import threading

        threading.Timer(0.3, holder.rollback).start()
        begun = time.monotonic()
        assert store.submit(*judged(parsed())).new
        assert time.monotonic() - begun > 0.2
        holder.close()


def test_a_store_of_an_earlier_version_says_how_its_receipts_come_over(tmp_path: Path) -> None:
    file = tmp_path / "receipts.db"
    open_store(str(file)).close()
    with contextlib.closing(sqlite3.connect(file)) as connection:
        connection.execute("DROP TABLE axis_values")
        connection.execute("CREATE TABLE axis_values (seq INTEGER PRIMARY KEY, axis, digest, early NOT NULL, value)")
    with open_store(str(file)) as store, pytest.raises(StoreError, match=r"made by an earlier version.*\n.*export"):
        store.submit(*ready())
