"""One launch of a command under the outer clock: its environment, its process, and the receipts that it left.

The command keeps its standard streams, gets the signals, and is changed in its environment alone: PYTHONPATH begins
with the folder that arms the recorder, and names in RECEIPTS_ say where receipts and journals lie. Of several processes
that record, each launch has its receipt: as its recorder wrote it, merged of its ranks' parts, or recovered from the
journal of one that was killed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import receipts.emit
from receipts.base.errors import ReceiptsError, UsageError
from receipts.emit import document, places
from receipts.emit.files import beside
from receipts.plugins.run.command import passing
from receipts.plugins.run.outer_clock import FollowedJournal, OuterClock
from receipts.receipt.parse import UNWRITTEN

ARMING: Final = Path(receipts.emit.__file__).parent / "sight" / "site"
MAX_JOURNAL: Final = 16 << 20  # bytes: a longer one is no evidence beside its receipt
MAX_NAMES: Final = 1000


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

    def __repr__(self) -> str:
        return f"LaunchFolder({self.path})"

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
    process does.
    """

    def __init__(
        self,
        words: Sequence[str],
        folder: LaunchFolder,
        environment: Mapping[str, str],
        at: Path | None = None,
        out: int | None = None,
    ) -> None:
        self.folder = folder
        self._at, self._out = at, out
        self.clock = OuterClock(folder.journals, folder.kept)
        self.process = 0
        self.exit_code, self.cpu_seconds = self._run(words, environment)

    def __repr__(self) -> str:
        return f"ObservedLaunch({self.folder}, exit code {self.exit_code})"

    def _run(self, words: Sequence[str], environment: Mapping[str, str]) -> tuple[int, float]:
        # On a terminal the keyboard's signals reach every process; elsewhere the command is a group that gets them.
        terminal = os.isatty(0)
        try:
            group = None if terminal else 0
            child = subprocess.Popen(
                list(words), env=dict(environment), process_group=group, cwd=self._at, stdout=self._out
            )
        except OSError as error:
            raise UsageError(f"{words[0]} cannot be run: {error.strerror}; check the command after --") from None
        self.process = child.pid

        def send(number: signal.Signals) -> None:
            if not (terminal and number is signal.SIGINT):
                with suppress(OSError):
                    (os.kill if terminal else os.killpg)(child.pid, number)

        with passing(send):
            while True:
                pause = self.clock.step()
                ended, status, usage = os.wait4(child.pid, os.WNOHANG)
                if ended:
                    break
                time.sleep(pause)
        self.clock.close()
        child.returncode = os.waitstatus_to_exitcode(status)
        return child.returncode, usage.ru_utime + usage.ru_stime

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
        written = {id(rank): _written(launch, str(rank.head.get("out") or "")) for rank in ranks}
        journals = {id(rank): self.folder.kept / rank.name for rank in ranks}
        whole = max(int(rank.head.get("world") or 1) for rank in ranks) == 1
        if whole:
            rank = ranks[0]
            path = written[id(rank)]
            if path is not None:
                return Recorded(path, [item for item in (journals[id(rank)],) if _may_show(item)])
            return self._recovered(journals[id(rank)]) if rank.steps or not self._ended_well else None
        parts = [str(written[id(rank)] or journals[id(rank)]) for rank in ranks if written[id(rank)] or rank.steps]
        return self._merged(launch, parts) if parts else None

    @property
    def _ended_well(self) -> bool:
        return self.exit_code == 0

    def _recovered(self, journal: Path) -> Recorded | None:
        from receipts.workflows.recorded import blamed, read

        try:
            record = read(str(journal))
            blamed(record)
            if record.exit_code is None and record.head["process"] == self.process:
                record.exit_code = self.exit_code
            text = "".join(document.file_text(record))
        except ReceiptsError as error:
            _not_made(journal, error)
            return None
        path = self.folder.out / f"{journal.stem}.json"
        path.write_text(text, encoding="utf-8")
        return Recorded(path, note="it was killed: its receipt is made from its journal")

    def _merged(self, launch: str, parts: Sequence[str]) -> Recorded | None:
        from receipts.ingest.assembly import pretty
        from receipts.workflows.recorded import merge_files

        try:
            merged = merge_files(parts)
        except ReceiptsError as error:
            _not_made(self.folder.out, error)
            return None
        path = self.folder.out / f"run-{launch[:8]}.json"
        path.write_bytes(pretty(dict(merged.tree)))
        elsewhere = bool(merged.missing) and places.among_several(os.environ)
        return Recorded(path, parts=[Path(part) for part in parts] if elsewhere else [])

    def _end(self, item: Recorded, journal: FollowedJournal, alone: bool) -> None:
        """How the launch ended, where its process did not know: an exit code comes after a recorder's last word."""
        from receipts.ingest.assembly import pretty

        tree: dict[str, Any] = json.loads(item.receipt.read_bytes())
        run = tree["run"]
        if self._ended_well or not alone or run["outcome"] != "ok":
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
            return "JAX steps cannot be seen from outside: call step = rec.jit(step) with a Recorder; docs/start.md"
        if "torch" in names:
            return "no optimizer of torch made a step; a job that updates them itself calls rec.step: docs/recorder.md"
        return "no process that ended had imported torch or JAX; others call rec.step: docs/recorder.md"


def _not_made(place: Path, error: ReceiptsError) -> None:
    from receipts.cli import output

    output.note(f"receipts: no receipt: {error}; what there is lies in {place}")


def _may_show(journal: Path) -> bool:
    return journal.is_file() and journal.stat().st_size <= MAX_JOURNAL


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
