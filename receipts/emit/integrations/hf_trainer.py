"""The Trainer of transformers: a callback. Run with transformers 5.23 (`trainer.py`, `trainer_callback.py`).

The Trainer says before it evaluates or saves that it will (`TrainerControl`), and afterwards that it has, so that both
are spans. What it logs is an average since the last log, which is the loss that is recorded.
"""

from __future__ import annotations

from importlib import import_module

from receipts.emit.integrations.loop import Hooked, Loop, guarded, quietly, whole

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from receipts.emit.recorder import Recorder

_MODEL = {
    "model.name": ("model_type",),
    "model.depth": ("num_hidden_layers",),
    "model.hidden": ("hidden_size",),
    "model.heads": ("num_attention_heads",),
    "model.kv_heads": ("num_key_value_heads",),
    "model.head_dim": ("head_dim",),
    "model.ffn": ("intermediate_size", "n_inner"),
    "model.vocabulary": ("vocab_size",),
    "model.experts": ("num_local_experts", "num_experts", "n_routed_experts"),
    "model.top_k": ("num_experts_per_tok",),
}
# Stacks in which every layer is attention and then a feed-forward block, with nothing between.
_DENSE = ("gpt2", "gpt_neox", "llama", "mistral", "olmo2", "phi3", "qwen2", "qwen3", "smollm3")
_KINDS = {"full_attention": "full", "sliding_attention": "sliding"}
_ATTENTION = {"eager": "math", "flash_attention_2": "flash2", "flash_attention_3": "flash3", "flex_attention": "flex"}
_MIXED = ("bf16", "fp16")
_RUNTIMES = {"cpu": "cpu", "cuda": "cuda"}
_DTYPES = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}


def hf_callback(rec: Recorder, *, tokens: int | None = None, sequence_length: int | None = None) -> Any:
    """A `TrainerCallback`: ``trainer.add_callback(hf_callback(rec, sequence_length=4096))``.

    ``tokens`` are those of a step over all chips. Without them they follow from ``sequence_length`` where every
    sequence has that length, else from ``include_num_input_tokens_seen`` where that is on, which makes the job wait.
    """
    hooks = HfTrainerHooks(Loop(rec, "hf-trainer"), tokens, sequence_length)
    names = ("train_begin", "step_begin", "step_end", "log", "evaluate", "save", "train_end")
    # The Trainer calls its hooks by their names, and asks for its own class.
    members = {f"on_{name}": staticmethod(getattr(hooks, f"on_{name}")) for name in names}
    return type("RecorderCallback", (import_module("transformers").TrainerCallback,), members)()


class HfTrainerHooks(Hooked):
    """The hooks of one Trainer, by the names that it calls."""

    def __init__(self, loop: Loop, tokens: int | None, sequence_length: int | None) -> None:
        super().__init__(loop)
        self._tokens = tokens
        self._length = sequence_length
        self._seen = 0

    @guarded
    def on_train_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """State what the arguments and the model's configuration say."""
        self.loop.start()
        quietly(self.loop, "configuration", self.loop.resolved, args)
        self._seen = int(getattr(state, "num_input_tokens_seen", 0) or 0)
        batch = _batch(args)
        if self._tokens is None and self._length and batch.get("batch.global_batch"):
            self._tokens = int(batch["batch.global_batch"]) * self._length
        self.loop.stated({**batch, "batch.sequence_length": self._length})
        self.loop.stated(_numerics(args))
        self.loop.stated({"path.intended.runtime": _RUNTIMES.get(str(getattr(args, "device", "")).partition(":")[0])})
        model = more.get("model")
        if model is not None:
            self.loop.stated(_model(model, mixed=any(getattr(args, name, False) for name in _MIXED)))

    @guarded
    def on_step_begin(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """Begin a step; also the first of several micro-batches."""
        self.loop.begin()

    @guarded
    def on_step_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """End a step, once the optimizer has made its own."""
        seen = int(getattr(state, "num_input_tokens_seen", 0) or 0)
        counted, self._seen = seen - self._seen, seen
        self.loop.end(self._tokens or (counted if counted > 0 else None))
        if not getattr(control, "should_log", False):
            # The Trainer logs first, and reads the loss for it: that is the step's time, and not the evaluation's.
            self._announced(control)

    @guarded
    def on_log(self, args: Any, state: Any, control: Any, logs: Any = None, **more: Any) -> None:
        """Take loss and gradient norm where the Trainer has read them anyhow."""
        logs = logs or {}
        if "loss" in logs:
            self.loop.rec.loss(float(logs["loss"]))
            if logs.get("grad_norm") is not None:
                self.loop.rec.gradient_norm(logs["grad_norm"])
            self._announced(control)

    @guarded
    def on_evaluate(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """The evaluation is over; saving comes next where the Trainer says so."""
        self.loop.leave()
        self._announced(control)

    @guarded
    def on_save(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """The checkpoint is written."""
        self.loop.leave()

    @guarded
    def on_train_end(self, args: Any, state: Any, control: Any, **more: Any) -> None:
        """The last step has ended."""
        self.loop.rest()

    def _announced(self, control: Any) -> None:
        if getattr(control, "should_evaluate", False):
            self.loop.enter("eval")
        elif getattr(control, "should_save", False):
            self.loop.enter("checkpoint")


def _batch(args: Any) -> dict[str, Any]:
    micro = whole(getattr(args, "train_batch_size", None))
    groups = whole(getattr(args, "gradient_accumulation_steps", None))
    world = whole(getattr(args, "world_size", None))
    every = micro * groups * world if micro and groups and world else None
    return {"batch.micro_batch": micro, "batch.accumulation": groups, "batch.global_batch": every}


def _numerics(args: Any) -> dict[str, Any]:
    half = next((name for name in _MIXED if getattr(args, name, False)), None)
    optimizer, schedule = getattr(args, "optim", None), getattr(args, "lr_scheduler_type", None)
    recompute = getattr(args, "gradient_checkpointing", None)
    return {
        "numerics.compute_dtype": half,
        "numerics.optimizer": None if optimizer is None else str(getattr(optimizer, "value", optimizer)),
        "numerics.schedule": None if schedule is None else str(getattr(schedule, "value", schedule)),
        "numerics.learning_rate": getattr(args, "learning_rate", None),
        "numerics.seed": getattr(args, "seed", None),
        "data.order_seed": getattr(args, "data_seed", None),
        "numerics.recompute": None if recompute is None else "full" if recompute else "none",
        "compile.posture": "eager" if getattr(args, "torch_compile", None) is False else None,
    }


def _model(model: Any, *, mixed: bool) -> dict[str, Any]:
    config = getattr(model, "config", None)
    leaves: dict[str, Any] = {}
    for path, names in _MODEL.items():
        values = (getattr(config, name, None) for name in names)
        leaves[path] = next((value for value in values if isinstance(value, int | str)), None)
    leaves.update(_stack(config))
    tied = getattr(config, "tie_word_embeddings", None)
    leaves["model.tied_embeddings"] = tied if isinstance(tied, bool) else None
    attention = getattr(config, "_attn_implementation", None)
    leaves["features.hf.attn_implementation"] = attention if isinstance(attention, str) else None
    leaves["path.intended.attention"] = _ATTENTION.get(str(attention))
    dtype = _DTYPES.get(str(getattr(model, "dtype", "")).rpartition(".")[2])
    leaves["numerics.parameter_dtype"] = dtype
    if not mixed:
        # Without autocast a step computes in the type that the parameters have.
        leaves["numerics.compute_dtype"] = dtype
    if not getattr(model, "peft_config", None):
        leaves["numerics.adapters.kind"] = "none"
    # Sharded parameters are views of a part: a count of them would be another number.
    if not any(hasattr(parameter, "ds_numel") or hasattr(parameter, "placements") for parameter in model.parameters()):
        leaves["model.parameters_total"] = sum(int(parameter.numel()) for parameter in model.parameters())
    return leaves


def _stack(config: Any) -> dict[str, Any]:
    """The block pattern of a dense decoder and the kinds of its attention; empty for any other model."""
    depth = whole(getattr(config, "num_hidden_layers", None))
    if getattr(config, "model_type", None) not in _DENSE or not depth:
        return {}
    stack: dict[str, Any] = {
        "model.family": "dense",
        "model.pattern": "[*-]" * depth,
        "model.alphabet": "nemo",
        "model.experts": 0,
    }
    layers = getattr(config, "layer_types", None)
    if layers is None and not getattr(config, "sliding_window", None):
        layers = ["full_attention"] * depth
    if isinstance(layers, list) and set(layers) <= set(_KINDS):
        counts = {kind: layers.count(name) for name, kind in _KINDS.items()}
        stack["model.attention_kinds"] = " + ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    return stack
