"""A launch as a log of MLPerf Training: ``:::MLLOG`` records that its readers and its compliance checker take.

Source: mlcommons/logging, mllog/mllog.py and the rules of compliance_checker. Times of the steps follow from the
start and the durations. What the checker demands and the receipt does not state is left out; the checker then names it.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from receipts.readers.mlperf.records import COUNTS, EVALUATED, KEPT, NOTE, TEXTS

if TYPE_CHECKING:
    from receipts.receipt import Parsed

_POINT, _START, _STOP = "POINT_IN_TIME", "INTERVAL_START", "INTERVAL_END"
_SETTINGS: Final = {
    "submission_division": "features.submission_division",
    "seed": "numerics.seed",
    "opt_base_learning_rate": "numerics.learning_rate",
    **COUNTS,
    **TEXTS,
    **{name: NOTE + name for name in KEPT},
}
_FEATURES: Final = ("features.opt_", "features.lora_", "features.init_checkpoint_", "features.lowest_numerical_")


def mllog_lines(parsed: Parsed) -> Iterator[str]:
    """The lines of one launch's log, each with its line break."""
    for at, event, key, value, metadata in _records(parsed.stated):
        record = {"namespace": "", "time_ms": round(at * 1e3), "event_type": event, "key": key, "value": value}
        yield f":::MLLOG {json.dumps({**record, 'metadata': metadata}, allow_nan=False)}\n"


_Record = tuple[float, str, str, Any, dict[str, Any]]


def _records(stated: Mapping[str, Any]) -> Iterator[_Record]:
    begin = _seconds(stated["run.started"])
    end = _seconds(stated["run.finished"]) if "run.finished" in stated else None
    yield begin, _START, "init_start", None, {}
    for key, path in _SETTINGS.items():
        if path in stated:
            yield begin, _POINT, key, stated[path], {}
    for path, value in stated.items():
        if path.startswith(_FEATURES):
            yield begin, _POINT, path.removeprefix("features."), value, {}
    yield begin, _STOP, "init_stop", None, {}
    yield begin, _START, "run_start", None, {}
    yield begin, _START, "block_start", None, {"samples_count": 0}
    samples, last = 0, begin
    for samples, last, value in _progress(stated, begin):
        yield last, _POINT, "tracked_stats", value, {"samples_count": samples}
    closing = max(end or last, last)
    counted = {"samples_count": samples, **{name: stated[NOTE + name] for name in EVALUATED if NOTE + name in stated}}
    yield closing, _STOP, "block_stop", None, counted
    accuracy = stated.get(f"{NOTE}eval_accuracy", stated.get("measurement.loss.validation"))
    if accuracy is not None:
        yield closing, _START, "eval_start", None, counted
        yield closing, _POINT, "eval_accuracy", accuracy, counted
        yield closing, _STOP, "eval_stop", None, counted
    status = "success" if stated["run.outcome"] == "ok" else "aborted"
    yield closing, _STOP, "run_stop", None, {"status": status}


def _progress(stated: Mapping[str, Any], begin: float) -> Iterator[tuple[int, float, dict[str, float]]]:
    """Samples, time and figures at the end of each interval; samples are steps where the batch is not stated."""
    seconds = stated.get("measurement.step_durations_seconds") or stated.get("measurement.interval_means_seconds") or ()
    lengths = stated.get("measurement.interval_steps") or [1] * len(seconds)
    numbers = stated.get("measurement.loss.steps", ())
    losses = dict(zip(numbers, stated["measurement.loss.values"], strict=True)) if numbers else {}
    step, at, batch = int(stated.get("run.start_step", 0)), begin, int(stated.get("batch.global_batch", 1))
    for mean, length in zip(seconds, lengths, strict=True):
        step, at = step + length, at + mean * length
        figures = {"train_step_time": mean}
        if step in losses:
            figures["reduced_train_loss"] = losses[step]
        yield step * batch, at, figures


def _seconds(time: Any) -> float:
    return (time if isinstance(time, datetime) else datetime.fromisoformat(str(time))).timestamp()
