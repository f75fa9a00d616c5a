"""What MaxText prints of its configuration and of its machine: parameters, hosts that share a file, chip and memory.

Parameters come from ``Config param k: v`` lines, a tuning dictionary, or text summaries. Names are those of
`configs/base.yml` and of what `pyconfig.py` derives from them (``emb_dim`` follows from ``base_emb_dim``; the derived
one is what was built). Values print as Python shows them, enumerations as ``OptimizerType.ADAMW``.

Several hosts may write to one file: Ray names its workers; without names, a record that repeats another is a copy.

Lines on the system name versions of JAX, the backend, and below it the platform of a TPU's. MaxText's GB are GiB: every
figure was divided by 2**30 before it was rounded. `max_utils.py`: ``Using (GB) 44.63 / 95.74 (46.615835%) on
TPU_0(process=0,(0,0,0,0))`` is bytes_in_use / bytes_limit of one device; ``Total memory size: 14.2 GB, Output size: …``
is what the compiler planned for the step, and since July 2026 says *estimated*. Forks print the plan in bytes.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod
from typing import Any, Final

from receipts.ingest import vocabulary
from receipts.ingest.arguments import Arguments, Leaves, Statements
from receipts.ingest.literals import size as size_of
from receipts.ingest.reading import MemoryRow, Place, Reading
from receipts.ingest.record import RecordRows
from receipts.ingest.steps import ABSENT, Steps
from receipts.receipt.accelerators import find_accelerator

MAX_VALUE: Final = 4096
_NAMES: Final = 1000
_ENUMERATION = re.compile(r"[A-Z][A-Za-z]*\.([A-Z][A-Z0-9_]*)")
_ITEM = re.compile(r"'(\w{1,80})':\s*('[^']*'|\"[^\"]*\"|[^,{}\[\]()]+)")

# Devices that hold other parts of one model replica; the rest of the mesh repeats it on other data.
_SPLITS_REPLICA: Final = frozenset(
    {
        "stage", "context", "context_usp_ulysses", "context_autoregressive", "sequence", "tensor",
        "tensor_transpose", "tensor_sequence", "autoregressive",
    }
)  # fmt: skip
_DEGREES: Final = {
    "tensor": ("tensor", "tensor_transpose", "tensor_sequence"),
    "context": ("context", "context_usp_ulysses"),
    "pipeline": ("stage",),
    "expert": ("expert",),
    "shard": ("fsdp", "fsdp_transpose"),
    "replicate": ("data", "diloco"),
}
_AXIS_OF_PARAMETER: Final = {"pipeline": "stage"}


class Parameters(Arguments):
    """The parameters that mean something to a receipt, by MaxText's names; the first value of each stands.

    ``every`` are all of them, whatever they mean.
    """

    __slots__ = ("every", "total")

    def __init__(self) -> None:
        super().__init__({})
        self.total = 0
        self.every: dict[str, str] = {}

    def add(self, name: str, text: str, line: int) -> None:
        """Take one parameter; a name that no leaf follows from is counted only."""
        self.total += 1
        if len(self.every) < _NAMES:
            self.every.setdefault(name, text.strip()[:MAX_VALUE])
        if (name in _KNOWN or name.endswith("_parallelism")) and name not in self.values and len(self.values) < _NAMES:
            self.values[name] = text.strip()[:MAX_VALUE], line

    def add_dictionary(self, text: str, line: int) -> None:
        """Take the plain items of a printed dictionary: ``{'per_device_batch_size': 12, 'attention': 'flash'}``."""
        for name, value in _ITEM.findall(text):
            self.add(name, value.strip().strip("'\""), line)

    def text(self, name: str) -> str | None:
        """The text of a parameter; ``OptimizerType.ADAMW`` is ``adamw``."""
        text = super().text(name)
        enumeration = _ENUMERATION.fullmatch(text or "")
        return enumeration[1].lower() if enumeration else text

    def flag(self, name: str) -> bool | None:
        """True or false; 0 and 1 are numbers."""
        return {"true": True, "false": False}.get((self.text(name) or "").lower())

    def word(self, *names: str) -> str | None:
        """The value of the first of these names that has one."""
        name = self.name(*names)
        return None if name is None else self.text(name)


def state(reading: Reading, config: Parameters, devices: int | None, shape: tuple[int, ...]) -> None:
    """State what the parameters and the mesh (``shape`` over ``mesh_axes``) say, by the receipt's paths."""
    reading.resolve(config.every)
    leaves = Leaves(reading, config)
    for path, entry in _TABLE["arguments"].items():
        leaves.read(path, entry)
    # A matrix for each activation, and one back.
    activations = config.words("mlp_activations")
    leaves.put("model.ffn_projections", len(activations) + 1 if activations else None, "mlp_activations")
    name = config.word("model_name")
    leaves.put("model.name", None if name == "default" else name, "model_name")
    axes = mesh(config, shape)
    whole = devices is not None and prod(axes.values()) == devices
    for degree, parts in _DEGREES.items():
        known = [axes[part] for part in parts if part in axes]
        if known and (whole or all(part in axes for part in parts if config.has(f"ici_{part}_parallelism"))):
            leaves.put(f"parallelism.{degree}", prod(known), "mesh_axes")
    text = ",".join(f"{axis}:{size}" for axis, size in axes.items() if size > 1) if whole else ""
    leaves.put("parallelism.mesh_axes", text or None, "mesh_axes")
    leaves.put("parallelism.sequence", axes.get("tensor_sequence", 1) > 1 or None, "mesh_axes")
    meshed = config.has("mesh_axes") or config.has("ici_fsdp_parallelism")
    leaves.put("parallelism.strategy", "spmd" if meshed else None, "mesh_axes")
    accumulation = config.count("gradient_accumulation_steps") or 1
    per_device = config.amount("per_device_batch_size")
    micro = per_device
    if per_device is not None and devices is not None and prod(axes.values()) == devices:
        micro = per_device * prod(size for axis, size in axes.items() if axis in _SPLITS_REPLICA)
    if micro is not None and micro >= 1 and micro == int(micro):
        leaves.put("batch.micro_batch", int(micro), "per_device_batch_size")
    total = config.count("global_batch_size_to_train_on")
    if total is None and per_device is not None and devices is not None:
        product = per_device * devices * accumulation
        total = int(product) if product >= 1 and product == int(product) else None
    names = "global_batch_size_to_train_on", "per_device_batch_size"
    leaves.put("batch.global_batch", total, config.name(*names) or names[1])
    _experts(leaves, config)
    _numerics(leaves, config)
    _path(leaves, config)
    features = _FEATURES if config.word("profiler") is None else [*_FEATURES, *_PROFILER]
    for name in features:
        switch = config.flag(name)
        word = config.word(name)
        # -1 is MaxText's *off*.
        if word is not None and not word.startswith("-"):
            leaves.put(f"features.{name}", word if switch is None else switch, name)
    for name in _FLAGS:
        leaves.put(f"flags.{name}", config.word(name), name)


def mesh(config: Parameters, shape: tuple[int, ...]) -> dict[str, int]:
    """Degrees by mesh axis: from the shape that was built, else from the degrees asked for where none is automatic."""
    names = config.words("mesh_axes")
    if shape and len(names) == len(shape):
        return dict(zip(names, shape, strict=True))
    degrees: dict[str, int] = {}
    for name in list(config.values):
        kind, _, axis = name.partition("_")
        axis = axis.removesuffix("_parallelism")
        if kind not in ("ici", "dcn") or not name.endswith("_parallelism") or not axis:
            continue
        axis = _AXIS_OF_PARAMETER.get(axis, axis)
        degree = config.count(name)
        degrees[axis] = 0 if degree is None else degrees.get(axis, 1) * degree
    # An automatic degree (-1) takes the devices that are left: not known from here.
    return {axis: degree for axis, degree in degrees.items() if degree > 0}


def _experts(leaves: Leaves, config: Parameters) -> None:
    experts = config.count("num_experts")
    if experts is None or experts < 2:
        return
    widths = "moe_mlp_dim", "base_moe_mlp_dim", "mlp_dim", "base_mlp_dim"
    width = config.count(*widths)
    leaves.put("model.experts", experts, "num_experts")
    leaves.put("model.top_k", config.count("num_experts_per_tok"), "num_experts_per_tok")
    leaves.put("model.expert_ffn", width, config.name(*widths) or widths[0])
    shared = config.count("shared_experts")
    if shared is not None and width is not None:
        leaves.put("model.shared_expert_ffn", shared * width, "shared_experts")
    leaves.put("model.capacity_factor", config.amount("capacity_factor"), "capacity_factor")
    balance = "load_balance_loss_weight"
    leaves.put("numerics.router_auxiliary_loss", config.amount(balance), balance)


def _numerics(leaves: Leaves, config: Parameters) -> None:
    quantization = (config.word("quantization") or "").lower()
    if quantization:
        # The matmuls take the quantised type; what comes out of the compiler is for its program to show.
        kind = "fp8" if "fp8" in quantization else "int8" if "int8" in quantization else quantization
        leaves.put("numerics.compute_dtype", kind, "quantization")
        if kind == "fp8":
            leaves.put("numerics.fp8_recipe", quantization, "quantization")
    else:
        leaves.put("numerics.compute_dtype", config.word("dtype"), "dtype")
    schedule = config.word("lr_schedule_type")
    warmup = config.amount("warmup_steps_fraction")
    if schedule and warmup is not None:
        text = f"{schedule.lower()}, warm-up over {warmup:g} of the steps"
        leaves.put("numerics.schedule", text, "lr_schedule_type")


def _path(leaves: Leaves, config: Parameters) -> None:
    gpu = (config.word("hardware") or "").lower().startswith("gpu")
    attention = (config.word("attention") or "").lower()
    kinds = {
        "dot_product": "xla_unfused",
        "flash": "pallas_flash" if gpu else "pallas_splash",
        "cudnn_flash_te": "te_fused",
        "cudnn_flash_jax": "cudnn_fmha",
    }
    # `autoselected` says nothing of what is selected.
    leaves.put("path.intended.attention", kinds.get(attention), "attention")
    kind = (config.word("dataset_type") or "").lower()
    names = {
        "synthetic": ("dataset_type",),
        "hf": ("hf_path",),
        "grain": ("grain_train_files", "dataset_name"),
        "tfds": ("dataset_name",),
        "c4_mlperf": ("dataset_name",),
    }.get(kind, ())
    if names:
        leaves.put(
            "data.dataset", "synthetic" if kind == "synthetic" else config.word(*names), config.name(*names) or names[0]
        )


_TABLE: Final = vocabulary.table("maxtext")
_FEATURES, _PROFILER, _FLAGS = (_TABLE["lists"][name] for name in ("features", "profiler", "flags"))
_KNOWN: Final = frozenset(
    {name for entry in _TABLE["arguments"].values() for name in entry["names"]}.union(*_TABLE["lists"].values())
)


def profiled(config: Parameters, first: int) -> range:
    """Steps that the configuration profiles, to the one that the trace's writing falls into; ``first`` is the log's."""
    profiler = config.word("profiler") or ("yes" if config.flag("enable_profiler") else None)
    skip, count = config.count("skip_first_n_steps_for_profiler"), config.count("profiler_steps")
    if profiler is None or skip is None or count is None or count > 10_000:
        return range(0)
    return range(first + skip, first + skip + count + 1)


def devices_by_weights(config: Parameters, weights: float | None) -> int | None:
    """Devices by the weights of a step: with synthetic data every position of every sequence is one."""
    each, length = config.amount("per_device_batch_size"), config.count("max_target_length")
    if (config.word("dataset_type") or "") != "synthetic" or not each or length is None or not weights:
        return None
    devices = weights / (each * length * (config.count("gradient_accumulation_steps") or 1))
    return int(devices) if devices >= 1 and devices == int(devices) and devices < 1e7 else None


def state_tracked(reading: Reading, settings: Mapping[str, Any]) -> bool:
    """State what an experiment tracker kept of a run's parameters; False where they are not MaxText's."""
    if "base_emb_dim" not in settings:
        return False
    parameters = Parameters()
    for name, value in settings.items():
        parameters.add(name, str(value), 0)
    state(reading, parameters, parameters.count("num_target_devices"), ())
    return True


CONFIGURATIONS = (state_tracked,)


_RAY: Final = re.compile(r"\(\S{1,80} pid=(\d{1,10})(?:, ip=([\d.:a-f]{1,45}))?\)")
_RECENT: Final = 8
_WORKERS: Final = 1 << 16


class Hosts:
    """The ranks of records, in the order in which their hosts first wrote."""

    def __init__(self) -> None:
        self._copies: dict[int, int] = {}
        self._workers: dict[tuple[str, str], int] = {}

    def named(self, before: str) -> int | None:
        """The rank of the worker that is before a record, from 0; -1 where none does, None beyond a bound."""
        workers = _RAY.findall(before) if "pid=" in before else []
        if not workers:
            return -1
        if workers[-1] not in self._workers and len(self._workers) < _WORKERS:
            self._workers[workers[-1]] = len(self._workers)
        return self._workers.get(workers[-1])

    def copy(self, row: RecordRows, steps: Steps, last: int) -> int | None:
        """The rank of a record that repeats step and loss of one of the last few; None for the first one."""
        step, loss = row.steps[0], row.figures.get("loss", [ABSENT])[0]
        recent = last - _RECENT < step <= last
        if not recent or loss == ABSENT or steps.get(step, "loss") != loss:
            return None
        copies = self._copies.get(step, 0)
        if copies == 0:
            # Its first record was put without a rank: give it one, so that both times count.
            steps.put(step, {"step_seconds": steps.get(step, "step_seconds")}, 0)
        self._copies[step] = copies + 1
        if len(self._copies) > _RECENT:
            del self._copies[next(iter(self._copies))]
        return copies + 1


_STATEMENTS: Final = Statements("maxtext")
_BACKEND = re.compile(r"System Information: Jax Backend: (.{1,200})")
_CUDA = re.compile(r"cuda (\d{4,6})\b")


def state_system(reading: Reading, text: str, number: int) -> bool | None:
    """State what a line says of the system; whether a platform is named below it, None where it says nothing known."""
    if _STATEMENTS.take(reading, text, number):
        return False
    match = _BACKEND.search(text)
    if match is None:
        return None
    backend = match[1].strip()
    if cuda := _CUDA.search(backend):
        version = int(cuda[1])
        reading.state("platform.cuda", f"{version // 1000}.{version % 1000 // 10}", backend, number)
        reading.see("runtime", "cuda", "backend", number)
    elif backend == "cpu":
        reading.see("runtime", "cpu", "backend", number)
    else:
        return True
    return False


def state_platform(reading: Reading, text: str, number: int) -> bool:
    """State the TPU that a line below the backend names; whether it names one."""
    chip = find_accelerator(text.strip()[:80]) if "TPU" in text else None
    if chip is None:
        return False
    reading.state("hardware.accelerator", chip.key, text.strip(), number)
    reading.see("runtime", "pjrt-tpu", "backend", number)
    return True


def peak_tflops(reading: Reading) -> float | None:
    """The highest rate of the chip's matrix units, TFLOP/s a device, where the file names the chip."""
    stated = reading.stated.get("hardware.accelerator")
    chip = find_accelerator(stated.value) if stated else None
    if chip is None or not chip.dense_peak_flops_per_second:
        return None
    return max(chip.dense_peak_flops_per_second.values()) / chip.devices_per_chip / 1e12


_USING = re.compile(r"Using \(GB\)\s+([\d.]{1,20})\s*/\s*([\d.]{1,20})\s*\([^)]{1,24}%\)\s+on\s+(\S.{0,200})")
_ORDINAL = re.compile(r"(?:[A-Za-z]+Device\()?(?:[A-Za-z]+[_:]|\bid=)(\d{1,6})")
_CELL = re.compile(
    r"\b(total|output|temp|argument|alias|host temp)(?: estimated)?(?: memory)? size:\s*(\d[\d.]{0,25})(?:\s*(GB|GiB))?"
)
_LABEL = re.compile(r"Memstats:\s*(.{1,200}?):?\s*$")
# A label is at the beginning of its line, behind a prefix at most.
_LABELLED: Final = 400
_LEAVES: Final = {"output": "output_bytes", "temp": "temp_bytes", "argument": "argument_bytes"}


def read_memory_plan(reading: Reading, text: str) -> bool:
    """Read the compiler's plan of a step; False where the line is none. The largest plan of a file stands."""
    cells = {name.lower(): (value, unit) for name, value, unit in _CELL.findall(text.lower())}
    in_bytes = "in bytes" in text
    sizes = {
        name: size
        for name, (value, unit) in cells.items()
        if (size := size_of(value if in_bytes and not unit else f"{value} GiB")) is not None
    }
    if not {"output", "temp"} <= sizes.keys():
        return False
    earlier = reading.compile.temp_bytes
    if earlier is not None and earlier > sizes["temp"]:
        return True
    for name, leaf in _LEAVES.items():
        # 0.0 GB is a rounded figure: less than 0.05 GiB, and not nothing.
        if sizes.get(name):
            setattr(reading.compile, leaf, sizes[name])
    for name in ("total", "host temp"):
        if sizes.get(name):
            reading.counters[f"{name.replace(' ', '_')}_bytes"] = sizes[name]
    return True


class MemoryLines:
    """What MaxText prints of memory; a head names the phase that the rows below it are of."""

    def __init__(self) -> None:
        self._phase: str | None = None

    def take(self, reading: Reading, text: str, number: int) -> bool:
        """Take one line; whether it has a figure, or says that there is none."""
        if "Memstats unavailable" in text:
            # Behind the words is the error; prose that quotes them goes on otherwise.
            if (why := text.partition("Memstats unavailable")[2]).startswith((",", ":")) or not why.strip():
                reading.memory_unavailable = why.lstrip(",: ")[:200] or "unavailable"
            return True
        if "Memstats:" in text:
            # The receipt's phase that a label such as ``After params initialized`` names.
            label = _LABEL.search(text[:_LABELLED])
            words = label[1].lower() if label is not None else ""
            begun = "post_init" if "init" in words or "load" in words else None
            self._phase = "post_compile" if "compil" in words else begun
            return False
        if "Using (GB)" not in text:
            return read_memory_plan(reading, text)
        match = _USING.search(text)
        used, limit = (size_of(f"{match[at]} GiB") if match else None for at in (1, 2))
        if match is None or used is None or limit is None:
            return False  # of the host's memory
        ordinal = _ORDINAL.search(match[3])
        chip = int(ordinal[1]) if ordinal else None
        reading.memory.append(MemoryRow(Place(number), chip, self._phase, bytes_used=used, bytes_limit=limit))
        return True
