"""Tokens and batch, from what a model is called with: a hook on the outermost wrapper that is really called.

Where torch.compile has taken the call, a hook is either traced (which breaks the graph) or never called: `wrappers` and
`look_before` say what is hooked instead.
"""

from __future__ import annotations

import sys
import weakref
from contextlib import suppress
from functools import partial, wraps
from types import MappingProxyType

from receipts.emit.sight import root

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping
    from types import TracebackType
    from typing import Any

    from receipts.emit.sight.steps import Anchor

    Totals = tuple[int, int, int]

LBFGS = "LBFGS"
MAX_SHAPES = 64
# Arguments that hold what is trained on, before any other tensor of a call.
NAMES = ("input_ids", "inputs_embeds", "tokens", "idx", "inputs", "pixel_values", "input_values")
IDS = ("torch.int64", "torch.int32")
# Calls of which two are compared, and each of the first ones: a prime, as a step may call its model several times with
# one batch, and these two are not to be of one step each time.
EVERY = 17


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


class Hook:
    """A hook on a module of the job's. It is pickled with the model as what takes anything and does nothing, so that a
    checkpoint of the whole model can be written, and read where there is no recorder. A copy of the model has it.
    A call that is traced or compiled is not looked at: what is asked of its shapes would become part of the graph.
    """

    __slots__ = ("_call", "_torch")

    def __init__(self, torch: Any, call: Callable[..., None]) -> None:
        self._torch, self._call = torch, call

    def __repr__(self) -> str:
        return f"Hook({self._call!r})"

    def __call__(self, *given: Any) -> None:
        if not self._torch._C._get_tracing_state() and not self._torch.compiler.is_compiling():
            self._call(*given)

    def __deepcopy__(self, _: Any) -> Hook:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return partial, (sys.audit, "receipts.hook")


def unhook(model: Any) -> Callable[[], None]:
    """Take the recorder's hooks from a model and all it holds; what this returns puts each back in its place."""
    every = [hooks for item in model.modules() for hooks in (item._forward_pre_hooks, item._forward_hooks)]
    before = [(hooks, dict(hooks)) for hooks in every if any(type(hook) is Hook for hook in hooks.values())]
    for hooks, items in before:
        for key in [key for key, hook in items.items() if type(hook) is Hook]:
            del hooks[key]

    def put_back() -> None:
        for hooks, items in before:
            later = {key: hook for key, hook in hooks.items() if key not in items}
            hooks.clear()
            hooks.update({**items, **later})

    return put_back


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
        self._last: tuple[Any, ...] = (0,)
        # How many calls were compared, by whether they are late ones and whether their batch is the one before.
        self.compared = {(late, same): 0 for late in (False, True) for same in (False, True)}

    def hook(self, chain: list[Any]) -> None:
        """Look at the calls of a model's wrappers, the outermost first."""
        for index, module in enumerate(chain):
            compiled = vars(module).get("_compiled_call_impl")
            if compiled is not None:
                # A hook would be traced; what stands in place of the call is not.
                vars(module)["_compiled_call_impl"] = self._before(index, module, compiled)
            else:
                handle = module.register_forward_pre_hook(Hook(self._torch, self._hook(index)), with_kwargs=True)
                self._handles.append(handle)

    def _hook(self, index: int) -> Callable[..., None]:
        def look(module: Any, given: tuple[Any, ...], named: Mapping[str, Any] = MappingProxyType({})) -> None:
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
            self.forwards += 1
            if self.forwards < 3:
                # The type that autocast is set to around the model; None where it is off.
                every = (*tensors(list(given), self._kind, 3), *tensors(dict(named), self._kind))
                device = every[0].device.type if every else "cpu"
                cast = self._torch.get_autocast_dtype(device) if self._torch.is_autocast_enabled(device) else None
                self.casts.add(None if cast is None else str(cast).rpartition(".")[2])
            if self.forwards < EVERY or self.forwards % EVERY < 2:
                with suppress(Exception):  # what was made in inference mode has no version
                    self._compare(given, named)
            if (batch := batch_of(given, named, self._kind)) is not None:
                rows, length, self.ids = batch
                if self.shifts and length > 8 and length % 8 == 1:
                    length -= 1  # the last token is a target alone
                self.tokens += rows * length
                self.rows += rows
                if (rows, length) in self.shapes or len(self.shapes) < MAX_SHAPES:
                    self.shapes[rows, length] = self.shapes.get((rows, length), 0) + 1
        except Exception as error:
            self.remove()
            self._fault("inputs", error)

    def _compare(self, given: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        """Whether a batch is the one of the call before, unwritten and in its place, or one row many times."""
        every = (*tensors(list(given), self._kind, 3), *tensors(dict(named), self._kind))
        batch = next((item for item in every if item.dim() > 3 or str(item.dtype) in IDS), None)
        if batch is None or not batch.dim():
            return
        of = batch if batch._base is None else batch._base
        # What NumPy writes into a tensor on the host has no version: a few of its numbers tell.
        few = batch[0].flatten()[:16].tolist() if batch.device.type == "cpu" else None
        now = (self.forwards, weakref.ref(of), batch._version, batch.storage_offset(), batch.shape, batch.stride(), few)
        before, self._last = self._last, now
        if before[0] == self.forwards - 1 > 0:
            one_row = batch.shape[0] > 1 and batch.stride()[0] == 0
            same = one_row or (before[1]() is of and before[2:] == now[2:])
            self.compared[self.forwards > EVERY, same] += 1

    @property
    def repeats(self) -> bool:
        """Whether the calls that were compared have the batch before, whatever the first ones had."""
        fresh, again = self.compared[True, False], self.compared[True, True]
        if fresh + again <= 2:
            fresh, again = fresh + self.compared[False, False], again + self.compared[False, True]
        return fresh + again > 2 and again > 0.9 * (fresh + again)

    def remove(self) -> None:
        """Look no more."""
        for handle in self._handles:
            handle.remove()
        self._handles.clear()
        self._outermost = -1


class Models:
    """The models that a loop trains, in their wrappers, and what they and compiled functions were called with."""

    def __init__(self, torch: Any, anchor: Anchor, models: tuple[Any, ...]) -> None:
        self._torch, self._anchor = torch, anchor
        self._roots: list[Callable[[], Any]] = []
        self.readers: list[InputReader] = []
        self._functions: dict[int, InputReader] = {}
        self._fault: Callable[..., None] = lambda *_: None
        self._searching: tuple[int, bool] = (0, False)  # by how many optimizers are known
        self.set(models)

    def set(self, models: Iterable[Any]) -> None:
        """Take these for the models."""
        self._roots = [weakref.ref(item) for item in models]

    def hook(self, apart: Callable[[], None], resumed: Callable[[], None], fault: Callable[..., None]) -> None:
        """Look at what each is called with from here on."""
        self._fault = fault
        for item in self.roots:
            reader = InputReader(self._torch, apart, resumed, fault)
            reader.hook(root.chain(item))
            self.readers.append(reader)

    def remove(self) -> None:
        """Look no more."""
        for reader in (*self.readers, *self._functions.values()):
            reader.remove()

    @property
    def roots(self) -> list[Any]:
        """The models in their wrappers; none once the job has let go of one: a watch keeps nothing alive."""
        living = [ref() for ref in self._roots]
        return [] if any(item is None for item in living) else living

    @property
    def trained(self) -> Any:
        """The model that the anchor trains, in its wrappers."""
        return self.roots[self._number()]

    @property
    def reader(self) -> InputReader:
        """Who sees what that model is called with."""
        return self.readers[self._number()]

    @property
    def current(self) -> list[InputReader]:
        """Those who saw what it was called with: where no hook of it is called, those of compiled functions."""
        own = self.readers[self._number() :][:1]
        return own if any(reader.forwards for reader in own) else list(self._functions.values())

    @property
    def one_batch(self) -> bool:
        """Whether a step has one batch however often models are called: by a closure that searches, or in turns."""
        stepping = sum(map(bool, self._anchor.counts.values()))
        if self._searching[0] != stepping:
            every = self._anchor.optimizers()
            self._searching = stepping, any(kind.__name__ == LBFGS for item in every for kind in type(item).__mro__)
        return len(self.readers) > 1 or self._searching[1]

    def _number(self) -> int:
        """Which of the models the anchor trains."""
        if len(self._roots) < 2 or len(self.roots) < 2 or not self._anchor.optimizers():
            return 0
        held = root.parameters_of(self._anchor.optimizers()[0])
        counts = [sum(id(item) in held for item in model.parameters()) for model in self.roots]
        return counts.index(max(counts))

    def called(self, function: Any, given: tuple[Any, ...], named: Mapping[str, Any]) -> None:
        """A compiled function is called; it tells the batch where no model does."""
        if any(reader.forwards for reader in self.readers):
            return
        reader = self._functions.get(id(function))
        if reader is None:
            reader = InputReader(self._torch, lambda: None, lambda: None, self._fault)
            reader.shifts = len(list(tensors([*given, dict(named)], self._torch.Tensor, 3))) == 1
            self._functions[id(function)] = reader
        reader.look(0, True, given, named)

    def totals(self) -> tuple[Totals, ...]:
        """Forwards, tokens and rows up to now, of each model and then of each function."""
        return tuple((item.forwards, item.tokens, item.rows) for item in (*self.readers, *self._functions.values()))

    def step_totals(self, before: tuple[Totals, ...], after: tuple[Totals, ...]) -> Totals:
        """Forwards, tokens and rows of a step, of the model that the anchor trains, or of what was compiled."""
        number = self._number()
        old = (*before, *[(0, 0, 0)] * (len(after) - len(before)))
        steps = [(a[0] - b[0], a[1] - b[1], a[2] - b[2]) for a, b in zip(after, old, strict=True)]
        forwards, tokens, rows = steps[number] if number < len(self.readers) else (0, 0, 0)
        if not forwards and len(steps) > len(self.readers):
            forwards, tokens, rows = max(steps[len(self.readers) :], key=lambda item: item[1])
        if forwards > 1 and self.one_batch:
            tokens, rows = tokens // forwards, rows // forwards
        return forwards, tokens, rows
