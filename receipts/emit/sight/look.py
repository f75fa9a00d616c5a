"""One step of the warm-up looked at module by module: what the backward pass computes again, and in which type.

Hooks are put on every module for that one step and taken off. What torch.compile has taken is left alone: a hook would
be compiled into it.
"""

from __future__ import annotations

from contextlib import suppress

from receipts.emit.probes import dynamo
from receipts.emit.sight import root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from receipts.emit.sight.inputs import InputReader

MATMULS = ("Linear", "Conv1D", "Conv2d", "Conv3d", "ConvTranspose2d", "Bilinear")


class Look:
    """What was seen of one step. ``hooked`` is whether there was anything to look at."""

    def __init__(self, torch: Any, model: Any, reader: InputReader) -> None:
        self._torch, self._reader = torch, reader
        self._handles: list[Any] = []
        self.again: set[int] = set()
        self.types: dict[str, int] = {}
        self.attention: set[tuple[int, int | None, int | None]] = set()
        self.hooked = False
        self._put(model)
        self._functional: Any = torch.nn.functional
        self._inner = self._functional.scaled_dot_product_attention
        if len(self._handles) > 2 and not dynamo.graphs():  # a compiled caller would be compiled anew
            self._functional.scaled_dot_product_attention = self._attend

    def _attend(self, *given: Any, **named: Any) -> Any:
        """Attention, with heads and their width from the shapes of query and key: (batch, heads, length, width)."""
        with suppress(Exception):  # a nested tensor has no shape, and says so by raising
            pair = [given[at] if len(given) > at else named[name] for at, name in enumerate(("query", "key"))]
            query, key = (tuple(item.shape) for item in pair)
            if len(query) == len(key) == 4:
                self.attention.add((int(query[1]), int(key[1]), int(query[3])))
        return self._inner(*given, **named)

    def __repr__(self) -> str:
        return f"Look({len(self.again)} computed again, {self.types})"

    def _put(self, module: Any) -> None:
        if root.compiled(module) or vars(module).get("_compiled_call_impl") is not None:
            return
        if type(module).__name__ != "ScriptModule":
            # Before: what is computed again may stop within a module, as soon as it has what it needs.
            self._handles.append(module.register_forward_pre_hook(self._called))
            if any(kind.__name__ in MATMULS for kind in type(module).__mro__):
                self._handles.append(module.register_forward_hook(self._typed))
        for child in module._modules.values():
            if child is not None:
                self._put(child)

    def _called(self, module: Any, given: Any) -> None:
        if self._reader.backward:
            self.again.add(id(module))
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
        if self._functional.scaled_dot_product_attention == self._attend:
            self._functional.scaled_dot_product_attention = self._inner
        for handle in self._handles:
            handle.remove()
        self._handles.clear()

    def recompute(self, blocks: list[Any]) -> str | None:
        """What was computed again: none, full (every block) or selective; None where there was nothing to look at."""
        if not self.hooked:
            return None
        if not self.again:
            return "none"
        return "full" if blocks and all(map(self._whole, blocks)) else "selective"

    def _whole(self, block: Any) -> bool:
        """Whether a block was called again, or all that it holds: transformers computes its `forward` again."""
        held = [
            id(item)
            for item in block._modules.values()
            if item is not None and next(item.parameters(), None) is not None
        ]
        return id(block) in self.again or (bool(held) and self.again.issuperset(held))
