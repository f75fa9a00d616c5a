"""Mutated logs, profiles and configurations, ingested: no traceback, no hang, and bounded memory."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from benchmarks.attack.forks import scratch
from benchmarks.attack.mutations import changed_bytes
from benchmarks.attack.outcome import Outcome, Tally, in_parts
from receipts.base.errors import ReceiptsError
from receipts.ingest.assembly import assemble
from receipts.ingest.draft import Options
from receipts.ingest.files import gather, given
from receipts.judging.rulebook import Rulebook

SLOW: Final = 10.0  # seconds of the processor for one log
_AT_ONCE: Final = 200  # logs a process
_MAX_LOG: Final = 2 << 20  # bytes of a log that is worth mutating often


def logs_of(folders: Sequence[Path]) -> list[Path]:
    """Files that jobs left."""
    every = [path for folder in folders if folder.is_dir() for path in sorted(folder.rglob("*"))]
    return [path for path in every if path.is_file() and 0 < path.stat().st_size <= _MAX_LOG]


def mutated_logs(bases: Sequence[Path], inputs: int, seed: int = 27) -> Outcome:
    """Ingest so many logs, each a mutation of a base under the base's name."""
    lanes = Rulebook().lanes
    options = Options(None, None, {}, tuple(lanes.get(name) for name in lanes.names()))
    return in_parts(lambda part: _ingest(bases, part, seed, options), inputs, _AT_ONCE, 900)


def _ingest(bases: Sequence[Path], part: range, seed: int, options: Options) -> int:
    tally = Tally()
    with scratch() as place:
        for number in part:
            draw = random.Random(f"{seed} {number}")
            base = draw.choice(bases)
            file = Path(place) / f"{number}" / base.name
            file.parent.mkdir()
            file.write_bytes(changed_bytes(base.read_bytes(), draw))
            begun, end = time.process_time(), "refused"
            try:
                with given([str(file)], None) as (items, _):
                    ingested = assemble(gather(items, None, None), options)
                end = "unfinished" if ingested.problems else "receipt"
            except ReceiptsError:
                pass
            except Exception as error:  # whatever it raises is a fault of the program
                tally.fault(f"log {number}, {base.name}: {type(error).__name__}: {error}")
            taken = time.process_time() - begun
            tally.add(end, taken)
            if taken > SLOW:
                tally.fault(f"log {number}, {base.name}: {taken:.1f} s")
            file.unlink()
    return tally.close()
