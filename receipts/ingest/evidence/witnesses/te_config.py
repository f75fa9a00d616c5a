"""`Running with config={…}` of Transformer Engine: versions, and what the attention was asked for."""

from __future__ import annotations

import re
from typing import Final

from receipts.ingest.literals import literal
from receipts.ingest.reading import Reading

_LEAVES: Final = {
    "transformer_engine_version": "wheels.transformer-engine",
    "flash_attn_version": "wheels.flash-attn",
    "flash_attn_3_version": "wheels.flash-attn-3",
    "flash_attn_4_version": "wheels.flash-attn-4",
    "cudnn_version": "platform.cudnn",
    "cuda_version": "platform.cuda",
}
# Objects print themselves as `<Version('2.4.2')>`, and classes as `<class 'torch.Tensor'>`.
_REPR = re.compile(r"""<(?:[\w.]+\(\s*|class\s+)['"]([^'"]*)['"]\)?>""")
_VERSION = re.compile(r"v?\d+(?:\.\d+)*[\w.+-]*")
# What a reader of the notes wants to know of a selection.
_TOLD: Final = (
    *("compute_capability", "qkv_dtype", "qkv_layout", "attn_mask_type", "window_size", "max_seqlen_q"),
    *("head_dim_qk", "context_parallel", "deterministic", "is_training", "fp8"),
)


def state_config(reading: Reading, text: str, line: int, *, cut: bool) -> None:
    """State the versions in a printed config; of one that is cut its whole entries count."""
    entries = _entries(text, cut=cut)
    if "attn_mask_type" not in entries and "qkv_dtype" not in entries and "transformer_engine_version" not in entries:
        return
    reading.records += 1
    for key, leaf in _LEAVES.items():
        version = entries.get(key, "")
        if _VERSION.fullmatch(version):
            reading.state(leaf, version, version, line)
    if _VERSION.fullmatch(version := entries.get("transformer_engine_version", "")):
        reading.version = reading.version or version
    summary = ", ".join(f"{key}={entries[key][:40]}" for key in _TOLD if key in entries)
    if summary:
        reading.remark("note", f"selected for {summary}", line)
    if entries.get("fp8", "") == "True":
        reading.see("compute_dtype", "fp8", "intent", line)
    if cut:
        reading.remark("broken", "the printed config is cut; its whole entries were read", line)


def _entries(text: str, *, cut: bool) -> dict[str, str]:
    """The entries as text; of a dict that is cut, without the last one, which may be half of one."""
    value = literal(text)
    pairs = [(name, str(entry)) for name, entry in value.items()] if isinstance(value, dict) else []
    named = {name: match[1] if (match := _REPR.fullmatch(entry)) else entry for name, entry in pairs}
    if cut and named:
        named.popitem()
    return named
