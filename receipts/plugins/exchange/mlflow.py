"""Runs that MLflow tracks, to receipts and from receipts, read and written without MLflow.

MLflow's file store is ``EXPERIMENT/RUN`` with ``meta.yaml`` and a file for each metric, parameter and tag
(mlflow/store/tracking/file_store.py); its server answers REST 2.0 (mlflow/protos/service.proto). A metric's line is its
time in milliseconds, its value and its step. Metrics go by step, parameters under the names of a framework or of the
receipt.

An export has one run for each current launch, with what its receipt states and nothing else. An experiment is a lane.
Axes are parameters under their paths, the steps are the history of ``step_seconds``, computed metrics stand beside it.
MLflow asks a time of every value; the receipt has none of single steps, so each carries the launch's start.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from hashlib import sha256
from http.client import HTTPException
from itertools import accumulate, islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from urllib.parse import urlencode, urlsplit

import orjson
import yaml

from receipts.axes.lane import Lane
from receipts.base.errors import Problem, Unreachable, UsageError, may_answer_later
from receipts.base.files import read_bounded
from receipts.ingest import tracker
from receipts.ingest.assembly import assemble, pretty
from receipts.ingest.draft import Options
from receipts.ingest.evidence import FileEvidence
from receipts.ingest.leaves import read_setting
from receipts.ingest.reading import Reading
from receipts.ingest.tracker import NamedMetrics
from receipts.plugins.exchange.export import ABOUT, ExportOptions, whole_folder
from receipts.receipt.leaf import Role
from receipts.receipt.leaves import find_leaf
from receipts.store.entry import METRICS, Entry

if TYPE_CHECKING:
    from receipts.receipt import Parsed
    from receipts.store import Store


class ImportedReceipt(NamedTuple):
    """The receipt of a run, or the problems that keep it from being one: ``raw`` is then None."""

    where: str
    raw: bytes | None
    problems: tuple[Problem, ...] = ()


MAX_POINTS: Final = 5_000_000  # of one run
MAX_TEXT: Final = 1 << 20  # of a parameter, a tag or a description
_PAGE: Final = 1000
_ANSWER: Final = 64 << 20
_PATIENCE: Final = 30.0  # seconds
_LOCAL: Final = ("127.0.0.1", "::1", "localhost")
TOKEN: Final = "MLFLOW_TRACKING_TOKEN"
_STATUS: Final = ("", "RUNNING", "SCHEDULED", "FINISHED", "FAILED", "KILLED")  # a file store keeps the number
Point = tuple[int, int, str, float]


class TrackedRun(NamedTuple):
    """One run: where it is, its description, and ``points`` (milliseconds since 1970, step, metric, value)."""

    where: str
    experiment: str
    info: Mapping[str, Any]
    params: Mapping[str, str]
    tags: Mapping[str, str]
    points: tuple[Point, ...]

    @property
    def status(self) -> str:
        """``RUNNING``, ``SCHEDULED``, ``FINISHED``, ``FAILED`` or ``KILLED``."""
        status = self.info.get("status")
        return _STATUS[status] if isinstance(status, int) and 0 <= status < len(_STATUS) else str(status)


def tracked_runs(place: str) -> Iterator[TrackedRun]:
    """The runs of a store, an experiment or a run, but for deleted ones. Raises UsageError, Unreachable."""
    if place.startswith(("http://", "https://")):
        try:
            yield from _server(place.rstrip("/"))
        except (KeyError, TypeError, AttributeError, ValueError):
            raise UsageError(f"{place}: this is not an answer of MLflow; name the URL of its server") from None
        return
    folder = Path(place.removeprefix("file://"))
    described = {path for level in ("", "[!.]*/", "[!.]*/[!.]*/") for path in folder.glob(f"{level}meta.yaml")}
    runs = [path for path in sorted(described) if {"run_id", "run_uuid"} & _yaml(path).keys()]
    if not runs:
        raise UsageError(
            f"{place}: no run of MLflow's file store is here; start `mlflow server --backend-store-uri sqlite:///FILE` "
            "for a database, and name its URL"
        )
    for path in runs:
        if (run := _stored(path)) is not None:
            yield run


def _yaml(path: Path) -> dict[str, Any]:
    try:
        document = yaml.safe_load(_text(path))
    except (yaml.YAMLError, RecursionError, ValueError):
        document = None
    return document if isinstance(document, dict) else {}


def _text(path: Path) -> str:
    with path.open("rb") as stream:
        return stream.read(MAX_TEXT).decode("utf-8", "replace")


def _stored(description: Path) -> TrackedRun | None:
    info, folder = _yaml(description), description.parent
    if info.get("lifecycle_stage", "active") != "active":
        return None
    about = folder.parent / "meta.yaml"
    experiment = str(_yaml(about).get("name", "")) if about.is_file() else ""
    params, tags = ({name: _text(path) for name, path in _files(folder / kind)} for kind in ("params", "tags"))
    points: list[Point] = []
    for name, path in _files(folder / "metrics"):
        with path.open(encoding="utf-8", errors="replace") as stream:
            for line in stream:
                if (point := _point(name, line.split())) is not None and len(points) < MAX_POINTS:
                    points.append(point)
    return TrackedRun(f"{folder.parent.name}/{folder.name}", experiment, info, params, tags, tuple(points))


def _files(folder: Path) -> list[tuple[str, Path]]:
    """A name may hold strokes: then it is a file in a folder."""
    return [(path.relative_to(folder).as_posix(), path) for path in sorted(folder.rglob("*")) if path.is_file()]


def _point(name: str, cells: list[str]) -> Point | None:
    try:
        return int(cells[0]), int(cells[2]) if len(cells) > 2 else 0, name, float(cells[1])
    except (ValueError, IndexError):
        return None


def _server(url: str) -> Iterator[TrackedRun]:
    most = {"max_results": _PAGE}
    listed = _pages(url, "experiments/search", most, "experiments")
    experiments = {item["experiment_id"]: str(item.get("name", "")) for item in listed}
    for number, name in experiments.items():
        for item in _pages(url, "runs/search", {"experiment_ids": [number], **most}, "runs"):
            info, data = item["info"], item.get("data", {})
            params, tags = (
                {str(row["key"]): str(row.get("value", "")) for row in data.get(kind, ())}
                for kind in ("params", "tags")
            )
            points: list[Point] = []
            for key in sorted({str(row["key"]) for row in data.get("metrics", ())}):
                query = {"run_id": info["run_id"], "metric_key": key, "max_results": 25_000}
                rows = islice(_pages(url, "metrics/get-history", query, "metrics"), MAX_POINTS - len(points))
                points += ((int(row["timestamp"]), int(row.get("step", 0)), key, float(row["value"])) for row in rows)
            host = urlsplit(url).netloc.rpartition("@")[2]
            yield TrackedRun(f"{host}/{number}/{info['run_id']}", name, info, params, tags, tuple(points))


def _pages(url: str, path: str, query: dict[str, Any], kind: str) -> Iterator[dict[str, Any]]:
    """The rows of a kind in the answers to one question; a history is asked for with GET, a search with POST."""
    get = path.startswith("metrics/")
    while True:
        place = f"{url}/api/2.0/mlflow/{path}"
        answer = _ask(f"{place}?{urlencode(query)}") if get else _ask(place, json.dumps(query).encode())
        yield from answer.get(kind, ())
        if not (token := answer.get("next_page_token", "")):
            return
        query = {**query, "page_token": token}


def _ask(url: str, body: bytes | None = None) -> dict[str, Any]:
    parts, token = urlsplit(url), os.environ.get(TOKEN)
    if token and parts.scheme == "http" and parts.hostname not in _LOCAL:
        raise UsageError(f"the token of {TOKEN} would travel in the clear; name https://{parts.netloc}")
    headers = {"Content-Type": "application/json", **({"Authorization": f"Bearer {token}"} if token else {})}
    place = f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}"
    try:
        with urllib.request.urlopen(urllib.request.Request(url, body, headers), timeout=_PATIENCE) as answer:
            document = json.loads(read_bounded(answer, _ANSWER))
    except urllib.error.HTTPError as error:
        what = f"{place}: it answers {error.code} {error.reason} to {parts.path}"
        if may_answer_later(error.code):
            raise Unreachable(f"{what}; try again later") from None
        raise UsageError(f"{what}; check the address" + f" and {TOKEN}" * (error.code in (401, 403))) from None
    except (OSError, HTTPException) as error:
        reason = getattr(error, "reason", error)  # of a URLError, which quotes it
        why = getattr(reason, "strerror", None) or reason
        raise Unreachable(f"{place}: it does not answer: {why}; check the address, or try again later") from None
    if not isinstance(document, dict):
        raise TypeError(document)
    return document


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


def import_runs(runs: Iterable[TrackedRun], lane: str | None, lanes: Sequence[Lane]) -> Iterator[ImportedReceipt]:
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
        # Of a wheel and of a flag an export has the details beside the value.
        ending = {"wheels": ".version", "flags": ".value"}.get(name.partition(".")[0], "")
        path = "" if name.endswith(_DETAILS) else name.removesuffix(ending)
        problem, value = read_setting(path, text)
        leaf = find_leaf(path)
        if problem is None and leaf is not None and leaf.role in _SETTINGS and not path.startswith(_NEVER):
            reading.state(path, value, record="params")
        elif not name.endswith(_DETAILS):
            others[name] = text
    if others and not tracker.state_settings(reading, others, "params"):
        reading.remark("note", f"parameters of no framework that is known: {', '.join(sorted(others)[:20])}")
    metrics = NamedMetrics(reading)
    # An export counts steps from 1, and keeps figures of the whole launch at 0.
    first = 1 if "receipts.id" in run.tags else min((point[1] for point in run.points), default=0)
    for _, step, name, figure in sorted(run.points, key=lambda point: point[:2]):
        if step >= first:
            metrics.add(step, name, figure)
    metrics.finish()
    return reading


def _time(milliseconds: Any) -> str | None:
    try:
        time = datetime.fromtimestamp(int(milliseconds) / 1000, UTC)
    except (TypeError, ValueError, OverflowError, OSError):
        return None
    return time.isoformat(timespec="milliseconds").replace("+00:00", "Z")


FINISHED, FAILED = 3, 4  # mlflow.entities.RunStatus
_EXPORTED: Final = 4  # mlflow.entities.SourceType
MAX_PARAMETER: Final = 6000
MAX_NAME: Final = 250
_FOREIGN: Final = re.compile(r"[^-\w. ]")


def _write_run(entry: Entry, parsed: Parsed, staged: Path, place: Path) -> None:
    """Write one launch as a run, and the experiment that it is the first of. MLflow keeps full paths, of ``place``."""
    experiment, run = str(int(sha256(entry.lane.encode()).hexdigest()[:12], 16)), entry.id[:32]
    began, ended = _milliseconds(entry.started), _milliseconds(entry.finished) if entry.finished else None
    about_lane = staged / experiment / "meta.yaml"
    if not about_lane.exists():
        home = {"artifact_location": str(place / experiment), "experiment_id": experiment, "name": entry.lane}
        times = {"creation_time": began, "last_update_time": began, "lifecycle_stage": "active"}
        _write(about_lane, yaml.safe_dump({**home, **times}))
    folder = staged / experiment / run
    about: dict[str, Any] = {
        "artifact_uri": str(place / experiment / run / "artifacts"),
        "end_time": ended,
        "entry_point_name": "",
        "experiment_id": experiment,
        "lifecycle_stage": "active",
        "run_id": run,
        "run_name": entry.label or run,
        "run_uuid": run,
        "source_name": "",
        "source_type": _EXPORTED,
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
    for path, value in parsed.stated.items():
        leaf = find_leaf(path)
        if leaf is not None and leaf.role in _SETTINGS and not isinstance(value, list | tuple):
            text = str(value).lower() if isinstance(value, bool) else " ".join(str(value).split())
            # A name is a file: what MLflow allows in none becomes an underscore.
            _write(folder / "params" / _FOREIGN.sub("_", path)[:MAX_NAME], text[:MAX_PARAMETER])
    facts = {"id": entry.id, "launch": entry.launch, "lane": entry.lane, "kind": entry.kind, "outcome": entry.outcome}
    facts |= {"provenance": parsed.receipt.run.provenance, "status": entry.status}
    tags = {**{f"receipts.{name}": text for name, text in facts.items()}, "mlflow.runName": entry.label or run}
    tags |= {"mlflow.source.git.commit": str(commit)} if (commit := parsed.stated.get("code.commit")) else {}
    for name, text in tags.items():
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


def _milliseconds(time: datetime) -> int:
    return round(time.timestamp() * 1e3)


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def export_runs(store: Store, place: Path, options: ExportOptions, *, force: bool) -> int:
    """Write the current launches that fit to a folder; returns their number.

    Raises UsageError if the place may not be written.
    """
    count = 0
    with whole_folder(place, force=force) as folder:
        for entry in store.find(options.filters and options.filters._replace(superseded=False)):
            at = entry.finished or entry.started
            if (options.since is None or at >= options.since) and (options.until is None or at < options.until):
                _write_run(entry, store.parsed(entry.id), folder, place.absolute())
                count += 1
        about = {"format": "mlflow", "exported_at": datetime.now(UTC), "launches": count, "conditions": options.words()}
        (folder / ABOUT).write_bytes(orjson.dumps(about, option=orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z) + b"\n")
    return count
