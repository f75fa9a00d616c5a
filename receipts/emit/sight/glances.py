"""Glances: single steps that the job is not told of, and whether they compute what the traced ones do.

A job may do its whole work while it is traced, which torch tells it, or during the warm-up alone. So a few steps later,
at moments that it does not know, the calls of its multiplying modules are counted, in the type that they compute in,
and the weights that have a gradient. Nothing is read from a device.
"""

from __future__ import annotations

from receipts.emit.clock import perf_counter_ns
from receipts.emit.probes import dynamo
from receipts.emit.sight import root
from receipts.emit.sight.inputs import Hook
from receipts.emit.sight.look import MATMULS

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from receipts.emit.probing import ProbeOutput
    from receipts.emit.sight.watch import Watch

# Hooks cost a step some microseconds a module: one step in some twenty-four has them, later fewer and fewer.
MIN_GAP, SPREAD = 12, 24
MAX_TRACED = 3
KEY = "receipts"  # of a hook among those of a module
MIN_WORK = 0.85  # of what a traced step computes; a router may leave some experts without a token
MAX_SHARE = (0.2, 0.5)  # of the glances: steps that are odd, of one length and of many
NAME = "steps, looked at unannounced, that compute what the traced ones do"


class Glance:
    """What one step computed: multiplications for a token by type, and how many weights had a gradient."""

    __slots__ = ("gradients", "tokens", "work")

    def __init__(self) -> None:
        self.work: dict[Any, float] = {}  # by type
        self.gradients = self.tokens = 0

    def __repr__(self) -> str:
        return f"Glance({self.work}, {self.gradients} gradients)"


class Glances:
    """The glances of one process. ``begin`` is called by the model's first call in a step, ``end`` when that ends."""

    def __init__(self, torch: Any, watch: Watch) -> None:
        self._torch, self._watch = torch, watch
        self._traced = getattr(torch.autograd, "_profiler_enabled", lambda: False)
        self._hooked: list[Any] = []
        self._open: Glance | None = None
        self._due = MIN_GAP
        self._is_traced = False
        self.experts = False  # of which only those that a token went to have a gradient
        self.traced: list[Glance] = []
        self.others: list[Glance] = []

    def __repr__(self) -> str:
        return f"Glances({len(self.traced)} traced, {len(self.others)} others)"

    def begin(self) -> None:
        """Look at this step, if it is traced or its time has come."""
        rec, enough = self._watch.rec, len(self.traced) >= MAX_TRACED
        if self._open is not None or rec is None or (enough and rec.steps < self._due):
            return
        self._is_traced = self._traced()
        if (enough if self._is_traced else rec.steps < self._due) or not self._watch.models.roots:
            return
        self._open, hook = Glance(), Hook(self._torch, self._called)
        if not dynamo.graphs():  # a hook would be compiled into what is
            for module in root.innermost(self._watch.models.trained).modules():
                if any(kind.__name__ in MATMULS for kind in type(module).__mro__):
                    # Registering one makes a handle, which costs more than the call of a small module.
                    module._forward_hooks[KEY] = hook
                    self._hooked.append(module)

    def _called(self, module: Any, given: Any, output: Any) -> None:
        weight = getattr(module, "weight", None)
        glance, torch = self._open, self._torch
        if glance is None or self._watch.in_backward or not torch.is_grad_enabled():
            return
        if isinstance(output, torch.Tensor) and isinstance(weight, torch.Tensor) and output.dim():
            kind, shape = output.dtype, output.shape
            amount = output.numel() / shape[-1 if weight.dim() == 2 else 1] * weight.numel()
            glance.work[kind] = glance.work.get(kind, 0.0) + amount

    def end(self, tokens: int, *, whole: bool) -> None:
        """The step has ended; ``whole`` is whether its gradients are still there."""
        glance, self._open = self._open, None
        if glance is None:
            return
        self.remove()
        now = perf_counter_ns()
        rec = self._watch.rec
        if not self._is_traced and rec is not None:
            # By the low bits of the clock, which nobody foresees.
            self._due = rec.steps + MIN_GAP + (now >> 6) % max(SPREAD, rec.steps // 2)
        if not whole or not tokens or self._watch.models.one_batch:
            return
        glance.tokens = tokens
        glance.work = {name: amount / tokens for name, amount in glance.work.items()}
        groups = [group for item in self._watch.anchor.optimizers()[:1] for group in item.param_groups]
        glance.gradients = sum(item.numel() for group in groups for item in group["params"] if item.grad is not None)
        (self.traced if self._is_traced else self.others).append(glance)

    def remove(self) -> None:
        """Take the hooks off."""
        for module in self._hooked:
            module._forward_hooks.pop(KEY, None)
        self._hooked.clear()

    def state(self, stated: ProbeOutput) -> None:
        """Where several glances found less than the traced steps computed: how many did not."""
        if not self.traced:
            return
        gradients = 0.0 if self.experts else MIN_WORK * min(item.gradients for item in self.traced)
        work = {name: MIN_WORK * min(item.work.get(name, 0.0) for item in self.traced) for name in self.traced[0].work}
        missing = sum(
            item.gradients < gradients or any(item.work.get(name, 0.0) < least for name, least in work.items())
            for item in self.others
        )
        # Where steps differ in tokens, what else they hold (images, a decoder's side) differs by the token.
        ragged = len({item.tokens for item in (*self.traced, *self.others)}) > 1
        seen = len(self.others)
        if missing > 1 and missing > MAX_SHARE[ragged] * seen:
            stated.counter(NAME, seen - missing, expected=seen, steps=seen)
