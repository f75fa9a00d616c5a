"""Runs of MLflow to receipts: metrics by step, and parameters under the names of a framework or of the receipt."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final

from receipts.base.errors import Problem
from receipts.ingest import LaneOptions, Options, assemble
from receipts.ingest.evidence import FileEvidence, Reading
from receipts.ingest.evidence.frameworks.tensorboard.metrics import NamedMetrics
from receipts.ingest.evidence.frameworks.wandb import configuration
from receipts.ingest.layout import pretty
from receipts.ingest.leaves import read_setting
from receipts.receipt.leaf import Role
from receipts.receipt.leaves import find_leaf
from receipts.workflows.published import ImportedReceipt
from receipts.workflows.published.mlflow_runs import TrackedRun

SOURCE: Final = "mlflow"
_OUTCOMES: Final = {"FINISHED": "ok", "FAILED": "crash", "KILLED": "preempted"}
# What `receipts export --format mlflow` writes, and MLflow itself.
_TAGS: Final = {
    "run.launch": "receipts.launch",
    "run.lane": "receipts.lane",
    "run.kind": "receipts.kind",
    "run.outcome": "receipts.outcome",
    "run.provenance": "receipts.provenance",
    "run.label": "mlflow.runName",
    "run.command": "mlflow.source.name",
    "code.commit": "mlflow.source.git.commit",
    "code.repository": "mlflow.source.git.repoURL",
}
_DETAILS: Final = (".digest", ".editable", ".before_runtime", ".complete")
_SETTINGS: Final = (Role.AXIS, Role.REPLICATE, Role.DERIVED)
_NEVER: Final = ("run.", "path.witnessed.")  # a parameter shows nothing of how the launch went


def import_runs(
    runs: Iterable[TrackedRun], lane: str | None, lanes: Sequence[LaneOptions]
) -> Iterator[ImportedReceipt]:
    """The receipt of every run, in their order."""
    for run in runs:
        if run.status not in _OUTCOMES:
            problem = Problem("run.outcome", f"its status is {run.status}", "import it when it has ended")
            yield ImportedReceipt(run.where, None, (problem,))
            continue
        began = _time(run.info.get("start_time"))
        if began is None:
            yield ImportedReceipt(run.where, None, (Problem("run.started", "the run states no start_time"),))
            continue
        # The digest of the run as it was read: a tracking store has no file of one run.
        content = json.dumps(run, sort_keys=True, default=str).encode()
        digest = hashlib.sha256(content).hexdigest()
        evidence = FileEvidence(Path(run.where), run.where, digest, len(content), (_reading(run, began),), ())
        ingested = assemble([evidence], Options(lane=lane, lanes=tuple(lanes)))
        # Anybody may log to a tracking store, also what a launch never measured: no program vouches for it.
        ingested.tree["run"].pop("recorded", None)
        yield ImportedReceipt(run.where, None if ingested.problems else pretty(ingested.tree), ingested.problems)


def _reading(run: TrackedRun, began: str) -> Reading:
    reading = Reading(SOURCE, records=1)
    known: dict[str, Any] = {
        "run.launch": run.info.get("run_id") or run.info.get("run_uuid"),
        "run.started": began,
        "run.finished": _time(run.info.get("end_time")),
        "run.outcome": _OUTCOMES[run.status],
        "run.label": run.info.get("run_name"),
    }
    known |= {path: value for path, tag in _TAGS.items() if (value := run.tags.get(tag, "").strip())}
    for path, value in known.items():
        if value is not None and read_setting(path, str(value))[0] is None:
            reading.state(path, str(value), record="run")
    others: dict[str, str] = {}
    for name, text in run.params.items():
        problem, value = read_setting(path := _path(name), text)
        leaf = find_leaf(path)
        if problem is None and leaf is not None and leaf.role in _SETTINGS and not path.startswith(_NEVER):
            reading.state(path, value, record="params")
        elif not name.endswith(_DETAILS):
            others[name] = text
    if others and not configuration.state(reading, others, "params"):
        reading.remark("note", f"parameters of no framework that is known: {', '.join(sorted(others)[:20])}")
    metrics = NamedMetrics(reading)
    # An export counts steps from 1, and keeps figures of the whole launch at 0.
    first = 1 if "receipts.id" in run.tags else min((point[1] for point in run.points), default=0)
    for _, step, name, figure in sorted(run.points, key=lambda point: point[:2]):
        if step >= first:
            metrics.add(step, name, figure)
    metrics.finish()
    return reading


def _path(name: str) -> str:
    """The leaf that a parameter names; of a wheel and of a flag an export has the details beside the value."""
    if name.endswith(_DETAILS):
        return ""
    ending = {"wheels": ".version", "flags": ".value"}.get(name.partition(".")[0], "")
    return name.removesuffix(ending)


def _time(milliseconds: Any) -> str | None:
    try:
        time = datetime.fromtimestamp(int(milliseconds) / 1000, UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return None
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")
