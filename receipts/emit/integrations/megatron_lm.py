"""Megatron-LM: functions of `megatron.training.training` that its loop looks up at every step, wrapped in place.

`train_step` is the step, `training_log` has the loss and the gradient norm, `evaluate_and_print_results` and
`save_checkpoint_and_time` are spans. The first three were run on a CPU, as the wheel of megatron-core 0.19.2 has them.
Its loop around them waits for CUDA: the tests have a stand-in, as `megatron/training/training.py` of core 0.9 to 0.15
has it. Its arguments are read by a probe (`probes/megatron.py`).
"""

from __future__ import annotations

import inspect
import sys
from functools import wraps

from receipts.emit.integrations.loop import Loop, part, quietly, spanned, stepped, whole
from receipts.emit.probes import megatron

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from receipts.emit.recorder import Recorder

MODULE = "megatron.training.training"


def patch_megatron(rec: Recorder, module: Any = None, *, tokens: int | None = None) -> Callable[[], None]:
    """Record Megatron-LM's loop, before ``pretrain(…)``; the call that is returned takes the patch back.

    ``module`` has the loop, else `megatron.training.training`, which has to be imported. Tokens of a step
    over all chips follow from Megatron's arguments.
    """
    loop = Loop(rec, "megatron-lm")
    quietly(loop, "start", loop.start)
    where = module if module is not None else sys.modules.get(MODULE)
    if where is None:
        rec.note(f"{MODULE} is not imported: import it, then call patch_megatron(rec)")
        return lambda: None
    before: dict[str, Any] = {}
    wrappers: dict[str, Callable[[Any], Any]] = {
        "train_step": lambda inner: stepped(loop, inner, lambda: tokens or _tokens(where)),
        "training_log": lambda inner: _log(loop, inner),
        "evaluate_and_print_results": lambda inner: spanned(loop, inner, "eval"),
        "save_checkpoint_and_time": lambda inner: spanned(loop, inner, "checkpoint"),
    }
    for name, make in wrappers.items():
        inner = part(loop, where, name)
        if inner is None:
            rec.note(f"{where!r:.100} has no {name}: what it did is not recorded")
            continue
        before[name] = inner
        setattr(where, name, make(inner))

    def restore() -> None:
        for name, inner in before.items():
            setattr(where, name, inner)

    return restore


def _tokens(where: Any) -> int | None:
    """The sequences of a step times their length, as Megatron's arguments have them."""
    arguments = megatron.arguments()
    if arguments is None:
        return None
    given = megatron.MegatronArguments(arguments)
    current = getattr(where, "get_current_global_batch_size", None)
    batch = whole(current()) if current is not None else None
    if batch is None and given.off("rampup_batch_size"):
        batch = given.whole("global_batch_size")
    length = given.whole("seq_length", "encoder_seq_length")
    return batch * length if batch and length else None


def _log(loop: Loop, inner: Any) -> Any:
    parameters = list(inspect.signature(inner).parameters)

    @wraps(inner)
    def training_log(*given: Any, **named: Any) -> Any:
        quietly(loop, "training_log", _logged, loop, dict(zip(parameters, given, strict=False)) | named)
        return inner(*given, **named)

    return training_log


def _logged(loop: Loop, values: dict[str, Any]) -> None:
    losses = values.get("loss_dict") or {}
    loss = losses.get("lm loss", next(iter(losses.values()), None))
    if loss is not None:
        loop.rec.loss(loss)
    if values.get("grad_norm") is not None:
        loop.rec.gradient_norm(values["grad_norm"])
