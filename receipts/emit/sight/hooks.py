"""The places of torch where a watch listens: a global hook of optimizers, and functions that are replaced by wrappers.

Each wrapper calls what it wraps whatever happens. The first error in what listens silences that place and becomes a
note. A wrapper that is being traced by torch.compile does nothing, so that no graph knows of it.
"""

from __future__ import annotations

import sys
from functools import wraps

from receipts.emit.probes import imported
from receipts.emit.sight.inputs import unhook

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Listener = Callable[..., Any]

# Where functions of torch and its neighbours lie, by what is told of them. A name that a version lacks is passed over.
CLIPPING = (
    ("torch.nn.utils.clip_grad", "_clip_grads_with_norm_"),
    ("torch.nn.utils.clip_grad", "clip_grads_with_norm_"),
)
SAVING = (
    ("torch", "save"),
    ("torch.distributed.checkpoint", "save"),
    ("torch.distributed.checkpoint", "async_save"),
    ("torch.distributed.checkpoint.state_dict_saver", "save"),
    ("torch.distributed.checkpoint.state_dict_saver", "async_save"),
    ("safetensors.torch", "save_file"),
)
SCALER = "torch.amp.grad_scaler"
ENGINE = "deepspeed.runtime.engine"


class Hooks:
    """What was put into torch, and taken out again by `remove`. ``listener`` has a method for each event."""

    def __init__(self, torch: Any, listener: Any) -> None:
        self._torch = torch
        self._listener = listener
        self._replaced: dict[tuple[int, str], tuple[Any, Any, Any]] = {}
        self._handle: Any = None
        self._silent: set[str] = set()
        self.sees_checkpoints = False  # whether `checkpointed` is told of each that is compiled
        self.ranges = True  # whether ranges of the profiler's matter: as long as a trace may begin or end
        self._compiling: Callable[[], bool] = torch.compiler.is_compiling
        self._frames: Listener = imported.part("torch._C._dynamo.eval_frame", "set_eval_frame") or (lambda now: now)

    def install(self) -> None:
        """Listen to what is imported by now; calling it again adds what came since."""
        if self._handle is None:
            post = sys.modules["torch.optim.optimizer"].register_optimizer_step_post_hook
            stepped: Listener = lambda optimizer, given, named: self._tell("stepped", optimizer)  # noqa: E731 # marked
            for function in (stepped, self._tell):
                self._skip(function)
            self._handle = post(stepped)
        self._wrap("torch.autograd", "backward", self._around("backward"))
        scope = vars(sys.modules["torch.autograd.profiler"]).get("record_function")
        self._wrap_in(scope, "__enter__", self._scope(begins=True))
        self._wrap_in(scope, "__exit__", self._scope(begins=False))
        self._wrap("torch.autograd.profiler", "_prepare_profiler", self._after("prepared"))
        self._wrap("torch.autograd.profiler", "_enable_profiler", self._after("enabled"))
        for module, name in CLIPPING:
            self._wrap(module, name, self._after("clipped"))
        for module, name in SAVING:
            self._wrap(module, name, self._within("saving", "saved"))
        self._wrap("torch", "compile", self._compile)
        self._wrap("torch.jit._recursive", "create_script_module", self._scripted)
        self._see_checkpoints()
        scaler = imported.part(SCALER, "GradScaler")
        for name in ("scale", "update"):
            self._wrap_in(scaler, name, self._after(f"scaler_{name}"))
        self._wrap_in(scaler, "step", self._around("scaler_step"))
        self._wrap_in(imported.part(ENGINE, "DeepSpeedEngine"), "step", self._around("engine_step"))

    def remove(self) -> None:
        """Put back what was replaced, where nobody has replaced it since."""
        if self._handle is not None:
            self._handle.remove()
            self._handle = None
        for (_, name), (owner, before, ours) in self._replaced.items():
            if vars(owner).get(name) is ours:
                setattr(owner, name, before)
        self._replaced.clear()

    def _tell(self, event: str, *given: Any) -> None:
        """Call what listens; it never raises, and is not called again after it failed."""
        if event in self._silent:
            return
        # Where a function that is compiled ends its graph, what it calls would be compiled too, and break.
        frames = self._frames(None)
        try:
            getattr(self._listener, event)(*given)
        except Exception as error:
            self._silent.add(event)
            self._listener.fault(event, error)
        finally:
            self._frames(frames)

    def _wrap(self, module: str, name: str, make: Callable[[Any], Any]) -> None:
        # Torch itself is still being imported when it is armed.
        self._wrap_in(sys.modules.get(module), name, make)

    def _wrap_in(self, owner: Any, name: str, make: Callable[[Any], Any]) -> None:
        inner = None if owner is None else vars(owner).get(name)
        if inner is None or (id(owner), name) in self._replaced:
            return
        ours = wraps(inner)(replacement := make(inner))
        self._skip(replacement)
        setattr(owner, name, ours)
        self._replaced[id(owner), name] = owner, inner, ours

    def _skip(self, function: Any) -> None:
        """Have torch.compile take a function for no frame of its own; a graph may still go through it."""
        frames = imported.module("torch._C._dynamo.eval_frame")
        if hasattr(frames, "set_code_exec_strategy"):
            action = frames._FrameAction
            frames.set_code_exec_strategy(function.__code__, frames._FrameExecStrategy(action.SKIP, action.DEFAULT))
        elif hasattr(frames, "skip_code"):  # before 2.8
            frames.skip_code(function.__code__)

    def _after(self, event: str) -> Callable[[Any], Any]:
        def make(inner: Any) -> Any:
            def call(*given: Any, **named: Any) -> Any:
                result = inner(*given, **named)
                if not self._compiling():
                    self._tell(event, result, given, named)
                return result

            return call

        return make

    def _around(self, event: str) -> Callable[[Any], Any]:
        def make(inner: Any) -> Any:
            def call(*given: Any, **named: Any) -> Any:
                if self._compiling():
                    return inner(*given, **named)
                self._tell(event, True, given, named)
                try:
                    return inner(*given, **named)
                finally:
                    self._tell(event, False, given, named)

            return call

        return make

    def _scope(self, *, begins: bool) -> Callable[[Any], Any]:
        """A named range of the profiler's; this wrapper is never traced, for torch.compile knows the class itself."""

        def make(inner: Any) -> Any:
            def call(*given: Any) -> Any:
                result = inner(*given)
                if self.ranges:
                    self._tell("scope", begins, given[0])
                return result

            return call

        return make

    def _within(self, begins: str, ends: str) -> Callable[[Any], Any]:
        def make(inner: Any) -> Any:
            def call(*given: Any, **named: Any) -> Any:
                self._tell(begins)
                try:
                    return inner(*given, **named)
                finally:
                    self._tell(ends)

            return call

        return make

    def _scripted(self, inner: Any) -> Any:
        """TorchScript compiles the hooks of a module with it, and ours is no function of its language."""

        def create(module: Any, *given: Any, **named: Any) -> Any:
            put_back = unhook(module)
            try:
                return inner(module, *given, **named)
            finally:
                put_back()

        return create

    def _compile(self, inner: Any) -> Any:
        def compile(*given: Any, **named: Any) -> Any:
            result = inner(*given, **named)
            self._see_checkpoints()
            if not given or given[0] is None or not callable(given[0]):
                return self._seen_through(result) if callable(result) and not given else result
            return result if isinstance(given[0], self._torch.nn.Module | type) else self._looked_at(result)

        return compile

    def _see_checkpoints(self) -> None:
        """Listen to the compiler, which traces every function that is computed again in the backward pass."""
        kind = imported.part("torch._dynamo.variables.higher_order_ops", "CheckpointHigherOrderVariable")
        name = next((name for name in ("_call_function", "call_function") if name in vars(kind or object)), "")
        if name:
            self.sees_checkpoints = True
            self._wrap_in(kind, name, self._traced)

    def _traced(self, inner: Any) -> Any:
        def call(variable: Any, translator: Any, given: Any, named: Any) -> Any:
            self._tell("checkpointed", given[0] if given else None, named)
            return inner(variable, translator, given, named)

        return call

    def _seen_through(self, decorator: Any) -> Any:
        """`@torch.compile(...)`: what it is given comes later."""

        @wraps(decorator)
        def decorate(function: Any) -> Any:
            result = decorator(function)
            plain = not isinstance(function, self._torch.nn.Module | type)
            return self._looked_at(result) if plain and callable(result) else result

        return decorate

    def _looked_at(self, function: Any) -> Any:
        """A compiled function, whose arguments tell the batch where no hook of the model is called."""

        @wraps(function)
        def call(*given: Any, **named: Any) -> Any:
            if not self._compiling():
                self._tell("called", function, given, named)
            return function(*given, **named)

        return call
