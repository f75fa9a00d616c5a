"""Single steps that are looked at module by module: one for what it is made of, and some that the job is not told of.

What the backward pass computes again shows in one step of the warm-up, and in what the compiler traces. Hooks are put
on every module for that step and taken off. What torch.compile has taken is looked at from outside: a hook on what lies
within would be compiled into it.

A job may do its whole work while it is traced, which torch tells it, or during the warm-up alone. So a few steps later,
at moments that it does not know, the calls of its multiplying modules are counted, in the type that they compute in,
attention in the graph of the loss, and the weights that have a gradient. Nothing is read from a device.
"""

from __future__ import annotations

from contextlib import suppress
from functools import wraps
from math import inf

from receipts.emit import profiling
from receipts.emit.clock import perf_counter_ns
from receipts.emit.probes import dynamo, imported
from receipts.emit.sight import root
from receipts.emit.sight.inputs import Hook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping
    from typing import Any

    from receipts.emit.probing import ProbeOutput
    from receipts.emit.sight.inputs import InputReader
    from receipts.emit.sight.watch import Watch

# The mode under which a policy's choice is computed again, and the rest taken from what was kept.
CACHED = "_CachedTorchDispatchMode"
MATMULS = ("Linear", "Conv1D", "Conv2d", "Conv3d", "ConvTranspose2d", "Bilinear")


class Look:
    """What was seen of one step. ``hooked`` is whether there was anything to look at."""

    def __init__(self, torch: Any, model: Any, reader: InputReader) -> None:
        self._torch, self._model, self._reader = torch, model, reader
        self._handles: list[Any] = []
        self._calls: list[tuple[dict[str, Any], Any, Any]] = []
        self.again: set[int] = set()
        self.selects = False  # whether a policy says which operators of a module are computed again
        self.types: dict[str, int] = {}
        self.attention: set[tuple[int, int | None, int | None]] = set()
        self.hooked = False
        self._attended, self._before_it = 0, reader.forwards
        self.layers = 0  # calls of attention in one of the model
        self._put(model)
        self._functional: Any = torch.nn.functional
        self._inner = self._functional.scaled_dot_product_attention
        if len(self._handles) > 2 and not dynamo.graphs():  # a compiled caller would be compiled anew
            self._functional.scaled_dot_product_attention = attend = self._attend
            # TorchScript knows its operators by the objects that stand for them.
            register = imported.part("torch.jit._builtins", "_register_builtin")
            if register is not None:
                register(attend, "aten::scaled_dot_product_attention")

    def _attend(self, *given: Any, **named: Any) -> Any:
        """Attention, with heads and their width from the shapes of query and key: (batch, heads, length, width)."""
        self._attended += not self._reader.backward and self._torch.is_grad_enabled()
        with suppress(Exception):  # a nested tensor has no shape, and says so by raising
            pair = [given[at] if len(given) > at else named[name] for at, name in enumerate(("query", "key"))]
            query, key = (item.shape for item in pair)
            if len(query) == len(key) == 4 and not self._torch._C._get_tracing_state():
                self.attention.add((int(query[1]), int(key[1]), int(query[3])))
        return self._inner(*given, **named)

    def _put(self, module: Any) -> None:
        compiled = vars(module).get("_compiled_call_impl")
        if compiled is not None and not root.compiled(module) and module is not self._model:
            vars(module)["_compiled_call_impl"] = ours = self._before(module, compiled)
            self._calls.append((vars(module), compiled, ours))
        elif root.compiled(module) and module is not self._model:
            self._handles.append(module.register_forward_pre_hook(Hook(self._torch, self._called)))
        if root.compiled(module) or compiled is not None:
            return
        if type(module).__name__ != "ScriptModule":
            # Before: what is computed again may stop within a module, as soon as it has what it needs.
            self._handles.append(module.register_forward_pre_hook(Hook(self._torch, self._called)))
            if any(kind.__name__ in MATMULS for kind in type(module).__mro__):
                self._handles.append(module.register_forward_hook(Hook(self._torch, self._typed)))
        for child in module._modules.values():
            if child is not None:
                self._put(child)

    def _before(self, module: Any, inner: Any) -> Any:
        """A call of a module that was compiled in place."""

        @wraps(inner)
        def call(*given: Any, **named: Any) -> Any:
            if not self._torch.compiler.is_compiling():
                self._called(module, given)
            return inner(*given, **named)

        return call

    def _called(self, module: Any, given: Any) -> None:
        if self._reader.backward:
            self.again.add(id(module))
            modes = imported.part("torch.utils._python_dispatch", "_get_current_dispatch_mode_stack") or list
            self.selects = self.selects or any(type(mode).__name__ == CACHED for mode in modes())
        else:
            self.hooked = self.hooked or self._torch.is_grad_enabled()

    def _typed(self, module: Any, given: Any, output: Any) -> None:
        # A module of the job's own may be called as one of torch's, and hold its weights otherwise.
        weight = getattr(module, "weight", None)
        if isinstance(output, self._torch.Tensor) and isinstance(weight, self._torch.Tensor):
            name = str(output.dtype).rpartition(".")[2]
            self.types[name] = self.types.get(name, 0) + weight.numel()

    def remove(self) -> None:
        """Take the hooks off."""
        calls = self._reader.forwards - self._before_it
        self.layers = self.layers or (self._attended // calls if calls and self._attended % calls == 0 else 0)
        if (attend := self._functional.scaled_dot_product_attention) == self._attend:
            (imported.part("torch.jit._builtins", "_builtin_table") or {}).pop(id(attend), None)
            self._functional.scaled_dot_product_attention = self._inner
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        for owner, inner, ours in self._calls:
            if owner.get("_compiled_call_impl") is ours:
                owner["_compiled_call_impl"] = inner
        self._calls.clear()


class Checkpoints:
    """What the compiler has traced to be computed again: modules, and functions that are none of these."""

    def __init__(self) -> None:
        self.modules: set[int] = set()
        self.functions = 0
        self.selects = False

    def take(self, kind: type, function: Any, named: Mapping[str, Any]) -> None:
        """One checkpoint; ``function`` and ``named`` are variables of the compiler. Modules are of ``kind``."""
        self.selects = self.selects or "context_fn" in named
        for _ in range(4):  # a bound method of a module, a part of it
            function = getattr(function, "realize", lambda function=function: function)()
            if isinstance(module := getattr(function, "value", None), kind):
                self.modules.add(id(module))
                return
            function = getattr(function, "obj", None) or getattr(function, "func", None)
        self.functions += 1


def recompute(look: Look | None, traced: Checkpoints, blocks: list[Any]) -> str | None:
    """What was computed again: none, full (every block) or selective; None where there was nothing to look at."""
    again = traced.modules | (look.again if look is not None else set())
    if not again and not traced.functions:
        return "none" if look is not None and look.hooked else None
    if traced.selects or (look is not None and look.selects):
        return "selective"
    forwards, backwards = profiling.attention_passes
    whole = bool(blocks) and all(_whole(block, again) for block in blocks)
    return "full" if whole or (traced.functions and forwards == 2 * backwards > 0) else "selective"


def _whole(block: Any, again: set[int]) -> bool:
    """Whether a block was called again, or all that it holds: transformers computes its `forward` again."""
    held = [
        id(item) for item in block._modules.values() if item is not None and next(item.parameters(), None) is not None
    ]
    own = {id(block), id(block._modules.get("_orig_mod"))}
    return bool(own & again) or (bool(held) and again.issuperset(held))


# Hooks cost a step some microseconds a module: one step in some twenty-four has them, later fewer and fewer.
MIN_GAP, SPREAD = 12, 24
MAX_TRACED = 3
KEY = "receipts"  # of a hook among those of a module
MIN_WORK = 0.85  # of what a traced step computes; a router may leave some experts without a token
ATTENDS = ("Attention", "Attn", "MHA", "Bmm")  # in names of autograd's nodes
MAX_NODES = 20_000
MAX_SHARE = (0.2, 0.5)  # of the glances: steps that are odd, of one length and of many
NAME = "steps, looked at unannounced, that compute what the traced ones do"


class Glance:
    """What one step computed: multiplications for a token by type, attention for a loss, weights with a gradient."""

    __slots__ = ("attention", "gradients", "losses", "tokens", "work")

    def __init__(self) -> None:
        self.work: dict[Any, float] = {}  # by type
        self.attention, self.losses = 0.0, 0
        self.gradients = self.tokens = 0

    def __repr__(self) -> str:
        return f"Glance({self.work}, {self.gradients} gradients)"


class Glances:
    """The glances of one process. ``begin`` is called by the model's first call in a step, ``end`` when that ends."""

    def __init__(self, torch: Any, watch: Watch) -> None:
        self._torch, self._watch = torch, watch
        self._traced = getattr(torch.autograd, "_profiler_enabled", lambda: False)
        self._hooked: list[Any] = []
        self.open: Glance | None = None
        self._due = MIN_GAP
        self._is_traced = False
        self.experts = False  # of which only those that a token went to have a gradient
        self.traced: list[Glance] = []
        self.others: list[Glance] = []

    def begin(self) -> None:
        """Look at this step, if it is traced or its time has come."""
        rec, enough = self._watch.rec, len(self.traced) >= MAX_TRACED
        if self.open is not None or rec is None or (enough and rec.steps < self._due):
            return
        self._is_traced = self._traced()
        if (enough if self._is_traced else rec.steps < self._due) or not self._watch.models.roots:
            return
        self.open, hook = Glance(), Hook(self._torch, self._called)
        if not dynamo.graphs():  # a hook would be compiled into what is
            for module in root.innermost(self._watch.models.trained).modules():
                if any(kind.__name__ in MATMULS for kind in type(module).__mro__):
                    # Registering one makes a handle, which costs more than the call of a small module.
                    module._forward_hooks[KEY] = hook
                    self._hooked.append(module)

    def _called(self, module: Any, given: Any, output: Any) -> None:
        weight = getattr(module, "weight", None)
        glance, torch = self.open, self._torch
        if glance is None or self._watch.in_backward or not torch.is_grad_enabled():
            return
        if isinstance(output, torch.Tensor) and isinstance(weight, torch.Tensor) and output.dim():
            kind, shape = output.dtype, output.shape
            amount = output.numel() / shape[-1 if weight.dim() == 2 else 1] * weight.numel()
            glance.work[kind] = glance.work.get(kind, 0.0) + amount

    def graph(self, losses: Iterable[Any]) -> None:
        """Count the attention that leads to a loss: it is a function's, and no module's."""
        waiting, known = [getattr(item, "grad_fn", None) for item in losses], set()
        glance = self.open
        while waiting and glance is not None:
            if (node := waiting.pop()) is not None and node not in known:
                known.add(node)
                glance.attention += any(word in node.name() for word in ATTENDS)
                waiting += [item for item, _ in node.next_functions]
                if len(known) > MAX_NODES:
                    glance.attention, waiting = inf, []
        if glance is not None:
            glance.losses += 1

    def end(self, tokens: int, *, whole: bool) -> None:
        """The step has ended; ``whole`` is whether its gradients are still there."""
        glance, self.open = self.open, None
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
        glance.tokens, glance.attention = tokens, glance.attention / max(1, glance.losses)
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
        attention = MIN_WORK * min(item.attention for item in self.traced)
        work = {name: MIN_WORK * min(item.work.get(name, 0.0) for item in self.traced) for name in self.traced[0].work}
        missing = sum(
            item.gradients < gradients
            or item.attention < attention < inf
            or any(item.work.get(name, 0.0) < least for name, least in work.items())
            for item in self.others
        )
        # Where steps differ in tokens, what else they hold (images, a decoder's side) differs by the token.
        ragged = len({item.tokens for item in (*self.traced, *self.others)}) > 1
        seen = len(self.others)
        if missing > 1 and missing > MAX_SHARE[ragged] * seen:
            stated.counter(NAME, seen - missing, expected=seen, steps=seen)
