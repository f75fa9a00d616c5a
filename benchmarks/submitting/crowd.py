"""Sixteen processes that submit 2,000 receipts, a fifth of them brought by several: none lost, none twice, no error."""

from __future__ import annotations

import json
import multiprocessing
import random
import time
from collections.abc import Sequence
from typing import NamedTuple

from benchmarks.submitting.documents import summary
from receipts.judging.rulebook import Rulebook
from receipts.receipt import Document
from receipts.store import open_store
from receipts.workflows.submit import submit

PROCESSES, SUBMITS, SHARED = 16, 2000, 0.2


class Crowd(NamedTuple):
    """What came of it. ``stored`` must be ``wanted``, ``new`` the same, and ``errors`` none."""

    wanted: int
    stored: int
    new: int
    errors: tuple[str, ...]
    seconds: float

    @property
    def faults(self) -> int:
        """Receipts that were lost or stored twice, and errors that were shown."""
        return abs(self.wanted - self.stored) + abs(self.wanted - self.new) + len(self.errors)


def crowd(url: str, submits: int = SUBMITS, processes: int = PROCESSES) -> Crowd:
    """Let the processes submit one receipt at a time, all at once, into an empty store that they make together."""
    own = round(submits * (1 - SHARED))
    draw = random.Random(20261121)
    order = [*range(own), *(draw.randrange(own) for _ in range(submits - own))]
    draw.shuffle(order)
    context = multiprocessing.get_context("spawn")
    begun = time.perf_counter()
    with context.Pool(processes) as pool:
        told = pool.starmap(_one, [(url, order[number::processes]) for number in range(processes)], chunksize=1)
    seconds = time.perf_counter() - begun
    with open_store(url, create=False) as store:
        stored = sum(1 for _ in store.find())
    return Crowd(
        own, stored, sum(new for new, _ in told), tuple(error for _, errors in told for error in errors), seconds
    )


def _one(url: str, seeds: Sequence[int]) -> tuple[int, list[str]]:
    rulebook, new, errors = Rulebook(), 0, list[str]()
    try:
        with open_store(url) as store:
            for seed in seeds:
                (outcome,) = submit([Document(summary(seed), str(seed))], store, rulebook)
                if outcome.submitted is None:
                    errors.append(str(outcome.error))
                else:
                    new += outcome.submitted.new
    except Exception as error:  # whatever is shown counts, and none may be lost here
        errors.append(f"{type(error).__name__}: {error}")
    return new, errors


def main() -> int:
    """``python -m benchmarks.submitting.crowd URL``."""
    import sys

    found = crowd(sys.argv[1])
    print(json.dumps(found._asdict(), indent=2))
    return int(found.faults > 0)


if __name__ == "__main__":
    raise SystemExit(main())
