"""# R104 unnamed_denominator

*Why.* One step is 40.2 % by all parameters, 25.8 % by the active ones and 29.2 % by the framework's own count; the
sparse figure on a datasheet halves each of them. Without formula, peak and type an MFU names no quantity.

*Rejected.* An MFU of 29.2 % with no formula. One divided by 1,979 TFLOP/s in bf16 on an H200: the sparse figure. One
divided by 756 TFLOP/s there: the peak of another card, or a tool's default. The peak of TF32, half as high, of a run in
bf16. A sparse peak, or another machine's, is one whether an MFU stands beside it or not.

*Accepted.* An MFU with formula, peak and type, against the dense peak, which tables give up to a tenth apart. A receipt
without an MFU. As W: the 16-bit peak of a run in a smaller type, by the convention of those who compare FP8 with bf16.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from receipts.judging.rule import COMPARABLE, MFU, Case, E, Offense, W, rule
from receipts.receipt.accelerators import Accelerator, find_accelerator

STATED = "measurement.stated"
RATIO, PEAK, DTYPE, SPARSE = (
    f"{STATED}.{name}" for name in ("mfu", "peak_flops_per_second", "peak_dtype", "peak_sparse")
)
NAMED = (
    (f"{STATED}.formula", "the id of its FLOPs formula"),
    (PEAK, "the peak that it divides by"),
    (DTYPE, "the type whose peak that is"),
)
COMPUTED = "numerics.compute_dtype"
SPARED = ("tflops_per_second_per_chip",)  # they are divided by no peak
SAME = 0.005  # sources round a peak to three or four digits
HALF = ("bf16", "fp16")  # whose peak is the common denominator, also of steps with smaller types in them
NEAR = 0.1  # tables give one chip's peak at other clocks: 2,250 and 2,450 TFLOP/s


def _machine(case: Case) -> Accelerator | None:
    return find_accelerator(case.get("hardware.accelerator"))


def _is(figure: float | None, other: float | None, within: float = SAME) -> bool:
    return bool(figure and other and abs(figure - other) <= within * other)


def _dtype(case: Case) -> str | None:
    """The type whose peak it is: without an MFU beside it the one that was computed in, as the engine takes it."""
    own: str | None = case.get(DTYPE)
    computed: str | None = case.get(COMPUTED)
    return own if own is not None or case.get(RATIO) is not None else computed


def needs(case: Case) -> Iterable[str]:
    """Whether the peak is the sparse one, where the registry cannot tell."""
    if case.get(RATIO) is None or case.get(PEAK) is None:
        return
    machine = _machine(case)
    known = machine is not None and _is(case.get(PEAK), machine.peak(case.get(DTYPE)))
    if not known and not _sparse(case, machine):
        yield SPARSE
    if case.get("hardware.accelerator") is None:
        yield "hardware.accelerator"


def _sparse(case: Case, machine: Accelerator | None) -> bool:
    """Whether the peak is a sparse one: the source says so, or the registry knows the figure as its type's."""
    peak, dtype = case.get(PEAK), _dtype(case)
    if case.get(SPARSE) is True or machine is None:
        return case.get(SPARSE) is True
    typed = _is(peak, machine.peak(dtype, sparse=True)) and not _is(peak, machine.peak(dtype))
    return typed or machine.is_sparse_figure(peak)


@rule("R104", "unnamed_denominator", E, question=COMPARABLE, taints=(MFU,), needs=needs, spares=SPARED)
def unnamed_denominator(case: Case) -> Iterator[Offense]:
    """What a stated MFU does not name; a sparse denominator, one of another machine, and one of a slower type."""
    for path, what in NAMED if case.get(RATIO) is not None else ():
        if case.get(path) is None:
            yield Offense(at=path, found="not stated beside an MFU", expected=what, do=f"state {path}, or drop the MFU")
    peak, machine = case.get(PEAK), _machine(case)
    if peak is None:
        return
    dense = machine.peak(_dtype(case)) if machine is not None else None
    computed = machine.peak(case.get(COMPUTED)) if machine is not None else None
    if _sparse(case, machine):
        yield Offense(
            at=PEAK,
            found=f"{peak:.4g} FLOP/s with sparsity",
            expected=f"the dense peak{f', {dense:.4g}' if dense else ''}",
            do="divide by the dense peak",
        )
    elif machine is not None and dense is not None and not _is(peak, dense, NEAR):
        yield Offense(
            at=PEAK,
            found=f"{peak:.4g} FLOP/s",
            expected=f"{dense:.4g}, the dense peak of {machine.key} in {_dtype(case)}",
            do="divide by the peak of the accelerator that ran, or name the type whose peak it is",
        )
    elif dense is not None and computed is not None and dense < computed * (1 - NEAR):
        yield Offense(
            at=DTYPE,
            found=f"the peak of {case.get(DTYPE)}, {dense:.4g} FLOP/s, and it computed in {case.get(COMPUTED)}",
            expected=f"{computed:.4g} FLOP/s or more, the peak of the type that it computed in",
            do="divide by the peak of the fastest type that the launch computed in",
            level=W if case.get(DTYPE) in HALF else None,
        )
