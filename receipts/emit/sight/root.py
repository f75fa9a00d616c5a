"""The model that an optimizer trains: found among what lives, freed of its wrappers, and read for what it is.

One model has one digest, whatever wraps it: DDP, FSDP2, torch.compile, checkpointing, Lightning, an Accelerator, or
adapters. Names and shapes (global ones, of sharded parameters) go into it, and neither types nor wrappers.
"""

from __future__ import annotations

import gc
import sys

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from types import FrameType
    from typing import Any

# What wrappers put into names. DDP's `module.` counts where the wrapper is known by its class.
PREFIXES = ("_orig_mod.", "_fsdp_wrapped_module.", "_checkpoint_wrapped_module.", "base_layer.")
ADAPTERS = ("lora_", "vera_", "ia3_", "hada_", "lokr_", "oft_", "prompt_embeddings")
MAX_FRAMES = 60


def living(*kinds: type) -> list[list[Any]]:
    """What lives of each kind; what `gc.freeze` has hidden is looked for where the callers hold it."""
    # By type and not by isinstance: a proxy's __class__ may be a call into the job.
    items = [item for item in gc.get_objects() if issubclass(type(item), kinds)]
    if not items or gc.get_freeze_count():
        items += [item for item in _held(sys._getframe(1)) if issubclass(type(item), kinds)]
    every = once(items)
    return [[item for item in every if issubclass(type(item), kind)] for kind in kinds]


def _held(frame: FrameType | None) -> Iterator[Any]:
    for _ in range(MAX_FRAMES):
        if frame is None:
            return
        for value in (
            *frame.f_locals.values(),
            *(frame.f_globals.values() if frame.f_code.co_name == "<module>" else ()),
        ):
            yield value
            if not isinstance(value, type) and type(getattr(value, "__dict__", None)) is dict:
                yield from vars(value).values()
        frame = frame.f_back


def once(items: Iterable[Any]) -> list[Any]:
    """Each of these objects, once."""
    return list({id(item): item for item in items}.values())


def apart(stepping: Iterable[Any], others: Iterable[Any]) -> list[Any]:
    """Those that step, and of the others each that updates something else: wrappers of one hand on to it."""
    known = list(stepping)
    covered = {item for optimizer in known for item in parameters_of(optimizer)}
    for optimizer in others:
        if (own := parameters_of(optimizer)) - covered:
            covered |= own
            known.append(optimizer)
    return once(known)


# Modules that hold a training loop, by the name of their framework, the outermost first.
DRIVERS = (
    ("transformers.trainer", "hf-trainer"),
    ("lightning.pytorch.", "lightning"),
    ("pytorch_lightning.", "lightning"),
    ("composer.trainer", "composer"),
    ("torchtitan.", "torchtitan"),
    ("nemo.", "nemo"),
    ("megatron.", "megatron-lm"),
    ("deepspeed.", "deepspeed"),
    ("accelerate.", "accelerate"),
)


def driver(frame: FrameType | None) -> str:
    """Which framework drives the loop: the one whose trainer is among the callers of the optimizer's step."""
    callers = set()
    for _ in range(MAX_FRAMES):
        if frame is None:
            break
        callers.add(f"{frame.f_globals.get('__name__', '')}.")
        frame = frame.f_back
    return next((name for module, name in DRIVERS if any(item.startswith(module) for item in callers)), "torch")


def roots(modules: list[Any], parameters: set[int]) -> list[Any]:
    """Of these modules those that are nobody's child and hold most of the parameters, by their ids."""
    children = {id(child) for item in modules for child in item._modules.values() if child is not None}
    tops = [item for item in modules if id(item) not in children]
    held = {id(item): len(parameters & {id(value) for value in item.parameters()}) for item in tops}
    most = max(held.values(), default=0)
    return [item for item in tops if most and held[id(item)] == most]


def parameters_of(optimizer: Any) -> set[int]:
    """The ids of what an optimizer updates."""
    return {id(item) for group in optimizer.param_groups for item in group["params"]}


def compiled(module: Any) -> bool:
    """Whether a module is what `torch.compile(model)` returns."""
    return type(module).__name__ == "OptimizedModule"


def chain(root: Any) -> list[Any]:
    """The root and what it wraps, down to the model itself; what lies in a compiled wrapper is not to be hooked."""
    wrappers = [root]
    while not compiled(wrappers[-1]) and (inner := _only_child(wrappers[-1])) is not None:
        wrappers.append(inner)
    return wrappers


def innermost(root: Any) -> Any:
    """The innermost module that holds every parameter of the root."""
    while (inner := _only_child(root)) is not None:
        root = inner
    return root


def _only_child(module: Any) -> Any:
    """The child that holds every parameter under every name; None where the module has its own, or several have."""
    if module._parameters and any(item is not None for item in module._parameters.values()):
        return None
    children = once(item for item in module._modules.values() if item is not None)
    holding = [item for item in children if next(item.parameters(), None) is not None]
    # A wrapper may keep what it wraps beside what wraps it further.
    within = {id(part) for item in holding for part in item.modules() if part is not item}
    holding = [item for item in holding if id(item) not in within]
    # A list of blocks with one block is no wrapper.
    wraps = not isinstance(module, list) and type(module).__name__ not in ("ModuleList", "ModuleDict", "Sequential")
    return holding[0] if len(holding) == 1 and wraps else None


def canonical(name: str) -> str:
    """A parameter's or module's name without what wrappers put into it."""
    name = f"{name}."
    for prefix in PREFIXES:
        name = name.replace(prefix, "")
    return name.rstrip(".")


def parameters(model: Any) -> list[tuple[str, Any]]:
    """Parameters under each of their names, without adapters."""
    return [
        (canonical(name), item)
        for name, item in model.named_parameters(remove_duplicate=False)
        if not any(word in name for word in ADAPTERS)
    ]


def class_name(module: Any) -> str:
    """A module's class; FSDP2 puts one of its own in front, and adapters wrap what they adapt."""
    kinds = [kind for kind in type(module).__mro__ if not kind.__name__.startswith("FSDP")]
    return kinds[0].__name__ if kinds else type(module).__name__


def digests(model: Any) -> tuple[str, str] | None:
    """Digests of the parameters, and of parameters and modules; None where parameters are flattened (FSDP1)."""
    import hashlib

    named = parameters(model)
    if not named or any("_flat_param" in name for name, _ in named):
        return None
    lines = sorted(f"{name}\0{tuple(item.shape)}" for name, item in named)
    first = hashlib.sha256("\n".join(lines).encode()).hexdigest()
    wrapping = ("OptimizedModule", "CheckpointWrapper", "FullyShardedDataParallel")
    for name, module in model.named_modules():
        base = getattr(module, "base_layer", None)
        if base is not None:
            continue  # its own line is that of what it adapts
        if name and class_name(module) not in wrapping and not any(word in name for word in ADAPTERS):
            lines.append(f"{canonical(name)}\0{class_name(module)}")
    return first, hashlib.sha256("\n".join(sorted(lines)).encode()).hexdigest()
