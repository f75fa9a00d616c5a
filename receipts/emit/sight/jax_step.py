"""A step of JAX in two lines, ``rec = Recorder(…)`` and ``step = rec.jit(step)``: the program states itself.

Before the first call the step is lowered with the call's own arguments: JAX keeps what it traced and lowered, and the
call compiles it, once. After that call its executable is looked at, where the lowered step has it by then; nothing here
compiles. The compiled text is written beside the receipt and listed as evidence, for readers to tell what ran. Donated
arrays are only looked at for their shapes. A call returns when the step is dispatched; the job never waits (see
`jax_results`).
Sources: `jax/_src/stages.py`, `jax/_src/interpreters/pxla.py` (MeshComputation), JAX 0.10.2; flax 0.12, equinox 0.13.
"""

from __future__ import annotations

import re
from collections import Counter
from itertools import groupby
from math import prod
from time import process_time

from receipts.emit.integrations.loop import Loop, quietly
from receipts.emit.integrations.wrappers import RecordedStep
from receipts.emit.probes import imported
from receipts.emit.sight import jax_facts, jax_program, jax_results, witness
from receipts.emit.sight.jax_results import Landings

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from receipts.emit.probing import ProbeOutput
    from receipts.emit.recorder import Recorder
    from receipts.emit.sight.jax_results import Getter, Wanted

    Call = tuple[tuple[Any, ...], dict[str, Any]]

# Calls after which it shows whether each step ends before the next call.
FIRST_CALLS = 8
# Of processor time that the first call may take, most of it compiling, for the norm to be computed beside the step.
MAX_SECONDS = 120.0
# Above the kept text: a reader then knows that it is the step, and not one of many programs.
RECORDED = "// HloModule of the recorded step"
_ACCUMULATED = ".acc_grads"  # of optax.MultiStepsState
_ADAPTERS = re.compile(r"lora|adapter", re.I)


class SeenStep(RecordedStep):
    """A jitted step that records its calls and states its program. ``lower(…).compile()`` gives one, too."""

    NAME = "jax step"

    def __init__(self, rec: Recorder, step: Any, tokens: int | None, wanted: dict[str, Wanted], **options: Any) -> None:
        super().__init__(Loop(rec, "jax"), getattr(step, "__func__", step), tokens, None)
        # Of a bound method the function has the program, and what it is bound to is its first argument.
        self._bound = (step.__self__,) if hasattr(step, "__func__") else ()
        self._rec, self._options, self._wanted = rec, options, wanted
        self._built = hasattr(step, "lower") or hasattr(step, "as_text")
        self._lowered: Any = None
        self._program: jax_program.StepProgram | None = None
        # Tokens of a step by the shape of what holds them and the static arguments, and where in a call these are.
        self._counts: dict[Any, int | None] = {}
        self._tokens_of: Getter | None = None
        self._static: list[Getter] = []
        self._models: dict[Any, dict[str, Any]] = {}
        self._shape: Any = None
        self._states: set[Any] = set()
        self._loss: Getter | None = None
        self._norm: Getter | None = None
        self._least: Getter | None = None
        self._landings: Landings | None = None
        # Results of the first calls, and whether each was there when the next call had returned.
        self._first: list[Any] | None = []
        self._ended = True
        self._waits = "none"
        self._traced: Any = None
        self._seconds = 0.0  # of processor time that the first call took
        self._look, self._landed = self._before, self._after

    def _before(self, *call: Any) -> None:
        """Before the first call: build the jitted step, and state what its program says."""
        self._look = None
        self._build(call)
        self._see(call)

    def begin_late(self, call: Call, seconds: float) -> None:
        """Take a call that is over as the first one, without its time: the recorder was not there."""
        self._begun, self._seconds = True, seconds
        quietly(self._loop, "start", self._loop.start)
        quietly(self._loop, "program", self._before, *call)
        quietly(self._loop, "step", self._loop.begin)
        quietly(self._loop, "step", self._loop.end, self._tokens, self._steps)

    def _build(self, call: Call) -> None:
        if not self._built:
            self._inner, self._built = jax_results.jit_for(call)(self._inner, **self._options), True

    def _see(self, call: Call) -> None:
        tree = imported.module("jax.tree_util")
        self._states = {tree.tree_structure(item) for item in call[0] if not tree.all_leaves([item])}
        if (closed := self._trace(call)) is None:
            return
        self._traced, self._seconds = closed, self._seconds or -process_time()
        self._program = program = jax_program.StepProgram(closed)
        leaves = tree.tree_flatten_with_path(call)[0]
        facts = jax_facts.facts(program)
        if any(_ACCUMULATED in tree.keystr(path) for path, _ in leaves):
            facts |= {"batch.global_batch": None, "batch.accumulation": None}
            self._rec.note("optax.MultiSteps: the program does not say how many calls update the weights once")
        self._loop.stated(facts)
        self._steps = max(1, jax_facts.steps(program))
        if self._steps > 1 and not any(flags & jax_program.ROOT for flags in program.results):
            # Before the call: the steps of the next one are measured.
            quietly(self._loop, "gradient norm", self._compute_norm, closed, call)
        if arguments := jax_results.arguments(call, program.arguments):
            self._loop.stated({"model.architecture": jax_facts.architecture(program, arguments)})
        named = any(_ADAPTERS.search(tree.keystr(path)) for path, _ in leaves)
        if len(leaves) >= len(program.arguments) and not named and not jax_facts.adapter_ranks(program):
            self._loop.stated({"numerics.adapters.kind": "none"})
        lookup = jax_facts.main_lookup(program)
        if lookup is None or self._tokens is not None:
            return
        self._tokens = jax_facts.tokens(program)
        shape = program.arguments[lookup.tokens] if lookup.tokens is not None else ()
        same = (path for path, leaf in leaves if getattr(leaf, "shape", None) == shape and "int" in str(leaf.dtype))
        if shape and (getter := jax_results.getter(next(same, ()))) is not None:
            if len(leaves) > len(program.arguments):
                paths = (path for path, leaf in leaves if not hasattr(leaf, "dtype"))
                self._static = [item for item in map(jax_results.getter, paths) if item is not None]
            self._tokens_of, self._look = getter, self._again
            self._shape = (shape, *(item(call) for item in self._static)) if self._static else shape
            self._counts[self._shape] = self._tokens
            self._models = {self._shape: facts} if self._static else {}

    def _again(self, *call: Any) -> None:
        """Before every further call: tokens of another shape, or another static argument, are another program."""
        shape: Any = self._tokens_of(call).shape  # type: ignore[misc]  # it is there where this is called
        if self._static:
            shape = shape, *(item(call) for item in self._static)
        if shape == self._shape:
            return
        self._shape = shape
        if shape not in self._counts:
            self._counts[shape] = None
            if (closed := self._trace(call)) is not None:
                program = jax_program.StepProgram(closed)
                self._counts[shape] = jax_facts.tokens(program)
                if self._static:
                    # A static argument may leave out a part of the model: what runs now is what is stated.
                    self._models[shape] = jax_facts.facts(program)
        self._tokens = self._counts[shape]
        self._loop.stated(self._models.get(shape, {}))

    def _trace(self, call: Call) -> Any:
        """The jaxpr of a call, and what it is lowered to; None where the step is compiled already."""
        (given, named), inner = call, self._inner
        if not hasattr(inner, "lower"):
            return None
        if not hasattr(inner, "trace"):
            lowered, closed = inner.lower(*given, **named), jax_results.trace(inner, call)
        else:
            traced = inner.trace(*given, **named)
            lowered, closed = traced.lower(), getattr(traced, "traced", traced).jaxpr
        self._lowered = getattr(lowered, "lowered", lowered)  # within flax's and equinox's own
        return closed

    def _after(self, result: Any) -> None:
        """After the first call: find loss and norm in its result, and look at what was compiled for it."""
        self._landed = None
        devices = prod(self._program.mesh.values()) if self._program is not None else 1
        sizes = {self._steps, devices} - {1}  # one number a step, or a device
        follows = self._program.results if self._program is not None else ()
        self._loss, self._norm = (
            jax_results.reader(name, self._wanted[name], result, self._states, sizes, follows)
            for name in ("loss", "norm")
        )
        self._least = jax_results.least(result, self._states)
        self._seconds += process_time() * (self._seconds < 0)
        if self._norm is None:
            self._ask_norm()
        self._traced = None
        if self._loss is not None or self._least is not None:
            self._landings = Landings(self._rec.steps, self._steps)
        self._read = self._results
        quietly(self._loop, "the compiled step", self._compiled)

    def _ask_norm(self) -> None:
        """Have the norm of the gradients computed once, before the next call, where the job gives none back."""
        closed, before = self._traced, self._look
        if closed is None or self._steps > 1:
            return

        def look(*call: Any) -> None:
            self._look = before
            if before is not None:
                before(*call)
            self._compute_norm(closed, call)

        self._look = look

    def _compute_norm(self, closed: Any, call: Call) -> None:
        """Compute the norm of this call's first gradients beside the step.

        It costs another compile of the step's forward and backward pass, and so is not done where the first one took
        long, nor where several processes would have to compute it together.
        """
        program, jax = self._program, imported.module("jax")
        if program is None or closed.jaxpr.effects or jax.process_count() > 1 or self._seconds > MAX_SECONDS:
            return
        compute = program.norm(closed, jax_facts.parameter_arguments(program), loops=self._steps > 1)
        arguments = jax_results.arguments(call, program.arguments)
        if compute is not None and arguments and self._rec.steps < (self._rec._run.record.warmup or 0):
            self._rec.gradient_norm(jax.jit(compute)(*(leaf for _, leaf in arguments)))

    def _results(self, result: Any) -> None:
        """After every call: keep loss and norm, which are read at the end, and have the step's end waited for."""
        rec, value = self._rec, None
        if (loss := self._loss) is not None:
            value = loss(result)
            rec.loss(jax_results.last(value))
        if (norm := self._norm) is not None:
            rec.gradient_norm(jax_results.last(norm(result)))
        if (landings := self._landings) is not None:
            value = self._least(result) if value is None and self._least is not None else value
            landings.put(value)
            if (first := self._first) is not None:
                self._ended = self._ended and (not first or first[-1].is_ready())
                first.append(value)
                if len(first) == FIRST_CALLS:
                    self._first = None
                    if self._ended:
                        # Each step had ended before the next call returned, as where the job reads every result: calls
                        # are as far apart as steps, and nothing is waited for.
                        landings.stop()
                        self._landings, self._waits = None, "device"

    def at_end(self, stated: ProbeOutput) -> None:
        """Write when steps ended over when they were dispatched, and state which of both the receipt has."""
        if self._read is None:
            return
        if self._landings is not None and self._landings.close(self._rec.record):
            self._waits = "device"
        stated.put("measurement.synchronisation", self._waits)

    def _compiled(self) -> None:
        """State the memory, the layout and the text of the program that ran."""
        lowered, self._lowered = self._lowered, None
        compiled = self._inner if hasattr(self._inner, "as_text") else None
        # The call left its executable there. Without it, asking would compile a second time.
        if lowered is not None and getattr(getattr(lowered, "_lowering", None), "_executable", None) is not None:
            compiled = lowered.compile()
        if compiled is None:
            self._rec.note("the compiled step was not at hand: its text does not show what ran")
            return
        quietly(self._loop, "memory of the step", self._memory, compiled)
        if self._program is not None:
            quietly(self._loop, "shardings", self._shardings, compiled, self._program)
        if self._rec.record.place.rank == 0:
            text = quietly(self._loop, "text of the step", compiled.as_text)
            kept = f"{RECORDED}\n{text}" if text else ""
            quietly(self._loop, "text of the step", witness.keep, self._rec, "hlo", kept)

    def _memory(self, compiled: Any) -> None:
        memory = compiled.memory_analysis()
        names = ("argument", "output", "temp")
        self._loop.stated({f"compile.{name}_bytes": getattr(memory, f"{name}_size_in_bytes", None) for name in names})
        cost = compiled.cost_analysis() or {}
        cost = cost[0] if isinstance(cost, list | tuple) else cost  # a list before 0.5
        observed = {name: float(cost[name]) for name in ("flops", "bytes accessed") if name in cost}
        if observed:
            version = str(imported.part("jax", "__version__"))
            self._rec.observe(kind="jax-cost", level="intent", producer="jax", version=version, observed=observed)

    def _shardings(self, compiled: Any, program: jax_program.StepProgram) -> None:
        """State mesh and degrees, and the micro batch of one device where the batch is split."""
        tree = imported.module("jax.tree_util")
        every = tree.tree_leaves(compiled.input_shardings, is_leaf=lambda item: item is None)
        meshes = (dict(getattr(getattr(item, "mesh", None), "shape", None) or {}) for item in every)
        mesh = max(meshes, key=len, default={}) or program.mesh
        lookup = jax_facts.main_lookup(program)
        if prod(mesh.values()) < 2 or lookup is None or lookup.tokens is None:
            return
        leaves: dict[str, Any] = {"mesh_axes": ",".join(f"{name}:{size}" for name, size in mesh.items())}
        split, local = program.split, lookup.place.devices > 1
        if not local and len(every) == len(program.arguments):
            split = {at: getattr(item, "spec", None) for at, item in enumerate(every)}
        if split:
            parameters = [at for at in jax_facts.parameter_arguments(program) if at not in program.copies]
            over = {name for at in parameters for name in jax_program.axes(split.get(at))}
            last, spec = len(program.arguments[lookup.tokens]) - 1, tuple(split.get(lookup.tokens) or ())
            rows, along = jax_program.axes(spec[:last]), jax_program.axes(spec[last:])
            kinds = {"tensor": over - rows - along, "shard": over & rows, "context": along, "pipeline": set()}
            # Experts that are split may be so over any axis.
            if not any(item.experts > 1 and item.weight in split for item in program.products):
                kinds["expert"] = set()
            leaves |= {kind: prod(mesh[name] for name in names) for kind, names in kinds.items()}
            groups = prod(mesh[name] for name in rows)
            leaves["replicate"] = groups // leaves["shard"]
            micro = jax_facts.batch(program, lookup)["batch.micro_batch"]
            if not local and not micro % groups:
                self._loop.stated({"batch.micro_batch": micro // groups})
        self._loop.stated({f"parallelism.{name}": size for name, size in leaves.items()})

    def lower(self, *given: Any, **named: Any) -> AheadStep:
        """Lower the step ahead of time; what ``compile()`` gives is recorded, too."""
        self._build((given, named))
        inner: Any = self._inner
        call = given, named
        return AheadStep(inner.lower(*given, **named), lambda compiled: self.ahead(compiled, call))

    def ahead(self, compiled: Any, call: Call) -> SeenStep:
        """What was compiled of this step for such a call, recorded in its place."""
        quietly(self._loop, "start", self._loop.start)
        quietly(self._loop, "program", self._see, call)
        step = jit(self._rec, compiled, self._tokens, self._wanted["loss"], self._wanted["norm"], {})
        step._program, step._states, step._traced = self._program, self._states, self._traced
        return step


class SeenGradients(SeenStep):
    """A jitted function that gives gradients, which its caller updates the weights by.

    A step ends with the first call on new weights. It holds the other calls on the weights before, whose losses are
    those of one batch, and the update.
    """

    def __init__(self, rec: Recorder, inner: Any, weights: Any) -> None:
        super().__init__(rec, inner, None, {"loss": None, "norm": None})
        self._weights = weights
        self._now = (0, 0)
        self._micros: list[Any] = []
        self._passes: list[int] = []
        self._sums: list[Any] = []  # of a step's gradients so far
        self._look = None

    def begin_past(self, calls: list[tuple[int, int]], call: Call) -> None:
        """Take the calls before this one, when nobody knew what they were."""
        self._begun = True
        loop = self._loop
        loop.start()
        quietly(loop, "program", self._see, call)
        runs = [list(run) for _, run in groupby(calls)]
        self._passes, self._now = [len(run) for run in runs], calls[-1]
        for _ in runs:  # without their times: the recorder was not there
            loop.begin()
            loop.end(self._tokens_of_step())

    def _tokens_of_step(self) -> int | None:
        return self._tokens * self._passes[0] if self._tokens else None

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Call the function; the first call on new weights ends a step."""
        call, loop = (given, named), self._loop
        now = quietly(loop, "weights", self._weights, call)
        first = now is not None and now != self._now
        if first:
            quietly(loop, "step", loop.begin)
        result = self._inner(*given, **named)
        if first:
            self._now, self._micros = now, []
            self._passes.append(0)
            quietly(loop, "step", loop.end, self._tokens_of_step())
        self._passes[-1] += 1
        quietly(loop, "loss", self._keep, result, first)
        return result

    def _keep(self, result: Any, first: bool) -> None:
        if self._landed is not None:
            self._landed = None
            self._after(result)
        if self._loss is not None:
            self._micros.append(self._loss(result))
        if self._program is not None and self._program.gives_gradients:
            self._add(result, first)
        if not first:
            return
        if self._micros:
            self._rec.loss(jax_results.mean(self._micros))
        if self._landings is not None and self._least is not None:
            self._landings.put(self._least(result))

    def _add(self, result: Any, first: bool) -> None:
        """Take the norm of a warm-up step's gradients: of several calls, of their mean."""
        rec, jax = self._rec, imported.module("jax")
        if rec.steps > (rec._run.record.warmup or 0):
            self._sums = []
            return
        leaves = jax.tree_util.tree_leaves(result[-1] if type(result) is tuple else result)
        if first and self._sums:
            calls = self._passes[-2]
            rec.gradient_norm(jax.jit(lambda sums: jax_program.norm(sums) / calls)(self._sums))
        elif self._passes[0] == 1:
            rec.gradient_norm(jax.jit(jax_program.norm)(leaves))
        if self._passes[0] > 1 and (first or self._sums):
            # The caller may write over what it was given.
            self._sums = [
                item.copy() if first else item + own for item, own in zip(leaves, self._sums or leaves, strict=True)
            ]

    def _ask_norm(self) -> None:
        """The gradients are there."""

    def at_end(self, stated: ProbeOutput) -> None:
        """State how many calls made a step."""
        super().at_end(stated)
        usual = Counter(self._passes[1:] or [1]).most_common(1)[0][0]
        lookup = jax_facts.main_lookup(self._program) if self._program is not None else None
        if self._program is not None and lookup is not None and usual > 1:
            whole = jax_facts.batch(self._program, lookup).get("batch.global_batch", 0)
            self._loop.stated({"batch.accumulation": usual, "batch.global_batch": whole * usual or None})


class AheadStep:
    """What was lowered or compiled ahead of time: ``then`` takes what its ``compile()`` gives, or calls it."""

    def __init__(self, inner: Any, then: Callable[..., Any]) -> None:
        self._inner, self._then = inner, then

    def compile(self, *given: Any, **named: Any) -> Any:
        """Compile it, by JAX's own call."""
        return self._then(self._inner.compile(*given, **named))

    def __call__(self, *given: Any, **named: Any) -> Any:
        """Call what was compiled."""
        return self._then(*given, **named)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._inner, name)

    def __repr__(self) -> str:
        return f"AheadStep({self._inner!r})"


def jit(rec: Recorder, step: Any, tokens: int | None, loss: Wanted, norm: Wanted, options: dict[str, Any]) -> SeenStep:
    """The step, jitted with these options where it is not yet, and recorded."""
    seen = SeenStep(rec, step, tokens, {"loss": loss, "norm": norm}, **options)
    quietly(seen._loop, "start", rec._run.warm_up)
    quietly(seen._loop, "start", rec.ask, seen)
    quietly(seen._loop, "start", rec.start)
    return seen


def gradients(rec: Recorder, inner: Any, weights: Any, calls: list[Any], call: Call) -> SeenGradients:
    """The function that gives gradients, recorded from its first call on."""
    seen = SeenGradients(rec, inner, weights)
    quietly(seen._loop, "start", rec._run.warm_up)
    quietly(seen._loop, "start", rec.ask, seen)
    quietly(seen._loop, "start", rec.start)
    quietly(seen._loop, "steps before", seen.begin_past, calls, call)
    return seen
