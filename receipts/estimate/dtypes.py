"""The number types' part of a setup: what a tensor of each family takes, and what FP8 keeps beside it."""

from __future__ import annotations

from receipts.estimate.framework_memory import MEGATRON, FrameworkMemory
from receipts.estimate.inputs import OFF, EstimateInputs
from receipts.estimate.setup import Fp8, Types
from receipts.receipt.accelerators import find
from receipts.receipt.dtypes import DTYPES, dtype_of

_RECIPE = "numerics.fp8_recipe"
_MX = 2 * (1 + 1 / 32)  # data in rows and in columns, each with a scale for 32 elements


def types_of(facts: EstimateInputs, framework: FrameworkMemory, *, serving: bool) -> Types:
    """Bytes an element of each tensor family, from stated types and the framework's own."""
    named = dtype_of(facts.word("path.witnessed.compute_dtype", "numerics.compute_dtype"))
    compute = named or "bf16"
    if named is None:
        facts.assume("numerics.compute_dtype", "bf16", "the usual type of matmuls on a matrix unit")
    # FP8 is a type of operands: tensors between matmuls stay in 16 bits (Micikevicius et al. 2022, arXiv:2209.05433).
    active = max(2.0, DTYPES[compute].bytes)
    usual = framework.parameter_dtype if active <= 2.0 and not serving else compute
    parameter = _type(facts, "numerics.parameter_dtype", usual, f"what {framework.name} stores ({compute} matmuls)")
    if serving:
        return Types(active, parameter, 0.0, 0.0)
    full = "fp32" if parameter >= 4.0 else framework.gradient_dtype
    if not framework.persistent_gradients:
        # Autograd gives a gradient the type of its parameter; a type of reduction is that of a transient.
        gradient = parameter
    else:
        gradient = _type(facts, "numerics.reduction_dtype", full, f"the gradient buffer of {framework.name}")
    stated_optimizer = facts.word("numerics.optimizer", "notes.master_weights")
    master = 4.0 if framework.master and parameter < 4.0 and "no-master" not in stated_optimizer else 0.0
    return Types(active, parameter, gradient, master, *_fp8(facts, framework, named))


def _type(facts: EstimateInputs, path: str, otherwise: str, because: str) -> float:
    named = dtype_of(facts.word(path))
    if named is None:
        facts.assume(path, otherwise, because)
        named = otherwise
    return DTYPES[named].bytes


def _fp8(facts: EstimateInputs, framework: FrameworkMemory, compute: str | None) -> tuple[float, Fp8]:
    """Bytes that FP8 keeps a weight of a matmul beside the parameter, and which matmuls keep their operands.

    Transformer Engine keeps the quantized weight through a step, and on Hopper its transpose; MXFP8 needs both
    everywhere (module/base.py, `get_weight_workspace`; NVIDIA/TransformerEngine, issues 1261, 1764 and 1880).
    Parameters that are gathered in FP8 are those copies. Others cast an operand for each matmul.
    """
    recipe, scope = facts.word(_RECIPE), facts.word("numerics.fp8_scope")
    if compute != "fp8" and (compute is not None or recipe in OFF):  # a recipe over bf16 cannot act (R110)
        return 0.0, ""
    gemm = facts.word("path.witnessed.gemm", "path.intended.gemm")
    if framework is not MEGATRON and not gemm.startswith("te_"):
        facts.assume(_RECIPE, "operands of 16 bits", "cast for each matmul and not kept, as torchao and XLA do")
        return 0.0, ""
    experts = "moe" in scope or "expert" in scope
    if scope not in OFF and scope != "all" and not experts:
        facts.assume(_RECIPE, "operands of 16 bits", f"scope {scope!r} names no matmul that is counted")
        return 0.0, ""
    chip = find(facts.stated.get("hardware.accelerator"))
    size = _MX if "mx" in recipe else 1.0 if chip is not None and chip.fp8_any_layout else 2.0
    if facts.word("features.fp8_param_gather") not in OFF:
        size = 0.0
    kept = f"{size:g} bytes more a weight, inputs of 1 byte"
    facts.assume(_RECIPE, kept, "Transformer Engine keeps both operands of a matmul in FP8 until its backward")
    return size, "experts" if experts else "all"
