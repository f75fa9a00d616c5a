"""What a server does: `python -m benchmarks.serve [--submits 5000] [--kills 2] [--store FILE]`.

Sixteen clients submit receipts, a fifth of them twice, while the server is killed; afterwards the store must equal the
one that ``receipts submit`` makes of the same documents. Then submits a second, beside the same receipts submitted
to a file in this process, and, with ``--mlflow PYTHON`` and ``--aim PYTHON``, beside the same launches logged to their
servers by as many clients; memory at rest; and the slowest of a hundred requests for each page of a store.
"""

from __future__ import annotations

import argparse
import contextlib
import random
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import median
from types import MappingProxyType
from typing import Final, NamedTuple

import httpx
from sqlalchemy import func, select

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from benchmarks.result import Result, show
from benchmarks.submitting.documents import summary
from benchmarks.submitting.peer import aim_server, mlflow_server
from receipts.judging.rulebook import Rulebook
from receipts.receipt import Document
from receipts.store import Filters, open_store
from receipts.store.tables import receipts
from receipts.workflows.audit import audit
from receipts.workflows.submit import submit

CLIENTS: Final = 16
TWICE: Final = 0.2
PATIENCE: Final = 60.0  # seconds that a client tries while the server is down
FASTER: Final = 20.0  # submits while a peer logs one launch
REST_MIB: Final = 200.0
PAGE_MS: Final = 200.0
PAGES: Final = ("/", "/runs", "/runs?lane=cpu-torch", "/runs/{id}", "/compare?a={id}&b={other}", "/failures", "/inbox")
_UNUSED: Final = 100_000  # of the numbers from here on no document was submitted; a number is a second of the launch
_LIMITS: Final = ("--rate", "1000000/second")


class Running:
    """A server process over a store, on one port for as long as this lives, however often it is killed."""

    def __init__(self, store: Path) -> None:
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self.port = free.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}"
        self._command = [sys.executable, "-m", "receipts", "--store", str(store), "serve", *_LIMITS]
        self._command += ["--listen", f"127.0.0.1:{self.port}"]
        self.start()

    def start(self) -> None:
        """Start it, and wait until it answers."""
        self.process = subprocess.Popen(self._command, stderr=subprocess.DEVNULL)
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            with contextlib.suppress(httpx.TransportError):
                if httpx.get(f"{self.url}/healthz").status_code == 200:
                    return
            time.sleep(0.05)
        raise SystemExit(f"the server did not answer within {PATIENCE:g} s")

    def kill(self) -> None:
        """End it without a warning."""
        self.process.kill()
        self.process.wait()

    def cpu(self) -> float:
        """Seconds of CPU that its threads took so far; Linux alone."""
        threads = Path(f"/proc/{self.process.pid}/task").glob("*/schedstat")
        return sum(int(one.read_text().split()[0]) for one in threads) / 1e9

    def memory(self) -> float:
        """Resident memory, MiB; Linux alone."""
        lines = Path(f"/proc/{self.process.pid}/status").read_text().splitlines()
        return next(float(line.split()[1]) / 1024 for line in lines if line.startswith("VmRSS"))


@contextlib.contextmanager
def running(store: Path) -> Iterator[Running]:
    """A server for as long as the block lasts."""
    server = Running(store)
    try:
        yield server
    finally:
        server.kill()


class Crowd(NamedTuple):
    """A crowd's run: requests that were answered, seconds, and everything that went wrong."""

    answered: int
    seconds: float
    faults: tuple[str, ...]


def crowd(folder: Path, submits: int, kills: int) -> Crowd:
    """Let the clients submit, kill the server meanwhile, and compare its store with the command's."""
    own = round(submits * (1 - TWICE))
    draw = random.Random(23)
    order = [*range(own), *(draw.randrange(own) for _ in range(submits - own))]
    draw.shuffle(order)
    documents = [summary(seed) for seed in range(own)]
    store, faults, done = folder / "served.sqlite", list[str](), Counted()
    with running(store) as server:
        begun = time.perf_counter()
        with ThreadPoolExecutor(CLIENTS + 1) as pool:
            parts = [[documents[seed] for seed in order[at::CLIENTS]] for at in range(CLIENTS)]
            clients = [pool.submit(_client, server.url, part, done) for part in parts]
            for number in range(kills):
                done.wait(submits * (number + 1) // (kills + 1))
                server.kill()
                server.start()
            for client in clients:
                faults += client.result()
        seconds = time.perf_counter() - begun
    return Crowd(submits, seconds, (*faults, *_differences(store, folder / "command.sqlite", documents)))


class Counted:
    """A count that threads raise, and one waits for."""

    def __init__(self) -> None:
        self._reached = threading.Condition()
        self._count = 0

    def add(self) -> None:
        """One more."""
        with self._reached:
            self._count += 1
            self._reached.notify_all()

    def wait(self, count: int) -> None:
        """Until there are so many."""
        with self._reached:
            self._reached.wait_for(lambda: self._count >= count, timeout=600)


def _client(url: str, documents: Sequence[bytes], done: Counted) -> list[str]:
    """Submit one document after the other, each again while the server is down. What was refused."""
    faults = []
    with httpx.Client(base_url=url, timeout=PATIENCE, headers={"Content-Type": "application/json"}) as client:
        for raw in documents:
            deadline = time.monotonic() + PATIENCE
            while True:
                try:
                    answer = client.post("/v1/receipts", content=raw)
                except httpx.TransportError as error:
                    if time.monotonic() > deadline:
                        faults.append(f"not delivered: {error!r}")
                        break
                    time.sleep(0.05)
                    continue
                if answer.status_code == 503:
                    time.sleep(float(answer.headers["Retry-After"]))
                    continue
                if answer.status_code not in (200, 201):
                    faults.append(f"{answer.status_code}: {answer.text[:200]}")
                break
            done.add()
    return faults


def _differences(served: Path, command: Path, documents: Sequence[bytes]) -> Iterator[str]:
    """Where the server's store differs from the one that the command makes, and what an audit finds in it."""
    rulebook = Rulebook()
    with open_store(str(command)) as other, open_store(str(served), create=False) as store:
        for _ in submit([Document(raw, "a document") for raw in documents], other, rulebook):
            pass
        mine, theirs = ({item.id: (item.status, item.name) for item in one.find(Filters())} for one in (store, other))
        yield from (f"{name[:12]}: {mine.get(name)}, not {theirs.get(name)}" for name in mine.keys() ^ theirs.keys())
        yield from (f"{name[:12]}: {mine[name]}, not {theirs[name]}" for name in mine if mine[name] != theirs.get(name))
        yield from (f"{item.where}: {item.found}" for item in audit(store, rulebook).faults if item.kind != "gap")


def _alone(folder: Path, count: int) -> float:
    """Milliseconds a receipt, submitted one at a time to a file by this process."""
    rulebook = Rulebook()
    with open_store(str(folder / "alone.sqlite")) as store:
        documents = [Document(summary(seed), "a document") for seed in range(count)]
        begun = time.perf_counter()
        for document in documents:
            for _ in submit([document], store, rulebook):
                pass
        return (time.perf_counter() - begun) * 1e3 / count


def pages(store: Path, rounds: int) -> Iterator[Result]:
    """Each page: its first visitor, the p99 and CPU of those that follow, and the first after each new receipt."""
    with open_store(str(store), create=False) as opened:
        with opened.database.reading() as connection:
            count = connection.execute(select(func.count()).select_from(receipts)).scalar_one()
        first, second = (item.id for item in opened.find(Filters(limit=2)))
    with running(store) as server, httpx.Client(base_url=server.url, timeout=PATIENCE) as client:
        for page in PAGES:
            path, at = page.format(id=first, other=second), f"at {count:,} receipts"
            cold = _visit(server, client, path)
            warm = [_visit(server, client, path) for _ in range(rounds)]
            after = []
            for _ in range(max(3, rounds // 10)):
                new = client.post("/v1/receipts", content=summary(random.randrange(_UNUSED, 200 * _UNUSED)))
                assert new.status_code == 201, new.text
                after.append(_visit(server, client, path))
            yield Result(f"p99 of {page} {at}", _p99(item.ms for item in warm), "ms", bar=PAGE_MS, bar_on="value")
            yield Result(f"p99 of {page} {at}, CPU", _p99(item.cpu for item in warm), "ms", bar=PAGE_MS, bar_on="value")
            yield Result(f"median of {page} {at}", median(item.ms for item in warm), "ms")
            yield Result(f"first request for {page} {at}", cold.ms, "ms")
            yield Result(f"{page} {at}, slowest after a new receipt", max(item.ms for item in after), "ms")
            yield Result(f"{page} {at}, after a new receipt, median", median(item.ms for item in after), "ms")


class Visit(NamedTuple):
    """One request: milliseconds until its answer, and of the server's CPU meanwhile, its other threads' included."""

    ms: float
    cpu: float


def _visit(server: Running, client: httpx.Client, path: str) -> Visit:
    before, begun = server.cpu(), time.perf_counter()
    client.get(path).raise_for_status()
    return Visit((time.perf_counter() - begun) * 1e3, (server.cpu() - before) * 1e3)


def _p99(values: Iterable[float]) -> float:
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(0.99 * len(ordered)))]


def beside(name: str, python: Path, own: float, count: int) -> Result:
    """A submit, of ``own`` milliseconds, beside a launch of the same documents that another server logs."""
    documents = [summary(seed) for seed in range(count)]
    theirs = {"MLflow": mlflow_server, "Aim": aim_server}[name](python, documents, CLIENTS)
    floor = f"a launch logged to {name}'s server, {CLIENTS} clients"
    return Result(f"a submit over HTTP beside {name}", own, "ms", floor, theirs, bar=1 / FASTER)


def measure(
    quick: bool = False,
    submits: int = 2000,
    kills: int = 2,
    store: Path | None = None,
    peers: Mapping[str, Path] = MappingProxyType({}),
) -> list[Result]:
    """Every figure; the pages of a store that is given, or of the one that the crowd filled."""
    count = 400 if quick else submits
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        for name in ("killed", "quiet"):
            (folder / name).mkdir()
        killed, quiet = crowd(folder / "killed", count, kills), crowd(folder / "quiet", count, 0)
        for fault in (*killed.faults, *quiet.faults)[:10]:
            sys.stderr.write(f"{fault}\n")
        with running(folder / "empty.sqlite") as server:
            rest = server.memory()
        own = quiet.seconds * 1e3 / quiet.answered
        return [
            Result(f"faults of {count:,} submits, {kills} kills", len(killed.faults), "", bar=0, bar_on="value"),
            Result(f"faults of {count:,} submits", len(quiet.faults), "", bar=0, bar_on="value"),
            Result(
                f"a submit over HTTP, {CLIENTS} clients",
                own,
                "ms",
                "one process, into a file",
                _alone(folder, min(count, 400)),
            ),
            Result("server at rest", rest, "MiB", bar=REST_MIB, bar_on="value"),
            *(beside(name, python, own, 20 if quick else 200) for name, python in peers.items()),
            *pages(store or folder / "quiet" / "served.sqlite", 20 if quick else 100),
        ]


def main() -> int:
    """Print every figure; 1 where one misses its bar."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--submits", type=int, default=2000)
    parser.add_argument("--kills", type=int, default=2)
    parser.add_argument("--store", type=Path, help="the store whose pages are measured")
    parser.add_argument("--mlflow", type=Path, help="a Python that has MLflow, whose server is measured as well")
    parser.add_argument("--aim", type=Path, help="a Python that has Aim, likewise")
    parser.add_argument("--quick", action="store_true")
    given = parser.parse_args()
    peers = {name: python for name, python in (("MLflow", given.mlflow), ("Aim", given.aim)) if python is not None}
    return show(measure(given.quick, given.submits, given.kills, given.store, peers))


if __name__ == "__main__":
    raise SystemExit(main())
