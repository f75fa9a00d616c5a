"""Settings that MLPerf's records state: by ``KEY`` before the run starts, by the configuration's name in ``:::DLPAL``.

Source: mlcommons/logging (mllog/constants.py, compliance rules up to v6.1), NVIDIA's launch scripts (``DGXNAME`` is
nodes, GPUs a node, batch, and the degrees).
"""

from __future__ import annotations

import re
from typing import Any, Final

from receipts.ingest.arguments import DEGREES
from receipts.ingest.evidence.frameworks.mlperf.records import integer
from receipts.ingest.literals import number
from receipts.ingest.reading import Reading

COUNTS: Final = {
    "global_batch_size": "batch.global_batch",
    "micro_batch_size": "batch.micro_batch",
    "gradient_accumulation_steps": "batch.accumulation",
    "max_sequence_length": "batch.sequence_length",
    "num_layers": "model.depth",
    "num_heads": "model.heads",
    "hidden_size": "model.hidden",
    "ffn_hidden_size": "model.ffn",
    "tensor_parallelism": "parallelism.tensor",
    "pipeline_parallelism": "parallelism.pipeline",
    "context_parallelism": "parallelism.context",
    "expert_parallelism": "parallelism.expert",
    "lora_rank": "numerics.adapters.rank",
}
TEXTS: Final = {
    "opt_name": "numerics.optimizer",
    "submission_benchmark": "model.name",
    "opt_learning_rate_decay_schedule": "numerics.schedule",
}
# What MLPerf's checker demands of a log and no leaf holds. Notes keep it for an export (`workflows/export/mllog`).
KEPT: Final = ("submission_org", "submission_platform", "cache_clear", "train_samples", "eval_samples")
EVALUATED: Final = ("samples_count", "epoch_num")  # counts of the last evaluation
NOTE: Final = "notes.mllog."
# What these name is an axis of its own that the receipt has no leaf for.
_FEATURES: Final = re.compile(r"(?:opt|lora|init_checkpoint|lowest_numerical_precision)_\w{1,60}")
_DEGREE: Final = re.compile(r"(tp|pp|cp|ep|vp|etp)(\d{1,4})(?![0-9])")
_MACHINE: Final = re.compile(r"(?:^|_)0*(\d{1,5})x0*(\d{1,3})x\d")


def state_setting(reading: Reading, key: str, value: Any, line: int) -> None:
    """State the leaf of one record; nothing for what no leaf or feature holds."""
    name, count = key.lower(), integer(value)
    if name in COUNTS and count:
        reading.state(COUNTS[name], count, f"{key} {count}", line)
        if name == "lora_rank":
            reading.state("numerics.adapters.kind", "lora", f"{key} {count}", line)
    elif name == "seed" and isinstance(value, int) and 0 <= value < 1 << 63:
        reading.state("numerics.seed", value, f"seed {value}", line)
    elif name == "opt_base_learning_rate":
        if (rate := number(value)) is not None and rate >= 0:
            reading.state("numerics.learning_rate", rate, f"{key} {value}", line)
    elif name in TEXTS and isinstance(value, str) and value.strip():
        reading.state(TEXTS[name], value.strip()[:80], f"{key} {value[:80]}", line)
    elif name == "submission_division" and value in ("closed", "open"):
        reading.state("features.submission_division", value, f"{key} {value}", line)
    elif name in KEPT:
        # A cache was cleared where the record is there, whatever it says.
        note = value.strip()[:200] if isinstance(value, str) else value if isinstance(value, bool) else count
        note = True if value is None else note
        if note not in ("", None):
            reading.state(NOTE + name, note, f"{key} {value}"[:200], line)
    elif name == "config_filename" and isinstance(value, str):
        state_name(reading, value, line)
    elif _FEATURES.fullmatch(name) and isinstance(value, str | int | float) and value not in ("", None):
        kept = value if isinstance(value, str | bool) else float(value)
        reading.state(f"features.{name}", kept, f"{key} {value}", line)


def state_launch(reading: Reading, text: str, line: int) -> None:
    """State what ``:::DLPAL IMAGE JOB NODES HOSTS CLUSTER NAME`` says; the cluster may be several words."""
    words = text.partition(":::DLPAL")[2].replace("'\\''", "'").strip(" '\"").split()
    if len(words) < 6:
        return
    reading.state("features.image", words[0][:200], f"image {words[0]}", line)
    if (hosts := integer(words[2])) and "hardware.hosts" not in reading.stated:
        reading.state("hardware.hosts", hosts, f"{hosts} nodes", line)
    if "run.host" not in reading.stated:
        reading.state("run.host", words[3][:200], words[3], line)
    state_name(reading, words[-1].strip("'\""), line)


def state_name(reading: Reading, name: str, line: int) -> None:
    """State the configuration's name, and what it says of a leaf that nothing before it states."""
    if not name or "notes.configuration" in reading.stated:
        return
    reading.state("notes.configuration", name[:200], name, line)
    base = name.rpartition("/")[2]
    for letters, degree in _DEGREE.findall(base):
        if int(degree):
            _fill(reading, DEGREES[letters], int(degree), name, line)
    machine = _MACHINE.search(base)
    if machine and int(machine[1]) and int(machine[2]):
        _fill(reading, "hardware.hosts", int(machine[1]), name, line)
        _fill(reading, "hardware.chips", int(machine[1]) * int(machine[2]), name, line)


def _fill(reading: Reading, path: str, value: int, name: str, line: int) -> None:
    """State a leaf by a name, which gives way to what a program printed, and is noted where they differ."""
    stated = reading.stated.get(path)
    if stated is None:
        reading.state(path, value, name, line)
    elif stated.value != value:
        reading.remark("note", f"{path} is {stated.value}, and the configuration is named {name[:80]}", line)


def keep_last(reading: Reading, path: str, value: Any, quote: str, line: int) -> None:
    """State a value in the place of an earlier one: the last evaluation is the launch's."""
    reading.stated.pop(path, None)
    reading.state(path, value, quote, line)
