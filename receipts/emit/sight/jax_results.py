"""What a jitted step of JAX gives back: where its loss and its gradient norm are, and when a result was there.

A call of a jitted step returns at its dispatch. Where the job reads a result of every step, calls are as far apart as
steps; where it reads one step in ten, nine calls take a tenth of a millisecond and one takes ten steps. So a result of
every call is waited for in a thread of the recorder, never in the job, and its time is the end of that step. Steps that
end within a few milliseconds of one another share their time, so that the thread takes no processor from the job.
"""

from __future__ import annotations

import re
import threading
from collections import deque
from math import prod
from operator import attrgetter, itemgetter
from time import perf_counter_ns, sleep

from receipts.emit import journal
from receipts.emit.probes import imported
from receipts.emit.sight import jax_program

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Any

    from receipts.emit.run_record import RunRecord

    Wanted = Callable[[Any], Any] | int | str | None
    Getter = Callable[[Any], Any]

NAMES = {"loss": re.compile(r"(^|[_/.])loss$", re.I), "norm": re.compile(r"(g|grads?|gradient)_?norm$", re.I)}
# What a program's loss and norm follow from, and what they do not.
NUMBERS = {
    "loss": (jax_program.SMOOTH | jax_program.FORWARD, jax_program.LATE | jax_program.GIVEN),
    "norm": (jax_program.LATE | jax_program.ROOT, 0),
}
# Between two waits, and seconds until the thread looks again where nothing is to be waited for.
SPACING_NS, IDLE = 5_000_000, 0.002
# Seconds at the end of a run in which the last of what was dispatched may end.
PATIENCE = 10.0


def reader(
    name: str, wanted: Wanted, result: Any, states: set[Any], sizes: set[int], follows: Sequence[int]
) -> Getter | None:
    """What takes ``loss`` or ``norm`` out of a step's result: as the caller says, else by its name.

    Without a name it is the only number that can be it, by what the program's results follow from: a loss from the
    forward pass alone, a norm as a root from the backward pass. ``states`` are the structures of the step's arguments:
    what it takes and gives back (parameters, the optimizer's state) holds neither. A row may have one number for each
    of ``sizes``.
    """
    if callable(wanted):
        return wanted
    if type(wanted) is int:
        return itemgetter(wanted)
    shapes = {(), *((size,) for size in sizes)}
    scalars = [
        path
        for path, leaf in new_leaves(result, states)
        if getattr(leaf, "shape", None) in shapes and "float" in str(leaf.dtype)
    ]
    every = imported.module("jax.tree_util").tree_flatten_with_path(result)[0]
    # Before what the job's function gives back, frameworks give what became of its arguments.
    known = {str(path): flags for (path, _), flags in zip(reversed(every), reversed(follows), strict=False)}
    # Of this step: a number that was given and comes back is one of another.
    own = [
        path
        for path in scalars
        if known.get(str(path), 0) & (jax_program.GIVEN | jax_program.FORWARD | jax_program.LATE) != jax_program.GIVEN
    ]
    fits = [path for path in own if (word := _word(path)) == wanted or (not wanted and NAMES[name].search(word))]
    if fits or wanted:
        return getter(min(fits, key=len)) if fits else None
    unnamed = [path for path in scalars if not _word(path)]
    asked, without = NUMBERS[name]
    fits = [path for path in unnamed if known.get(str(path), 0) & (asked | without) == asked]
    if not fits and name == "loss" and len(scalars) == 1:
        total = jax_program.FORWARD | jax_program.GIVEN
        flags = known.get(str(scalars[0]), 0)
        fits = [] if flags & jax_program.ROOT or flags & (total | jax_program.LATE) == total else unnamed
    return getter(fits[0]) if len(fits) == 1 else None


def last(value: Any) -> Any:
    """A number, or what gives the last one of a row once that is asked for."""
    return (lambda: value[-1]) if getattr(value, "shape", ()) else value


def least(result: Any, states: set[Any]) -> Getter | None:
    """What takes the smallest array out of a step's result, of those that the next step is not given."""
    leaves = new_leaves(result, states) or imported.module("jax.tree_util").tree_flatten_with_path(result)[0]
    arrays = [(path, leaf) for path, leaf in leaves if hasattr(leaf, "block_until_ready")]
    return getter(min(arrays, key=lambda item: prod(item[1].shape))[0]) if arrays else None


def new_leaves(result: Any, states: set[Any]) -> list[tuple[Any, Any]]:
    """The leaves of a result that are no state, with their paths."""
    tree = imported.module("jax.tree_util")

    def is_new(item: Any) -> bool:
        return tree.all_leaves([item]) or tree.tree_structure(item) not in states

    kept = tuple(item if is_new(item) else None for item in result) if type(result) is tuple else result
    return list(tree.tree_flatten_with_path(kept if is_new(result) else None)[0])


def arguments(call: Any, shapes: Sequence[tuple[int, ...]]) -> list[tuple[Any, Any]]:
    """The arrays and numbers of a call with their paths, as its program takes them; empty where these do not fit."""
    every = imported.module("jax.tree_util").tree_flatten_with_path(call)[0]
    arrays = [(path, leaf) for path, leaf in every if hasattr(leaf, "dtype")]
    numbers = [
        (path, leaf) for path, leaf in every if hasattr(leaf, "dtype") or isinstance(leaf, int | float | complex)
    ]
    for taken in (numbers, arrays):  # numbers may be static
        if [getattr(leaf, "shape", ()) for _, leaf in taken] == list(shapes):
            return taken
    return []


def trace(inner: Any, call: Any) -> Any:
    """The jaxpr of a jitted function as it is called. Where JAX does not keep it, the function is traced once more."""
    given, named = call
    if hasattr(inner, "trace"):
        traced = inner.trace(*given, **named)
        return getattr(traced, "traced", traced).jaxpr
    make = imported.part("equinox", "filter_make_jaxpr") or imported.part("jax", "make_jaxpr")
    closed = make(inner)(*given, **named)
    return closed[0] if isinstance(closed, tuple) else closed


def jit_for(call: Any) -> Any:
    """The `jit` that a step of these arguments needs: of `flax.nnx` and equinox their own, which know their modules."""
    every = (*call[0], *call[1].values())
    for name, function in (("flax.nnx", "jit"), ("equinox", "filter_jit")):
        base = getattr(imported.module(name), "Module", None)
        if base is not None and any(isinstance(item, base) for item in every):
            return getattr(imported.module(name), function)
    return imported.module("jax").jit


def weights(result: Any, call: Any) -> Any:
    """What tells of a call which weights it is given, where its result has their gradients; None where it has none."""
    tree = imported.module("jax.tree_util")
    last = result[-1] if type(result) is tuple and result else result  # `value_and_grad` gives them last
    leaves = tree.tree_leaves(last)
    if not leaves or tree.all_leaves([last]):
        return None
    kind, shapes = tree.tree_structure(last), [getattr(leaf, "shape", None) for leaf in leaves]
    for path, item in tree.tree_flatten_with_path(call, is_leaf=lambda item: tree.tree_structure(item) == kind)[0]:
        if (
            tree.tree_structure(item) != kind
            or [getattr(leaf, "shape", 0) for leaf in tree.tree_leaves(item)] != shapes
        ):
            continue
        inner = tree.tree_flatten_with_path(item)[0]
        first, final = (getter((*path, *inner[at][0])) for at in (0, -1))
        if first is not None and final is not None:
            return lambda call: (id(first(call)), id(final(call)))
    return None


def mean(values: list[Any]) -> Callable[[], float]:
    """What reads values, and those that came since, as their mean."""
    return lambda: sum(map(float, values)) / len(values)


def getter(path: Any) -> Getter | None:
    """What takes a leaf out of a tree by its path; None where the path does not say how."""
    steps: list[Any] = []
    for key in path:
        kind = type(key).__name__
        if kind not in ("GetAttrKey", "SequenceKey", "DictKey"):
            return None
        steps.append(
            attrgetter(key.name) if kind == "GetAttrKey" else itemgetter(key.idx if kind[0] == "S" else key.key)
        )
    if len(steps) == 1:
        return steps[0]  # type: ignore[no-any-return]  # of the operator module

    def get(tree: Any) -> Any:
        for step in steps:
            tree = step(tree)
        return tree

    return get


def _word(path: Any) -> str:
    return str(getattr(path[-1], "key", getattr(path[-1], "name", ""))) if path else ""


class Landings:
    """Results of calls in their order, and when each was there. ``put`` takes the next one and returns at once.

    Each call makes ``steps`` steps, which have equal shares of its time.
    """

    def __init__(self, first: int, steps: int = 1) -> None:
        self.first, self.steps = first, steps
        self._waiting: deque[Any] = deque()
        self.put = self._waiting.append
        # The step and the time of each result that was waited for.
        self._ends: list[tuple[int, int]] = []
        self._taken, self._closed, self._failed = 0, False, False
        self._thread = threading.Thread(target=self._run, name="receipts-landings", daemon=True)
        self._thread.start()

    def _run(self) -> None:
        waiting, stride = self._waiting, 1
        while waiting or not self._closed:
            if not waiting:
                sleep(IDLE)
                continue
            # Of short steps every so many share a wait, as far as they have been dispatched.
            for _ in range(min(stride, len(waiting))):
                result = waiting.popleft()
                self._taken += 1
            try:
                result.block_until_ready()
            except Exception:  # given to the next step, which may write over it; or the step failed, which the job sees
                self._failed = True
                return
            self._ends.append((self._taken - 1, perf_counter_ns()))
            if len(self._ends) > 1:
                (before, begun), (step, ended) = self._ends[-2:]
                stride = max(1, SPACING_NS * (step - before) // max(1, ended - begun))

    def stop(self) -> None:
        """Wait for nothing more."""
        self._waiting.clear()
        self._closed = True

    def close(self, record: RunRecord) -> bool:
        """Write the ends over those of the calls; False, and nothing is written, where not every step has one."""
        self._closed = True
        self._thread.join(PATIENCE)
        if (
            self._thread.is_alive()
            or self._failed
            or self.first + self._taken * self.steps != record.steps
            or not self._ends
        ):
            return False
        ends, known = [0] * self._taken, -1
        for step, end in self._ends:
            before = ends[known] if known >= 0 else end
            for between in range(known + 1, step + 1):
                ends[between] = before + (end - before) * (between - known) // (step - known)
            known = step
        step, before = 0, 0
        for words, used in record.blocks:
            for at in range(0, used, 2):
                if step >= self.first:
                    call, part = divmod(step - self.first, self.steps)
                    took = words[at + 1] & journal.DURATION_MASK
                    begun = max(words[at] - took, before)
                    end = begun + (max(ends[call], words[at]) - begun) // (self.steps - part)
                    flags = words[at + 1] & ~journal.DURATION_MASK
                    words[at], words[at + 1] = end, max(1, end - begun) | flags
                step, before = step + 1, words[at]
        record.last_ns = max(record.last_ns, before)  # what was dispatched ends after the job's last call
        return True
