"""Kernels by their names; tables of profilers."""

from __future__ import annotations

from pathlib import Path

import pytest

from receipts.ingest.cuda_kernels import classify
from receipts.ingest.device_profile import Histogram
from receipts.ingest.evidence import read
from receipts.ingest.reading import Reading
from receipts.ingest.scan import scan
from receipts.readers.torch.profiler import KeyAveragesReader

SAMPLES = Path(__file__).parent / "samples"
EVIDENCE = Path(__file__).parents[3] / "examples" / "recorder" / "evidence"
SAMPLES = Path(__file__).parent / "samples"
ENGINE = "void transformer_engine::normalization::rmsnorm_fwd_general_kernel<float>(float*)"
CUDNN = "cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_3_64x128x128_1x1x1_kernel0_0"
BF16, FP8 = "nvjet_sm90_tst_64x8_64x16_1x2_h_bz_TNT", "nvjet_sm90_qqtst_64x8_64x16_1x2_h_bz_TNT"


@pytest.mark.parametrize(
    ("name", "work", "family"),
    [
        (CUDNN, "attention", "cudnn"),
        ("cudnn_generated_oss_sdpa_sm100_flash_bprop_bf16_knob_9", "attention", "cudnn"),
        ("void cutlass::device_kernel<flash::enable_sm90_or_later<flash::FlashAttnFwdSm90<x>>>", "attention", "flash3"),
        ("void flash::flash_bwd_dq_dk_dv_loop_seqk_parallel_kernel<T, true>(P)", "attention", "flash2"),
        ("void pytorch_flash::flash_fwd_kernel<pytorch_flash::T>(P)", "attention", "sdpa_flash"),
        ("fmha_cutlassB_bf16_aligned_128x64_k128_sm80(X)", "attention", "mem_efficient"),
        ("scaled_upper_triang_masked_softmax_warp_backward<x>", "attention", "te_unfused"),
        ("triton_tem_fused_flex_attention_backward_7", "attention", "flex"),
        ("void (anonymous namespace)::softmax_warp_forward<float, float, float, 10, true>", "softmax", "torch"),
        (
            "ncclDevKernel_ReduceScatter_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)",
            "communication",
            "nccl_reducescatter",
        ),
        (
            "ncclKernel_AllGather_RING_LL_Sum_int8_t(ncclDevComm*, unsigned long, ncclWork*)",
            "communication",
            "nccl_allgather",
        ),
        ("kuserbuffers_pullsend(int, int, int*, int*)", "overlap", "tp_comm"),
        ("void deep_ep::intranode::dispatch<8, 768, 8192>(int4*)", "dispatch", "deepep"),
        ("_chunk_state_bwd_db_kernel", "ssm", "mamba2"),
        ("void selective_scan_bwd_kernel<T>(P)", "ssm", "mamba1"),
        ("triton_poi_fused_add_mul_silu_3", "inductor", "inductor"),
        ("void at::native::vectorized_elementwise_kernel<4, at::native::AddFunctor<float>>", "other", "other"),
        ("", "other", "other"),
    ],
)
def test_a_kernel_is_known_by_its_name(name: str, work: str, family: str) -> None:
    found = classify(name)
    assert (found.work, found.family) == (work, family)


@pytest.mark.parametrize(
    ("name", "dtype", "arch"),
    [
        (BF16, "bf16", 90),
        (FP8, "fp8", 90),
        ("nvjet_hsh_320x128_64x3_2x1_v_bz_coopB_NNN", "fp16", None),
        ("nvjet_sm100_qqtst_256x256_128x4", "fp8", 100),
        ("sm90_xmma_gemm_e5m2bf16_e4m3f32_f32_tn_n_tilesize64x64x128_execute", "fp8", 90),
        ("sm90_xmma_gemm_bf16bf16_bf16f32_f32_nt_n_tilesize256x128x64", "bf16", 90),
        ("sm80_xmma_gemm_f32f32_f32f32_f32_tn_n_tilesize32x32x8", "fp32", 80),
        ("sm80_xmma_gemm_f32f32_tf32f32_f32_nn_n_tilesize64x128x32", "tf32", 80),
        ("void cutlass::Kernel2<cutlass_80_tensorop_bf16_s16816gemm_relu_bf16_64x64_64x3_tn_align8>(P)", "bf16", 80),
        ("cutlass_80_simt_sgemm_256x128_8x4_nt_align1", "fp32", 80),
        ("ampere_s1688gemm_128x64_ldg4_tn", "tf32", 80),
        ("volta_h884gemm_128x64_ldg8_nn", "fp16", 70),
        ("void cutlass::device_kernel<cutlass::gemm::kernel::GemmUniversal<S, cutlass::float_e4m3_t>>", "fp8", None),
    ],
)
def test_a_multiplication_tells_the_type_of_its_inputs(name: str, dtype: str, arch: int | None) -> None:
    found = classify(name)
    assert (found.work, found.dtype, found.arch) == ("gemm", dtype, arch)


def seen(*names: str, ops: tuple[str, ...] = (), arch: int | None = None) -> tuple[dict[str, set[str]], Reading]:
    histogram, reading = Histogram(), Reading("test")
    for name in names:
        histogram.kernel(name, 1, 1.0)
    for name in ops:
        histogram.operator(name)
    histogram.write(reading, arch=arch)
    found: dict[str, set[str]] = {}
    for item in reading.seen:
        found.setdefault(item.leaf, set()).add(item.value)
    return found, reading


def test_cudnn_attention_is_the_engines_only_beside_its_kernels() -> None:
    assert seen(CUDNN)[0]["attention"] == {"cudnn_sdpa"}
    assert seen(CUDNN, ENGINE)[0]["attention"] == {"te_fused"}
    assert seen(CUDNN, ENGINE, ops=("aten::_scaled_dot_product_cudnn_attention",))[0]["attention"] == {"cudnn_sdpa"}


def test_a_helper_of_a_mamba_block_alone_names_no_family() -> None:
    assert seen("_chunk_scan_fwd_kernel", "causal_conv1d_fwd_kernel<T>")[0]["ssm"] == {"mamba2"}


def test_fp8_beside_bf16_is_fp8_with_its_share_of_the_time() -> None:
    found, reading = seen(BF16, FP8, FP8, FP8, ENGINE)
    assert (found["gemm"], found["compute_dtype"]) == ({"te_fp8"}, {"fp8"})
    assert any("bf16 25.0%, fp8 75.0%" in remark.text for remark in reading.remarks)


def test_whole_precision_beside_half_is_seen_where_it_carries_work() -> None:
    single = "void cutlass::Kernel2<cutlass_80_simt_sgemm_128x64_8x5_nt_align1>(T1::Params)"
    assert seen(BF16, BF16, BF16, single)[0]["compute_dtype"] == {"bf16", "fp32"}
    assert seen(*[BF16] * 19, single)[0]["compute_dtype"] == {"bf16"}
    assert seen(*[FP8] * 3, *[BF16] * 3, single, ENGINE)[0]["compute_dtype"] == {"fp8", "fp32"}


def test_kernels_of_an_older_generation_are_remarked_on_a_newer_one() -> None:
    old = "sm80_xmma_gemm_bf16bf16_bf16f32_f32_nt_n_tilesize256x128x64"
    assert any("older generation" in remark.text for remark in seen(old, arch=90)[1].remarks)
    assert not any("older generation" in remark.text for remark in seen(BF16, arch=90)[1].remarks)


def test_recompute_is_stated_where_checkpointed_functions_ran() -> None:
    assert seen(ops=("CheckpointFunction",))[1].stated["numerics.recompute_applied"].value == "checkpoint"
    assert not seen(ops=("CheckpointFunctionBackward", "aten::mm"))[1].stated


def test_softmax_without_an_attention_kernel_is_remarked_and_not_seen() -> None:
    found, reading = seen("void at::native::(anonymous namespace)::cunn_SoftMaxForward<8, float>", BF16)
    assert not found.get("attention")
    assert any("softmax" in remark.text for remark in reading.remarks)


def test_key_averages_of_a_real_run_show_math_attention_and_their_steps() -> None:
    (reading,) = scan([(SAMPLES / "key_averages_math.txt").read_bytes()], [KeyAveragesReader])
    assert [(item.leaf, item.value, item.count) for item in reading.seen] == [("attention", "math", 2)]
    assert (reading.steps_covered, reading.complete) == (2, False)


@pytest.mark.parametrize(
    ("path", "attention"),
    [
        (SAMPLES / "operators_math.json", "math"),
        (SAMPLES / "operators_flash.json", "sdpa_flash"),
        (EVIDENCE / "torch-decoder-clean.json", "sdpa_flash"),
        (EVIDENCE / "torch-decoder-sdpa.json", "math"),
    ],
)
def test_sums_of_operators_that_a_loop_kept_show_its_path(path: Path, attention: str) -> None:
    file = read(path)
    (reading,) = file.readings
    assert {(item.leaf, item.value) for item in reading.seen} == {
        ("framework", "torch"),
        ("attention", attention),
        ("gemm", "aten_fp32"),
        ("compute_dtype", "fp32"),
    }
    assert reading.steps_covered == 2


@pytest.mark.parametrize(
    "entries",
    [
        '{"aten::mm": -1, "aten::bmm": "two", "aten::addmm": {"count": true}}',
        '{"aten::mm": {"types": ["float"]}}',
        '["aten::mm"]',
    ],
)
def test_sums_without_counts_show_nothing(tmp_path: Path, entries: str) -> None:
    (tmp_path / "sums.json").write_text(f'{{"producer": "torch.profiler", "operators": {entries}, "steps": "two"}}')
    assert not any(reading.seen for reading in read(tmp_path / "sums.json").readings)


def test_key_averages_of_a_gpu_count_kernels_and_not_their_operators() -> None:
    head = ("Name", "Self CPU %", "Self CPU", "CPU total", "Self CUDA", "Self CUDA %", "# of Calls")
    rows = [
        ("aten::mm", "10.00%", "1.000ms", "2.000ms", "5.000ms", "50.00%", "10"),
        (BF16, "0.00%", "0.000us", "0.000us", "5.000ms", "50.00%", "10"),
        ("Memcpy DtoH (Device -> Pageable)", "0.00%", "0.000us", "0.000us", "3.000us", "0.01%", "4"),
    ]
    widths = [50, 12, 12, 12, 12, 12, 12]
    dashes = "  ".join("-" * width for width in widths)
    lines = [
        dashes,
        *("  ".join(cell.rjust(width) for cell, width in zip(row, widths, strict=True)) for row in (head, *rows)),
    ]
    lines.insert(2, dashes)
    (reading,) = scan(["\n".join([*lines, dashes, "Self CPU time total: 2ms", ""]).encode()], [KeyAveragesReader])
    timing = reading.timings["kernel.gemm.cublas.bf16"]
    assert (timing.samples, timing.seconds) == (10, pytest.approx(5e-3))
    assert reading.host_transfers == 4
