"""Strange but honest traces of torch.profiler: the class, the cause of a gap, and the refusal of each."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from receipts.ingest.evidence import read
from receipts.plugins.why.difference import TracedLaunch
from receipts.plugins.why.profile import Profile, read_profiles
from receipts.plugins.why.refusals import of_side
from receipts.receipt import Parsed
from rule_cases import base, parsed
from span_traces import KinetoTrace

GEMM = "nvjet_tst_128x256_64x4_2x1_v_bz_coopA_NNT"
ADD = "void at::native::vectorized_elementwise_kernel<4, at::native::CUDAFunctor_add<float>>(int)"
RING = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
Step = Callable[[KinetoTrace, float], None]


def gemm(trace: KinetoTrace, at: float, begin: float = 50, length: float = 800) -> None:
    """A product that nearly fills a step of 1000 µs."""
    trace.op("aten::linear", at + 10, 30)
    trace.kernel(GEMM, at + 20, at + begin, length)


def traced(folder: Path, step: Step, *, steps: int = 6, marks: bool = True, order: int | None = None) -> Profile:
    """The profile of steps of a millisecond; ``order`` shuffles the events."""
    trace = KinetoTrace(base=1_700_000_000_000_000)
    for number in range(steps):
        if marks:
            trace.step(number, 1000 * number, 990)
        step(trace, 1000 * number)
    if order is not None:
        random.Random(order).shuffle(trace.events)
    (reading,) = read(trace.write(folder / "trace.json")).readings
    (raw,) = reading.extracts.values()
    (profile,) = read_profiles(raw)
    return profile


def times(profile: Profile) -> dict[str, int]:
    """The time by class of a kept step, in microseconds."""
    step = profile.kept[1]
    return {name: round(time / 1000) for name, time in zip(profile.classes, step.times, strict=True) if time}


def refused(profile: Profile) -> set[str]:
    """By name, why the trace cannot carry a table."""
    receipt: Parsed = parsed(base())
    launch = TracedLaunch(receipt.id, "a", {"rank 0": (profile,)})
    return {item.name for item in of_side("A", [launch], {receipt.id: receipt})} - {"another-launch"}


def whole_graph(trace: KinetoTrace, at: float) -> None:
    """A graph that was traced as one row."""
    trace.kernel("graph 3", at + 20, at + 50, 800, **{"graph id": 3})


def graph_nodes(trace: KinetoTrace, at: float) -> None:
    """The kernels of a graph, all of one call."""
    trace.event("cudaGraphLaunch", "cuda_runtime", at + 20, 5, correlation=10**6 + at)
    for node, (name, begin, length) in enumerate(((GEMM, 50, 600), (ADD, 660, 200))):
        ids = {"correlation": 10**6 + at, "graph id": 3, "graph node id": node, "device": 0, "stream": 7}
        trace.event(name, "kernel", at + begin, length, 7, **ids)


def streams(trace: KinetoTrace, at: float) -> None:
    """Two products beside each other."""
    gemm(trace, at, 50, 600)
    trace.kernel(GEMM, at + 25, at + 150, 600, stream=8)


def reduced_beside(trace: KinetoTrace, at: float) -> None:
    """A reduction on a stream of its own, which outlasts the product that it began under."""
    gemm(trace, at, 50, 600)
    trace.kernel(RING, at + 30, at + 400, 450, stream=20)


def unmarked(trace: KinetoTrace, at: float) -> None:
    """A step that nobody marks."""
    gemm(trace, at)


def amd(trace: KinetoTrace, at: float) -> None:
    """Kernels of ROCm, and a copy as it names it."""
    trace.kernel("Cijk_Ailk_Bljk_BBS_BH_MT256x256x64_MI16x16x16x1_SN", at + 20, at + 50, 600)
    trace.kernel("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", at + 30, at + 650, 100)
    trace.kernel("CopyHostToDevice", at + 35, at + 750, 100, category="gpu_memcpy")


def triton(trace: KinetoTrace, at: float) -> None:
    """What torch.compile calls its kernels."""
    trace.kernel("triton_tem_fused_mm_3", at + 20, at + 50, 400)
    trace.kernel("triton_poi_fused_add_gelu_0", at + 25, at + 450, 200)
    trace.kernel("triton_per_fused_native_layer_norm_1", at + 30, at + 650, 200)


def prefetched(trace: KinetoTrace, at: float) -> None:
    """The next layer's parameters are gathered while this one computes: the step that launched it has it."""
    gemm(trace, at, 50, 800)
    trace.op("FSDP::all_gather", at + 40, 20)
    trace.kernel("ncclDevKernel_AllGather_RING_LL(ncclDevKernelArgsStorage<4096ul>)", at + 45, at + 100, 900, stream=22)


def nested(trace: KinetoTrace, at: float) -> None:
    """Annotations of the program within each other, and the optimizer's own."""
    for name, begin, length in (("train", 5, 900), ("## forward ##", 8, 40), ("Optimizer.step#AdamW.step", 60, 100)):
        trace.event(name, "user_annotation", at + begin, length)
    gemm(trace, at, 50, 600)
    trace.op("aten::_foreach_add_", at + 70, 20)
    trace.kernel(ADD, at + 75, at + 650, 200)


def saving(trace: KinetoTrace, at: float) -> None:
    """A thread that saves a checkpoint copies to the host beside the step, and then writes for long."""
    gemm(trace, at)
    trace.op("aten::copy_", at + 100, 40, thread=9)
    trace.kernel("Memcpy DtoH (Device -> Pinned)", at + 110, at + 200, 300, thread=9, category="gpu_memcpy", stream=30)
    trace.op("write_state", at + 150, 840, thread=9)


def backward(trace: KinetoTrace, at: float) -> None:
    """Attention by products: its softmax runs backward on another thread, and is attention by its sequence number."""
    trace.op("aten::scaled_dot_product_attention", at + 10, 20)
    trace.op("aten::_softmax", at + 12, 10, **{"Sequence number": int(at) + 5})
    trace.kernel("void softmax_warp_forward<float>(int)", at + 14, at + 50, 300)
    name = "autograd::engine::evaluate_function: SoftmaxBackward0"
    trace.op(name, at + 100, 40, thread=2, **{"Sequence number": int(at) + 5, "Fwd thread id": 1})
    trace.kernel("void softmax_warp_backward<float>(int)", at + 110, at + 350, 500, thread=2)


HOST_LATE = "launch-bound"
QUEUED = "queued, not started"


@pytest.mark.parametrize(
    ("step", "wanted", "why"),
    [
        (whole_graph, {"CUDA graph": 800, HOST_LATE: 170, QUEUED: 30}, {"unclassed"}),
        (graph_nodes, {"gemm": 600, "elementwise": 200, HOST_LATE: 160, QUEUED: 40}, set()),
        (streams, {"gemm": 700, HOST_LATE: 270, QUEUED: 30}, set()),
        (reduced_beside, {"gemm": 600, "communication": 200, HOST_LATE: 170, QUEUED: 30}, set()),
        (amd, {"gemm": 600, "communication": 100, "memcpy H2D": 100, HOST_LATE: 170, QUEUED: 30}, set()),
        (triton, {"gemm": 400, "elementwise": 200, "norm/softmax": 200, HOST_LATE: 170, QUEUED: 30}, set()),
        (prefetched, {"gemm": 800, "communication": 150, HOST_LATE: 20, QUEUED: 30}, set()),
        (nested, {"gemm": 600, "optimizer": 200, HOST_LATE: 170, QUEUED: 30}, set()),
        (saving, {"gemm": 800, HOST_LATE: 170, QUEUED: 30}, set()),
        (backward, {"attention": 800, HOST_LATE: 164, QUEUED: 36}, set()),
    ],
)
def test_a_strange_trace_is_read_rightly(tmp_path: Path, step: Step, wanted: dict[str, int], why: set[str]) -> None:
    profile = traced(tmp_path, step)
    assert Counter(times(profile)) == Counter(wanted)
    assert refused(profile) == why


def test_steps_that_nobody_marks_are_refused(tmp_path: Path) -> None:
    assert refused(traced(tmp_path, unmarked, marks=False)) == {"no-marks"}


def test_the_order_of_a_file_s_events_changes_no_byte(tmp_path: Path) -> None:
    assert traced(tmp_path, nested, order=1) == traced(tmp_path, nested, order=2) == traced(tmp_path, nested)
