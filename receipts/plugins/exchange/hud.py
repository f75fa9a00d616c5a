"""Records of PyTorch's HUD, schema v3: one for each metric of a launch, in the table's own types.

Source: pytorch/test-infra, clickhouse_db_schema/oss_ci_benchmark_v3/schema.sql. Keys are unsigned numbers or texts, and
every ``extra_info`` maps texts to texts. Ids of a CI job are zero: no job of theirs wrote the record.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from receipts import metrics
from receipts.store.entries import METRICS

if TYPE_CHECKING:
    from receipts.receipt import Parsed
    from receipts.store.entries import Entry


def hud_records(entry: Entry, parsed: Parsed) -> Iterator[dict[str, Any]]:
    """The records of one launch; none where no metric of it can be computed."""
    stated = parsed.stated
    about = {
        "timestamp": int((entry.finished or entry.started).timestamp()),
        "schema_version": "v3",
        "name": entry.label or entry.launch,
        "repo": str(stated.get("code.repository", "")),
        "head_branch": "",
        "head_sha": str(stated.get("code.commit", "")),
        "workflow_id": 0,
        "run_attempt": 1,
        "job_id": 0,
        "runners": [_runner(stated)],
        "benchmark": _benchmark(entry, stated),
        "model": _model(entry, stated),
        "inputs": {},
        "dependencies": {name.partition(".")[2]: _wheel(value) for name, value in _below(stated, "wheels.")},
    }
    for name in METRICS:
        value = getattr(entry, name)
        if value is not None:
            extra = {"unit": metrics.get(name).unit, "better": metrics.get(name).better}
            yield {**about, "metric": {"name": name, "benchmark_values": [float(value)], "extra_info": extra}}


def _runner(stated: Mapping[str, Any]) -> dict[str, Any]:
    chips, hosts = int(stated.get("hardware.chips", 0)), int(stated.get("hardware.hosts", 1))
    return {
        "name": str(stated.get("run.host", "")),
        "type": str(stated.get("hardware.accelerator", "")),
        "gpu_info": str(stated.get("hardware.accelerator", "")),
        "gpu_count": chips,
        "extra_info": {"hosts": str(hosts)},
    }


def _benchmark(entry: Entry, stated: Mapping[str, Any]) -> dict[str, Any]:
    paths = ("batch.global_batch", "batch.micro_batch", "batch.sequence_length", *dict(_below(stated, "parallelism.")))
    extra = {path: str(stated[path]) for path in paths if path in stated}
    extra |= {"receipt": entry.id, "launch": entry.launch, "lane": entry.lane, "status": entry.status}
    return {
        "name": entry.context or entry.lane,
        "mode": "training" if entry.kind == "training" else "inference" if entry.kind == "serving" else entry.kind,
        "dtype": str(stated.get("numerics.compute_dtype", "")),
        "extra_info": extra,
    }


def _model(entry: Entry, stated: Mapping[str, Any]) -> dict[str, Any]:
    backend = stated.get("path.witnessed.framework", stated.get("path.intended.framework", ""))
    return {"name": entry.model or "", "type": entry.family or "", "backend": str(backend), "origins": []}


def _wheel(version: Any) -> dict[str, Any]:
    return {"version": str(version), "extra_info": {}}


def _below(stated: Mapping[str, Any], prefix: str) -> list[tuple[str, Any]]:
    return [(path, value) for path, value in stated.items() if path.startswith(prefix) and not isinstance(value, list)]
