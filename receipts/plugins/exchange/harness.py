"""What benchmark harnesses print as JSON, to receipts of kind ``microbench``: one for each benchmark of each file.

A file is a launch. A parameter, an axis or an argument of a benchmark is a feature of its receipt, and so an axis of a
comparison. Times of single calls are steps, means over iterations are means; where a harness kept neither, its own
statistic is stated. Sources: pytest-benchmark 5 (`stats.py`, `session.py`; times are of one iteration), Google
Benchmark 1.9 (`json_reporter.cc`, docs/user_guide.md), NVBench (`json_printer.cu`, file version 1; samples of
``--jsonbin`` are float32 in a folder beside the file).
"""

from __future__ import annotations

import hashlib
import json
import re
from array import array
from collections.abc import Callable, Iterable, Iterator, Mapping
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from pathlib import Path
from typing import Any, Final, NamedTuple

from receipts.base.errors import InputError, Problem, UsageError
from receipts.emit.identity import uuid_of
from receipts.receipt import Document, parse
from receipts.receipt.accelerators import find_accelerator
from receipts.receipt.document import VERSION
from receipts.receipt.measurement import MAX_STEPS

MAX_FILE: Final = 256 << 20
_SECONDS: Final = {"ns": 1e-9, "us": 1e-6, "ms": 1e-3, "s": 1.0}
# Counters of Google Benchmark are any other numbers of a row.
_MODIFIERS: Final = re.compile(
    r"(?:real_time|process_time|manual_time|(?:iterations|repeats|min_time|min_warmup_time):.*)"
)
_STATISTICS: Final = ("median", "mean")


class ImportedBenchmark(NamedTuple):
    """One benchmark of one file: its receipt's bytes, or the problems that keep it from being one."""

    name: str
    raw: bytes | None
    problems: tuple[Problem, ...] = ()


class Measured(NamedTuple):
    """A benchmark as its harness has it: seconds of calls, or means with their iterations, or one statistic."""

    name: str
    axes: Mapping[str, Any]
    calls: list[float] | None = None
    means: tuple[list[float], list[int]] | None = None
    statistic: tuple[str, float] | None = None
    region: str = "call"
    timer: str | None = None
    device: str | None = None
    failed: str | None = None

    @property
    def seconds(self) -> float:
        """How long it is known to have run."""
        calls, (means, counts) = self.calls or (), self.means or ((), ())
        return sum(calls) + sum(mean * count for mean, count in zip(means, counts, strict=True))


def import_benchmarks(file: Path, lane: str) -> list[ImportedBenchmark]:
    """The receipt of every benchmark of a file. Raises UsageError for a file that no harness that is known wrote."""
    try:
        if file.stat().st_size > MAX_FILE:
            raise UsageError(f"{file}: it is larger than {MAX_FILE >> 20} MiB; write fewer benchmarks into one file")
        raw = file.read_bytes()
        document = json.loads(raw)
    except OSError as error:
        raise UsageError(f"{file}: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise UsageError(f"{file}: this is not JSON: {error}; was it written whole?") from None
    harness, read = _harness(file, document if isinstance(document, dict) else {})
    digest = hashlib.sha256(raw).hexdigest()
    imported: list[ImportedBenchmark] = []
    try:
        every = list(read(document, file))
        # One date stands for all: Google Benchmark writes it when it begins, the others when they are done. No two
        # benchmarks of a process began at one instant.
        began = list(accumulate((item.seconds + 1e-6 for item in every), initial=0.0))
        ended = 0.0 if harness == "google-benchmark" else began[-1]
        for measured, before in zip(every, began, strict=False):
            name = f"{file.name} {measured.name}"
            tree = _tree(harness, document, measured, lane, file, digest, before - ended)
            try:
                body = json.dumps(tree, indent=1, ensure_ascii=False).encode()
                parse(Document(body, name))
                imported.append(ImportedBenchmark(name, body))
            except InputError as error:
                imported.append(ImportedBenchmark(name, None, tuple(error.problems)))
        return imported
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
        why = f"this is not JSON as {harness} writes it ({type(error).__name__}: {str(error)[:100]})"
        raise UsageError(f"{file}: {why}; run the harness again") from None


def _harness(file: Path, document: Mapping[str, Any]) -> tuple[str, Callable[..., Iterator[Measured]]]:
    rows = document.get("benchmarks")
    if isinstance(rows, list) and all(isinstance(row, dict) for row in rows):
        if isinstance(document.get("machine_info"), dict):
            return "pytest-benchmark", _pytest
        if isinstance(document.get("context"), dict):
            return "google-benchmark", _google
        if isinstance(document.get("meta"), dict) and "nvbench" in str(document["meta"].get("version")):
            return "nvbench", _nvbench
    raise UsageError(
        f"{file}: this is no JSON of pytest-benchmark (--benchmark-json), Google Benchmark (--benchmark_format=json) "
        "or NVBench (--json)"
    )


def _pytest(document: Mapping[str, Any], _file: Path) -> Iterator[Measured]:
    for row in document["benchmarks"]:
        stats, options = row.get("stats") or {}, row.get("options") or {}
        calls = [float(value) for value in stats.get("data") or ()]
        statistic = next(((name, float(stats[name])) for name in _STATISTICS if name in stats), None)
        axes = {**(row.get("params") or {}), **(row.get("extra_info") or {})}
        name = str(row.get("fullname") or row.get("name"))
        # Values of parameters are axes, so that one benchmark has one name.
        base = name.partition("[")[0] if row.get("params") else name
        yield Measured(base, axes, calls or None, None, statistic, timer=options.get("timer"))


def _google(document: Mapping[str, Any], _file: Path) -> Iterator[Measured]:
    runs: dict[str, list[Mapping[str, Any]]] = {}
    for row in document["benchmarks"]:
        if "big_o" not in row and "rms" not in row:  # a fit of the complexity, which has no time
            runs.setdefault(str(row.get("run_name") or row.get("name")), []).append(row)
    for name, rows in runs.items():
        # `BM_Copy/8/bytes:1024/threads:2/real_time` is BM_Copy with `arg0` 8, `bytes` 1024 and `threads` 2.
        base, *words = name.split("/")
        axes: dict[str, Any] = {}
        for word in words:
            if not _MODIFIERS.fullmatch(word):
                key, colon, value = word.rpartition(":")
                axes[key if colon else f"arg{sum(known.startswith('arg') for known in axes)}"] = _plain(value)
        axes |= {"label": rows[0]["label"]} if rows[0].get("label") else {}
        ended = [row for row in rows if row.get("error_occurred") or row.get("skipped")]
        failed = next((str(row.get("error_message") or row.get("skip_message") or "") for row in ended), None)
        single = [row for row in rows if row.get("run_type", "iteration") == "iteration" and row not in ended]
        seconds = [_wall(row) for row in single]
        counts = [int(row.get("iterations", 1)) for row in single]
        aggregates = {
            row.get("aggregate_name"): _wall(row)
            for row in rows
            if row.get("run_type") == "aggregate" and row.get("aggregate_unit", "time") == "time"
        }
        statistic = next(((key, aggregates[key]) for key in _STATISTICS if key in aggregates), None)
        means = (seconds, counts) if seconds else None
        yield Measured(base, axes, None, means, statistic, timer="real_time", failed=failed)


def _wall(row: Mapping[str, Any]) -> float:
    """Seconds of wall time: what a user waits, whatever the harness counts its iterations by."""
    return float(row["real_time"]) * _SECONDS[row.get("time_unit", "ns")]


def _nvbench(document: Mapping[str, Any], file: Path) -> Iterator[Measured]:
    devices = {device.get("id"): device.get("name") for device in document.get("devices", ())}
    for row in document["benchmarks"]:
        for state in row.get("states", ()):
            axes = {item["name"]: _plain(item["value"]) for item in state.get("axis_values", ())}
            summaries = {item.get("tag"): item.get("data", ()) for item in state.get("summaries", ())}
            values = {tag: {one["name"]: one["value"] for one in data} for tag, data in summaries.items()}
            calls = _samples(file, values.get("nv/json/bin:nv/cold/sample_times", {}))
            mean = values.get("nv/cold/time/gpu/mean", {}).get("value")
            yield Measured(
                str(row.get("name")),
                axes,
                calls,
                None,
                ("mean", float(mean)) if mean is not None else None,
                region="kernel",
                timer="cuda_event",
                device=devices.get(state.get("device")),
                failed=str(state.get("skip_reason")) if state.get("is_skipped") else None,
            )


def _samples(file: Path, listed: Mapping[str, Any]) -> list[float] | None:
    """Seconds of each sample, from the file beside; None if it is not there, or has another length."""
    name = str(listed.get("filename", ""))
    path = file.parent / name
    inside = name and path.resolve().is_relative_to(file.parent.resolve())
    if not inside or not path.is_file() or path.stat().st_size > MAX_FILE:
        return None
    raw = path.read_bytes()
    if len(raw) != 4 * int(listed.get("size", -1)):
        return None
    return array("f", raw).tolist()


def _plain(value: Any) -> Any:
    """A number where its text is one."""
    for kind in (int, float):
        try:
            return kind(value)
        except (TypeError, ValueError):
            continue
    return str(value)


def _tree(
    harness: str, document: Mapping[str, Any], measured: Measured, lane: str, file: Path, digest: str, after: float
) -> dict[str, Any]:
    """The receipt; ``after`` is how many seconds after the date of the file the benchmark began."""
    context = document.get("context") or document.get("machine_info") or {}
    program = context.get("executable") or (document.get("meta") or {}).get("argv", [""])[0] or ""
    began = document.get("datetime") or context.get("date")
    commit = document.get("commit_info") or {}
    axes = json.dumps(dict(measured.axes), sort_keys=True, default=str)
    run = {
        "launch": uuid_of(digest, measured.name, axes),
        "lane": lane,
        "kind": "microbench",
        "outcome": "ok" if measured.failed is None else "crash",
        "provenance": "measured",
        "started": (_moment(began, file) + timedelta(seconds=after)).isoformat(),
        "started_stated": None if began else "the file's own time",
        "label": measured.name,
        "context": f"{harness} {Path(str(program)).name}".strip(),
        "host": context.get("host_name") or context.get("node"),
    }
    numbers: dict[str, Any] = {"timer": measured.timer, "region": measured.region}
    if measured.calls:
        numbers["step_durations_seconds"] = measured.calls[:MAX_STEPS]
    elif measured.means:
        numbers["interval_means_seconds"], numbers["interval_steps"] = measured.means
    elif measured.statistic:
        name, seconds = measured.statistic
        numbers["stated"] = {"statistic": name, "step_seconds": seconds}
    machine = find_accelerator(measured.device) if measured.device else None
    python, wheel = context.get("python_version"), document.get("version")
    tree: dict[str, Any] = {
        "schema_version": VERSION,
        "run": run,
        "hardware": {
            "accelerator": machine.key if machine else measured.device,
            "chips": 1 if measured.device else None,
        },
        "platform": {"python": python},
        "wheels": {harness: {"version": str(wheel)}} if isinstance(wheel, str) else None,
        "code": {"commit": commit.get("id"), "dirty": commit.get("dirty")},
        "features": {
            str(key): value
            if isinstance(value, bool | int | float | str)
            else json.dumps(value, sort_keys=True, default=str)
            for key, value in measured.axes.items()
            if value is not None
        },
        "failure": {"message": measured.failed} if measured.failed is not None else None,
        "measurement": numbers,
        "evidence": [{"kind": harness, "uri": str(file), "sha256": digest}],
    }
    kept = {
        key: {k: v for k, v in section.items() if v is not None} if isinstance(section, dict) else section
        for key, section in tree.items()
    }
    return {key: section for key, section in kept.items() if section}


def _moment(text: Any, file: Path) -> datetime:
    """The time that the harness wrote, as UTC where it names no zone; else that of the file."""
    try:
        moment = datetime.fromisoformat(str(text))
    except ValueError:
        moment = datetime.fromtimestamp(file.stat().st_mtime, UTC)
    return moment if moment.tzinfo else moment.replace(tzinfo=UTC)


def files_of(places: Iterable[Path]) -> list[Path]:
    """Files, and of folders the JSON files in them. Raises UsageError for a folder without one."""
    files: list[Path] = []
    for place in places:
        inside = sorted(place.glob("**/*.json")) if place.is_dir() else [place]
        if not inside:
            raise UsageError(f"{place}: no JSON file is in this folder")
        files += inside
    return files
