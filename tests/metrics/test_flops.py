"""FLOPs formulas against figures that others published, and the arithmetic of MFU."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from receipts.metrics.flops import (
    FORMULAS,
    Geometry,
    eras,
    geometry_of,
    mfu,
    tflops_per_second_per_chip,
)
from receipts.metrics.flops.formula import FlopsPerToken
from receipts.receipt.accelerators import find_accelerator
from receipts.receipt.patterns import BlockKind


def flops_per_token(formula: str, geometry: Geometry) -> FlopsPerToken:
    return FORMULAS[formula].function(geometry)


ROWS = Path(__file__).resolve().parents[3] / "shared" / "cases" / "logs" / "xla" / "mfu_rows.json"


def dense(
    layers: int, hidden: int, heads: int, kv_heads: int, ffn: int, vocabulary: int, length: int, **more: Any
) -> Geometry:
    """A dense decoder with heads of 128 and a gated feed-forward."""
    stated: dict[str, Any] = {"family": "dense", "head_dim": 128, "ffn_projections": 3, "mtp_depth": 0} | more
    return Geometry(
        layers=layers,
        hidden=hidden,
        heads=heads,
        kv_heads=kv_heads,
        ffn=ffn,
        vocabulary=vocabulary,
        sequence_length=length,
        **stated,
    )


GPT3_175B = dense(96, 12288, 96, 96, 49152, 50304, 2048, ffn_projections=2)
LLAMA2_70B = dense(80, 8192, 64, 8, 28672, 32000, 4096)
LLAMA31_8B = dense(32, 4096, 32, 8, 14336, 128256, 8192)
LLAMA31_70B = dense(80, 8192, 64, 8, 28672, 128256, 8192)
LLAMA31_405B = dense(126, 16384, 128, 8, 53248, 128256, 8192)
MISTRAL_7B = dense(32, 4096, 32, 8, 14336, 32000, 8192)
QWEN3_8B = dense(36, 4096, 32, 8, 12288, 151936, 8192)
MIXTRAL_8X22B = dense(56, 6144, 48, 8, 16384, 32768, 4096, family="moe", experts=8, top_k=2)
MIXTRAL_8X7B = dense(32, 4096, 32, 8, 14336, 32000, 4096, family="moe", experts=8, top_k=2)
QWEN3_235B = dense(94, 4096, 64, 4, 1536, 151936, 4096, family="moe", experts=128, top_k=8)

RECIPES = "AI-Hypercomputer/tpu-recipes c8cfe2f6"
TIERING = "AI-Hypercomputer/maxtext e591f30c docs/reference/models/tiering.md"

# Formula, model, accelerator, tokens/s a chip, TFLOP/s a chip as printed, source.
PRINTED = [
    ("maxtext_noncausal", GPT3_175B, 357.58, 384.891, f"{RECIPES} trillium/GPT3-175B-MaxText/bf16"),
    ("maxtext_noncausal", LLAMA2_70B, 905.021, 402.274, f"{RECIPES} trillium/Llama2-70B-MaxText"),
    ("maxtext_noncausal", LLAMA31_405B, 149.482, 392.454, f"{RECIPES} trillium/Llama3.1-405B-MaxText"),
    ("maxtext_noncausal", LLAMA31_70B, 960.248, 462.297, f"{RECIPES} trillium/Llama3.1-70B-MaxText/v6e-256"),
    ("maxtext_noncausal", LLAMA31_8B, 7119.648, 412.319, f"{RECIPES} trillium/Llama3.1-8B-MaxText/v6e-128"),
    ("maxtext_noncausal", MISTRAL_7B, 7776.813, 431.981, f"{RECIPES} trillium/Mistral-7B-MaxText"),
    ("maxtext_noncausal", MIXTRAL_8X22B, 1326.307, 332.463, f"{RECIPES} trillium/Mixtral-8x22B-MaxText"),
    ("maxtext", LLAMA31_405B, 763.54, 1927.15, f"{RECIPES} ironwood, 405B fp8"),
    ("maxtext", LLAMA31_70B, 2686.98, 1207.05, f"{RECIPES} ironwood, 70B bf16, 64 chips"),
    ("maxtext", replace(LLAMA31_70B, sequence_length=131072), 1087.99, 1014.45, f"{RECIPES} ironwood, 131k"),
    ("maxtext", QWEN3_235B, 4245.89, 629.79, f"{RECIPES} ironwood, Qwen3 235B, 128 experts"),
]

# Formula, model, accelerator, tokens/s a chip, MFU as claimed, source.
CLAIMED = [
    ("maxtext_noncausal", LLAMA31_8B, "v6e", 7207, 0.4546, TIERING),
    ("maxtext_noncausal", LLAMA31_70B, "v6e", 960, 0.5033, TIERING),
    ("maxtext_noncausal", MIXTRAL_8X7B, "v6e", 3899, 0.3523, TIERING),
    ("maxtext_noncausal", MIXTRAL_8X22B, "v6e", 1326, 0.362, TIERING),
    ("maxtext_noncausal", MIXTRAL_8X7B, "v5p", 2909, 0.5256, TIERING),
    ("maxtext_noncausal", QWEN3_8B, "v6e", 5896.46, 0.3848, "public replication, 2026-06-05, v6e-8"),
]


@pytest.mark.parametrize(("formula", "model", "tokens", "printed", "source"), PRINTED, ids=lambda v: str(v)[-24:])
def test_printed_tflops_are_reproduced(
    formula: str, model: Geometry, tokens: float, printed: float, source: str
) -> None:
    flops = flops_per_token(formula, model).flops
    assert flops is not None
    assert tflops_per_second_per_chip(tokens, flops, 1) == pytest.approx(printed, rel=1e-4), source


@pytest.mark.parametrize(("formula", "model", "chip", "tokens", "claimed", "source"), CLAIMED)
def test_a_claimed_mfu_is_reproduced(
    formula: str, model: Geometry, chip: str, tokens: float, claimed: float, source: str
) -> None:
    accelerator, flops = find_accelerator(chip), flops_per_token(formula, model).flops
    assert accelerator is not None
    assert flops is not None
    peak = accelerator.peak("bf16")
    assert peak is not None
    assert mfu(tokens, flops, 1, peak) == pytest.approx(claimed, abs=2e-4), source


A100_BF16, H100_FP8 = 312e12, 1979e12
SIZES = {
    "8B": replace(LLAMA31_8B, parameters_total=8_030_261_248, tied_embeddings=False),
    "70B": replace(LLAMA31_70B, parameters_total=70_553_706_496, tied_embeddings=False),
    "405B": replace(LLAMA31_405B, parameters_total=405_853_388_800, tied_embeddings=False),
}


@pytest.mark.parametrize(
    ("formula", "size", "tokens", "peak", "claimed"),
    [
        ("torchtitan_2024", "8B", 2904, A100_BF16, 0.568),
        ("torchtitan_2024", "8B", 2973, A100_BF16, 0.582),
        ("torchtitan_2024", "70B", 331, A100_BF16, 0.517),
        ("torchtitan", "405B", 177, H100_FP8, 0.2346),
        ("torchtitan", "405B", 185, H100_FP8, 0.2452),
    ],
)
def test_torchtitans_published_mfu_is_reproduced(
    formula: str, size: str, tokens: int, peak: float, claimed: float
) -> None:
    # torchtitan docs/performance.md: tokens/s a chip are whole numbers, so they bound the MFU that follows.
    flops = flops_per_token(formula, SIZES[size]).flops
    assert flops is not None
    low, high = (mfu(rate, flops, 1, peak) for rate in (tokens - 0.5, tokens + 0.5))
    assert low is not None
    assert high is not None
    assert low - 0.0005 <= claimed <= high + 0.0005


def test_torchtitans_eras_cannot_be_taken_for_one_another() -> None:
    later, first = (flops_per_token(era, SIZES["8B"]).flops for era in ("torchtitan", "torchtitan_2024"))
    assert later is not None
    assert first is not None
    assert first - later == 6 * 128256 * 4096
    assert mfu(2904, later, 1, A100_BF16) == pytest.approx(0.539, abs=5e-4)


@pytest.mark.parametrize(
    ("model", "chip", "tokens", "claimed"),
    [
        # 35.2 % or 33.8 % follow from the first's tokens, and 67.0 % or 64.6 % from the second's.
        (LLAMA31_405B, "v6e", 123, 0.3855),
        (LLAMA2_70B, "v5p", 692, 0.654),
    ],
    ids=["Llama 3.1 405B, v6e", "Llama 2 70B, v5p"],
)
def test_a_claim_of_the_tiering_table_that_follows_from_no_era_is_named(
    model: Geometry, chip: str, tokens: float, claimed: float
) -> None:
    assert eras_behind(model, chip, tokens, claimed) == []


def eras_behind(model: Geometry, chip: str, tokens: float, claimed: float) -> list[str]:
    """MaxText's conventions by which tokens/s a chip make the claimed MFU of bf16, to a tenth of a percent."""
    accelerator = find_accelerator(chip)
    assert accelerator is not None
    peak = accelerator.peak("bf16")
    assert peak is not None
    found = []
    for convention, formula in (("causal", "maxtext"), ("noncausal", "maxtext_noncausal")):
        flops = flops_per_token(formula, model).flops
        assert flops is not None
        share = mfu(tokens, flops, 1, peak)
        if share is not None and abs(share - claimed) < 0.001:
            found.append(convention)
    return found


def geometry_of_row(row: dict[str, Any]) -> Geometry | None:
    if (dims := row["dims"]) is None:
        return None
    return dense(
        dims["layers"], dims["emb"], dims["q_heads"], dims["kv_heads"], dims["mlp"], dims["vocab"],
        row["seq_len"], head_dim=dims["head_dim"], ffn_projections=dims["n_act"] + 1,
        family="dense" if dims["experts"] == 1 else "moe", experts=dims["experts"], top_k=dims["topk"],
    )  # fmt: skip


def test_the_rows_of_the_cases_whose_claim_does_not_follow_are_named() -> None:
    if not ROWS.exists():
        pytest.skip("the cases folder is not here")
    rows = json.loads(ROWS.read_text(encoding="utf-8"))
    claims = [(row, model) for row in rows if row["claimed_mfu"] is not None and (model := geometry_of_row(row))]
    found = {
        row["source"]: eras_behind(model, row["tpu"], row["tokens_per_s_per_chip"], row["claimed_mfu"])
        for row, model in claims
    }
    assert len(claims) >= 9
    assert [source for source, behind in found.items() if not behind] == [
        row["source"] for row, _ in claims if not row["claim_matches"]
    ]


def test_every_row_of_the_cases_that_states_its_model_is_reproduced() -> None:
    if not ROWS.exists():
        pytest.skip("the cases folder is not here")
    checked = 0
    for row in json.loads(ROWS.read_text(encoding="utf-8")):
        model = geometry_of_row(row)
        if model is None:
            continue
        by_convention = {
            "causal": flops_per_token("maxtext", model).flops,
            "noncausal": flops_per_token("maxtext_noncausal", model).flops,
        }
        assert by_convention == row["flops_per_token"], row["source"]
        if row["tflops_per_chip"] is not None:
            flops = by_convention[row["printed_convention"]]
            assert flops is not None
            printed = tflops_per_second_per_chip(row["tokens_per_s_per_chip"], flops, 1)
            assert printed == pytest.approx(row["tflops_per_chip"], rel=2e-4), row["source"]
        checked += 1
    assert checked >= 20


def test_maxtexts_eras_give_the_published_totals_of_one_step() -> None:
    # Qwen3-8B, 3 sequences of 8192 a device: 1472.20 TFLOPs before July 2025 and 1294.08 after.
    before, after = flops_per_token("maxtext_noncausal", QWEN3_8B), flops_per_token("maxtext", QWEN3_8B)
    assert before.flops is not None
    assert after.flops is not None
    assert before.flops * 3 * 8192 / 1e12 == pytest.approx(1472.20, abs=0.005)
    assert after.flops * 3 * 8192 / 1e12 == pytest.approx(1294.08, abs=0.005)


def test_in_may_2024_maxtext_counted_every_expert() -> None:
    all_experts, top_k = (flops_per_token(era, MIXTRAL_8X7B).flops for era in ("maxtext_2024_05", "maxtext_noncausal"))
    assert all_experts is not None
    assert top_k is not None
    assert all_experts - top_k == 3 * 32 * 6 * (2 * 4096 * 14336 * 3)


def test_megatron_full_is_the_published_closed_form_for_a_gpt() -> None:
    # Narayanan et al. 2021, equation 2, without the recompute that it adds: 72·l·h²·(1 + s/6h + V/12lh).
    h, layers, s, v = 12288, 96, 2048, 50304
    closed = 72 * layers * h**2 * (1 + s / (6 * h) + v / (12 * layers * h))
    assert flops_per_token("megatron_full", GPT3_175B).flops == pytest.approx(closed, rel=1e-12)


SMALL = dense(4, 512, 8, 8, 1536, 4096, 1024, head_dim=64)


def test_megatron_gives_the_published_worked_example() -> None:
    # A public walk through Megatron's sum at this geometry: 94,371,840 a token and 12,288 a token pair.
    assert flops_per_token("megatron", SMALL).flops == 94_371_840 + 12_288 * 1024


def test_megatron_counts_the_active_width_of_experts() -> None:
    # The same walk: eight experts of 512, two of them visited, and a shared one of 512 cost what 1536 dense do.
    moe = replace(SMALL, family="moe", experts=8, top_k=2, expert_ffn=512, shared_expert_ffn=512)
    assert flops_per_token("megatron", moe) == flops_per_token("megatron", SMALL)


def test_megatrons_eras_differ_by_half_of_attention() -> None:
    full, causal = (flops_per_token(era, LLAMA31_8B).flops for era in ("megatron_full", "megatron"))
    assert full is not None
    assert causal is not None
    assert full - causal == 6 * 32 * 32 * 128 * 8192


def test_megatron_full_visits_top_k_feed_forwards() -> None:
    one, two = (flops_per_token("megatron_full", replace(MIXTRAL_8X7B, top_k=k)).flops for k in (1, 2))
    assert one is not None
    assert two is not None
    assert two - one == 3 * 32 * 2 * 4096 * 14336 * 3


def test_megatron_and_maxtext_agree_on_a_dense_causal_decoder() -> None:
    assert flops_per_token("megatron", LLAMA31_70B) == flops_per_token("maxtext", LLAMA31_70B)


def test_an_mtp_depth_costs_a_layer_a_join_and_a_head() -> None:
    without, with_one = (flops_per_token("megatron", replace(LLAMA31_8B, mtp_depth=d)).flops for d in (0, 1))
    deeper = flops_per_token("megatron", replace(LLAMA31_8B, layers=33)).flops
    assert without is not None
    assert with_one is not None
    assert deeper is not None
    join, head = 6 * (3 * 4096 + 2 * 4096**2), 6 * 4096 * 128256
    assert with_one - without == (deeper - without) + join + head


def test_parameter_formulas_are_6n_with_and_without_attention() -> None:
    model = replace(LLAMA31_8B, parameters_total=8_030_261_248, tied_embeddings=False)
    attention = 12 * 32 * 32 * 128 * 8192
    assert flops_per_token("6n", model).flops == 6 * 8_030_261_248
    assert flops_per_token("6n_active", model).flops == 6 * 8_030_261_248
    assert flops_per_token("palm", model).flops == 6 * 8_030_261_248 + attention
    assert flops_per_token("maxtext_2023_11", model).flops == 6 * 8_030_261_248 + attention / 2
    embedding = 128256 * 4096
    assert flops_per_token("torchtitan", model).flops == 6 * (8_030_261_248 - embedding) + attention


def test_a_tied_table_is_the_output_matmul_and_counts() -> None:
    model = replace(LLAMA31_8B, parameters_total=7_504_924_672, tied_embeddings=True)
    assert flops_per_token("torchtitan", model).flops == 6 * 7_504_924_672 + 12 * 32 * 32 * 128 * 8192


def test_a_model_with_experts_has_to_state_its_active_parameters() -> None:
    model = Geometry(family="moe", experts=16, parameters_total=4_730_000_000)
    assert flops_per_token("6n", model).flops == 6 * 4_730_000_000
    assert flops_per_token("6n_active", model).missing == ("model.parameters_active",)
    active = replace(model, parameters_active=3_030_000_000)
    assert flops_per_token("6n_active", active).flops == 6 * 3_030_000_000


NAM56R = {
    "model.pattern": "AEMEAEMEAEMR",
    "model.alphabet": "nam",
    "model.depth": 52,
    "model.hidden": 3584,
    "model.heads": 28,
    "model.kv_heads": 8,
    "model.head_dim": 128,
    "model.vocabulary": 65536,
    "model.experts": 16,
    "model.top_k": 4,
    "model.expert_ffn": 896,
    "model.shared_expert_ffn": 0,
    "model.ffn_projections": 3,
    "model.ssm_state": 64,
    "model.ssm_groups": 8,
    "model.ssm_heads": 112,
    "model.mtp_depth": 0,
    "batch.sequence_length": 4096,
}


def test_a_pattern_is_the_sum_over_its_blocks() -> None:
    attention = 4 * 3584 * (3584 + 1024) + 2 * 4096 * 3584
    expert = 2 * 3584 * 896 * 3 * 4
    mamba = 2 * 3584 * (4 * 3584 + 2 * 8 * 64 + 112) + 7 * 7168 * 64 + 2 * 7168 * 3584
    forward = 13 * attention + 22 * expert + 17 * mamba + 2 * 3584 * 65536
    found = flops_per_token("pattern", geometry_of(NAM56R))
    assert found.flops == pytest.approx(3 * forward, rel=1e-12)
    assert flops_per_token("megatron", geometry_of(NAM56R)) == found


def test_a_pattern_of_attention_and_mlp_is_the_dense_transformer() -> None:
    blocks = replace(LLAMA31_8B, blocks={BlockKind.ATTENTION: 32, BlockKind.MLP: 32})
    assert flops_per_token("pattern", blocks) == flops_per_token("megatron", LLAMA31_8B)


def test_a_receipt_that_lacks_widths_is_told_each_path_once() -> None:
    gone = ("model.ssm_groups", "model.shared_expert_ffn", "model.hidden")
    stated = {path: value for path, value in NAM56R.items() if path not in gone}
    found = flops_per_token("pattern", geometry_of(stated))
    assert found.flops is None
    assert sorted(found.missing) == sorted(gone)


@pytest.mark.parametrize("formula", FORMULAS)
def test_nothing_stated_gives_paths_and_no_figure(formula: str) -> None:
    found = flops_per_token(formula, Geometry())
    assert found.flops is None
    assert found.missing
    assert all(path.startswith(("model.", "batch.")) for path in found.missing)
    assert len(set(found.missing)) == len(found.missing)


@pytest.mark.parametrize("formula", ["megatron", "maxtext", "maxtext_noncausal"])
def test_a_model_that_may_have_experts_is_not_taken_for_dense(formula: str) -> None:
    found = flops_per_token(formula, replace(LLAMA31_8B, family=None))
    assert found.flops is None
    assert "model.top_k" in found.missing


@pytest.mark.parametrize("text", ["MGE-", "MDE-"])
def test_blocks_without_a_known_sum_are_refused_in_words(text: str) -> None:
    found = flops_per_token("pattern", geometry_of({**NAM56R, "model.pattern": text, "model.alphabet": "nemo"}))
    assert found.flops is None
    assert "no sum is known" in found.because


def test_a_formula_of_one_kind_of_layer_refuses_a_pattern() -> None:
    for formula in ("maxtext", "megatron_full"):
        found = flops_per_token(formula, geometry_of(NAM56R))
        assert found.flops is None
        assert found.because


def test_the_mtp_suffix_of_a_pattern_states_the_depth() -> None:
    assert geometry_of({"model.pattern": "*E*E/*-/*-", "model.depth": 4}).mtp_depth == 2
    assert geometry_of({"model.pattern": "*E*E/*-/*-", "model.depth": 4, "model.mtp_depth": 1}).mtp_depth == 1


def test_an_unreadable_pattern_leaves_the_blocks_unstated() -> None:
    assert geometry_of({"model.pattern": "AE?E", "model.depth": 4}).blocks is None


def test_a_formula_says_what_it_counts_and_where_that_stands() -> None:
    for name, formula in FORMULAS.items():
        assert formula.id == name
        assert formula.describe
        assert len(formula.source) > 15


def test_eras_are_the_formulas_of_one_framework() -> None:
    assert [era.id for era in eras("maxtext")] == [
        "maxtext",
        "maxtext_2023_11",
        "maxtext_noncausal",
        "maxtext_2024_05",
    ]
    assert [era.id for era in eras("6n")] == ["6n"]
    assert eras("unheard of") == ()


def test_mfu_and_tflops_a_chip_follow_from_one_rate() -> None:
    share = mfu(115_000.0, 25.2e9, 8, 989e12)
    assert share == pytest.approx(0.36628, abs=1e-5)
    tflops = tflops_per_second_per_chip(115_000.0, 25.2e9, 8)
    assert tflops is not None
    assert tflops * 1e12 / 989e12 == pytest.approx(share)


def test_without_chips_or_peak_there_is_no_mfu() -> None:
    assert mfu(100.0, 1e9, 0, 989e12) is None
    assert mfu(100.0, 1e9, 8, 0.0) is None
    assert tflops_per_second_per_chip(100.0, 1e9, 0) is None
