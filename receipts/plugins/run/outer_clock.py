"""One launch of a command under the outer clock: when each step ended by clocks that the job cannot reach.

The command keeps its standard streams, gets the signals, and is changed in its environment alone: PYTHONPATH begins
with the folder that arms the recorder, and names in RECEIPTS_ say where receipts and journals lie. Of several processes
that record, each launch has its receipt: as its recorder wrote it, merged of its ranks' parts, or recovered from the
journal of one that was killed.

The recorder's journal is a page that the job writes and the launcher reads: the end of each step by the job's clock. An
*edge* is a step with the job's time of its end, and the moments between which the launcher saw it. Both processes run
on one kernel, so that the two agree whatever the machine does: one that is suspended, set by NTP or busy delays an
edge, and its bounds say by how much. `receipts.readers.recorder` computes rates of them.

Three clocks are read, since each is disturbed by something: CLOCK_BOOTTIME counts suspension, CLOCK_MONOTONIC is slewed
by NTP, CLOCK_MONOTONIC_RAW is neither and differs from both. The one that agrees best counts.
"""

from __future__ import annotations

import json
import os
import signal
import struct
import subprocess
import time
from collections import deque
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, NamedTuple

import receipts.emit
from receipts.base.errors import ReceiptsError, UsageError
from receipts.emit import document, identity
from receipts.emit.files import beside
from receipts.emit.journal import DURATION_MASK, HEAD, MARK
from receipts.plugins.run.command import passing
from receipts.receipt.parse import UNWRITTEN

FORMAT: Final = "receipts_outer_clock"
FASTEST, SLOWEST = 0.002, 0.02  # seconds between two looks
SHARE: Final = 0.001  # of the time since the first step: a look more seldom would add more than that
ENDS: Final = 20  # edges that are kept at each end
MAX_JOURNALS, MAX_EVENT = 64, 1 << 20
READ: Final = 1 << 16
_LINUX: Final = ("CLOCK_BOOTTIME", "CLOCK_MONOTONIC_RAW", "CLOCK_MONOTONIC")
_IDS: Final = {name: number for name in _LINUX if (number := getattr(time, name, None)) is not None}
_PAIR: Final = struct.Struct("<qq")


def look() -> tuple[int, ...]:
    """The launcher's clocks, in nanoseconds."""
    return tuple(time.clock_gettime_ns(number) for number in _IDS.values())


class Edge(NamedTuple):
    """So many steps had ended, the last at ``inner`` by the job's clock; the launcher saw it between two looks."""

    steps: int
    inner: int
    after: tuple[int, ...]
    before: tuple[int, ...]


class FollowedJournal:
    """A journal that another process writes, read as it grows. Nothing in it is trusted: what is torn ends it."""

    def __init__(self, path: Path) -> None:
        self.name = path.name
        self._file = os.open(path, os.O_RDONLY | getattr(os, "O_CLOEXEC", 0))
        self._at = 0  # where the next frame begins
        self._next = self._stop = 0  # what is unread of the steps' block
        self.head: dict[str, Any] = {}
        self.steps = 0
        self.first: list[Edge] = []
        self.last: deque[Edge] = deque(maxlen=ENDS)

    def close(self) -> None:
        """Let go of the file."""
        os.close(self._file)

    def step(self, after: tuple[int, ...]) -> None:
        """Take the steps that ended since the look ``after``."""
        before_steps, inner = self.steps, 0
        while True:
            if self._next >= self._stop and not self._find_block():
                break
            words = os.pread(self._file, min(READ, self._stop - self._next), self._next)
            ended = 0
            for end, duration in _PAIR.iter_unpack(words[: len(words) // 16 * 16]):
                if not duration & DURATION_MASK:
                    break
                ended, inner = ended + 1, end
            self.steps += ended
            self._next += 16 * ended
            if 16 * ended < len(words) or not words:
                break
        if self.steps > before_steps:
            edge = Edge(self.steps, inner, after, look())
            if len(self.first) < ENDS:
                self.first.append(edge)
            else:
                self.last.append(edge)

    def _find_block(self) -> bool:
        """Go on to the next block of steps; False while there is none."""
        while True:
            header = os.pread(self._file, HEAD.size, self._at)
            if len(header) < HEAD.size:
                return False
            mark, kind, _, length, check = HEAD.unpack(header)
            if mark != MARK or (kind in (b"H", b"E") and length > MAX_EVENT):
                return False
            start = self._at + HEAD.size
            if kind == b"H" and not self.head:
                with suppress(ValueError, RecursionError):
                    head = json.loads(os.pread(self._file, length, start))
                    self.head = head if isinstance(head, dict) else {}
            self._at = start + length + (kind in (b"H", b"E"))
            if kind == b"S":
                # Two words of its own come before the steps.
                self._next, self._stop = check + 16, start + length
                return True


class OuterClock:
    """Follows the journals that a job's recorders write in a folder. ``kept`` is where a second name of each lies."""

    def __init__(self, folder: Path, kept: Path) -> None:
        self._folder, self._kept = folder, kept
        self._seen: set[str] = set()
        self._listed = 0.0
        self._began: float | None = None
        self._looked = look()
        self.journals: list[FollowedJournal] = []

    def step(self) -> float:
        """Look once; gives the seconds until the next look."""
        now = time.monotonic()
        if now - self._listed > (0.05 if not self.journals else 1.0):
            self._listed = now
            for path in sorted(self._folder.glob("*.journal")):
                if path.name in self._seen or len(self._seen) >= MAX_JOURNALS:
                    continue
                self._seen.add(path.name)
                with suppress(OSError):
                    # The recorder removes its own name when the receipt is written.
                    os.link(path, self._kept / path.name)
                with suppress(OSError):
                    self.journals.append(FollowedJournal(path))
        after, self._looked = self._looked, look()
        for journal in self.journals:
            with suppress(OSError):
                journal.step(after)
        if self._began is None:
            if not any(journal.steps for journal in self.journals):
                return SLOWEST if not self.journals else FASTEST
            self._began = now
        return min(SLOWEST, max(FASTEST, SHARE * (now - self._began)))

    def close(self) -> None:
        """Take what ended since the last look, and let go of the files."""
        self._listed = 0.0
        self.step()
        for journal in self.journals:
            journal.close()

    def write(self, place: Path, journal: FollowedJournal, cpu_seconds: float | None) -> Path:
        """Write the evidence of one launch into a folder."""
        path = place / f"{str(journal.head.get('launch'))[:8]}.outer-clock.json"
        tree = {
            FORMAT: 1,
            "clocks": list(_IDS),
            **{name: journal.head.get(name) for name in ("launch", "host", "process", "rank", "out")},
            "steps": journal.steps,
            "edges": [
                [edge.steps, edge.inner, *map(list, zip(edge.after, edge.before, strict=True))]
                for edge in (*journal.first, *journal.last)
            ],
            "cpu_seconds": cpu_seconds,
        }
        path.write_text(json.dumps(tree) + "\n", encoding="utf-8")
        return path


ARMING: Final = Path(receipts.emit.__file__).parent / "sight" / "site"
MAX_JOURNAL: Final = 16 << 20  # bytes: a longer one is no evidence beside its receipt
MAX_NAMES: Final = 1000
GRACE: Final = 10.0  # seconds to end in when asked


@dataclass
class Recorded:
    """A launch's receipt, the files that show what it did, and what the launcher changed or could not make.

    ``parts`` are those of this host's ranks where other launchers have the others: the receipt is of them alone.
    """

    receipt: Path
    evidence: list[Path] = field(default_factory=list)
    note: str = ""
    parts: list[Path] = field(default_factory=list)


class LaunchFolder:
    """Where one call of the command leaves what it records."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.out, self.journals, self.kept, self.armed = (path / name for name in ("out", "journals", "kept", "armed"))
        for folder in (self.out, self.journals, self.kept, self.armed):
            folder.mkdir(parents=True)

    def environment(self, own: Mapping[str, str], asked: Mapping[str, str]) -> dict[str, str]:
        """The command's environment; ``asked`` is what its recorder is told."""
        path = own.get("PYTHONPATH")
        return {
            **own,
            **asked,
            # An empty entry would be the working folder.
            "PYTHONPATH": os.pathsep.join((str(ARMING), path)) if path else str(ARMING),
            "RECEIPTS_OUT": f"{self.out}{os.sep}",
            "RECEIPTS_JOURNAL": str(self.journals),
            "RECEIPTS_SIGHT_REPORT": str(self.armed),
            "RECEIPTS_DELIVER": "0",  # the launcher submits
        }

    def reports(self) -> list[list[str]]:
        """What armed processes said of themselves, in words."""
        texts = []
        for path in sorted(self.armed.iterdir()):
            with suppress(OSError):
                texts.append(path.read_text(encoding="utf-8", errors="replace").split())
        return [words for words in texts if words]


class ObservedLaunch:
    """A command that was run, and what was seen of it. ``exit_code`` is negative for a signal.

    It runs in the folder ``at``, by default this one, and prints to the file descriptor ``out``, by default as this
    process does. After ``limit`` seconds it is asked to end, and ended soon after.
    """

    def __init__(
        self,
        words: Sequence[str],
        folder: LaunchFolder,
        environment: Mapping[str, str],
        at: Path | None = None,
        out: int | None = None,
        limit: float | None = None,
    ) -> None:
        self.folder, self.clock = folder, OuterClock(folder.journals, folder.kept)
        ends = [] if limit is None else [(limit, signal.SIGTERM), (limit + GRACE, signal.SIGKILL)]
        # On a terminal the keyboard's signals reach every process; elsewhere the command is a group that gets them.
        terminal = os.isatty(0)
        try:
            group = None if terminal else 0
            child = subprocess.Popen(list(words), env=dict(environment), process_group=group, cwd=at, stdout=out)
        except OSError as error:
            raise UsageError(f"{words[0]} cannot be run: {error.strerror}; check the command after --") from None
        self.process = child.pid

        def send(number: signal.Signals) -> None:
            if not (terminal and number is signal.SIGINT):
                with suppress(OSError):
                    (os.kill if terminal else os.killpg)(child.pid, number)

        begun = time.monotonic()
        with passing(send):
            while True:
                pause = self.clock.step()
                if ends and time.monotonic() - begun > ends[0][0]:
                    send(ends.pop(0)[1])
                ended, status, usage = os.wait4(child.pid, os.WNOHANG)
                if ended:
                    break
                time.sleep(pause)
        self.clock.close()
        child.returncode = self.exit_code = os.waitstatus_to_exitcode(status)
        self.cpu_seconds = usage.ru_utime + usage.ru_stime

    def receipts(self) -> list[Recorded]:
        """A receipt of every launch that recorded steps, or failed before its first one."""
        launches: dict[str, list[FollowedJournal]] = {}
        for journal in self.clock.journals:
            if journal.head.get("launch"):
                launches.setdefault(str(journal.head["launch"]), []).append(journal)
        receipts = [item for launch, ranks in launches.items() if (item := self._receipt(launch, ranks)) is not None]
        alone = len(receipts) == 1
        for item in receipts:
            launch = json.loads(item.receipt.read_bytes())["run"]["launch"]
            first = min(launches[launch], key=lambda journal: int(journal.head.get("rank") or 0))
            self._end(item, first, alone)
            item.evidence.insert(0, self.clock.write(self.folder.kept, first, self.cpu_seconds if alone else None))
        # A run that was over between two looks has left its receipt, and no journal that was seen.
        seen = {item.receipt for item in receipts}
        quick = [path for path in sorted(self.folder.out.glob("*.json")) if not path.name.endswith(".part.json")]
        return receipts + [Recorded(path) for path in quick if path not in seen]

    def _receipt(self, launch: str, ranks: Sequence[FollowedJournal]) -> Recorded | None:
        """The receipt of a launch; None where its processes left none: they made no step."""
        from receipts.cli import output

        written = {id(rank): _written(launch, str(rank.head.get("out") or "")) for rank in ranks}
        journals = {id(rank): self.folder.kept / rank.name for rank in ranks}
        place = self.folder.out
        try:
            if max(int(rank.head.get("world") or 1) for rank in ranks) == 1:
                path, place = written[id(ranks[0])], journals[id(ranks[0])]
                if path is not None:
                    shows = place.is_file() and place.stat().st_size <= MAX_JOURNAL
                    return Recorded(path, [place] if shows else [])
                return self._recovered(place) if ranks[0].steps or self.exit_code else None
            parts = [str(written[id(rank)] or journals[id(rank)]) for rank in ranks if written[id(rank)] or rank.steps]
            return self._merged(launch, parts) if parts else None
        except ReceiptsError as error:
            output.note(f"receipts: no receipt: {error}; what there is lies in {place}")
            return None

    def _recovered(self, journal: Path) -> Recorded:
        from receipts.workflows.recorded import blamed, read

        record = read(str(journal))
        blamed(record)
        if record.exit_code is None and record.head["process"] == self.process:
            record.exit_code = self.exit_code
        path = self.folder.out / f"{journal.stem}.json"
        path.write_text("".join(document.file_text(record)), encoding="utf-8")
        return Recorded(path, note="it was killed: its receipt is made from its journal")

    def _merged(self, launch: str, parts: Sequence[str]) -> Recorded:
        from receipts.ingest.assembly import pretty
        from receipts.workflows.recorded import merge_files

        merged = merge_files(parts)
        path = self.folder.out / f"run-{launch[:8]}.json"
        path.write_bytes(pretty(dict(merged.tree)))
        elsewhere = bool(merged.missing) and identity.among_several(os.environ)
        return Recorded(path, parts=[Path(part) for part in parts] if elsewhere else [])

    def _end(self, item: Recorded, journal: FollowedJournal, alone: bool) -> None:
        """How the launch ended, where its process did not know: an exit code comes after a recorder's last word."""
        from receipts.ingest.assembly import pretty

        tree: dict[str, Any] = json.loads(item.receipt.read_bytes())
        run = tree["run"]
        if not self.exit_code or not alone or run["outcome"] != "ok":
            return
        own = journal.head.get("process") == self.process
        run["outcome"] = "crash" if own else "unknown"
        run["exit_code"] = self.exit_code
        if own:
            ending = f"signal {-self.exit_code}" if self.exit_code < 0 else f"exit code {self.exit_code}"
            tree["failure"] = {"message": f"it ended with {ending}, and raised nothing"}
        if "recorded" in run:
            run["recorded"]["digest"] = UNWRITTEN
        item.receipt.write_bytes(pretty(tree))
        item.evidence.clear()  # its journal says that it ended well

    def silence(self) -> str:
        """Why no process reported a step, and what to do about it."""
        reports = self.folder.reports()
        old = [words[1] for words in reports if words[0] == "python" and len(words) > 1]
        names = {name for words in reports for name in words[2:]}
        if old and not any(words[0] == "armed" for words in reports):
            return f"its Python is {old[0]}, and the recorder needs 3.11; run the job with a newer one"
        if not reports:
            return (
                "no Python of the job read PYTHONPATH: python -I, -E and -S leave it out, and so does a script that "
                "sets it. Write PYTHONPATH=…:$PYTHONPATH there; pass the environment on into a container"
            )
        if "jax" in names and "torch" not in names:
            return "no jitted function of JAX took what it gave and trained; else step = rec.jit(step): docs/start.md"
        if "torch" in names:
            return "no optimizer of torch made a step; a job that updates them itself calls rec.step: docs/recorder.md"
        return "no process that ended had imported torch or JAX; others call rec.step: docs/recorder.md"


def _written(launch: str, out: str) -> Path | None:
    """The document of a launch that was to be written at ``out``: there, or beside an older file."""
    for number in range(1, MAX_NAMES):
        path = Path(out if number == 1 else beside(out, launch, number))
        if not out or not path.is_file():
            return None
        with suppress(OSError, ValueError, AttributeError):
            tree = json.loads(path.read_bytes())
            if launch in (tree.get("launch"), (tree.get("run") or {}).get("launch")):
                return path
    return None
