"""MLPerf Training's ``:::MLLOG`` records: losses keyed by samples, throughput by block, and the submission's settings.

Source: mlcommons/logging (mllog/mllog.py, mllog/constants.py) and the callbacks of NVIDIA's submissions, v3.1 to v5.1.
No step time is printed: it follows from the records' clock between two losses of one block, blocks being what lies
between evaluations.
"""

from __future__ import annotations

import json
import math
from itertools import pairwise
from typing import Any, ClassVar, Final

from receipts.ingest.evidence import steady as megatron_steady
from receipts.ingest.evidence.frameworks.megatron.block import Block
from receipts.ingest.evidence.frameworks.nemo import configuration as nemo_config
from receipts.ingest.evidence.reader import LineReader
from receipts.ingest.evidence.reading import Reading

_WHOLE: Final = {
    "global_batch_size": "batch.global_batch",
    "gradient_accumulation_steps": "batch.accumulation",
    "max_sequence_length": "batch.sequence_length",
    "lora_rank": "numerics.adapters.rank",
}
_SOFTWARE: Final = {
    "cuda_version": "platform.cuda",
    "nvidia_kernel_driver": "platform.driver",
    "nccl_version": "platform.nccl",
    "cudnn_version": "platform.cudnn",
}
_MAX_RECORDS: Final = 3_000_000
_MAX_OBJECTS: Final = 1_000
_DECODER: Final = json.JSONDecoder()


class Mlperf(LineReader):
    """One reader for the records, the system description and, where NeMo printed it, the configuration."""

    source: ClassVar[str] = "mlperf"
    anchors: ClassVar[tuple[bytes, ...]] = (b":::MLLOG", b":::SYSJSON", b"Experiment configuration *")

    def __init__(self) -> None:
        super().__init__()
        self._block = Block()
        self._batch: int | None = None
        self._length: int | None = None
        self._benchmark = ""
        self._before: tuple[int, float] | None = None
        self._starts: set[int] = set()
        self._fresh = False
        self._throughput: tuple[float, int] | None = None
        self._finite = self._diverged = False
        self._losses: list[tuple[int, float, float, int, bool]] = []

    def line(self, text: str, number: int) -> bool:
        """Take one line; True while a configuration dump goes on."""
        if ":::MLLOG" in text:
            for found in _objects(text, ":::MLLOG"):
                self._record(found, number)
            return self._block.open
        if ":::SYSJSON" in text:
            for found in _objects(text, ":::SYSJSON"):
                self._system(found, number)
            return self._block.open
        if "Experiment configuration *" in text:
            self._block.begin(text[: text.find("*")])
            return True
        return self._block.open and self._block.take(text, number)

    def finish(self) -> Reading | None:
        """The reading, or None where no record of MLPerf stands in the file."""
        reading = self.reading
        if not reading.records:
            return None
        if self._block.found:
            nemo_config.configure(reading, self._block)
        self._number_losses()
        if self._throughput and self._batch:
            rate, line = self._throughput
            text = f"throughput {rate:.9g} samples/s of the last block"
            reading.state("measurement.stated.step_seconds", self._batch / rate, text, line)
            reading.state("measurement.stated.statistic", "mean", text, line)
        if self._finite or self._diverged:
            reading.diverged = self._diverged
        megatron_steady.mark(reading, self._starts)
        return reading

    def _record(self, found: dict[str, Any], line: int) -> None:
        key, value = found.get("key"), found.get("value")
        metadata = found.get("metadata")
        # Documents abridge records and set what is of interest beside the key.
        metadata = {**found, **metadata} if isinstance(metadata, dict) else found
        at = found.get("time_ms")
        clock = float(at) / 1e3 if isinstance(at, (int, float)) and abs(at) < 1e15 else math.nan
        if not isinstance(key, str):
            return
        self.reading.records += 1
        samples = _count(metadata, "samples_count", "epoch_num")
        if key in {"train_loss", "tracked_stats"}:
            self._progress(key, value, metadata, clock, line)
        elif key in {"run_start", "block_start"}:
            self._fresh |= key == "run_start"
            self._before = (samples or 0, clock)
        elif key in {"block_stop", "eval_start"}:
            self._before = None
        elif key == "run_stop":
            self._stop(metadata, line)
        else:
            self._setting(key, value, line)

    def _progress(self, key: str, value: Any, metadata: dict[str, Any], clock: float, line: int) -> None:
        samples = _count(metadata, "samples_count")
        if key == "train_loss":
            loss = _figure(value)
            count = samples if samples is not None else _count(metadata, "step", "step_num", "epoch_num")
        else:
            stats = value if isinstance(value, dict) else {}
            rate = _figure(stats.get("throughput"))
            if rate is not None and rate > 0 and math.isfinite(rate):
                self._throughput = (rate, line)
            loss = _figure(stats.get("loss", stats.get("train_loss")))
            count = _count(metadata, "samples_count", "step", "step_num")
        if loss is None or count is None or len(self._losses) >= _MAX_RECORDS:
            return
        self._finite |= math.isfinite(loss)
        self._diverged |= not math.isfinite(loss)
        before = self._before
        each = (clock - before[1]) / (count - before[0]) if before and count > before[0] else math.nan
        self._losses.append((count, loss, each, line, self._fresh))
        self._fresh = False
        self._before = (count, clock)

    def _number_losses(self) -> None:
        """Turn samples into optimizer steps by the global batch; a count of steps stays what it is."""
        divisor = self._divisor()
        if divisor is None:
            self.reading.remark("missing", "no global_batch_size: losses are numbered by their samples", 0)
        for count, loss, each, _, fresh in self._losses:
            step = count // (divisor or 1)
            seconds = each * (divisor or 1)
            values = {"loss": loss, "step_seconds": seconds if seconds > 0 and math.isfinite(seconds) else None}
            if divisor and self._batch:
                values["global_batch"] = float(self._batch)
            self.reading.steps.put(step, values)
            if fresh:
                self._starts.add(step)
        numbers = self.reading.steps.numbers()
        gaps = {later - step for step, later in pairwise(numbers)}
        if gaps:
            self.reading.steps.interval = min(gaps)

    def _divisor(self) -> int | None:
        """How many of the counted units a step has: samples, or tokens where GPT-3's rules count those."""
        batch = self._batch
        if not batch:
            return None
        counts = [count for count, *_ in self._losses]
        tokens = batch * (self._length or 0)
        if self._benchmark.startswith("gpt3") and tokens and all(count % tokens == 0 for count in counts):
            return tokens
        return batch if any(count >= batch for count in counts) and not _steps(counts, batch) else 1

    def _stop(self, metadata: dict[str, Any], line: int) -> None:
        status = metadata.get("status")
        self.reading.complete = True
        if isinstance(status, str) and status != "success":
            self.reading.remark("note", f"run_stop says {status[:60]!r}: the target was not reached", line)

    def _setting(self, key: str, value: Any, line: int) -> None:
        reading = self.reading
        if key in _WHOLE and isinstance(value, int) and not isinstance(value, bool) and 0 < value < 1 << 60:
            reading.state(_WHOLE[key], value, f"{key} {value}", line)
            self._batch = value if key == "global_batch_size" else self._batch
            self._length = value if key == "max_sequence_length" else self._length
            if key == "lora_rank":
                reading.state("numerics.adapters.kind", "lora", f"{key} {value}", line)
        elif key == "seed" and isinstance(value, int) and 0 <= value < 1 << 63:
            reading.state("numerics.seed", value, f"seed {value}", line)
        elif key == "opt_base_learning_rate" and (rate := _figure(value)) is not None and rate >= 0:
            reading.state("numerics.learning_rate", rate, f"{key} {value}", line)
        elif key == "opt_name" and isinstance(value, str):
            reading.state("numerics.optimizer", value[:80], f"{key} {value[:80]}", line)
        elif key == "submission_benchmark" and isinstance(value, str):
            self._benchmark = value
            reading.state("model.name", value[:80], f"{key} {value[:80]}", line)

    def _system(self, found: dict[str, Any], line: int) -> None:
        reading = self.reading
        reading.records += 1
        hosts, each = (_integer(found.get(name)) for name in ("number_of_nodes", "accelerators_per_node"))
        if hosts:
            reading.state("hardware.hosts", hosts, f"number_of_nodes {hosts}", line)
        if hosts and each:
            reading.state("hardware.chips", hosts * each, f"{hosts} nodes of {each} accelerators", line)
        model = found.get("accelerator_model_name")
        if isinstance(model, str) and model.strip():
            reading.state("hardware.accelerator", model.strip()[:80], f"accelerator_model_name {model[:80]}", line)
        software = found.get("other_software_stack")
        for name, path in _SOFTWARE.items():
            version = software.get(name) if isinstance(software, dict) else None
            if isinstance(version, str) and version.strip():
                reading.state(path, version.strip()[:80], f"{name} {version[:80]}", line)


def _objects(text: str, marker: str) -> list[dict[str, Any]]:
    """Every JSON object behind a marker on a line; what is no JSON is left out."""
    found: list[dict[str, Any]] = []
    for part in text.split(marker, _MAX_OBJECTS + 1)[1 : _MAX_OBJECTS + 1]:
        brace = part.find("{", 0, 40)
        if brace < 0:
            continue
        try:
            value, _ = _DECODER.raw_decode(part, brace)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            found.append(value)
    return found


def _count(metadata: dict[str, Any], *names: str) -> int | None:
    for name in names:
        value = _integer(metadata.get(name))
        if value is not None:
            return value
    return None


def _integer(value: Any) -> int | None:
    if isinstance(value, str) and value.isdigit() and len(value) < 16:
        return int(value)
    if isinstance(value, float) and math.isfinite(value) and value == int(value):
        value = int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < 1 << 60 else None


def _figure(value: Any) -> float | None:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return float(value) if isinstance(value, float) or abs(value) < 1 << 60 else None


def _steps(counts: list[int], batch: int) -> bool:
    """Whether the counts can only be steps: most are no multiple of the batch."""
    return sum(count % batch == 0 for count in counts) * 2 < len(counts)


READERS = (Mlperf,)
