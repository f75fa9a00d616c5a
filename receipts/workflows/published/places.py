"""Where logs lie in a results repository of MLPerf: ``SUBMITTER/results/SYSTEM/BENCHMARK/result_N.txt``.

Source: mlcommons/training_policies, submission rules. Any folder of a repository will do: what is above it in the
path still says whose results they are.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from pathlib import Path
from typing import Final

from receipts.base.errors import UsageError
from receipts.ingest.evidence.stream import BROKEN, Source

MARK: Final = b":::MLLOG"
# Power meters write records of the same form; a launch initializes, or names its benchmark.
_LAUNCH: Final = (b'"init_start"', b'"run_start"', b'"submission_benchmark"')
_NAMES: Final = (".txt", ".log", ".out", ".txt.gz", ".log.gz", ".txt.xz", ".txt.bz2")
_PASSED_BY: Final = frozenset({".git", "power", "systems", "benchmarks", "documentation"})
_ROUND: Final = re.compile(r"(?:training_results_|mlperf[-_]training[-_]|^)v(\d{1,2}\.\d)(?:$|[-_.])")
MAX_HEAD: Final = 64 << 20


@dataclass(frozen=True, slots=True)
class LogPath:
    """One log; submitter, system, benchmark and round are empty where the path does not say them."""

    path: Path
    name: str
    submitter: str = ""
    system: str = ""
    benchmark: str = ""
    round: str = ""

    @property
    def description(self) -> Path | None:
        """The system's description beside the results; None where there is none."""
        for above in self.path.parents[2:5]:
            file = above / "systems" / f"{self.system}.json"
            if self.system and file.is_file():
                return file
        return None

    @property
    def context(self) -> str:
        """The submission that the launch belongs to: what neither of its launches states is equal in both."""
        whole = "-".join(filter(None, ("mlperf-training", self.round)))
        return "/".join(filter(None, (whole, self.submitter, self.system, self.benchmark)))


def find_logs(
    root: Path, submitter: str = "*", system: str = "*", benchmark: str = "*", round_: str = ""
) -> list[LogPath]:
    """Every launch's log below a folder, or the one file, whose place fits the patterns, in the order of their paths.

    Raises UsageError where there is no such folder, or no log of MLPerf in it.
    """
    if not root.exists():
        raise UsageError(f"{root}: there is no such folder; name a results repository, or a folder of it")
    files = [root] if root.is_file() else sorted(_files(root))
    places = [_place(path, root, round_) for path in files if _is_log(path)]
    if not places:
        raise UsageError(f"{root}: no file holds {MARK.decode()} records of a launch; name a results repository")
    wanted = (submitter, system, benchmark)
    kept = [place for place in places if all(map(_fits, (place.submitter, place.system, place.benchmark), wanted))]
    if not kept:
        listed = ", ".join(sorted({place.context for place in places})[:4])
        raise UsageError(f"{root}: none of {len(places)} logs fits; there are {listed}")
    return kept


def _fits(value: str, pattern: str) -> bool:
    return fnmatchcase(value.lower(), pattern.lower())


def _files(root: Path) -> Iterator[Path]:
    for folder, below, names in os.walk(root):
        below[:] = [name for name in below if name not in _PASSED_BY]
        yield from (Path(folder) / name for name in names if name.lower().endswith(_NAMES))


def _is_log(path: Path) -> bool:
    try:
        with Source(path, path.name).open() as stream:
            head = stream.read(MAX_HEAD)
    except (*BROKEN, UsageError):
        return False
    return MARK in head and any(word in head for word in _LAUNCH)


def _place(path: Path, root: Path, round_: str) -> LogPath:
    parts = path.absolute().parts
    name = path.relative_to(root).as_posix() if path != root else path.name
    at = next((i for i in range(len(parts) - 4, -1, -1) if parts[i] == "results"), None)
    stated = next((f"v{match[1]}" for part in reversed(parts) if (match := _ROUND.search(part))), "")
    if at is None or at == 0:
        return LogPath(path, name, round=round_ or stated)
    return LogPath(path, name, parts[at - 1], parts[at + 1], parts[at + 2], round_ or stated)
