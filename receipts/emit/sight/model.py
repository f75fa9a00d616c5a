"""What a watch states of model, batch and numerics: what was seen under its name, what follows from it as inferred."""

from __future__ import annotations

from collections import Counter

from receipts.emit import profiling
from receipts.emit.probes import dynamo, imported
from receipts.emit.sight import geometry, layout, look, root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any

    from receipts.emit.probing import ProbeOutput
    from receipts.emit.sight.watch import Watch

INFERRED = "inferred"
TYPES = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16", "float64": "fp64"}


def state(watch: Watch, stated: ProbeOutput) -> None:
    """State everything that is known by now; called again at the end, when more is."""
    assert watch.rec is not None
    inferred = watch.rec.stated_by(INFERRED)
    # The job may have let go of its model by the end.
    count_backward(watch.steps[1:], stated)
    watch.glances.state(stated)
    if watch.driver not in ("", "torch"):
        stated.note(f"{watch.driver} drove the loop")
    if not watch.models.roots and watch.models.readers:
        return  # the job has let go of its model, which was described after the warm-up
    if not watch.models.roots:
        stated.note("no module was found whose parameters an optimizer updates: the model is not described")
        return
    inner = root.innermost(watch.models.trained)
    every = [item for _, item in inner.named_parameters()]
    plan = watch.layout(layout.world_of(stated.world))
    # As a trace names them: whoever drives the loop, what steps is torch, or FSDP2 of it.
    framework = "fsdp2" if plan.strategy == "fsdp2" else "torch"
    lazy = imported.any_of(("torch_xla",))  # whose own probe says who computes, and how it is compiled
    if not lazy and stated.get("path.witnessed.framework") in (None, framework):  # else a callback names its own
        stated.put("path.witnessed.framework", framework)
        stated.put("path.witnessed.frameworks", [framework])
    sharded = plan.strategy == "fsdp1" or (plan.world > 1 and not plan.whole)
    seen: dict[str, Any] = {}
    fits: dict[str, Any] = {}
    kind = geometry.Geometry(watch, inner)
    if watch.pipeline is not None:
        watch.pipeline.tell(watch, watch.rec._run.record.head["launch"])
        watch.pipeline.join()
        fits |= {f"model.{name}": value for name, value in watch.pipeline.whole.items()}
        fits |= {f"parallelism.{name}": value for name, value in watch.pipeline.leaves.items()}
    else:
        if (digests := root.digests(inner)) is not None and not sharded:
            seen["model.architecture"], seen["model.modules"] = digests
            seen["model.parameters_total"] = sum(item.numel() for item in every)
        seen |= {f"model.{name}": value for name, value in kind.seen.items()}
        fits |= {f"model.{name}": value for name, value in kind.inferred.items()}
    (fits if plan.world > 1 else seen).update({f"parallelism.{k}": v for k, v in layout.leaves(plan).items()})
    seen |= _numerics(watch, inner, every, kind, stated)
    fits |= _batch(watch, plan)
    fits |= _optimizers(watch)
    if watch.models.readers and (reader := watch.models.reader).repeats:
        # Whoever measures on one batch again and again, may: it is no training on a dataset.
        fits["data.kind"] = "synthetic"
        if inferred.get("data.kind") == "real":
            fresh = sum(count for (_, same), count in reader.compared.items() if not same)
            calls = sum(reader.compared.values())
            stated.counter("batches, of those compared, other than the one before", fresh, expected=calls)
    watch.glances.experts = bool(kind.inferred.get("experts") or kind.seen.get("experts"))
    if (usual := watch.tokens_unlike(plan.data)) is not None:
        stated.note(f"measurement.tokens_per_step: it saw {usual} in the usual step, and the caller states another")
    for path, value in seen.items():
        stated.put(path, value)
    stated.put("compile.posture", watch.lazy or None if lazy else _posture(stated))
    if watch.lazy:
        stated.put("path.witnessed.posture", watch.lazy)
    for path, value in fits.items():
        _fill(inferred, path, value)


def count_backward(steps: Sequence[tuple[int, ...]], stated: ProbeOutput) -> None:
    """Where the optimizer made some steps without a backward pass since the one before: how many have one."""
    have = sum(bool(backwards) for backwards, *_ in steps)
    if 0 < have < len(steps) - 1:
        stated.counter("steps with a backward pass", have, expected=len(steps), steps=len(steps))


def _fill(inferred: ProbeOutput, path: str, value: Any) -> None:
    """State what follows where nobody knows better; a caller's own statement that differs is noted."""
    before = inferred.get(path)
    if before is None or inferred.owns(path):
        inferred.put(path, value)
    elif value is not None and before != value:
        inferred.note(f"{path}: {value!r:.120} follows from what was seen, and {before!r:.120} is stated")


FROZEN = 0.01  # of the weights
MIN_TYPE_SHARE = 0.1  # of the time of matmuls, as `receipts.ingest.device_profile` takes it


def _numerics(
    watch: Watch, inner: Any, every: list[Any], kind: geometry.Geometry, stated: ProbeOutput
) -> Mapping[str, Any]:
    stored = Counter[str]()
    for item in every:
        if item.is_floating_point():
            stored[TYPES.get(name := str(item.dtype).rpartition(".")[2], name)] += item.numel()
    adapters = [(name, item) for name, item in inner.named_parameters() if "lora_" in name] or _low_rank(inner)
    other = next((name for name, _ in inner.named_parameters() if any(word in name for word in root.ADAPTERS)), "")
    # Of several ranks each may step a part of the weights (ZeRO).
    optimizers = watch.anchor.optimizers() if layout.world_of(stated.world) == 1 else []
    known: dict[str, Any] = {
        "numerics.parameter_dtype": stored.most_common(1)[0][0] if stored else None,
        "numerics.compute_dtype": _compute(watch, stored, stated.get("numerics.fp8_recipe") is not None),
        "numerics.recompute": _recompute(watch, inner, kind, stated),
        "numerics.adapters.kind": "lora"
        if adapters
        else other.rpartition(".")[2].partition("_")[0] or trained(every, optimizers),
    }
    if adapters:
        ranks = {min(item.shape) for _, item in adapters if item.dim() == 2}
        known["numerics.adapters.rank"] = ranks.pop() if len(ranks) == 1 else None
        sharded = any(hasattr(item, "device_mesh") for item in every)
        after = sharded and not all(hasattr(item, "device_mesh") for _, item in adapters)
        known["numerics.adapters.injected"] = "after_sharding" if after else "before_sharding"
    return known


def trained(every: list[Any], optimizers: list[Any]) -> str:
    """`none` where all weights are trained; `partial` where some are frozen, more than a table of positions.

    A weight that no optimizer has is frozen too, unless they have copies of the weights, or flat parts of them.
    """
    own = set[int]().union(*(root.parameters_of(item) for item in optimizers))
    if not own or not own <= {id(item) for item in every}:
        own = {id(item) for item in every}
    frozen = sum(item.numel() for item in every if not item.requires_grad or id(item) not in own)
    return "partial" if frozen > FROZEN * sum(item.numel() for item in every) else "none"


def _low_rank(inner: Any) -> list[tuple[str, Any]]:
    """Adapters by their shapes: beside a matrix that is not trained, two that are, whose product has its shape."""
    pairs: list[tuple[str, Any]] = []
    for name, module in inner.named_modules():
        own = [(f"{name}.{item}", value) for item, value in module.named_parameters() if value.dim() == 2]
        trained = [item for item in own if item[1].requires_grad]
        frozen = [value for _, value in own if not value.requires_grad]
        if len(trained) == 2 and len(frozen) == 1:
            low, _, *outer = sorted(side for _, value in trained for side in value.shape)
            pairs += trained if outer == sorted(frozen[0].shape) and low < outer[0] else []
    return pairs


def _compute(watch: Watch, stored: Counter[str], scaled: bool) -> str | None:
    """The type of the matmuls: as the trace shows them, of outputs of modules, or else by autocast around the model.

    ``scaled`` says that Transformer Engine quantises them, whose kernels are no matmuls of torch.
    """
    if scaled:
        return "fp8"
    if ran := _types_that_ran():
        return ran
    types = watch.look.types if watch.look is not None else {}
    if types:
        most = max(types, key=lambda name: types[name])
        return TYPES.get(most, most) if types[most] >= 0.5 * sum(types.values()) else None
    shared = getattr(imported.part("accelerate.state", "AcceleratorState"), "_shared_state", {})
    mixed = str(shared.get("_mixed_precision") or "no")
    if mixed in ("bf16", "fp16"):
        return mixed
    casts = {item for reader in watch.models.readers for item in reader.casts}
    if len(casts) == 1 and (cast := casts.pop()) is not None:
        return TYPES.get(cast, cast)
    return next(iter(stored)) if len(stored) == 1 and watch.models.readers and not casts else None


def _types_that_ran() -> str | None:
    """The type that took most of the trace's matmuls, and with it a wider or narrower one that took its part."""
    names = {"float": "fp32", "c10::BFloat16": "bf16", "c10::Half": "fp16", "double": "fp64"}
    ran = Counter({names[name]: spent for name, spent in profiling.matmuls.items() if name in names})
    if not ran:
        return None
    main = ran.most_common(1)[0][0]
    whole = ("fp32", "fp64")
    others = Counter({name: spent for name, spent in ran.items() if (name in whole) != (main in whole)})
    if others.total() < MIN_TYPE_SHARE * ran.total():
        return main
    return "+".join(sorted((main, others.most_common(1)[0][0])))


def _recompute(watch: Watch, inner: Any, kind: geometry.Geometry, stated: ProbeOutput) -> str | None:
    """What was computed again; where nothing could be looked at, *none* as long as no module speaks of checkpoints.

    In one graph the compiler traces each checkpoint: *none* where it traced none.
    """
    seen = look.recompute(watch.look, watch.checkpoints, kind.blocks)
    if seen is not None:
        if seen != "none" and dynamo.graphs():  # a trace of compiled steps does not show it
            stated.put("numerics.recompute_applied", "checkpoint")
        return seen
    if watch.hooks.sees_checkpoints and _posture(stated) == "whole_graph":
        return "none"
    forwards, backwards = profiling.attention_passes
    if forwards == backwards > 0:
        return "none"
    codes = {getattr(type(item).forward, "__code__", None) for item in inner.modules()}
    speaks = any("checkpoint" in name for code in codes if code is not None for name in code.co_names)
    flagged = any(getattr(item, "gradient_checkpointing", False) for item in inner.modules())
    wrapped = any(type(item).__name__ == "CheckpointWrapper" for item in inner.modules())
    return None if speaks or flagged or wrapped else "none"


def _posture(stated: ProbeOutput) -> str:
    """How the step is compiled: not at all, as one graph that takes every parameter, or else in regions."""
    return dynamo.posture(stated, dynamo.counters()) or "regional"


def _optimizers(watch: Watch) -> Mapping[str, Any]:
    names = [type(item).__name__.lower() for item in watch.anchor.optimizers()]
    if len(watch.models.roots) > 1:
        names = names[:1]
    rates = {
        group.get("initial_lr", group.get("lr"))
        for item in watch.anchor.optimizers()[:1]
        for group in item.param_groups
        if group["params"]
    }
    rate = rates.pop() if len(rates) == 1 else None
    names = list(dict.fromkeys(names))
    return {
        "numerics.optimizer": names[0] if names else None,
        "numerics.optimizer_other": names[1] if len(names) == 2 else None,
        "numerics.learning_rate": float(rate) if isinstance(rate, int | float) else None,
    }


def _batch(watch: Watch, plan: layout.Layout) -> Mapping[str, Any]:
    """The batch of the usual step. Where steps differ in tokens, these are a mean, and lengths may be anything."""
    steps = [step for step in watch.steps[1:] if step[2]] or watch.steps
    usual = Counter(steps).most_common(1)[0][0] if steps else (0, 0, 0, 0)
    backwards, forwards, tokens, rows = usual
    if not tokens or plan.data is None or (watch.pipeline is not None and not watch.pipeline.first):
        return {}
    # Several losses of one call are one batch; several calls are several, even where they have one loss.
    micro_steps = 1 if watch.models.one_batch else forwards or backwards or 1
    shapes = Counter({shape: count for reader in watch.models.current for shape, count in reader.shapes.items()})
    lengths = {length for _, length in shapes}
    ragged = len({step[2] for step in steps}) > 1
    micro = rows // micro_steps if rows % micro_steps == 0 else None
    return {
        "batch.micro_batch": micro,
        "batch.accumulation": micro_steps if micro else None,
        "batch.global_batch": rows * plan.data,
        "batch.sequence_length": lengths.pop() if len(lengths) == 1 else None,
        "batch.ragged": ragged,
    }
