"""What the host's operators of a trace show: posture, framework, runtime, and what was computed beside the device."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from receipts.ingest.evidence import read
from receipts.ingest.reading import Reading

GEMM = "nvjet_sm90_tst_64x8_64x16_1x2_h_bz_TNT"
FULL = {"Input Dims": [[64, 32], [32, 16]], "Input type": ["c10::BFloat16", "c10::BFloat16"]}
Event = dict[str, Any]


def event(category: str, name: str, begin: float, duration: float = 10.0, tid: int = 7, **arguments: Any) -> Event:
    row = {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": tid, "ts": begin, "dur": duration}
    return row | {"args": arguments}


def mark(end: float = 1000.0) -> Event:
    return event("user_annotation", "ProfilerStep#3", 0.0, end)


def product(begin: float, tid: int = 7, **arguments: Any) -> tuple[Event, Event, Event]:
    """A multiplication, what it launches, and the kernel."""
    return (
        event("cpu_op", "aten::mm", begin, tid=tid, **(arguments or FULL)),
        event("cuda_runtime", "cudaLaunchKernel", begin + 4, 2.0, tid=tid),
        event("kernel", GEMM, begin + 20, device=0),
    )


def region(begin: float, duration: float, name: str = "0/0") -> Event:
    return event("cpu_op", f"Torch-Compiled Region: {name}", begin, duration)


def backward(begin: float, duration: float = 30.0) -> Event:
    return event("cpu_op", "CompiledFunctionBackward", begin, duration, tid=8)


def reading(
    tmp_path: Path, *events: Event, devices: Any = ({"id": 0, "name": "NVIDIA H200"},), cut: int | None = None
) -> Reading:
    path = tmp_path / "trace.json"
    document = {"schemaVersion": 1, "deviceProperties": list(devices), "traceEvents": list(events), "traceName": "t"}
    path.write_text(json.dumps(document)[:cut], encoding="utf-8")
    (found,) = read(path).readings
    return found


def seen(found: Reading, leaf: str) -> list[str]:
    return [item.value for item in found.seen if item.leaf == leaf]


def test_operators_and_nothing_compiled_are_eager(tmp_path: Path) -> None:
    found = reading(tmp_path, mark(), *product(10))
    assert (seen(found, "posture"), found.fallbacks) == (["eager"], {})


@pytest.mark.parametrize(
    "trace",
    [
        [*product(10)],  # no mark of a step
        [mark(), event("kernel", GEMM, 10, device=0)],  # no operators
        [mark(), *product(10), event("cpu_op", "TorchDynamo Cache Lookup", 5)],  # torch.compile is at work somewhere
        [mark(), *product(10), event("kernel", "triton_poi_fused_add_0", 60, device=0)],  # its kernels are there
    ],
)
def test_silence_shows_no_posture(tmp_path: Path, trace: list[Event]) -> None:
    assert seen(reading(tmp_path, *trace), "posture") == []


def test_a_multiplication_outside_of_every_region_is_regional(tmp_path: Path) -> None:
    found = reading(tmp_path, mark(), region(0, 40), *product(10), *product(60), backward(100), *product(110, tid=8))
    assert seen(found, "posture") == ["regional"]
    assert found.stated["compile.regions"].value == ["compiled region 0/0"]


def test_a_region_without_multiplications_is_elementwise(tmp_path: Path) -> None:
    found = reading(tmp_path, mark(), region(0, 5, "4/1"), *product(10))
    assert found.stated["compile.regions"].value == ["elementwise region 4/1"]


def test_one_region_followed_by_its_backward_is_one_graph(tmp_path: Path) -> None:
    micro = [region(0, 40), *product(10), backward(100), *product(110, tid=8)]
    more = [region(200, 40), *product(210), backward(300), *product(310, tid=8)]
    assert seen(reading(tmp_path, mark(), *micro, *more), "posture") == ["whole_graph"]


def test_regions_one_after_another_are_blocks(tmp_path: Path) -> None:
    forward = [region(0, 40), *product(10), region(50, 40), *product(60)]
    found = reading(tmp_path, mark(), *forward, backward(100), *product(110, tid=8))
    assert seen(found, "posture") == ["regional"]


def test_a_multiplication_that_launches_nothing_ran_on_the_host(tmp_path: Path) -> None:
    found = reading(tmp_path, mark(), *product(10), event("cpu_op", "aten::addmm", 100, 50.0, **FULL))
    assert found.fallbacks == {"aten::addmm": 1}


def test_a_launch_on_another_thread_is_not_its_own(tmp_path: Path) -> None:
    alone = event("cpu_op", "aten::bmm", 100, 50.0, tid=9, **FULL)
    launch = event("cuda_runtime", "cudaLaunchKernel", 110, 2.0)
    assert reading(tmp_path, mark(), *product(10), alone, launch).fallbacks == {"aten::bmm": 1}


def test_an_expert_without_tokens_left_nothing(tmp_path: Path) -> None:
    empty = event("cpu_op", "aten::mm", 100, 5.0, **{"Input Dims": [[0, 32], [32, 16]]})
    assert reading(tmp_path, mark(), *product(10), empty).fallbacks == {}


def test_without_shapes_it_is_not_known_whether_it_ran_on_the_host(tmp_path: Path) -> None:
    found = reading(tmp_path, mark(), *product(10), event("cpu_op", "aten::mm", 100, 5.0))
    assert found.fallbacks is None
    assert any("record_shapes=True" in remark.text for remark in found.remarks)


def test_kernels_without_operators_of_the_host_exclude_no_fallback(tmp_path: Path) -> None:
    assert reading(tmp_path, mark(), event("kernel", GEMM, 10, device=0)).fallbacks is None


def test_an_operator_that_only_a_processor_has_left_the_device(tmp_path: Path) -> None:
    flash = event("cpu_op", "aten::_scaled_dot_product_flash_attention_for_cpu", 100)
    found = reading(tmp_path, mark(), *product(10), flash)
    assert found.fallbacks == {"aten::_scaled_dot_product_flash_attention_for_cpu": 1}
    assert seen(found, "runtime") == ["cuda"]


def test_a_trace_that_found_no_device_ran_on_the_processor(tmp_path: Path) -> None:
    alone = event("cpu_op", "aten::mm", 10, **FULL)
    assert seen(reading(tmp_path, mark(), alone, devices=()), "runtime") == ["cpu"]
    assert seen(reading(tmp_path, mark(), alone), "runtime") == []


def test_gathers_of_fsdp2_name_it(tmp_path: Path) -> None:
    found = reading(tmp_path, mark(), event("user_annotation", "FSDP::all_gather (layers.0)", 5), *product(10))
    assert seen(found, "framework") == ["fsdp2"]


def test_a_cut_trace_shows_what_it_holds_and_no_absence(tmp_path: Path) -> None:
    found = reading(tmp_path, mark(), *product(10), cut=-40)
    assert (seen(found, "compute_dtype"), seen(found, "posture"), found.fallbacks) == (["bf16"], [], None)


def test_the_short_name_of_torchs_flash_kernel_is_told_by_its_operator(tmp_path: Path) -> None:
    kernel = event("kernel", "flash_fwd_kernel", 30, device=0)
    found = reading(tmp_path, mark(), event("cpu_op", "aten::_scaled_dot_product_flash_attention", 20), kernel)
    assert seen(found, "attention") == ["sdpa_flash"]


def test_documents_of_several_lengths_are_varlen(tmp_path: Path) -> None:
    kernel = event("kernel", "void pytorch_flash::flash_fwd_kernel<Traits>", 30, device=0)
    found = reading(tmp_path, mark(), event("cpu_op", "torch_attn::_varlen_attn", 20), kernel)
    assert seen(found, "attention") == ["varlen"]


def test_scaled_multiplication_by_rows_is_cutlass(tmp_path: Path) -> None:
    kernel = event("kernel", "void at::cuda::detail::f8f8bf16_rowwise_impl<Tile>", 30, device=0)
    assert seen(reading(tmp_path, mark(), kernel), "gemm") == ["cutlass_fp8"]


def host(name: str, begin: float, duration: float = 1.0, tid: int = 7, **arguments: Any) -> Event:
    return event("cpu_op", name, begin, duration, tid, **arguments)


def applied(found: Reading) -> object:
    stated = found.stated.get("numerics.recompute_applied")
    return stated and stated.value


FORWARD = (host("aten::linear", 10), host("aten::mm", 10, **FULL))
BACKWARD = host("autograd::engine::evaluate_function: GeluBackward0", 100, 50, tid=8)


def test_what_the_backward_pass_computes_again_is_a_checkpoint(tmp_path: Path) -> None:
    again = (host("aten::scaled_dot_product_attention", 110, tid=8), host("aten::linear", 120, tid=8))
    assert applied(reading(tmp_path, mark(), *FORWARD, BACKWARD, *again)) == "checkpoint"


def test_a_backward_pass_that_computes_nothing_again_has_no_checkpoint(tmp_path: Path) -> None:
    assert applied(reading(tmp_path, mark(), *FORWARD, BACKWARD, host("aten::mm", 120, tid=8))) == "none"


@pytest.mark.parametrize(
    "trace",
    [
        (*FORWARD,),
        (*FORWARD, BACKWARD, host("aten::silu", 120, tid=8)),
        (*FORWARD, BACKWARD, region(10, 5), backward(100)),
    ],
    ids=["no backward pass", "an activation of a function of its own", "compiled"],
)
def test_a_trace_may_leave_open_whether_there_are_checkpoints(tmp_path: Path, trace: tuple[Event, ...]) -> None:
    assert applied(reading(tmp_path, mark(), *trace)) is None


def matmul(kind: str, duration: float, begin: float = 10.0) -> Event:
    return host("aten::mm", begin, duration, **{"Input Dims": [[8, 8], [8, 8]], "Input type": [kind, kind]})


@pytest.mark.parametrize(("whole", "expected"), [(30.0, ["bf16", "fp32"]), (4.0, ["bf16"])])
def test_a_block_in_another_precision_shows_where_it_carries_work(
    tmp_path: Path, whole: float, expected: list[str]
) -> None:
    found = reading(tmp_path, mark(), matmul("c10::BFloat16", 100 - whole), matmul("float", whole), devices=())
    assert seen(found, "compute_dtype") == expected
    assert seen(found, "gemm") == [f"aten_{kind}" for kind in expected]
