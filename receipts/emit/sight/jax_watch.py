"""The loop of JAX without a line of the script changed: `jax.jit` and `jax.pmap` are replaced as JAX is imported.

What they give back is a function that calls the jitted one, and has its attributes. At its first call outside of a
trace it looks at the program, which JAX has traced for that call anyway: one with a backward pass trains. Where the
second call takes what the first one gave, each call is a step, recorded as `Recorder.jit` records it. A function that
gives gradients alone is no step: its caller updates the weights elsewhere.
"""

from __future__ import annotations

import os
from functools import wraps

from receipts.emit.probes import imported
from receipts.emit.sight import jax_program, jax_step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from receipts.emit.recorder import Recorder

MAKERS = ("jit", "pmap")
MIN_SIZE = 2  # of an array that tells one result from another: small ones may be shared


class JitWatch:
    """Watches what a process jits, until one function is its step. ``recorder`` gives the recorder, or None."""

    def __init__(self, jax: Any, recorder: Callable[[], Recorder | None]) -> None:
        self._jax, self._recorder, self._process = jax, recorder, os.getpid()
        self._closed = False
        self._makers = {name: getattr(jax, name) for name in MAKERS}
        for name, make in self._makers.items():
            setattr(jax, name, self._replaced(make))

    def __repr__(self) -> str:
        return f"JitWatch(closed={self._closed})"

    def close(self) -> None:
        """Look no more. What was jitted meanwhile is called through."""
        self._closed = True
        for name, make in self._makers.items():
            if getattr(getattr(self._jax, name), "__wrapped__", None) is make:
                setattr(self._jax, name, make)

    def _replaced(self, make: Any) -> Any:
        @wraps(make)
        def maker(*given: Any, **named: Any) -> Any:
            jitted = make(*given, **named)
            if hasattr(jitted, "lower"):
                return self._watched(jitted)
            return lambda function: self._watched(jitted(function))  # options alone give a decorator

        return maker

    def _watched(self, inner: Any) -> Any:
        clean = imported.part("jax._src.core", "trace_state_clean")
        before: set[int] | None = None
        step: Any = None
        over = clean is None

        @wraps(inner)
        def jitted(*given: Any, **named: Any) -> Any:
            nonlocal before, step, over
            if step is not None:
                return step(*given, **named) if clean() else inner(*given, **named)
            if over or self._closed or not clean():
                return inner(*given, **named)
            try:
                if before is None:
                    over = not self._trains(inner, given, named)
                else:
                    step, over = self._step(inner, before, given, named), True
            except Exception:  # the call itself raises it to the job, if it is the job's
                over = True
            if step is not None:
                return step(*given, **named)
            result = inner(*given, **named)
            if not over:
                before = _arrays(result)
            return result

        for name in dir(inner):
            if not name.startswith("__") and not hasattr(jitted, name):
                setattr(jitted, name, getattr(inner, name))
        return jitted

    def _trains(self, inner: Any, given: Any, named: Any) -> bool:
        if os.getpid() != self._process:
            return False
        traced = inner.trace(*given, **named)
        return any(item.place.part == "backward" for item in jax_program.StepProgram(traced.jaxpr).products)

    def _step(self, inner: Any, before: set[int], given: Any, named: Any) -> Any:
        """The recorded step, with the call that is over as its first one; None where it is none."""
        if not before & _arrays((given, named)) or (rec := self._recorder()) is None:
            return None
        self.close()
        step = jax_step.jit(rec, inner, None, None, None, {})
        step.begin_late((given, named))
        return step


def _arrays(tree: Any) -> set[int]:
    leaves = imported.module("jax").tree_util.tree_leaves(tree)
    return {id(item) for item in leaves if getattr(item, "size", 0) >= MIN_SIZE}
