"""A failed allocation as XLA words it: its text, its chip, and the largest buffer of its report."""

from __future__ import annotations

import re
from typing import Final

from receipts.ingest.evidence.reading import MAX_TEXT, Failure, Place

NAME: Final = r"'([^']{1,200})'"
_TPU = re.compile(r"\bTPU[_:](\d{1,5})\b")
_ITEM = re.compile(r"\b1\. Size: ")
_NEXT = re.compile(r"\b2\. Size: |=====|Buffer 2:")
OPERATOR = re.compile(r'\bop_name="([^"]{1,400})"')
_LABEL = re.compile(r"XLA [Ll]abel: (.{1,200}?)(?= Allocation type| Shape:| Unpadded| =====|$)")

# A whole name of a step: `jit_train_step`, `pjit__train_step_fn`, `jit(train_step)`; not `jit_stepwise_init`.
STEP = re.compile(r"(?:^|[_(])steps?(?:$|[_).])", re.IGNORECASE)


def refused(
    text: str,
    at: int,
    class_: str,
    *,
    requested: int | None = None,
    used: int | None = None,
    free: int | None = None,
    limit: int | None = None,
    operator: str | None = None,
    phase: str | None = None,
    chip: int | None = None,
    fatal: bool = True,
) -> Failure:
    """A failure of one class, whose message begins at a place of the text; sizes are in bytes."""
    device = _TPU.search(text[max(0, at - 200) : at + 2000])
    return Failure(
        place=Place(),
        is_oom=True,
        class_=class_,
        phase=phase or ("compile" if class_.startswith("compile_") else "unknown"),
        requested_bytes=requested,
        used_bytes=used,
        free_bytes=free,
        limit_bytes=limit,
        operator=operator[:MAX_TEXT] if operator else None,
        message=text[at : at + MAX_TEXT].rstrip(),
        chip=chip if chip is not None else int(device[1]) if device else None,
        fatal=fatal,
    )


def largest(text: str) -> str | None:
    """The operator or label of the largest allocation in a report; the first one that names any."""
    first = _ITEM.search(text)
    if first is not None:
        stop = _NEXT.search(text, first.end())
        item = text[first.end() : stop.start() if stop else first.end() + 4000]
        return named(OPERATOR, item) or named(_LABEL, item)
    return named(OPERATOR, text) if "Buffer 1:" in text else None


def named(pattern: re.Pattern[str], text: str) -> str | None:
    """The name that a pattern finds."""
    match = pattern.search(text)
    return match[1].strip() if match else None
