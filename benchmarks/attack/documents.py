"""Mutated documents, submitted: each is refused with its errors or stored whole, in bounded time and memory."""

from __future__ import annotations

import json
import random
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.attack.mutations import MUTATE
from benchmarks.attack.outcome import Outcome, Tally, in_parts
from receipts.judging.rulebook import Rulebook
from receipts.receipt import Document
from receipts.store import open_store
from receipts.workflows.audit import audit
from receipts.workflows.submit import submit

SLOW: Final = 2.0  # seconds of the processor for one document
_LONG: Final = 100_000  # characters of an error
_AT_ONCE: Final = 500  # documents a process


def mutated_documents(folder: Path, bases: Sequence[Path], inputs: int, seed: int = 27) -> Outcome:
    """Submit so many documents to one store, each a mutation of a base, and audit the store at the end."""
    url, rulebook, raws = str(folder / "store.sqlite"), Rulebook(), [path.read_bytes() for path in bases]
    rulebook.rules  # noqa: B018 — loaded once, before the forks
    done = in_parts(lambda part: _submit(url, rulebook, raws, part, seed), inputs, _AT_ONCE, 600)
    with open_store(url) as store:
        faults = [f"{item.where}: {item.found}" for item in audit(store, rulebook).faults]
    return done._replace(faults=(*done.faults, *faults))


def _submit(url: str, rulebook: Rulebook, raws: Sequence[bytes], part: range, seed: int) -> int:
    tally = Tally()
    with open_store(url) as store:
        for number in part:
            draw = random.Random(f"{seed} {number}")
            raw = draw.choice(MUTATE)(_of_another_launch(draw.choice(raws), draw), draw)
            begun = time.process_time()
            try:
                (outcome,) = submit([Document(raw, str(number))], store, rulebook)
            except Exception as error:  # whatever it raises is a fault of the program
                tally.fault(f"document {number}: {type(error).__name__}: {error}")
                continue
            taken = time.process_time() - begun
            tally.add("stored" if outcome.submitted is not None else "refused", taken)
            if taken > SLOW:
                tally.fault(f"document {number}: {taken:.1f} s for {len(raw):,} bytes")
            if outcome.submitted is not None and store.document(outcome.submitted.id) != raw:
                tally.fault(f"document {number}: other bytes came back")
            if len(str(outcome.error)) > _LONG:
                tally.fault(f"document {number}: an error of {len(str(outcome.error)):,} characters")
    return tally.close()


def _of_another_launch(raw: bytes, draw: random.Random) -> bytes:
    """The same run again, so that no mutation is refused because its launch is stored already."""
    launch = json.loads(raw)["run"]["launch"].encode()
    return raw.replace(launch, str(uuid.UUID(int=draw.getrandbits(128))).encode())
