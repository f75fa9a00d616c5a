"""One failed allocation by the words that tell it; and the attention that a report of XLA shows."""

from __future__ import annotations

import re
from typing import Final

from receipts.ingest.literals import binary_size
from receipts.ingest.reading import MAX_TEXT, AllocationFailure, Place

# Batch, heads, queries, keys.
_SHAPE = re.compile(r"\b(?:bf16|f16|f32)\[(\d{1,9}(?:,\d{1,9}){3,4})\]")
# Three axes are a folded batch's, or the weights of layers: the operator tells them apart.
_FOLDED = re.compile(
    r"->[\w.]{1,8}qk/dot_general(?:(?!\d\. Size: ).){1,900}?Shape: (?:bf16|f16|f32)\[(\d{1,9}(?:,\d{1,9}){2})\]"
)
_KERNEL = re.compile(r'op_name="[^"]{0,2000}/(?P<name>splash_mha|flash_attention)[^"]{0,2000}/pallas_call"')
_VALUES: Final = {"splash_mha": "pallas_splash", "flash_attention": "pallas_flash"}
MIN_LENGTH: Final = 1024
# A shorter sequence is seen by what the report calls the operator.
_SCORES = re.compile(r"attention|->[\w.]{1,8}qk\b", re.IGNORECASE)
_MIN_NAMED: Final = 128


def holds_scores(text: str) -> bool:
    """Whether a report names a matrix of attention scores, whose last two axes are the sequence."""
    shortest = _MIN_NAMED if _SCORES.search(text) else MIN_LENGTH
    shapes = (
        [int(extent) for extent in shape.split(",")] for form in (_SHAPE, _FOLDED) for shape in form.findall(text)
    )
    return any(shape[-1] == shape[-2] >= shortest for shape in shapes)


def kernel(text: str) -> str | None:
    """The Pallas attention kernel that a report names; a `tpu_custom_call` alone proves none."""
    match = _KERNEL.search(text) if "tpu_custom_call" in text else None
    return _VALUES[match["name"]] if match else None


NAME: Final = r"'(?P<operator>[^']{1,200})'"
_TPU = re.compile(r"\bTPU[_:](\d{1,5})\b")
_ITEM = re.compile(r"\b1\. Size: ")
_NEXT = re.compile(r"\b2\. Size: |=====|Buffer 2:")
OPERATOR = re.compile(r'\bop_name="([^"]{1,400})"')
_LABEL = re.compile(r"XLA [Ll]abel: (.{1,200}?)(?= Allocation type| Shape:| Unpadded| =====|$)")

# A whole name of a step: `jit_train_step`, `pjit__train_step_fn`, `jit(train_step)`; not `jit_stepwise_init`.
_STEP = re.compile(r"(?:^|[_(])steps?(?:$|[_).])", re.IGNORECASE)


def refused(
    text: str,
    match: re.Match[str],
    class_: str,
    *,
    operator: str | None = None,
    chip: int | None = None,
    is_oom: bool | None = True,
    fatal: bool = True,
    before: int = 0,
    behind: int = MAX_TEXT,
    **sizes: int | None,
) -> AllocationFailure:
    """A failure of one class, whose message begins with a match.

    Its groups ``requested``, ``used``, ``free``, ``limit``, ``operator`` and ``chip`` are figures of the failure where
    none is given; ``exact`` is what was requested, to the byte.
    """
    groups, at = match.groupdict(), match.start()
    device = _TPU.search(text[max(0, at - 200) : at + 2000]) if not before else None
    named_chip = groups.get("chip") or (device[1] if device else None)
    sizes = {name: binary_size(groups.get(name)) for name in ("requested", "used", "free", "limit")} | sizes
    operator = operator or groups.get("operator")
    phase = "compile" if class_.startswith("compile_") else "unknown"
    if class_ == "program_load" and _STEP.search(operator or ""):
        phase = "startup"
    return AllocationFailure(
        place=Place(),
        is_oom=is_oom,
        class_=class_,
        phase=phase,
        operator=operator[:MAX_TEXT] if operator else None,
        message=text[max(0, at - before) : match.end() + behind][:MAX_TEXT].strip(),
        chip=int(named_chip) if chip is None and named_chip else chip,
        fatal=fatal,
        requested_bytes=binary_size(groups.get("exact")) or sizes["requested"],
        used_bytes=sizes["used"],
        free_bytes=sizes["free"],
        limit_bytes=sizes["limit"],
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
