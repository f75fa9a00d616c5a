"""A step of JAX in two lines, ``rec = Recorder(…)`` and ``step = rec.jit(step)``: the program states itself.

Before the first call the step is lowered with the call's own arguments: JAX keeps what it traced and lowered, and the
call compiles it, once. After that call its executable is looked at, where the lowered step has it by then; nothing here
compiles. The compiled text is written beside the receipt and listed as evidence, for readers to tell what ran. Donated
arrays are only looked at for their shapes. A call returns when the step is dispatched, and nothing here waits for it.
Sources: `jax/_src/stages.py`, `jax/_src/interpreters/pxla.py` (MeshComputation), JAX 0.10.2; flax 0.12, equinox 0.13.
"""

from __future__ import annotations

import re
from math import prod

from receipts.emit.integrations.loop import Loop, quietly
from receipts.emit.integrations.wrappers import RecordedStep
from receipts.emit.probes import imported
from receipts.emit.sight import jax_program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from receipts.emit.recorder import Recorder

    Reading = Callable[[Any], Any] | int | str | None

MAX_TEXT = 256 << 20
_ADAPTERS = re.compile(r"lora|adapter|dora", re.I)
_NAMES = {"loss": re.compile(r"(^|_)loss$", re.I), "norm": re.compile(r"(g|grads?|gradient)_?norm$", re.I)}


class SeenStep(RecordedStep):
    """A jitted step that records its calls and states its program. ``lower(…).compile()`` gives one, too."""

    def __init__(self, rec: Recorder, step: Any, tokens: int | None, readings: dict[str, Reading], **options: Any):
        super().__init__(Loop(rec, "jax"), step, tokens, None)
        self._rec, self._options, self._readings = rec, options, readings
        self._built = hasattr(step, "lower") or hasattr(step, "as_text")
        self._lowered: Any = None
        self._program: jax_program.StepProgram | None = None
        self._shapes: dict[Any, int | None] = {}
        self._tokens_at: Callable[[Any], Any] | None = None
        self._states: set[Any] = set()
        self._look, self._landed = self._before, self._after

    def _before(self, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Before the first call: build the jitted step, and state what its program says."""
        self._look = None
        self._build(given, named)
        self._see((given, named))

    def _build(self, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        if not self._built:
            self._inner, self._built = _jit_of(given, named)(self._inner, **self._options), True

    def _see(self, call: tuple[tuple[Any, ...], dict[str, Any]]) -> None:
        if (closed := self._trace(*call)) is None:
            return
        self._program = program = jax_program.StepProgram(closed)
        self._loop.stated(jax_program.facts(program))
        tree = imported.module("jax.tree_util")
        self._states = {tree.tree_structure(item) for item in call[0]}
        leaves = tree.tree_flatten_with_path(call)[0]
        paths = [tree.keystr(path) for path, _ in leaves]
        if len(leaves) >= len(program.arguments) and not any(map(_ADAPTERS.search, paths)):
            self._loop.stated({"numerics.adapters.kind": "none"})
        lookup = jax_program.main_lookup(program)
        if lookup is None:
            return
        shape = program.arguments[lookup.tokens] if lookup.tokens is not None else ()
        same = (path for path, leaf in leaves if getattr(leaf, "shape", None) == shape and "int" in str(leaf.dtype))
        if self._tokens is None and (getter := _getter(next(same, ()))) is not None:
            self._tokens_at = getter
            self._shapes[shape] = self._program_tokens(lookup)
            self._tokens, self._look = self._shapes[shape], self._again
        elif self._tokens is None:
            self._tokens = self._program_tokens(lookup)

    def _program_tokens(self, lookup: jax_program.Lookup) -> int | None:
        leaves = jax_program.batch(self._program, lookup) if self._program is not None else {}
        whole = leaves.get("batch.global_batch")
        return whole * leaves["batch.sequence_length"] if whole else None

    def _again(self, given: tuple[Any, ...], named: dict[str, Any]) -> None:
        """Before every call: tokens of another shape are another program, with its own count."""
        if self._tokens_at is None:
            return
        shape = self._tokens_at((given, named)).shape
        if shape not in self._shapes:
            self._shapes[shape] = None
            if (closed := self._trace(given, named)) is not None:
                self._program = jax_program.StepProgram(closed)
                lookup = jax_program.main_lookup(self._program)
                self._shapes[shape] = self._program_tokens(lookup) if lookup is not None else None
        self._tokens = self._shapes[shape]

    def _trace(self, given: tuple[Any, ...], named: dict[str, Any]) -> Any:
        """The closed jaxpr of a call, and what it was lowered to; None where the step is compiled already."""
        inner, trace = self._inner, getattr(self._inner, "trace", None)
        if not hasattr(inner, "lower"):
            return None
        traced = trace(*given, **named) if trace is not None else None
        self._lowered = (traced or inner).lower(*(() if traced else given), **({} if traced else named))
        self._lowered = getattr(self._lowered, "lowered", self._lowered)  # of flax's and equinox's own
        traced = getattr(traced, "traced", traced)
        if traced is not None:
            return traced.jaxpr
        make = imported.part("equinox", "filter_make_jaxpr") or imported.part("jax", "make_jaxpr")
        closed = make(inner)(*given, **named)
        return closed[0] if isinstance(closed, tuple) else closed

    def _after(self, result: Any) -> None:
        """After the first call: find loss and norm in its result, and look at what was compiled for it."""
        self._landed = None
        quietly(self._loop, "the compiled step", self._compiled)
        loss, norm = (_reader(name, wanted, result, self._states) for name, wanted in self._readings.items())
        rec = self._rec

        def read(result: Any) -> None:
            if loss is not None:
                rec.loss(loss(result))
            if norm is not None:
                rec.gradient_norm(norm(result))

        self._read = read if loss or norm else None

    def _compiled(self) -> None:
        """State the memory, the layout and the text of the program that ran."""
        lowered = self._lowered
        if lowered is None:
            compiled = self._inner if hasattr(self._inner, "as_text") else None
        else:
            # The call left it there. Without it, asking would compile a second time.
            done = getattr(getattr(lowered, "_lowering", None), "_executable", None) is not None
            compiled = lowered.compile() if done else None
        self._lowered = None
        if compiled is None:
            self._rec.note("the compiled step was not at hand: what ran is not shown by its text")
            return
        quietly(self._loop, "memory of the step", self._memory, compiled)
        if self._program is not None:
            quietly(self._loop, "shardings", self._shardings, compiled, self._program)
        if self._rec.stated_by("jax").rank == 0:
            quietly(self._loop, "text of the step", self._write, compiled)

    def _memory(self, compiled: Any) -> None:
        memory = compiled.memory_analysis()
        names = ("argument", "output", "temp")
        self._loop.stated({f"compile.{name}_bytes": getattr(memory, f"{name}_size_in_bytes", None) for name in names})
        cost = compiled.cost_analysis() or {}
        cost = cost[0] if isinstance(cost, list | tuple) else cost  # a list before 0.5
        observed = {name: float(cost[name]) for name in ("flops", "bytes accessed") if name in cost}
        version = str(imported.part("jax", "__version__"))
        if observed:
            self._rec.observe(kind="jax-cost-analysis", level="intent", producer="jax", version=version, observed=observed)

    def _shardings(self, compiled: Any, program: jax_program.StepProgram) -> None:
        """State mesh and degrees, and the micro batch of one device where the batch is split."""
        tree = imported.module("jax.tree_util")
        every = tree.tree_leaves(compiled.input_shardings, is_leaf=lambda item: item is None)
        meshes = [mesh for item in every if (mesh := dict(getattr(getattr(item, "mesh", None), "shape", None) or {}))]
        mesh = next(iter(meshes), {}) or program.mesh
        if prod(mesh.values()) < 2:
            return
        self._loop.stated({"parallelism.mesh_axes": ",".join(f"{name}:{size}" for name, size in mesh.items())})
        lookup = jax_program.main_lookup(program)
        if lookup is None or lookup.tokens is None or len(every) != len(program.arguments) or lookup.place.devices > 1:
            return
        axes = [_axes(every[at]) for at in range(len(every))]
        rows, groups = axes[lookup.tokens], 1
        for name in rows:
            groups *= mesh.get(name, 1)
        split = {name for at in jax_program.parameter_arguments(program) for name in axes[at]}
        batch = jax_program.batch(program, lookup)
        if "batch.micro_batch" in batch and not batch["batch.micro_batch"] % groups:
            self._loop.stated({"batch.micro_batch": batch["batch.micro_batch"] // groups})
        tensor = prod(mesh[name] for name in split - set(rows) if name in mesh)
        shard = prod(mesh[name] for name in split & set(rows) if name in mesh)
        self._loop.stated({"parallelism.tensor": tensor, "parallelism.shard": shard})

    def _write(self, compiled: Any) -> None:
        import gzip

        text = compiled.as_text()
        if not text or len(text) > MAX_TEXT:
            self._rec.note(f"the compiled step has {len(text or '')} characters: its text is not kept")
            return
        path = self._rec.beside(".hlo.txt.gz")
        with gzip.open(path, "wt", compresslevel=3) as stream:
            stream.write(text)
        self._rec.attach(path, "hlo")

    def lower(self, *given: Any, **named: Any) -> AheadStep:
        """Lower the step ahead of time; what ``compile()`` gives is recorded, too."""
        self._build(given, named)
        return AheadStep(self, self._inner.lower(*given, **named), (given, named))


class AheadStep:
    """A lowered step, whose compiled one is recorded."""

    def __init__(self, step: SeenStep, lowered: Any, call: tuple[tuple[Any, ...], dict[str, Any]]) -> None:
        self._step, self._lowered, self._call = step, lowered, call

    def compile(self, *given: Any, **named: Any) -> SeenStep:
        """Compile it, by JAX's own call."""
        step, compiled = self._step, self._lowered.compile(*given, **named)
        seen = SeenStep(step._rec, compiled, step._tokens, step._readings)
        quietly(step._loop, "start", step._loop.start)
        quietly(step._loop, "program", step._see, self._call)
        seen._program, seen._tokens, seen._tokens_at = step._program, step._tokens, None
        return seen

    def __getattr__(self, name: str) -> Any:
        return getattr(self._lowered, name)

    def __repr__(self) -> str:
        return f"AheadStep({self._lowered!r})"


def jit(rec: Recorder, step: Any, tokens: int | None, loss: Reading, norm: Reading, options: dict[str, Any]) -> SeenStep:
    """The step, jitted with these options where it is not yet, and recorded."""
    seen = SeenStep(rec, step, tokens, {"loss": loss, "norm": norm}, **options)
    quietly(seen._loop, "start", rec.start)
    return seen


def _jit_of(given: tuple[Any, ...], named: dict[str, Any]) -> Any:
    """The `jit` that a step of these arguments needs: of `flax.nnx` and equinox their own, which keep their modules."""
    every = (*given, *named.values())
    for module, kind, name in (("flax.nnx", "Module", "jit"), ("equinox", "Module", "filter_jit")):
        base = imported.part(module, kind) or getattr(imported.module(module), kind, None)
        if base is not None and any(isinstance(item, base) for item in every):
            return getattr(imported.module(module), name)
    return imported.module("jax").jit


def _getter(path: Any) -> Callable[[Any], Any] | None:
    """What takes a leaf out of a tree by its path; None where the path does not say how."""
    from operator import attrgetter, itemgetter

    steps: list[Any] = []
    for key in path:
        if hasattr(key, "name"):
            steps.append(attrgetter(key.name))
        elif hasattr(key, "idx") or type(key).__name__ == "DictKey":
            steps.append(itemgetter(key.idx if hasattr(key, "idx") else key.key))
        else:
            return None
    if not steps:
        return None

    def get(tree: Any) -> Any:
        for step in steps:
            tree = step(tree)
        return tree

    return get


def _reader(name: str, wanted: Reading, result: Any, states: set[Any]) -> Callable[[Any], Any] | None:
    """What takes a number out of a step's result: the caller's own way, else by its name, the loss also as the only one.

    What the step takes and gives back in the same shape (parameters, the optimizer's state) holds neither.
    """
    if callable(wanted):
        return wanted
    if type(wanted) is int:
        return lambda result: result[wanted]
    tree = imported.module("jax.tree_util")
    top = list(enumerate(result)) if type(result) is tuple else [(None, result)]
    rest = [item if tree.tree_structure(item) not in states or tree.all_leaves([item]) else None for _, item in top]
    leaves = tree.tree_flatten_with_path(tuple(rest) if type(result) is tuple else rest[0])[0]
    scalars = [path for path, leaf in leaves if getattr(leaf, "shape", None) == () and "float" in str(leaf.dtype)]
    names = [(str(getattr(path[-1], "key", getattr(path[-1], "name", ""))) if path else "", path) for path in scalars]
    fits = [path for word, path in names if (word == wanted if wanted else _NAMES[name].search(word))]
    if not fits and not wanted and name == "loss" and len(scalars) == 1 and not names[0][0]:
        return _getter(scalars[0]) or (lambda result: result)
    return _getter(min(fits, key=len)) if fits else None
