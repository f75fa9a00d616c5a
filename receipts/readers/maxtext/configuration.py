"""MaxText's configuration as receipt leaves: from ``Config param k: v`` lines, a tuning dictionary, or text summaries.

Names are those of `configs/base.yml` and of what `pyconfig.py` derives from them (``emb_dim`` follows from
``base_emb_dim``; the derived one is what was built). Values print as Python shows them, enumerations as
``OptimizerType.ADAMW``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod
from typing import Any, Final

from receipts.ingest import vocabulary
from receipts.ingest.arguments import Arguments, Leaves
from receipts.ingest.reading import Reading

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
