"""What a jitted step of JAX gives back: where its loss and its gradient norm are, and which result is waited for."""

from __future__ import annotations

import re
from math import prod
from operator import attrgetter, itemgetter

from receipts.emit.probes import imported

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    Wanted = Callable[[Any], Any] | int | str | None
    Getter = Callable[[Any], Any]

NAMES = {"loss": re.compile(r"(^|[_/.])loss$", re.I), "norm": re.compile(r"(g|grads?|gradient)_?norm$", re.I)}


def reader(name: str, wanted: Wanted, result: Any, states: set[Any], sizes: set[int]) -> Getter | None:
    """What takes ``loss`` or ``norm`` out of a step's result: as the caller says, else by its name.

    A lone number without a name is the loss. ``states`` are the structures of the step's arguments: what it takes and
    gives back (parameters, the optimizer's state) holds neither. A row may have one number for each of ``sizes``.
    """
    if callable(wanted):
        return wanted
    if type(wanted) is int:
        return itemgetter(wanted)
    leaves = new_leaves(result, states)
    shapes = {(), *((size,) for size in sizes)}
    scalars = [path for path, leaf in leaves if getattr(leaf, "shape", None) in shapes and "float" in str(leaf.dtype)]
    fits = [path for path in scalars if (word := _word(path)) == wanted or (not wanted and NAMES[name].search(word))]
    if not fits and not wanted and name == "loss" and len(scalars) == 1 and not _word(scalars[0]):
        return getter(scalars[0])
    return getter(min(fits, key=len)) if fits else None


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
