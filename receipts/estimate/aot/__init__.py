"""A train step of the estimator's model, compiled ahead of time for TPU v6e: the compiler's bytes beside the estimate.

Needs jax and libtpu (the extra ``aot``), and no TPU. Only `compile_step` imports them, when it is called.
"""

from __future__ import annotations

from receipts.estimate.aot.compile import CompiledStep, compile_step, refusals

__all__ = ["CompiledStep", "compile_step", "refusals"]
