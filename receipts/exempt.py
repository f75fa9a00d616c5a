"""What may be left out without a trace: the one list of leaves whose loss can turn *rejected* into *accepted*.

Every other leaf, entry of a list and key of a map that is dropped leaves an offence or an open question (rules.md). The
tests of that property and the full scan of single drops read this list; it does not grow without a line there.
"""

from __future__ import annotations

from collections.abc import Collection
from fnmatch import fnmatchcase
from typing import Final

from receipts.receipt.catalogue import find, path_of
from receipts.receipt.leaf import Role

# What repeats other leaves: a launch that does not say a thing twice cannot contradict itself.
RESTATEMENTS: Final = (
    "measurement.stated",
    "measurement.stated.*",
    "batch.micro_batch",  # the global batch by the degrees that divide it
    "batch.accumulation",
)
# Without its own declaration a launch has no duty to fulfil.
DUTIES: Final = ("run.witness_for", "run.resumed_from", "run.supersedes", "run.parts", "run.parts[[]*")
_WORK: Final = ("batch.global_batch", "batch.sequence_length")


def exempt(path: str, stated: Collection[str]) -> bool:
    """Whether a drop of ``path`` from a receipt that states ``stated`` is exempt."""
    if path == "measurement.tokens_per_step":
        return set(_WORK) <= set(stated)
    if any(fnmatchcase(path, pattern) for pattern in (*RESTATEMENTS, *DUTIES)):
        return True
    leaf = find(path_of(path))
    return leaf is not None and (leaf.required or leaf.role is Role.DERIVED)
