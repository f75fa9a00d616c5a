"""Launches as runs of MLflow: one for each current launch, with what its receipt states and nothing else.

MLflow's file store is ``EXPERIMENT/RUN`` with metrics, parameters and tags, one file each
(mlflow/store/tracking/file_store.py). An experiment is a lane. Axes are parameters under their paths, the steps are the
history of ``step_seconds``, computed metrics stand beside it. MLflow asks a time of every value; the receipt has none
of single steps, so each carries the launch's start.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from itertools import accumulate, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import orjson
import yaml

from receipts.plugins.exchange.export import ABOUT, ExportOptions, whole_folder
from receipts.receipt.leaf import Role
from receipts.receipt.leaves import find_leaf
from receipts.store.entry import METRICS, Entry

if TYPE_CHECKING:
    from receipts.receipt import Parsed
    from receipts.store import Store


FINISHED, FAILED = 3, 4  # mlflow.entities.RunStatus
_LOCAL: Final = 4  # mlflow.entities.SourceType
MAX_PARAMETER: Final = 6000
MAX_NAME: Final = 250
_FOREIGN: Final = re.compile(r"[^-\w. ]")
_PARAMETERS: Final = (Role.AXIS, Role.REPLICATE, Role.DERIVED)


class MlflowStore:
    """Takes runs, and makes the experiments that they need."""

    def __init__(self, folder: Path, place: Path) -> None:
        self._folder = folder
        self._place = place.absolute()  # where the folder will be: MLflow keeps full paths
        self._begun: set[str] = set()

    def add(self, entry: Entry, parsed: Parsed) -> None:
        """Write one launch as a run."""
        experiment = str(int(sha256(entry.lane.encode()).hexdigest()[:12], 16))
        began, ended = _milliseconds(entry.started), _milliseconds(entry.finished) if entry.finished else None
        if experiment not in self._begun:
            self._begun.add(experiment)
            home = self._place / experiment
            about_lane = {"artifact_location": str(home), "experiment_id": experiment, "name": entry.lane}
            times = {"creation_time": began, "last_update_time": began, "lifecycle_stage": "active"}
            _write(self._folder / experiment / "meta.yaml", yaml.safe_dump({**about_lane, **times}))
        run = entry.id[:32]
        folder = self._folder / experiment / run
        about: dict[str, Any] = {
            "artifact_uri": str(self._place / experiment / run / "artifacts"),
            "end_time": ended,
            "entry_point_name": "",
            "experiment_id": experiment,
            "lifecycle_stage": "active",
            "run_id": run,
            "run_name": entry.label or run,
            "run_uuid": run,
            "source_name": "",
            "source_type": _LOCAL,
            "source_version": "",
            "start_time": began,
            "status": FINISHED if entry.outcome == "ok" else FAILED,
            "tags": [],
            "user_id": "",
        }
        _write(folder / "meta.yaml", yaml.safe_dump(about))
        for name in ("metrics", "params", "tags", "artifacts"):
            (folder / name).mkdir()
        for name, points in _metrics(entry, parsed).items():
            _write(folder / "metrics" / name, "".join(f"{began} {value!r} {step}\n" for step, value in points))
        for name, text in _parameters(parsed):
            _write(folder / "params" / name, text)
        for name, text in _tags(entry, parsed).items():
            _write(folder / "tags" / name, text)


def _metrics(entry: Entry, parsed: Parsed) -> dict[str, Sequence[tuple[int, float]]]:
    """Values by step; a mean over an interval is at its last step, under a name of its own."""
    stated = parsed.stated
    first = int(stated.get("run.start_step", 0)) + 1
    points: dict[str, Sequence[tuple[int, float]]] = {
        name: [(0, float(value))] for name in METRICS if (value := getattr(entry, name)) is not None
    }
    if durations := stated.get("measurement.step_durations_seconds"):
        points["step_seconds"] = list(enumerate(durations, first))
    elif means := stated.get("measurement.interval_means_seconds"):
        ends = accumulate(stated["measurement.interval_steps"], initial=first - 1)
        points["interval_mean_seconds"] = list(zip(islice(ends, 1, None), means, strict=True))
    if losses := stated.get("measurement.loss.values"):
        points["loss"] = list(zip(stated["measurement.loss.steps"], losses, strict=True))
    return points


def _parameters(parsed: Parsed) -> Iterator[tuple[str, str]]:
    """Axes under their paths. A name is a file: what MLflow allows in none becomes an underscore."""
    for path, value in parsed.stated.items():
        leaf = find_leaf(path)
        if leaf is not None and leaf.role in _PARAMETERS and not isinstance(value, list | tuple):
            text = str(value).lower() if isinstance(value, bool) else " ".join(str(value).split())
            yield _FOREIGN.sub("_", path)[:MAX_NAME], text[:MAX_PARAMETER]


def _tags(entry: Entry, parsed: Parsed) -> dict[str, str]:
    commit = parsed.stated.get("code.commit")
    facts = {"id": entry.id, "launch": entry.launch, "lane": entry.lane, "kind": entry.kind, "outcome": entry.outcome}
    tags = {f"receipts.{name}": text for name, text in facts.items()}
    tags |= {"receipts.provenance": parsed.receipt.run.provenance}
    tags |= {"receipts.status": entry.status, "mlflow.runName": entry.label or entry.id[:32]}
    return tags | ({"mlflow.source.git.commit": str(commit)} if commit else {})


def _milliseconds(time: datetime) -> int:
    return round(time.timestamp() * 1e3)


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def export_runs(store: Store, place: Path, options: ExportOptions, *, force: bool) -> int:
    """Write the current launches that fit to a folder; returns their number.

    Raises UsageError where the place may not be written.
    """
    count = 0
    with whole_folder(place, force=force) as folder:
        runs = MlflowStore(folder, place)
        for entry in store.find(options.filters and options.filters._replace(superseded=False)):
            at = entry.finished or entry.started
            if (options.since is None or at >= options.since) and (options.until is None or at < options.until):
                runs.add(entry, store.parsed(entry.id))
                count += 1
        about = {"format": "mlflow", "exported_at": datetime.now(UTC), "launches": count, "conditions": options.words()}
        (folder / ABOUT).write_bytes(orjson.dumps(about, option=orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z) + b"\n")
    return count
