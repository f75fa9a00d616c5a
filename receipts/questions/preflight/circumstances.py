"""What goes with a signature: the lineage and other circumstances under which a launch worked or failed."""

from __future__ import annotations

import fnmatch
from collections.abc import Iterator
from typing import Final

from receipts.axes import effective
from receipts.axes.effective import wheel_name
from receipts.axes.lane import Lane
from receipts.questions.preflight.answer import Unlike
from receipts.receipt import Parsed

_USUAL: Final = ("torch", "torch_xla", "jax", "jaxlib", "libtpu", "transformer-engine", "megatron-core", "deepspeed")
_MOST: Final = 8


def unlike(there: Parsed, here: Parsed, lane: Lane) -> tuple[Unlike, ...]:
    """Where two launches of one signature differ all the same, for what both state."""
    return tuple(_unlike(there, here, lane))


def _unlike(there: Parsed, here: Parsed, lane: Lane) -> Iterator[Unlike]:
    theirs, mine = effective(there), effective(here)
    for path, value in theirs.items():
        if path in mine and mine[path] != value and _counts(path, lane):
            yield Unlike(path, str(value), str(mine[path]))
    contexts = there.receipt.run.context, here.receipt.run.context
    if None not in contexts and contexts[0] != contexts[1]:
        yield Unlike("run.context", str(contexts[0]), str(contexts[1]))


def _counts(path: str, lane: Lane) -> bool:
    if path.startswith("flags."):
        name = path.removeprefix("flags.")
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in lane.early_flags)
    return path.startswith(("wheels.", "platform.")) or path == "code.imported_digest"


def lineage(parsed: Parsed, lane: Lane) -> tuple[tuple[str, str], ...]:
    """The wheels of a launch that its lane's lineages name, else the frameworks' own, with their versions."""
    named = [name for item in (*lane.documented, *lane.validated) for name in item.wheels if "." not in name]
    values = effective(parsed)
    paths = {f"wheels.{wheel_name(name)}": name for name in reversed([*named, *_USUAL])}
    ancestors = [(name, str(values[path])) for path, name in reversed(paths.items()) if path in values]
    return tuple(ancestors[:_MOST])
