"""The loop of JAX without a line of the script changed: `jax.jit` and `jax.pmap` are replaced as JAX is imported.

What they give back is a function that calls the jitted one, and has its attributes. At its first call outside of a
trace it looks at the program, which JAX has traced for that call anyway: one with a backward pass trains. Where the
second call takes what the first one gave, each call is a step, recorded as `Recorder.jit` records it. Where a function
gives gradients alone, its caller updates the weights elsewhere, and a step lies between two calls on other weights.
"""

from __future__ import annotations

import os
from functools import wraps
from itertools import pairwise
from time import process_time

from receipts.emit.probes import imported
from receipts.emit.sight import jax_program, jax_results, jax_step

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from receipts.emit.recorder import Recorder

MAKERS = ("jit", "pmap")
MAX_CALLS = 10_000  # of a function that gives gradients, until its caller has updated the weights twice
MIN_SIZE = 2  # of an array that tells one result from another: small ones may be shared


class JitWatch:
    """Watches what a process jits, until one function is its step. ``recorder`` gives the recorder, or None."""

    def __init__(self, jax: Any, recorder: Callable[[], Recorder | None]) -> None:
        self._jax, self._recorder, self._process = jax, recorder, os.getpid()
        self._closed = False
        self._makers = {name: getattr(jax, name) for name in MAKERS}
        for name, make in self._makers.items():
            setattr(jax, name, self._replaced(make))

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
        jitted: Any = wraps(inner)(self._caller(Candidate(inner)))
        for name in dir(inner):
            if not name.startswith("__") and not hasattr(jitted, name):
                setattr(jitted, name, getattr(inner, name))

        def lower(*given: Any, **named: Any) -> Any:
            def compiled(program: Any) -> Any:
                return jax_step.AheadStep(program, self._caller(Candidate(program, inner, (given, named))))

            lowered = inner.lower(*given, **named)
            return lowered if self._closed else jax_step.AheadStep(lowered, compiled)

        jitted.lower = lower
        return jitted

    def _caller(self, seen: Candidate) -> Any:
        clean, inner = imported.part("jax._src.core", "trace_state_clean"), seen.inner
        seen.over = clean is None

        def jitted(*given: Any, **named: Any) -> Any:
            if (step := seen.step) is not None:
                return step(*given, **named) if clean() else inner(*given, **named)
            if seen.over or self._closed or not clean():
                return inner(*given, **named)
            begun = process_time()
            try:
                self._before(seen, given, named)
            except Exception:  # the call itself raises it to the job, if it is the job's
                seen.over = True
            if seen.step is not None:
                return seen.step(*given, **named)
            result = inner(*given, **named)
            if not seen.over:
                try:
                    seen.returned(result, (given, named), begun)
                except Exception:
                    seen.over = True
            return result

        return jitted

    def _before(self, seen: Candidate, given: Any, named: Any) -> None:
        """Before a call of a function that may be the step: whether it trains, then whether it is the step."""
        if seen.results is None:
            closed = jax_results.trace(seen.source, seen.call or (given, named))
            trains = any(item.place.part == "backward" for item in jax_program.StepProgram(closed).products)
            seen.over = os.getpid() != self._process or not trains
            return
        gradients = seen.gives_gradients(given, named)
        if not gradients and (seen.weights is not None or not seen.results & _arrays((given, named))):
            seen.over = seen.weights is None
            return
        seen.over = True
        if (rec := self._recorder()) is None:
            return
        self.close()
        if gradients:
            seen.step = jax_step.gradients(rec, seen.inner, seen.weights, seen.calls, (given, named))
        else:
            seen.step = jax_step.jit(rec, seen.source, None, None, None, {})
            if seen.call is not None:
                seen.step = seen.step.ahead(seen.inner, seen.call)
            seen.step.begin_late((given, named), seen.seconds)


class Candidate:
    """A jitted function that may be the step, and what its calls so far show of it.

    What was compiled ahead of time has the function that is its ``source``, and the ``call`` that it was lowered for.
    """

    def __init__(self, inner: Any, source: Any = None, call: Any = None) -> None:
        self.inner, self.source, self.call = inner, inner if source is None else source, call
        self.over = False
        self.step: Any = None
        self.results: set[int] | None = None
        self.seconds = 0.0
        # Of a function that gives gradients: what tells which weights a call is given, and that of each call.
        self.weights: Any = None
        self.calls: list[tuple[int, int]] = []

    def returned(self, result: Any, call: Any, begun: float) -> None:
        """A call has returned."""
        if self.results is None:
            self.seconds = process_time() - begun
            self.weights = jax_results.weights(result, call)
        self.results = _arrays(result)
        if self.weights is not None and len(self.calls) < MAX_CALLS:
            self.calls.append(self.weights(call))

    def gives_gradients(self, given: Any, named: Any) -> bool:
        """Whether the weights of this call are the third ones, and so others have updated them twice by now.

        By then a function that is the step itself has been called twice with what it gave.
        """
        if self.weights is None:
            return False
        every = [*self.calls, self.weights((given, named))]
        return sum(bool(one != other) for one, other in pairwise(every)) > 1


def _arrays(tree: Any) -> set[int]:
    leaves = imported.module("jax").tree_util.tree_leaves(tree)
    return {id(item) for item in leaves if getattr(item, "size", 0) >= MIN_SIZE}
