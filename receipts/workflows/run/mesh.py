"""Nodes that run one plan together, through a folder that all of them see: one walks the ladder, the others follow.

A smaller plan holds for every rank or for none (rule R415). A node whose command has ended writes so; where it failed
the others are ended too, since they would wait for it in a collective.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple

from receipts.base import files
from receipts.base.errors import StoreError, UsageError
from receipts.base.files import read_small
from receipts.base.untrusted_text import parse_json
from receipts.workflows.run.attempt import STATE, Attempt, AttemptFolder
from receipts.workflows.run.child import Ended

POLL: Final = 0.2
PEER: Final = "peer"


class Mesh(NamedTuple):
    """This node's place among ``nodes``, and how many seconds a silent one is waited for."""

    rank: int = 0
    nodes: int = 1
    patience: float = 300.0

    def log(self, folder: AttemptFolder, attempt: Attempt) -> Path:
        """Where this node's command prints to."""
        return folder.log(attempt) if self.rank == 0 else folder.of(attempt) / f"log.node-{self.rank}.txt"

    def report(self, folder: AttemptFolder, attempt: Attempt, ended: Ended) -> None:
        """Write down how this node's command ended."""
        files.write(_report(folder, attempt, self.rank), json.dumps(ended._asdict()), over=True)

    def failed(self, folder: AttemptFolder, attempt: Attempt) -> Callable[[], str | None]:
        """What a running node asks: whether another one has failed."""

        def ask() -> str | None:
            others = (rank for rank in range(self.nodes) if rank != self.rank)
            reports = (_read(folder, attempt, rank) for rank in others)
            return PEER if any(item is not None and item.exit_code != 0 for item in reports) else None

        return ask if self.nodes > 1 else (lambda: None)

    def together(self, folder: AttemptFolder, attempt: Attempt, own: Ended) -> tuple[Ended, list[int]]:
        """How the attempt ended on all nodes, and the nodes that never said so."""
        until = time.monotonic() + self.patience
        reports: dict[int, Ended] = {self.rank: own}
        while len(reports) < self.nodes and time.monotonic() < until:
            for rank in set(range(self.nodes)) - reports.keys():
                item = _read(folder, attempt, rank)
                if item is not None:
                    reports[rank] = item
            if len(reports) < self.nodes:
                time.sleep(POLL)
        # A node that was ended for another's sake says nothing of why.
        telling = [item for _, item in sorted(reports.items()) if item.by != PEER]
        worst = next((item for item in telling if item.exit_code != 0), telling[0] if telling else own)
        return worst, sorted(set(range(self.nodes)) - reports.keys())


def follow(folder: AttemptFolder, launch: Callable[[Attempt], Ended], mesh: Mesh) -> int:
    """Run what node 0 writes down, until it says that it is over; gives the exit code of the last attempt here.

    Raises StoreError where node 0 is not heard of.
    """
    done = 0
    code = 0
    heard = time.monotonic()
    while True:
        state = _state(folder.path)
        if state is not None and len(state["attempts"]) > done:
            folder.open()
            attempt = folder.attempts[done]
            ended = launch(attempt)
            mesh.report(folder, attempt, ended)
            done, code, heard = done + 1, ended.exit_code, time.monotonic()
        elif state is not None and state["over"]:
            return code
        elif time.monotonic() - heard > mesh.patience:
            raise StoreError(f"{folder.path}: node 0 wrote nothing for {mesh.patience:g} s; is it running there?")
        else:
            time.sleep(POLL)


def placed(rank: int, nodes: int) -> None:
    """Refuse a node that is none of the mesh. Raises UsageError."""
    if nodes < 1 or not 0 <= rank < nodes:
        raise UsageError(f"--node-rank {rank} of --nodes {nodes}: ranks count from 0 to {max(nodes, 1) - 1}")


def _report(folder: AttemptFolder, attempt: Attempt, rank: int) -> Path:
    return folder.of(attempt) / f"node-{rank}.json"


def _read(folder: AttemptFolder, attempt: Attempt, rank: int) -> Ended | None:
    report = _json(_report(folder, attempt, rank))
    return Ended(report["exit_code"], report["by"]) if report is not None else None


def _state(path: Path) -> Mapping[str, Any] | None:
    return _json(path / STATE)


def _json(path: Path) -> dict[str, Any] | None:
    try:
        report: dict[str, Any] = parse_json(read_small(path))
    except (OSError, ValueError):
        return None
    return report
