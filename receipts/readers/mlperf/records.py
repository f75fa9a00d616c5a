"""MLPerf's records: JSON behind a marker, the settings that it states, and the description of the system.

What ``:::MLLOG`` and its sister marks hold: JSON behind a marker, read as far as it goes. Source: mlcommons/logging
(mllog/mllog.py, mllog/constants.py).

Settings that MLPerf's records state: by ``KEY`` before the run starts, by the configuration's name in ``:::DLPAL``.
Source: mlcommons/logging (mllog/constants.py, compliance rules up to v6.1), NVIDIA's launch scripts (``DGXNAME`` is
nodes, GPUs a node, batch, and the degrees).

The description of a system: ``:::SYSJSON`` in a log, ``systems/NAME.json`` of a results repository. Source:
mlcommons/training_policies (submission rules, system description). Numbers are often texts, and a field that its
author left open is an empty text.
"""

from __future__ import annotations

import json
import math
import re
from typing import Any, ClassVar, Final, NamedTuple

from receipts.ingest import literals
from receipts.ingest.arguments import DEGREES
from receipts.ingest.literals import number
from receipts.ingest.reader import JsonReader
from receipts.ingest.reading import Reading

MAX_OBJECTS: Final = 1_000
_DECODER: Final = json.JSONDecoder()


class MllogRecord(NamedTuple):
    """One record. ``at`` is its clock in seconds since 1970, NaN where it has none."""

    key: str
    value: Any
    metadata: dict[str, Any]
    at: float
    line: int

    def counted(self, *names: str) -> tuple[str, int] | None:
        """The first of these counts that the metadata holds, with its name."""
        for name in names:
            value = integer(self.metadata.get(name))
            if value is not None:
                return name, value
        return None


def record_of(document: dict[str, Any], line: int) -> MllogRecord | None:
    """The record that a JSON object is; None without a key."""
    key, metadata, at = document.get("key"), document.get("metadata"), document.get("time_ms")
    if not isinstance(key, str):
        return None
    # Documents abridge records and set what is of interest beside the key.
    merged = {**document, **metadata} if isinstance(metadata, dict) else document
    clock = number(at)
    seconds = clock / 1e3 if clock is not None and 0 <= clock < 1e15 else math.nan
    return MllogRecord(key, document.get("value"), merged, seconds, line)


def objects(text: str, marker: str) -> list[dict[str, Any]]:
    """Every JSON object behind a marker on a line; what is no JSON is left out."""
    kept: list[dict[str, Any]] = []
    for part in text.split(marker, MAX_OBJECTS + 1)[1 : MAX_OBJECTS + 1]:
        brace = part.find("{", 0, 40)
        if brace < 0:
            continue
        try:
            value, _ = _DECODER.raw_decode(part, brace)
        except (ValueError, RecursionError):
            continue
        if isinstance(value, dict):
            kept.append(value)
    return kept


def integer(value: Any) -> int | None:
    """A count, also where it is printed as text or as a float; None for what is none."""
    whole = literals.integer(value)
    return whole if whole is not None and 0 <= whole < 1 << 60 else None


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
# What MLPerf's compliance checker demands of a log and no leaf holds; notes keep it.
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


_PLATFORM: Final = {
    "cuda_version": "platform.cuda",
    "cuda": "platform.cuda",
    "nvidia_kernel_driver": "platform.driver",
    "cuda_driver_version": "platform.driver",
    "amdgpu_kernel_driver": "platform.driver",
    "nccl_version": "platform.nccl",
    "nccl": "platform.nccl",
    "cudnn_version": "platform.cudnn",
    "cudnn": "platform.cudnn",
    "libtpu": "platform.libtpu",
    "python": "platform.python",
    "python_version": "platform.python",
}
# Versions of what is no wheel and moves no step.
_PASSED_OVER: Final = frozenset({"kernel_version", "mofed_version", "openmpi_version", "dali_version", "trt_version"})
_NAME: Final = re.compile(r"[a-z][a-z0-9_.\-]{0,60}")
_NOTHING: Final = frozenset({"", "n/a", "na", "none", "unknown", "-", "tbd"})
# Loops by a word of the text; a text that names several says which of them the submitter used anywhere.
_LOOPS: Final = {
    "maxtext": "maxtext",
    "maxdiffusion": "maxdiffusion",
    "nemo": "nemo",
    "megatron(?:-lm)?": "megatron-lm",
    "primus": "primus",
    "torchtitan": "torchtitan",
    "hugectr": "hugectr",
    "dgl": "dgl",
    "mxnet": "mxnet",
    "tinygrad": "tinygrad",
}
_RELEASE: Final = re.compile(r"Release (\d\d\.\d\d)")
_TORCH: Final = re.compile(r"\bPyTorch[ =v]{1,3}([12]\.\d+[\w.+]{0,40})", re.IGNORECASE)  # 24.09 is a container
MAX_TEXT: Final = 200


def describe(reading: Reading, description: dict[str, Any], line: int = 0) -> None:
    """State what a description says of hardware and software; the first value of a leaf stands."""
    hosts, each = (integer(description.get(name)) for name in ("number_of_nodes", "accelerators_per_node"))
    if hosts:
        reading.state("hardware.hosts", hosts, f"number_of_nodes {hosts}", line)
    if hosts and each:
        reading.state("hardware.chips", hosts * each, f"{hosts} nodes of {each} accelerators", line)
    for name, path in (
        ("accelerator_model_name", "hardware.accelerator"),
        ("operating_system", "platform.os"),
    ):
        if text := _text(description.get(name)):
            reading.state(path, text, f"{name} {text}", line)
    # State the loop that a description names, where it names one, and the release of torch or NVIDIA's container.
    text = _text(description.get("framework"))
    named = {name for word, name in _LOOPS.items() if re.search(rf"\b{word}\b", text, re.IGNORECASE)}
    if len(named) == 1:
        reading.state("path.intended.framework", named.pop(), f"framework {text}", line)
    if torch := _TORCH.search(text):
        reading.state("wheels.torch", torch[1], f"framework {text}", line)
    releases = set(_RELEASE.findall(text))
    if len(releases) == 1 and reading.source != "mlperf-system":
        reading.state("wheels.nvidia-release", releases.pop(), f"framework {text}", line)
    stack = description.get("other_software_stack")
    for part in stack if isinstance(stack, list) else [stack]:
        for name, version in part.items() if isinstance(part, dict) else ():
            name, version = str(name).strip().lower(), _text(version)
            if not version or name in _PASSED_OVER:
                continue
            path = _PLATFORM.get(name, "")
            if not path and _NAME.fullmatch(name):
                path = f"wheels.{name.removesuffix('_version').replace('pytorch', 'torch')}"
            if path and path not in reading.stated:
                reading.state(path, version, f"{name} {version}", line)
        if text := _text(part):
            reading.state("features.software_stack", text, f"other_software_stack {text}", line)


def _text(value: Any) -> str:
    text = value.strip()[:MAX_TEXT] if isinstance(value, str) else ""
    return "" if text.lower() in _NOTHING or text.startswith("UNKNOWN_MLPERF") else text


class MlperfSystem(JsonReader):
    """Reads ``systems/NAME.json``, which people wrote and the submission's reviewers read."""

    source: ClassVar[str] = "mlperf-system"
    what: ClassVar[str] = "a system description"
    marks = (b'"accelerator_model_name"', b'"accelerators_per_node"')

    def take(self, reading: Reading, document: dict[str, Any]) -> None:
        """The hardware and the software that it names."""
        reading.records = 1
        describe(reading, document)
