"""What may be left out without a trace: the one list of what a drop can turn *rejected* into *accepted* by.

Whatever else is dropped leaves an offense or an open question (rules.md, the first property). The tests of that
property and the full scan of single drops read this list; it does not grow without a line in rules.md.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from fnmatch import fnmatchcase
from typing import Final

from receipts.receipt.leaf import Role
from receipts.receipt.leaves import find_leaf

# What repeats other leaves: who does not say a thing twice cannot contradict himself.
RESTATEMENTS: Final = ("measurement.stated", "measurement.stated.*")
# Tokens a step, where batch and length make them.
_WORK: Final = ("batch.global_batch", "batch.sequence_length")
# Without its own declaration a launch has no duty to fulfill; without the counts nobody knows what was taken out, and
# what was counted is still there.
DUTIES: Final = ("run.witness_for", "run.resumed_from", "run.supersedes", "run.entries")
_ALL: Final = (*RESTATEMENTS, *DUTIES, *(f"{name}[.[]*" for name in DUTIES))


def exempt(path: str, stated: Collection[str]) -> bool:
    """Whether a drop of ``path`` from a receipt that states the leaves ``stated`` is exempt."""
    if path == "measurement.tokens_per_step" and set(_WORK) <= set(stated):
        return True
    leaf = find_leaf(re.sub(r"\[\d+\]", "[]", path))
    if leaf is not None and (leaf.required or leaf.role is Role.DERIVED):
        return True
    return any(fnmatchcase(path, pattern) for pattern in _ALL)
