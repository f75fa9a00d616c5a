"""What the backward pass computes again, by looking at one step of the warm-up and at what the compiler traces.

Hooks are put on every module for that one step and taken off. What torch.compile has taken is looked at from outside:
a hook on what lies within would be compiled into it.
"""

from __future__ import annotations

from contextlib import suppress
from functools import wraps

from receipts.emit import profiling
from receipts.emit.probes import dynamo, imported
from receipts.emit.sight import root
from receipts.emit.sight.inputs import Hook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping
    from typing import Any

    from receipts.emit.sight.inputs import InputReader

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
            query, key = (tuple(item.shape) for item in pair)
            if len(query) == len(key) == 4:
                self.attention.add((int(query[1]), int(key[1]), int(query[3])))
        return self._inner(*given, **named)

    def __repr__(self) -> str:
        return f"Look({len(self.again)} computed again, {self.types})"

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

    def __repr__(self) -> str:
        return f"Checkpoints({len(self.modules)} modules, {self.functions} functions)"

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
