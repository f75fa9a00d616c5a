"""Callbacks of trainers that call hooks by their names: transformers, Lightning, Composer and loops like it.

transformers was run with 5.23 (`trainer.py`, `trainer_callback.py`). Its Trainer announces that it will evaluate or
save (`TrainerControl`), and reports afterwards that it has, so that both are spans. What it logs is an average since
the last log, which is the loss that is recorded.

Lightning was run with 2.6 (`loops/training_epoch_loop.py`, `callbacks/callback.py`). Its batches are micro-batches: a
step has ended when ``trainer.global_step`` has moved. Its hooks tell when a checkpoint begins and never when it has
been written, so that `Trainer.save_checkpoint` of this trainer is wrapped while it trains.

Composer calls events (`fit_start`, `batch_start`, `batch_end`, `eval_start`, …). Its own class is the base where it can
be imported; otherwise the same methods stand alone, for loops that call them. Run with the Trainer of composer 0.32.1
(`composer/core/callback.py`, `trainer/trainer.py`), whose imports of torchvision and of a cloud's client were stood in
for; the tests that need no such environment call as it does.
"""

from __future__ import annotations

from importlib import import_module

from receipts.emit.integrations.loop import Hooked, Loop, guarded, quietly, spanned, whole

TYPE_CHECKING = False

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from receipts.emit.recorder import Recorder


_HF_MODEL = {
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
_HF_DENSE = ("gpt2", "gpt_neox", "llama", "mistral", "olmo2", "phi3", "qwen2", "qwen3", "smollm3")
_HF_LAYER_KINDS = {"full_attention": "full", "sliding_attention": "sliding"}
_HF_ATTENTION = {
    "eager": "math",
    "flash_attention_2": "flash2",
    "flash_attention_3": "flash3",
    "flex_attention": "flex",
}
_HF_MIXED = ("bf16", "fp16")
_HF_RUNTIMES = {"cpu": "cpu", "cuda": "cuda"}
_HF_DTYPES = {"float32": "fp32", "bfloat16": "bf16", "float16": "fp16"}


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
        batch = _hf_batch(args)
        if self._tokens is None and self._length and batch.get("batch.global_batch"):
            self._tokens = int(batch["batch.global_batch"]) * self._length
        self.loop.stated({**batch, "batch.sequence_length": self._length})
        self.loop.stated(_hf_numerics(args))
        self.loop.stated(
            {"path.intended.runtime": _HF_RUNTIMES.get(str(getattr(args, "device", "")).partition(":")[0])}
        )
        model = more.get("model")
        if model is not None:
            self.loop.stated(_hf_model(model, mixed=any(getattr(args, name, False) for name in _HF_MIXED)))

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


def _hf_batch(args: Any) -> dict[str, Any]:
    micro = whole(getattr(args, "train_batch_size", None))
    groups = whole(getattr(args, "gradient_accumulation_steps", None))
    world = whole(getattr(args, "world_size", None))
    every = micro * groups * world if micro and groups and world else None
    return {"batch.micro_batch": micro, "batch.accumulation": groups, "batch.global_batch": every}


def _hf_numerics(args: Any) -> dict[str, Any]:
    half = next((name for name in _HF_MIXED if getattr(args, name, False)), None)
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


def _hf_model(model: Any, *, mixed: bool) -> dict[str, Any]:
    config = getattr(model, "config", None)
    leaves: dict[str, Any] = {}
    for path, names in _HF_MODEL.items():
        values = (getattr(config, name, None) for name in names)
        leaves[path] = next((value for value in values if isinstance(value, int | str)), None)
    leaves.update(_hf_stack(config))
    tied = getattr(config, "tie_word_embeddings", None)
    leaves["model.tied_embeddings"] = tied if isinstance(tied, bool) else None
    attention = getattr(config, "_attn_implementation", None)
    leaves["features.hf.attn_implementation"] = attention if isinstance(attention, str) else None
    leaves["path.intended.attention"] = _HF_ATTENTION.get(str(attention))
    dtype = _HF_DTYPES.get(str(getattr(model, "dtype", "")).rpartition(".")[2])
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


def _hf_stack(config: Any) -> dict[str, Any]:
    """The block pattern of a dense decoder and the kinds of its attention; empty for any other model."""
    depth = whole(getattr(config, "num_hidden_layers", None))
    if getattr(config, "model_type", None) not in _HF_DENSE or not depth:
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
    if isinstance(layers, list) and set(layers) <= set(_HF_LAYER_KINDS):
        counts = {kind: layers.count(name) for name, kind in _HF_LAYER_KINDS.items()}
        stack["model.attention_kinds"] = " + ".join(f"{count} {kind}" for kind, count in counts.items() if count)
    return stack


_LIGHTNING_PRECISION = {"32": "fp32", "32-true": "fp32", "bf16": "bf16", "16": "fp16"}


def lightning_callback(rec: Recorder, *, tokens: int | None = None) -> Any:
    """A `Callback`: ``Trainer(callbacks=[lightning_callback(rec, tokens=…)])``; tokens of a step over all chips."""
    try:
        base = import_module("lightning.pytorch.callbacks").Callback
    except ImportError:
        # The same under the name of the distribution that came before.
        base = import_module("pytorch_lightning.callbacks").Callback
    hooks = LightningHooks(Loop(rec, "lightning"), tokens)
    members = {name: staticmethod(getattr(hooks, name)) for name in dir(LightningHooks) if name.startswith("on_")}
    return type("RecorderCallback", (base,), members)()


class LightningHooks(Hooked):
    """The hooks of one Trainer, by the names that it calls."""

    def __init__(self, loop: Loop, tokens: int | None) -> None:
        super().__init__(loop)
        self._tokens = tokens
        self._optimized = 0
        self._saving: Callable[..., Any] | None = None

    @guarded
    def on_train_start(self, trainer: Any, module: Any) -> None:
        """State what the trainer knows of its batches."""
        self.loop.start()
        self._optimized = int(trainer.global_step)
        precision = str(getattr(trainer, "precision", ""))
        leaves = {
            "batch.accumulation": whole(getattr(trainer, "accumulate_grad_batches", None)),
            "numerics.compute_dtype": _LIGHTNING_PRECISION.get(precision.removesuffix("-mixed").removesuffix("-true")),
            "features.lightning.strategy": type(getattr(trainer, "strategy", None)).__name__,
        }
        parameters = list(module.parameters())
        if getattr(trainer, "world_size", 0) == 1:
            leaves["model.parameters_total"] = sum(int(parameter.numel()) for parameter in parameters)
        self.loop.stated(leaves)
        if self._saving is None:
            self._saving = trainer.save_checkpoint
            trainer.save_checkpoint = spanned(self.loop, trainer.save_checkpoint, "checkpoint")

    @guarded
    def on_train_batch_start(self, trainer: Any, module: Any, batch: Any, batch_idx: int) -> None:
        """Begin a step, with the first of its micro-batches."""
        self.loop.begin()

    @guarded
    def on_train_batch_end(self, trainer: Any, module: Any, outputs: Any, batch: Any, batch_idx: int) -> None:
        """End the step where the optimizer has made its own."""
        done = int(trainer.global_step)
        if done == self._optimized:
            return
        self._optimized = done
        self.loop.end(self._tokens)
        loss = outputs.get("loss") if hasattr(outputs, "get") else outputs
        if loss is not None:
            self.loop.rec.loss(loss)

    @guarded
    def on_validation_start(self, trainer: Any, module: Any) -> None:
        """Evaluation, which may begin while a micro-batch of a step is behind and others to come."""
        self.loop.enter("eval")

    @guarded
    def on_validation_end(self, trainer: Any, module: Any) -> None:
        """The evaluation is over."""
        self.loop.leave()

    @guarded
    def on_train_end(self, trainer: Any, module: Any) -> None:
        """The last step has ended."""
        self.loop.rest()
        if self._saving is not None:
            trainer.save_checkpoint, self._saving = self._saving, None


def composer_callback(rec: Recorder, *, tokens: int | None = None) -> Any:
    """A `Callback`: ``Trainer(callbacks=[composer_callback(rec)])``. Tokens of a step over all chips follow from the
    timestamp's, where the loader counts them."""
    hooks = ComposerHooks(Loop(rec, "composer"), tokens)
    base: Any = object
    try:
        base = import_module("composer.core").Callback
    except Exception:  # its imports fail in many ways, and a loop like it needs the methods alone
        base = object
    members = {name: staticmethod(getattr(hooks, name)) for name in COMPOSER_EVENTS}
    return type("RecorderCallback", (base,), members)()


COMPOSER_EVENTS = ("fit_start", "batch_start", "batch_end", "eval_start", "eval_end", "fit_end")


class ComposerHooks(Hooked):
    """The events of one Trainer, by the names that it calls; each is given a state and a logger."""

    def __init__(self, loop: Loop, tokens: int | None) -> None:
        super().__init__(loop)
        self._tokens = tokens
        self._seen = 0
        self._savers: list[tuple[Any, Any]] = []

    @guarded
    def fit_start(self, state: Any, logger: Any = None) -> None:
        """Training begins."""
        self.loop.start()
        self._seen = _composer_tokens(state)
        for saver in tuple(getattr(state, "callbacks", None) or ()):
            # No event says when a checkpoint is written: the saver is asked at every batch, and decides by itself.
            inner = getattr(saver, "_save_checkpoint", None)
            if inner is not None and not any(known is saver for known, _ in self._savers):
                saver._save_checkpoint = spanned(self.loop, inner, "checkpoint")
                self._savers.append((saver, inner))

    @guarded
    def batch_start(self, state: Any, logger: Any = None) -> None:
        """A step of all its micro-batches begins."""
        self.loop.begin()

    @guarded
    def batch_end(self, state: Any, logger: Any = None) -> None:
        """A step has ended, and the timestamp has moved."""
        seen = _composer_tokens(state)
        counted, self._seen = seen - self._seen, seen
        self.loop.end(self._tokens or (counted if counted > 0 else None))
        loss = getattr(state, "loss", None)
        if isinstance(loss, list | tuple):
            loss = loss[0] if len(loss) == 1 else None
        if loss is not None and not hasattr(loss, "items"):
            self.loop.rec.loss(loss)

    @guarded
    def eval_start(self, state: Any, logger: Any = None) -> None:
        """Evaluation begins."""
        self.loop.enter("eval")

    @guarded
    def eval_end(self, state: Any, logger: Any = None) -> None:
        """Evaluation is over."""
        self.loop.leave()

    @guarded
    def fit_end(self, state: Any, logger: Any = None) -> None:
        """The last step has ended."""
        self.loop.rest()
        while self._savers:
            saver, inner = self._savers.pop()
            saver._save_checkpoint = inner


def _composer_tokens(state: Any) -> int:
    token = getattr(getattr(state, "timestamp", None), "token", 0)
    return int(getattr(token, "value", token) or 0)
