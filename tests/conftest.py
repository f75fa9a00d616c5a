"""What several test files share: the checkout, the real cases beside it, and a fresh store on each engine."""

from __future__ import annotations

import contextlib
import gc
import os
import signal
import sys
import uuid
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import date
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from sqlalchemy import Engine
from sqlalchemy.dialects.sqlite.pysqlite import SQLiteDialect_pysqlite
from sqlalchemy.util import LRUCache, immutabledict

import postgres_server
from browser import browser_found, chromium, demo_pages
from command_line import shell
from receipts.ingest.scan import Scanner
from store_copies import DatabaseCopies, FileCopies, Fill, no_receipts
from thorough import unless_thorough

__all__ = ["browser_found", "chromium", "demo_pages", "shell"]

ROOT = Path(__file__).resolve().parents[1]

# A test asserts no time: a busy machine makes any example slow.
settings.register_profile("untimed", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("untimed")

# Without bytecode every program that a test starts would compile the engine anew, every command the rules, and every
# run of pytest the tests.
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
sys.dont_write_bytecode = False

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell that starts the suite in the background makes it deaf to SIGINT, and every program that it starts as well.
    signal.signal(signal.SIGINT, signal.default_int_handler)

# Collecting makes millions of objects that stay: to look for garbage among them took a fourth of its time.
gc.disable()


def pytest_collection_finish() -> None:
    """Look for garbage again, seldom, and never among what was collected."""
    gc.freeze()
    gc.set_threshold(20_000, 20, 20)
    gc.enable()


# What a server, a browser or a real run's files take.
SLOW_FIXTURES = {"cases", "chromium", "postgres_url"}


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Mark what uses a slow fixture `slow`, as CONTRIBUTING says; `make quick` leaves it out.

    The store's own tests run on both engines. Of the others' cases on PostgreSQL one in four of a file runs, and in
    `make thorough` each.
    """
    on_server: Counter[Path] = Counter()
    spared: list[pytest.Item] = []
    for item in items:
        engine = getattr(item, "callspec", None)
        if engine is not None and "postgresql" in engine.params.values():
            item.add_marker(pytest.mark.slow)
            if item.path.parent.name != "store" and on_server[item.path] % unless_thorough(4, 1):
                spared.append(item)
            on_server[item.path] += 1
        elif SLOW_FIXTURES & set(getattr(item, "fixturenames", ())):
            item.add_marker(pytest.mark.slow)
    if spared:
        config.hook.pytest_deselected(items=spared)
        left_out = set(spared)
        items[:] = [item for item in items if item not in left_out]


@pytest.fixture(autouse=True)
def no_reader_breaks(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Fail a test in which a reader of logs broke: the others go on, so that nothing else would show it.

    A test that breaks one by intent is marked ``breaks_readers``.
    """
    broken: list[str] = []
    drop = Scanner._fail

    def noted(scanner: Scanner, index: int, error: Exception, number: int) -> None:
        broken.append(f"{scanner._readers[index].source} at line {number}: {error!r}")
        drop(scanner, index, error, number)

    monkeypatch.setattr(Scanner, "_fail", noted)
    yield
    if broken and request.node.get_closest_marker("breaks_readers") is None:
        pytest.fail(f"a reader broke: {'; '.join(broken)}", pytrace=False)


@pytest.fixture(scope="session")
def checkout() -> Path:
    """The root of the checkout; skips where the suite runs against an installed wheel."""
    if not (ROOT / "receipts" / "__init__.py").exists():
        pytest.skip("needs the checkout: this run tests the installed wheel")
    return ROOT


@pytest.fixture(scope="session")
def cases() -> Path:
    """The folder of real cases beside the checkout; skips where there is none."""
    folder = ROOT.parent / "shared" / "cases"
    if not folder.is_dir():
        pytest.skip("needs the real cases, ../shared/cases beside the checkout")
    return folder


@pytest.fixture(scope="session")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of all homes: `mktemp` reads the names of all folders first, and 8,000 in one are slow."""
    return tmp_path_factory.mktemp("homes")


@pytest.fixture(autouse=True)
def _own_home(homes: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """No test reads or writes the store and the configuration of the person who runs it."""
    home = homes / uuid.uuid4().hex
    home.mkdir()
    for name in ("XDG_DATA_HOME", "XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(name, str(home / name.lower()))
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.delenv("RECEIPTS_STORE", raising=False)


@pytest.fixture(scope="session", autouse=True)
def _statements_compiled_once() -> Iterator[None]:
    """What SQLAlchemy compiled for one SQLite store it takes for the next: each test opens stores of its own.

    An engine keeps its statements by its dialect: all dialects are equal here, and all engines have one cache.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(SQLiteDialect_pysqlite, "__hash__", lambda dialect: hash(type(dialect)))
        patch.setattr(SQLiteDialect_pysqlite, "__eq__", lambda dialect, other: type(dialect) is type(other))
        patch.setattr(Engine, "_execution_options", immutabledict(compiled_cache=LRUCache(1000)))
        yield


@pytest.fixture(scope="session", autouse=True)
def _judged_on_their_day() -> Iterator[None]:
    """The receipts of the tests are typed and of March 2026: a lane asks of them what it asked then.

    `tests/judging/test_grade.py` judges as a store does today.
    """
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("receipts.judging.grade.LAST_BY_START", date.max)
        yield


@pytest.fixture(scope="session")
def postgres_url() -> Iterator[str]:
    """The URL of a PostgreSQL server: `RECEIPTS_TEST_POSTGRES`, else one started for this run.

    Skips where a machine has none, unless `CI` is set: there its absence is a failure.
    """
    given = os.environ.get("RECEIPTS_TEST_POSTGRES")
    if given:
        yield given
        return
    with contextlib.ExitStack() as stack:
        try:
            url = stack.enter_context(postgres_server.running())
        except postgres_server.NoPostgres as missing:
            if os.environ.get("CI"):
                raise
            pytest.skip(f"needs PostgreSQL: {missing}")
        yield url


@pytest.fixture
def postgres_store(database_copies: DatabaseCopies) -> Iterator[str]:
    """The URL of a new and empty PostgreSQL database, dropped afterward."""
    with database_copies.empty() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def store_url(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The URL of a new and empty store, once on each engine."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path / 'store.sqlite'}"
    url: str = request.getfixturevalue("postgres_store")
    return url


@pytest.fixture(scope="session")
def file_copies(tmp_path_factory: pytest.TempPathFactory) -> FileCopies:
    """SQLite stores that are filled once and copied for each test."""
    return FileCopies(tmp_path_factory.mktemp("copied"))


@pytest.fixture(scope="session")
def database_copies(postgres_url: str) -> Iterator[DatabaseCopies]:
    """PostgreSQL stores that are filled once and copied for each test."""
    copies = DatabaseCopies(postgres_url)
    yield copies
    copies.close()


@pytest.fixture(params=["sqlite", "postgresql"])
def copied(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Callable[..., str]]:
    """Gives the URL of a store's copy, once on each engine: `copied(name, fill)`, as `store_copies` has it."""
    with contextlib.ExitStack() as stack:

        def on_file(name: str = "no receipts", fill: Fill = no_receipts) -> str:
            files: FileCopies = request.getfixturevalue("file_copies")
            return files.file(tmp_path / "store.sqlite", name, fill)

        def on_server(name: str = "no receipts", fill: Fill = no_receipts) -> str:
            databases: DatabaseCopies = request.getfixturevalue("database_copies")
            return stack.enter_context(databases.database(name, fill))

        yield on_file if request.param == "sqlite" else on_server


@pytest.fixture
def made_url(copied: Callable[..., str]) -> str:
    """The URL of a store without receipts, once on each engine. Where the making is tested, see `store_url`."""
    return copied()
