"""Tokens and batch, from what a model is called with: a hook on the outermost wrapper that is really called.

Where torch.compile has taken the call, a hook is either traced (which breaks the graph) or never called: `wrappers` and
`look_before` say what is hooked instead.
"""

from __future__ import annotations

from functools import wraps

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from types import TracebackType
    from typing import Any

MAX_SHAPES = 64
# Arguments that hold what is trained on, before any other tensor of a call.
NAMES = ("input_ids", "inputs_embeds", "tokens", "idx", "inputs", "pixel_values", "input_values")
IDS = ("torch.int64", "torch.int32")


def tensors(value: Any, kind: type, depth: int = 2) -> Iterator[Any]:
    """Tensors of arguments in their order, also within maps and lists."""
    if isinstance(value, kind):
        yield value
    elif depth and hasattr(value, "items"):
        named = {name: item for name, item in value.items() if isinstance(name, str)}
        for name in sorted(named, key=lambda name: NAMES.index(name) if name in NAMES else len(NAMES)):
            yield from tensors(named[name], kind, depth - 1)
    elif depth and isinstance(value, list | tuple):
        for item in value:
            yield from tensors(item, kind, depth - 1)


def batch_of(given: tuple[Any, ...], named: Mapping[str, Any], kind: type) -> tuple[int, int, bool] | None:
    """Rows, length and whether they are token ids, of what a model is called with; None without a tensor.

    Ids of shape (B, T) are B sequences of T tokens. A row of anything else (an image, a latent) counts as one.
    """
    values = None
    for tensor in (*tensors(list(given), kind, 3), *tensors(dict(named), kind)):
        shape = tensor.shape
        if str(tensor.dtype) in IDS and (values is None or tensor is named.get("input_ids")) and len(shape) > 0:
            return (int(shape[0]), int(shape[1]), True) if len(shape) == 2 else (int(tensor.numel()), 1, True)
        if values is None and len(shape) > 1 and tensor.is_floating_point():
            values = int(shape[0])
    embedded = named.get("inputs_embeds")
    if isinstance(embedded, kind) and len(embedded.shape) == 3:  # type: ignore[attr-defined] # a tensor, seen as a type
        return int(embedded.shape[0]), int(embedded.shape[1]), True  # type: ignore[attr-defined] # the same
    return None if values is None else (values, 1, False)


def failing_batch(trace: TracebackType | None, models: list[Any], kind: type) -> tuple[int, int] | None:
    """Rows and length of the batch that an exception ended with: what a model was called with, else the only ids there.

    A step that failed in its backward pass has left the model's call, and the frames of the job still hold its batch.
    """
    shapes: set[tuple[int, ...]] = set()
    while trace is not None:
        names, trace = trace.tb_frame.f_locals, trace.tb_next
        if any(names.get("self") is model for model in models) and isinstance(names.get("args"), tuple):
            batch = batch_of(names["args"], names.get("kwargs") or {}, kind)
            if batch is not None:
                return batch[:2]
        shapes |= {
            tuple(item.shape)
            for item in tensors(list(names.values()), kind, 2)
            if len(item.shape) == 2 and str(item.dtype) in IDS
        }
    rows, length = shapes.pop() if len(shapes) == 1 else (0, 0)
    return (int(rows), int(length)) if rows and length else None


class InputReader:
    """What one model was called with, summed over its calls. ``apart`` is called for a call that trains nothing."""

    def __init__(self, torch: Any, apart: Callable[[], None], resumed: Callable[[], None], fault: Callable[..., None]):
        self._torch, self._kind = torch, torch.Tensor
        self._apart, self._resumed, self._fault = apart, resumed, fault
        self._handles: list[Any] = []
        self._outermost = 1 << 30
        self.backward = False  # a call in the backward pass computes again what was computed before
        self.forwards = self.tokens = self.rows = 0
        self.shapes: dict[tuple[int, int], int] = {}
        self.ids = False
        self.shifts = False  # a function of the job that makes inputs and targets of one tensor
        self.casts: set[str | None] = set()

    def __repr__(self) -> str:
        return f"InputReader({self.forwards} forwards, {self.tokens} tokens)"

    def hook(self, chain: list[Any]) -> None:
        """Look at the calls of a model's wrappers, the outermost first."""
        for index, module in enumerate(chain):
            compiled = vars(module).get("_compiled_call_impl")
            if compiled is not None:
                # A hook would be traced; what stands in place of the call is not.
                vars(module)["_compiled_call_impl"] = self._before(index, module, compiled)
            else:
                handle = module.register_forward_pre_hook(self._hook(index), with_kwargs=True)
                self._handles.append(handle)

    def _hook(self, index: int) -> Callable[..., None]:
        compiling = self._torch.compiler.is_compiling

        def look(module: Any, given: tuple[Any, ...], named: dict[str, Any]) -> None:
            if not compiling():
                self.look(index, module.training, given, named)

        return look

    def _before(self, index: int, module: Any, inner: Callable[..., Any]) -> Callable[..., Any]:
        compiling = self._torch.compiler.is_compiling

        @wraps(inner)
        def call(*given: Any, **named: Any) -> Any:
            if not compiling():
                self.look(index, module.training, given, named)
            return inner(*given, **named)

        return call

    def look(self, index: int, training: bool, given: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        """One call of a wrapper; of several wrappers the outermost that is called counts."""
        if index > self._outermost or self.backward:
            return
        try:
            if not training or not self._torch.is_grad_enabled():
                self._apart()
                return
            self._outermost = index
            self._resumed()
            self._count(given, named)
        except Exception as error:
            self.remove()
            self._fault("inputs", error)

    def _count(self, given: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        self.forwards += 1
        if self.forwards < 3:
            self.casts.add(self._autocast(given, named))
        batch = batch_of(given, named, self._kind)
        if batch is None:
            return
        rows, length, self.ids = batch
        if self.shifts and length > 8 and length % 8 == 1:
            length -= 1  # the last token is a target alone
        self.tokens += rows * length
        self.rows += rows
        if (rows, length) in self.shapes or len(self.shapes) < MAX_SHAPES:
            self.shapes[rows, length] = self.shapes.get((rows, length), 0) + 1

    def _autocast(self, given: tuple[Any, ...], named: Mapping[str, Any]) -> str | None:
        """The type that autocast is set to around the model; None where it is off."""
        tensor = next(
            (item for item in (*tensors(list(given), self._kind, 3), *tensors(dict(named), self._kind))), None
        )
        device = "cpu" if tensor is None else tensor.device.type
        if not self._torch.is_autocast_enabled(device):
            return None
        return str(self._torch.get_autocast_dtype(device)).rpartition(".")[2]

    def totals(self) -> tuple[int, int, int]:
        """Forwards, tokens and rows up to now."""
        return self.forwards, self.tokens, self.rows

    def remove(self) -> None:
        """Look no more."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._outermost = -1
