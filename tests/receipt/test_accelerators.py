"""The accelerators: every name that sources use finds its chip, and nothing else gets a peak."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from receipts.receipt.accelerators import ACCELERATORS, Accelerator, dtype_of, find_accelerator

CASES = Path(__file__).resolve().parents[3] / "shared" / "cases"

NAMES = {
    "NVIDIA H200": "h200-sxm",
    "NVIDIA H200 143771MiB": "h200-sxm",
    "h200": "h200-sxm",
    "H200-SXM-141GBx8": "h200-sxm",
    "8xH200": "h200-sxm",
    "8 x NVIDIA H200": "h200-sxm",
    "h200x8": "h200-sxm",
    "NVIDIA H100 80GB HBM3": "h100-sxm",
    "NVIDIA H100": "h100-sxm",
    "h100-sxm": "h100-sxm",
    "NVIDIA B200": "b200",
    "NVIDIA GB10": "gb10",
    "DGX Spark (GB10)": "gb10",
    "TPU v5 lite": "tpu-v5e",
    "TPU v5e": "tpu-v5e",
    "v5litepod-16": "tpu-v5e",
    "TPU v5": "tpu-v5p",
    "v5p-8": "tpu-v5p",
    "TPU v6e": "tpu-v6e",
    "TPU v6 lite": "tpu-v6e",
    "v6e-8": "tpu-v6e",
    "tpu_v6e": "tpu-v6e",
    "ct6e-standard-8t": "tpu-v6e",
    "TPU v7x": "tpu-v7",
    "TPU7x": "tpu-v7",
    "Ironwood": "tpu-v7",
    "TPU v4": "tpu-v4",
    "v4-32": "tpu-v4",
    "NVIDIA A100-SXM4-80GB": "a100-80gb",
    "NVIDIA A100 80GB PCIe": "a100-80gb",
    "A100-SXM4-40GB": "a100-40gb",
    "NVIDIA A100": "a100",
    "NVIDIA H100 PCIe": "h100-pcie",
    "NVIDIA H100 NVL": "h100-nvl",
    "NVIDIA H200 NVL": "h200-nvl",
    "NVIDIA H800": "h800-sxm",
    "NVIDIA H20": "h20",
    "NVIDIA GH200 480GB": "gh200",
    "NVIDIA GB200": "gb200",
    "NVIDIA B300 SXM6 AC": "b300",
    "NVIDIA GB300": "gb300",
    "AMD Instinct MI300X": "mi300x",
    "AMD Instinct MI325X": "mi325x",
    "AMD Instinct MI355X": "mi355x",
    "GAUDI2": "gaudi2",
    "Intel Gaudi 3": "gaudi3",
    "Apple M4 Max": "m4-max",
    "cpu": "cpu",
    "CPU": "cpu",
}


@pytest.mark.parametrize(("name", "key"), NAMES.items())
def test_a_name_in_use_finds_its_chip(name: str, key: str) -> None:
    found = find_accelerator(name)
    assert found is not None
    assert found.key == key


@pytest.mark.parametrize(
    "name",
    [
        "", None, "TPU", "TPU v4 lite", "TPU v8", "NVIDIA A100-SXM4-80GB MIG 1g.10gb", "NVIDIA A100-SXM-64GB",
        "NVIDIA H20-3e", "NVIDIA H100 96GB HBM3", "NVIDIA B200 NVL", "NVIDIA A10", "NVIDIA H200 MIG 1g.18gb",
        "Apple M4", "Apple M3 Max", "AMD MI300A", "AMD MI250X", "H200 and B200", "cpu (shim) H100",
    ],
)  # fmt: skip
def test_what_is_not_named_exactly_has_no_peak(name: str | None) -> None:
    assert find_accelerator(name) is None


@pytest.mark.parametrize("accelerator", ACCELERATORS, ids=lambda a: a.key)
def test_a_chip_is_found_by_its_key_and_says_where_its_figures_come_from(accelerator: Accelerator) -> None:
    assert find_accelerator(accelerator.key) is accelerator
    assert len(accelerator.source) > 20
    assert all(find_accelerator(name) is accelerator for name in accelerator.names)


@pytest.mark.parametrize("accelerator", ACCELERATORS, ids=lambda a: a.key)
def test_a_chip_without_a_bf16_peak_says_why(accelerator: Accelerator) -> None:
    assert (accelerator.peak("bf16") is None) == bool(accelerator.no_peak)


def test_keys_are_unique() -> None:
    assert len({accelerator.key for accelerator in ACCELERATORS}) == len(ACCELERATORS)


@pytest.mark.parametrize("accelerator", ACCELERATORS, ids=lambda a: a.key)
def test_no_runtime_gives_more_memory_than_the_chip_has(accelerator: Accelerator) -> None:
    for limit in accelerator.memory_limits:
        assert accelerator.hbm_bytes is not None
        assert 0 < limit.low_bytes < limit.high_bytes <= accelerator.hbm_bytes


@pytest.mark.parametrize("accelerator", ACCELERATORS, ids=lambda a: a.key)
def test_sparsity_doubles_a_dense_peak_where_both_are_published(accelerator: Accelerator) -> None:
    for dtype, sparse in accelerator.sparse_peak_flops_per_second.items():
        dense = accelerator.dense_peak_flops_per_second.get(dtype)
        if dense is not None:
            assert sparse == pytest.approx(2 * dense, rel=0.001)


@pytest.mark.parametrize(
    ("key", "dtype", "peak"),
    [
        ("h200-sxm", "bf16", 989e12),
        ("h200-sxm", "fp8", 1979e12),
        ("h100-sxm", "bf16", 989e12),
        ("b200", "bf16", 2250e12),
        ("b200", "fp8", 4500e12),
        ("b300", "bf16", 2250e12),
        ("b300", "fp4", 13500e12),
        ("b300", "int8", 150e12),
        ("gb200", "bf16", 2500e12),
        ("gb200", "fp8", 5000e12),
        ("gb300", "bf16", 2500e12),
        ("gb300", "fp4", 15000e12),
        ("h100-pcie", "bf16", 756e12),
        ("h100-nvl", "bf16", 835.5e12),
        ("h20", "bf16", 148e12),
        ("gh200", "bf16", 989e12),
        ("a100", "bf16", 312e12),
        ("a100", "fp8", None),
        ("mi300x", "bf16", 1307.4e12),
        ("mi355x", "fp8", 5033.2e12),
        ("gaudi2", "bf16", 432e12),
        ("gaudi3", "fp8", 1835e12),
        ("tpu-v4", "bf16", 275e12),
        ("tpu-v5e", "bf16", 197e12),
        ("tpu-v5p", "bf16", 459e12),
        ("tpu-v6e", "bf16", 918e12),
        ("tpu-v6e", "int8", 1836e12),
        ("tpu-v7", "bf16", 2307e12),
        ("tpu-v7", "fp8", 4614e12),
        ("gb10", "bf16", None),
        ("m4-max", "bf16", None),
        ("cpu", "fp32", None),
    ],
)
def test_dense_peaks_are_the_published_ones(key: str, dtype: str, peak: float | None) -> None:
    found = find_accelerator(key)
    assert found is not None
    assert found.peak(dtype) == peak


@pytest.mark.parametrize(
    ("text", "dtype"),
    [
        ("BF16", "bf16"), ("bfloat16", "bf16"), ("FP8 tensorwise", "fp8"), ("fp8_path_c", "fp8"),
        ("FP8 e4m3fn rowwise", "fp8"), ("MXFP8 param storage", "fp8"), ("nvfp4", "fp4"),
        ("float8_e4m3fn", "fp8"),
        ("BF16 + FP8 MoE GEMMs", None), ("tensorwise", None), ("", None), (None, None),
    ],
)  # fmt: skip
def test_a_type_has_one_name_and_a_mixture_has_none(text: str | None, dtype: str | None) -> None:
    assert dtype_of(text) == dtype


def test_dividing_by_the_sparse_figure_is_recognised() -> None:
    h200, b200 = find_accelerator("h200"), find_accelerator("b200")
    assert h200 is not None
    assert b200 is not None
    assert h200.is_sparse_figure(3958e12)
    assert not h200.is_sparse_figure(1979e12), "it is also the dense FP8 peak, so the type must decide"
    assert not h200.is_sparse_figure(989.4e12)
    assert b200.is_sparse_figure(18e15)
    assert h200.peak("bf16", sparse=True) == 1979e12


@pytest.mark.parametrize(
    ("key", "limit_bytes", "accepted"),
    [
        ("h200-sxm", 143771 * 2**20, True),
        ("h200-sxm", int(139.81 * 2**30), True),
        ("h200-sxm", 141_000_000_000, False),
        ("h200-sxm", 143 * 2**30, False),
        ("h100-sxm", int(79.18 * 2**30), True),
        ("b200", int(178.36 * 2**30), True),
        ("gb200", int(184.31 * 2**30), True),
        ("gb200", 189_471 * 2**20, True),
        ("b300", int(267.69 * 2**30), True),
        ("b300", int(178.36 * 2**30), False),
        ("gb300", int(276.50 * 2**30), True),
        ("a100-80gb", int(79.15 * 2**30), True),
        ("a100-40gb", int(39.39 * 2**30), True),
        ("a100", int(39.39 * 2**30), None),
        ("h100-nvl", int(93.10 * 2**30), True),
        ("mi300x", int(191.98 * 2**30), True),
        ("mi355x", int(287.98 * 2**30), True),
        ("tpu-v6e", 33_554_432_000, True),
        ("tpu-v6e", 33_822_867_456, True),
        ("tpu-v6e", 32 * 2**30, False),
        ("tpu-v5e", 16_909_332_480, True),
        ("tpu-v5p", int(95.74 * 2**30), True),
        ("tpu-v7", int(94.75 * 2**30), True),
        ("gb10", 128 * 2**30, None),
        ("cpu", 64 * 2**30, None),
    ],
)
def test_a_limit_is_accepted_only_where_a_runtime_gives_it(key: str, limit_bytes: int, accepted: bool | None) -> None:
    found = find_accelerator(key)
    assert found is not None
    assert found.accepts_limit(limit_bytes) is accepted


def test_a_registry_entry_cannot_be_changed() -> None:
    h200 = find_accelerator("h200")
    assert h200 is not None
    with pytest.raises(TypeError):
        h200.dense_peak_flops_per_second["bf16"] = 1.0  # type: ignore[index]


def test_the_best_matmul_is_known_only_where_it_was_measured() -> None:
    h200, h100 = find_accelerator("h200"), find_accelerator("h100")
    assert h200 is not None
    assert h100 is not None
    assert h200.best_fraction("BF16") == 0.80
    assert h200.best_fraction("fp8") is None
    assert h100.best_fraction("bf16") is None


def test_every_accelerator_of_the_lab_is_known() -> None:
    path = CASES / "lab" / "runs.json"
    if not path.exists():
        pytest.skip("the cases folder is not here")
    runs = json.loads(path.read_text(encoding="utf-8"))
    runs = runs["runs"] if isinstance(runs, dict) else runs
    named = {run["hardware"]["accelerator"] for run in runs if run.get("hardware")} - {None, "TPU"}
    assert len(named) >= 5
    assert {name for name in named if find_accelerator(name) is None} == set()
