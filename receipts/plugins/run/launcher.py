"""An attempt's command on this node and on all, and what it left behind.

Of several nodes one walks the ladder and the others follow. A smaller plan holds for every rank or for none (rule
R415). A node whose command has ended writes so; where it failed the others are ended too, since they would wait for
it in a collective.
"""

from __future__ import annotations

import json
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from receipts.base import files
from receipts.base.errors import ReceiptsError, StoreError
from receipts.base.files import read_small
from receipts.base.untrusted_text import parse_json
from receipts.emit.termination import more_kills, oom_kills
from receipts.plugins.run.attempt import STATE, Attempt, AttemptFolder
from receipts.plugins.run.command import ChildLimits, CommandWords, Ended, run, started

if TYPE_CHECKING:
    from collections.abc import Sequence

    from receipts.axes.lane import Lane
    from receipts.cli.session import Session

RECORDED: Final = "run.json"
HOST_OOM: Final = "the kernel's out-of-memory killer ended a process of this control group while the command ran"
POLL: Final = 0.2
PATIENCE: Final = 300.0  # seconds that a silent node is waited for
PEER: Final = "peer"


class Launcher:
    """Runs an attempt's command on this node, the one of ``rank`` among ``nodes``.

    ``words`` are the command's as they were typed.
    """

    def __init__(
        self, folder: AttemptFolder, limits: ChildLimits, words: Sequence[str], rank: int, nodes: int, *, show: bool
    ) -> None:
        self._folder, self._limits, self._show = folder, limits, show
        self._rank, self._nodes = rank, nodes
        self.words = CommandWords(words)
        self._kills: dict[str, int] = {}

    def here(self, attempt: Attempt) -> Ended:
        """Run it here, and give how it ended here."""
        from receipts.questions.plan import parse_plan
        from receipts.receipt import read

        folder, plan = self._folder, self._folder.plan(attempt)
        words = self.words.filled(parse_plan(read(plan)), {"plan": plan, "dir": folder.of(attempt)})
        self._kills = oom_kills()

        def began(process: int) -> None:
            if self._rank == 0:
                folder.change(folder.attempts[-1], process=(process, started(process)))

        def failed() -> str | None:
            return PEER if any(item.exit_code for item in self._reports(attempt).values()) else None

        environment = {
            **os.environ,
            "RECEIPTS_PLAN": str(plan),
            "RECEIPTS_LAUNCH": attempt.launch,
            "RECEIPTS_OUT": str(folder.of(attempt) / RECORDED),
            "RECEIPTS_JOURNAL": str(folder.of(attempt)),
        }
        log = folder.log(attempt) if self._rank == 0 else folder.of(attempt) / f"log.node-{self._rank}.txt"
        ended = run(words, environment, log, self._limits._replace(stop=failed), began, self._show)
        if self._nodes > 1:
            files.write(self._report(attempt, self._rank), json.dumps(ended._asdict()), over=True)
        return ended

    def everywhere(self, attempt: Attempt) -> Ended:
        """Run it here as node 0, and give how it ended on all nodes."""
        own, until = self.here(attempt), time.monotonic() + PATIENCE
        reports = {self._rank: own, **self._reports(attempt)}
        while len(reports) < self._nodes and time.monotonic() < until:
            time.sleep(POLL)
            reports |= self._reports(attempt)
        # A node that was ended for another's sake says nothing of why.
        telling = [item for _, item in sorted(reports.items()) if item.by != PEER]
        ended = next((item for item in telling if item.exit_code), telling[0] if telling else own)
        if lost := sorted(set(range(self._nodes)) - reports.keys()):
            names = ", ".join(map(str, lost))
            return ended._replace(exit_code=ended.exit_code or 1, by=f"node {names} was not heard of")
        return ended

    def follow(self) -> int:
        """Run what node 0 writes down, until it says that it is over; gives the exit code of the last attempt here.

        Raises StoreError where node 0 is not heard of.
        """
        folder, done, code = self._folder, 0, 0
        heard = time.monotonic()
        while True:
            state = _json(folder.path / STATE)
            if state is not None and len(state["attempts"]) > done:
                folder.open()
                code = self.here(folder.attempts[done]).exit_code
                done, heard = done + 1, time.monotonic()
            elif state is not None and state["over"]:
                return code if code >= 0 else 128 - code
            elif time.monotonic() - heard > PATIENCE:
                raise StoreError(f"{folder.path}: node 0 wrote nothing for {PATIENCE:g} s; is it running there?")
            else:
                time.sleep(POLL)

    @property
    def killed_by_kernel(self) -> bool:
        """Whether the kernel's out-of-memory killer has been at work since the last command began."""
        return bool(self._kills) and more_kills(self._kills) > 0

    def _report(self, attempt: Attempt, rank: int) -> Path:
        """Where a node writes how its command ended."""
        return self._folder.of(attempt) / f"node-{rank}.json"

    def _reports(self, attempt: Attempt) -> dict[int, Ended]:
        """How the command ended on the other nodes that say so."""
        others = (rank for rank in range(self._nodes) if rank != self._rank)
        written = {rank: report for rank in others if (report := _json(self._report(attempt, rank))) is not None}
        return {rank: Ended(report["exit_code"], report["by"]) for rank, report in written.items()}


def _json(path: Path) -> dict[str, Any] | None:
    try:
        report: dict[str, Any] = parse_json(read_small(path))
    except (OSError, ValueError):
        return None
    return report


def gather(session: Session, folder: AttemptFolder, attempt: Attempt, lane: Lane, launcher: Launcher) -> dict[str, Any]:
    """What an attempt left behind: its recorder's receipt, parts or journals, else what its files show."""
    place = folder.of(attempt)
    from receipts.ingest.assembly import assemble
    from receipts.ingest.draft import Options
    from receipts.ingest.files import gather as read_files
    from receipts.ingest.files import given
    from receipts.receipt import parse, read

    with suppress(ReceiptsError):
        parse(recorded := read(place / RECORDED))
        return dict(json.loads(recorded.raw))
    if (document := _recovered(place)) is not None:
        return document
    # What the log and the files that the command left in its folder show.
    own, ends = ("plan.json", "receipt.json", RECORDED), (".exit", ".journal", ".part.json")
    left = [
        item
        for item in sorted(place.iterdir())
        if item.name not in own and not item.name.startswith((".", "node-")) and not item.name.endswith(ends)
    ]
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


def _recovered(place: Path) -> dict[str, Any] | None:
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
        blamed(record, [str(item) for item in sorted(place.glob("log*.txt"))])
        return dict(json.loads("".join(document.file_text(record))))
    except ReceiptsError:
        return None
