"""An attempt's command on this node and on all, and what it left behind."""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from receipts.base.errors import ReceiptsError, UsageError
from receipts.cli.session import Session

if TYPE_CHECKING:
    from receipts.axes.lane import Lane
    from receipts.plugins.run.command import ChildLimits, Ended
    from receipts.plugins.run.folder import Attempt, AttemptFolder, Mesh

RECORDED: Final = "run.json"
HOST_OOM: Final = "the kernel's out-of-memory killer ended a process of this control group while the command ran"


class Launcher:
    """Runs an attempt's command on this node. ``words`` are the command's as they were typed."""

    def __init__(
        self, folder: AttemptFolder, mesh: Mesh, limits: ChildLimits, words: Sequence[str], show: bool
    ) -> None:
        from receipts.plugins.run.command import CommandWords

        self._folder = folder
        self._mesh = mesh
        self._limits = limits
        self.words = CommandWords(words)
        self._show = show
        self._kills: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"Launcher({self.words!r}, {self._mesh!r})"

    def here(self, attempt: Attempt) -> Ended:
        """Run it here, and give how it ended here."""
        from receipts.emit.termination import oom_kills
        from receipts.plugins.run.command import run, started
        from receipts.questions.plan import parse_plan
        from receipts.receipt import read

        folder, plan = self._folder, self._folder.plan(attempt)
        places = {"plan": plan, "dir": folder.of(attempt)}
        words = self.words.filled(parse_plan(read(plan)), places)
        self._kills = oom_kills()

        def began(process: int) -> None:
            if self._mesh.rank == 0:
                folder.change(folder.attempts[-1], process=(process, started(process)))

        limits = self._limits._replace(stop=self._mesh.failed(folder, attempt))
        return run(words, self._environment(attempt), self._mesh.log(folder, attempt), limits, began, self._show)

    def everywhere(self, attempt: Attempt) -> Ended:
        """Run it here as node 0, and give how it ended on all nodes."""
        own = self.here(attempt)
        if self._mesh.nodes == 1:
            return own
        self._mesh.report(self._folder, attempt, own)
        ended, lost = self._mesh.together(self._folder, attempt, own)
        if lost:
            names = ", ".join(map(str, lost))
            return ended._replace(exit_code=ended.exit_code or 1, by=f"node {names} was not heard of")
        return ended

    def follow(self) -> int:
        """Run what node 0 writes down until it is over; gives the exit code."""
        from receipts.plugins.run.folder import follow

        code = follow(self._folder, self.here, self._mesh)
        return code if code >= 0 else 128 - code

    @property
    def killed_by_kernel(self) -> bool:
        """Whether the kernel's out-of-memory killer has been at work since the last command began."""
        from receipts.emit.termination import more_kills

        return bool(self._kills) and more_kills(self._kills) > 0

    def _environment(self, attempt: Attempt) -> dict[str, str]:
        folder = self._folder
        return {
            **os.environ,
            "RECEIPTS_PLAN": str(folder.plan(attempt)),
            "RECEIPTS_LAUNCH": attempt.launch,
            "RECEIPTS_OUT": str(folder.of(attempt) / RECORDED),
            "RECEIPTS_JOURNAL": str(folder.of(attempt)),
        }


def gather(session: Session, folder: AttemptFolder, attempt: Attempt, lane: Lane, launcher: Launcher) -> dict[str, Any]:
    """What an attempt left behind: its recorder's receipt, parts or journals, else what its files show."""
    place = folder.of(attempt)
    logs = sorted(place.glob("log*.txt"))
    for read in (_recorded, _recovered):
        document = read(place, logs)
        if document is not None:
            return document
    # What the log and the files that the command left in its folder show.
    from receipts.ingest.assembly import assemble
    from receipts.ingest.draft import Options
    from receipts.ingest.files import gather as read_files
    from receipts.ingest.files import given

    own = ("plan.json", "receipt.json", RECORDED)
    left = [item for item in sorted(place.iterdir()) if item.name not in own and not _is_ours(item.name)]
    lanes = session.rulebook.lanes
    settings = {"run.launch": attempt.launch, "run.started": attempt.started, "run.provenance": "measured"}
    options = Options(lane.name, None, settings, tuple(lanes.get(name) for name in lanes.names()))
    with given([str(item) for item in left]) as (items, _passed_by):
        document = assemble(read_files(items, None), options).tree
    document.setdefault("run", {})
    notes = document.get("notes", {})
    notes.pop("ingest.stated_by_user", None)  # the runner did
    silent = document["run"].get("outcome") in (None, "ok", "unknown", "crash") and attempt.exit_code not in (0, None)
    if silent and launcher.killed_by_kernel:
        document["run"]["outcome"] = "oom"
        document["failure"] = {"class": "host", "message": HOST_OOM}
    return document


def _recorded(place: Path, _logs: Sequence[Path]) -> dict[str, Any] | None:
    """The receipt that the job's own recorder wrote."""
    from receipts.receipt import parse, read

    path = place / RECORDED
    if not path.exists():
        return None
    try:
        parse(read(path))
    except ReceiptsError:
        return None
    tree: dict[str, Any] = json.loads(path.read_bytes())
    return tree


def _recovered(place: Path, logs: Sequence[Path]) -> dict[str, Any] | None:
    """The receipt of its parts and journals."""
    from receipts.emit import document
    from receipts.workflows.recorded import blamed, merge_files, read

    written = sorted(place.glob("*.part.json"))
    journals = sorted(place.glob("*.journal"))
    if not written and not journals:
        return None
    try:
        if written or len(journals) > 1:
            return dict(merge_files([str(item) for item in (*written, *journals)]).tree)
        record = read(str(journals[0]))
        blamed(record, [str(item) for item in logs])
        tree: dict[str, Any] = json.loads("".join(document.file_text(record)))
    except (ReceiptsError, UsageError):
        return None
    return tree


def _is_ours(name: str) -> bool:
    return name.startswith((".", "node-")) or name.endswith((".exit", ".journal", ".part.json"))
