"""Which framework hosts the run, where one alone can: a plain loop of PyTorch, of JAX, or of torch_xla.

An import is no proof that a framework drives the loop, so where a trainer is imported, this says nothing: its own probe
or integration does. Where none is, what is left is the library itself.
"""

from __future__ import annotations

from receipts.emit import identity
from receipts.emit.probes import imported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from receipts.emit.probing import ProbeOutput

NAME = "frameworks"
# Modules that hold a training loop, by the framework's name.
TRAINERS = {
    "megatron.training.training": "megatron-lm",
    "megatron.bridge.training.train": "megatron-bridge",
    "nemo.lightning": "nemo",
    "torchtitan.train": "torchtitan",
    "torchtitan.trainer": "torchtitan",
    "deepspeed.runtime.engine": "deepspeed",
    "nanotron.trainer": "nanotron",
    "transformers.trainer": "hf-trainer",
    "accelerate.accelerator": "accelerate",
    "lightning.pytorch.trainer.trainer": "lightning",
    "pytorch_lightning.trainer.trainer": "lightning",
    "composer.trainer.trainer": "composer",
    "axlearn.common.trainer": "axlearn",
    "maxtext.trainers.pre_train.train": "maxtext",
    "MaxText.train": "maxtext",
    "levanter.trainer": "levanter",
    "t5x.train": "t5x",
    "keras.src.trainers.trainer": "keras",
}


def at_warm(stated: ProbeOutput) -> None:
    """State what one chip leaves open: a job that is killed later has it."""
    if (
        stated.world == 1
        and stated.get("hardware.accelerator") == "cpu"
        and (identity.jax_processes() or (0, 1))[1] == 1
    ):
        stated.put("hardware.hosts", 1)
    if stated.world == 1 and stated.get("hardware.chips") == 1:
        # The degrees multiply to the chips, so that on one chip each of them is 1.
        for degree in ("tensor", "pipeline", "context", "expert"):
            stated.put(f"parallelism.{degree}", 1)


def at_end(stated: ProbeOutput) -> None:
    """State the library that hosts the run, or note the trainers that are imported; and what one chip leaves open."""
    at_warm(stated)
    trainers = sorted({name for module, name in TRAINERS.items() if imported.module(module) is not None})
    if trainers:
        stated.note(f"trainers that are imported: {', '.join(trainers)}; who drove the loop is not told by that")
        return
    host = library()
    if host is not None and stated.world == 1:
        # Several ranks are joined by something (DDP, FSDP) that an import does not name.
        stated.put("path.witnessed.framework", host)
        stated.put("path.witnessed.frameworks", [host])


def library() -> str | None:
    """`torch`, `jax` or `torch-xla`, where what is imported leaves no other; None where there are several, or none."""
    if imported.module("torch_xla") is not None:
        # torch_xla brings JAX along for its Pallas kernels.
        return "torch-xla"
    loading = [name for name in ("torch", "jax", "tensorflow", "mxnet", "mlx", "paddle") if imported.any_of([name])]
    return loading[0] if loading in (["torch"], ["jax"]) else None
