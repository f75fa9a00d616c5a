"""Attack everything: ``python -m benchmarks.attack [ATTACK…] [--quick] [--seed N]``.

Prints a line for each attack and every fault. Exit 1 where there is one. With ``--quick`` it takes about two minutes:
what has not begun by then is named, and not run.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT))

from benchmarks.attack.arguments import called
from benchmarks.attack.documents import mutated_documents
from benchmarks.attack.evidence import mutated_evidence
from benchmarks.attack.forks import scratch
from benchmarks.attack.kills import kill
from benchmarks.attack.logs import logs_of, mutated_logs
from benchmarks.attack.routes import asked
from benchmarks.attack.server import attacked
from benchmarks.submitting import servers
from benchmarks.submitting.crowd import crowd

KILLS, CROWD, DOCUMENTS, LOGS, EVIDENCE = 1000, 3200, 25_000, 25_000, 10_000
CALLS, REQUESTS = 40, 4000  # of each command; of all operations and pages
CALLED: Final = 10_000  # of a server on a port
SHARE: Final = 100  # with --quick so much less
QUICK: Final = 100.0  # seconds after which no further attack begins
SHOWN: Final = 40
CASES: Final = (
    ROOT / "examples" / "ingest",
    ROOT / "examples" / "cpu" / "evidence",
    ROOT.parent / "shared" / "cases" / "logs",
)


@contextmanager
def _engines() -> Iterator[dict[str, Callable[[str], str]]]:
    """What makes a fresh store of each engine by a name; PostgreSQL where this machine has its programs."""
    with scratch() as place:
        sqlite = {"sqlite": lambda name: f"{place}/{name}.sqlite"}
        try:
            with servers.server() as url:
                yield {**sqlite, "postgresql": partial(servers.new_database, url)}
        except servers.NoPostgres as error:
            print(f"postgresql: {error}")
            yield sqlite


def _kills(count: int, seed: int) -> Iterator[str]:
    with _engines() as engines:
        for engine, fresh in engines.items():
            with scratch() as place:
                one = kill(fresh("kills"), Path(place), count, seed)
            held = f"{one.acknowledged:,} acknowledged, {one.stored:,} stored"
            print(f"kills on {engine}: {one.kills:,}, {held}, in {one.seconds:.0f} s")
            yield from (f"kills on {engine}: {item}" for item in one.faults)


def _crowds(count: int, seed: int) -> Iterator[str]:
    with _engines() as engines:
        for engine, fresh in engines.items():
            one = crowd(fresh("crowd"), count, 8)
            held = f"{one.wanted:,} receipts, {one.stored:,} stored"
            print(f"crowd on {engine}: {count:,} submits by 8, {held}, in {one.seconds:.0f} s")
            yield from (f"crowd on {engine}: {item}" for item in one.errors)
            if one.faults > len(one.errors):
                yield f"crowd on {engine}: {one.stored} stored and {one.new} new of {one.wanted}"


def _documents(count: int, seed: int) -> Iterator[str]:
    bases = sorted((ROOT / "examples" / "cpu").glob("*.json"))
    with scratch() as place:
        one = mutated_documents(Path(place), bases, count, seed)
    print(f"documents: {one}")
    yield from one.faults


def _logs(count: int, seed: int) -> Iterator[str]:
    one = mutated_logs(logs_of(CASES), count, seed)
    print(f"logs: {one}")
    yield from one.faults


def _evidence(count: int, seed: int) -> Iterator[str]:
    one = mutated_evidence(logs_of(CASES), count, seed)
    print(f"evidence: {one}")
    yield from one.faults


def _arguments(count: int, seed: int) -> Iterator[str]:
    with scratch() as place:
        one = called(Path(place), count, seed)
    print(f"calls: {one}")
    yield from one.faults


def _routes(count: int, seed: int) -> Iterator[str]:
    with scratch() as place:
        one = asked(Path(place), count, seed)
    print(f"requests: {one}")
    yield from one.faults


def _server(count: int, seed: int) -> Iterator[str]:
    with scratch() as place:
        one = attacked(Path(place), count, seed)
    print(f"server: {one}")
    yield from one.faults


ATTACKS: Final = {
    "server": (_server, CALLED),
    "kills": (_kills, KILLS),
    "crowds": (_crowds, CROWD),
    "documents": (_documents, DOCUMENTS),
    "logs": (_logs, LOGS),
    "evidence": (_evidence, EVIDENCE),
    "arguments": (_arguments, CALLS),
    "routes": (_routes, REQUESTS),
}


def main() -> int:
    """Run, print, and count the faults."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.attack", description=__doc__)
    parser.add_argument("only", nargs="*", metavar="ATTACK", help=", ".join(ATTACKS))
    parser.add_argument("--quick", action="store_true", help=f"a {SHARE}th of it, and no more begun after a while")
    parser.add_argument("--share", type=int, metavar="N", help="an Nth of it")
    parser.add_argument("--seed", type=int, default=27)
    options = parser.parse_args()
    if unknown := set(options.only) - ATTACKS.keys():
        parser.error(f"there is no attack {', '.join(sorted(unknown))}; there are {', '.join(ATTACKS)}")
    count, begun = 0, time.monotonic()
    share = options.share or (SHARE if options.quick else 1)
    for name in options.only or ATTACKS:
        attack, most = ATTACKS[name]
        if options.quick and time.monotonic() - begun > QUICK:
            print(f"{name}: not run, for want of time; python -m benchmarks.attack {name}")
            continue
        faults = list(attack(max(2, most // share), options.seed))
        count += len(faults)
        for fault in faults[:SHOWN]:
            print(f"  {fault}")
        if len(faults) > SHOWN:
            print(f"  and {len(faults) - SHOWN:,} more")
    print(f"{count:,} faults")
    return int(count > 0)


if __name__ == "__main__":
    raise SystemExit(main())
