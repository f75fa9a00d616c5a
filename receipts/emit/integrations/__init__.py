"""The recorder inside a framework's own loop: a callback, a wrapped step, or a patched function.

A framework is imported only inside the function that makes its callback, or not at all. Everywhere a step reaches from
the end of the one before it to its own end, so that the wait for data and the logging between two steps are in it;
evaluation and checkpoints are spans, as far as the framework tells their beginning and their end.
"""

from __future__ import annotations

from receipts.emit.integrations.loop import composer_callback, hf_callback, lightning_callback
from receipts.emit.integrations.wrappers import jax_step, maxtext_step, patch_megatron, record_torchtitan

__all__ = [
    "composer_callback",
    "hf_callback",
    "jax_step",
    "lightning_callback",
    "maxtext_step",
    "patch_megatron",
    "record_torchtitan",
]
