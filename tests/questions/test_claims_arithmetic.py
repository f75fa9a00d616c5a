"""Claims of arithmetic: the figures of sizing articles, checked by named formulas with units."""

from __future__ import annotations

import json

import pytest

import rule_cases
from receipts.base.errors import InputError
from receipts.judging.claim import parse_claims
from receipts.judging.verdict import ClaimVerdict
from receipts.metrics.arithmetic import ARITHMETIC
from receipts.questions.claims.judgment import ClaimEvidence, judge
from receipts.questions.claims.wording import footnote

EXPERTS = "tokens = 4096, top_k = 2, experts = 128, capacity_factor = 1.2"
CACHE = 'layers = 80, head_dim = 128, tokens = "128K", dtype = "bf16"'
LATENT = 'layers = 61, qk_rope_head_dim = 64, tokens = 131072, dtype = "bf16"'
RATES = 'flops_per_token = "48.5 GFLOP", peak_flops_per_second = "989 TFLOP/s"'
BUFFER = f'{EXPERTS}, hidden = 4096, local_experts = 4, dtype = "bf16"'


def _claim(formula: str, inputs: str, effect: str, more: str = "") -> bytes:
    return (
        f'schema_version = "1.0"\n[[claim]]\nid = "it"\ntext = "A figure."\nkind = "arithmetic"\n'
        f'formula = "{formula}"\ninputs = {{ {inputs} }}\neffect = "{effect}"\n{more}\n'
    ).encode()


def _judged(formula: str, inputs: str, effect: str) -> ClaimVerdict:
    (claim,) = parse_claims(_claim(formula, inputs, effect), "claims.toml")
    return judge(claim, ClaimEvidence(), rule_cases.rulebook())


def _problems(raw: bytes) -> str:
    with pytest.raises(InputError) as caught:
        parse_claims(raw, "claims.toml")
    return str(caught.value)


@pytest.mark.parametrize(
    ("formula", "inputs", "effect", "status"),
    [
        ("gradient-bytes", 'parameters = "70B", dtype = "bf16"', "about 140 GB", "supported"),
        ("gradient-bytes", 'parameters = 70_000_000_000, dtype = "fp32"', "140 GB", "refuted"),
        ("pipeline-bubble", "stages = 8, micro_batches = 32", "17.9 %", "supported"),
        ("pipeline-bubble", "stages = 8, micro_batches = 32", "at most 15 %", "refuted"),
        ("pipeline-bubble", "stages = 8, micro_batches = 32, virtual = 2", "9.9 %", "supported"),
        ("local-tokens", 'sequence = "128K", context = 8', "16K tokens", "supported"),
        ("local-tokens", 'sequence = "128K", context = 8', "16,384 tokens", "supported"),
        ("local-tokens", "sequence = 131072, context = 8", "16K", "supported"),
        ("local-tokens", "sequence = 131072, context = 4", "16K", "refuted"),
        ("sequence-parallel-saving", "tensor = 8", "87.5 %", "supported"),
        ("sequence-parallel-bytes", "tokens = 4096, hidden = 4096, tensor = 8", "147 MB", "supported"),
        ("local-heads", "heads = 56, tensor = 8", "7 heads", "supported"),
        ("local-width", "heads = 56, head_dim = 64, tensor = 8", "448 dims", "supported"),
        ("local-layers", "layers = 52, pipeline = 2", "26 layers", "supported"),
        ("local-layers", "layers = 52, pipeline = 2, virtual = 2", "26 layers", "refuted"),
        ("local-experts", "experts = 64, expert = 8", "8", "supported"),
        ("expert-capacity", EXPERTS, "77", "supported"),
        ("expert-capacity", EXPERTS, "76 rows", "refuted"),
        ("dispatch-counts", "tokens = 4096, top_k = 2", "about 32 KB", "supported"),
        ("routing-buffer", BUFFER, "2.5 MB", "supported"),
        ("routing-scratch", BUFFER, "about 5 MB", "supported"),
        ("adam-state-bytes", 'parameters = "7B"', "84 GB", "supported"),
        ("parameter-bytes", 'parameters = "7B", dtype = "fp32"', "28 GB", "supported"),
        ("global-batch", "micro_batch = 4, data = 8", "32 sequences", "supported"),
        ("all-reduce-bytes", 'size = "140 GB", ranks = 8', "245 GB", "supported"),
        ("all-reduce-bytes", 'size = "140 GB", ranks = 8', "280 GB", "refuted"),
        ("all-reduce-bytes", 'size = "140 GB", ranks = 1', "0 GB", "supported"),
        ("reduce-scatter-bytes", 'size = "140 GB", ranks = 8', "122.5 GB", "supported"),
        ("reduce-scatter-bytes", 'size = "140 GB", ranks = 8', "245 GB", "refuted"),
        ("all-gather-bytes", 'size = "140 GB", ranks = 8', "122.5 GB", "supported"),
        ("all-gather-bytes", 'size = "140 GB", ranks = 8', "17.5 GB", "refuted"),
        ("kv-cache-bytes", CACHE.replace('"128K"', "131072") + ", kv_heads = 8", "42.9 GB", "supported"),
        ("kv-cache-bytes", f"{CACHE}, kv_heads = 8", "40 GB", "supported"),
        ("kv-cache-bytes", f"{CACHE}, kv_heads = 8", "42.9 GB", "supported"),  # 131,072 tokens, and 10⁹ bytes
        ("kv-cache-bytes", f"{CACHE}, kv_heads = 8", "42.9 GiB", "refuted"),
        ("kv-cache-bytes", f"{CACHE}, kv_heads = 64", "40 GB", "refuted"),
        ("gradient-bytes", 'parameters = "125M", dtype = "bf16"', "262 MB", "refuted"),  # as if of 1,024
        ("all-reduce-bytes", 'size = "8 B", ranks = 2', "8 B", "supported"),
        ("amortization-steps", 'compile_seconds = "1.5 min", step_seconds = "500 ms"', "17,820 steps", "supported"),
        ("latent-cache-bytes", f"{LATENT}, kv_lora_rank = 512", "9.2 GB", "supported"),
        ("latent-cache-bytes", f"{LATENT}, kv_lora_rank = 512", "18.4 GB", "refuted"),
        ("mfu", f"tokens_per_second_per_chip = 8400, {RATES}", "41.2 %", "supported"),
        ("mfu", f"tokens_per_second_per_chip = 8400, {RATES}", "0.412", "supported"),
        ("mfu", f"tokens_per_second_per_chip = 8400, {RATES}", "20.6 %", "refuted"),
        ("mfu", f'tokens_per_second_per_chip = "8.4K", {RATES}', "42.2 %", "refuted"),  # as if of 1,024
        ("amortization-steps", "compile_seconds = 90, step_seconds = 0.5", "17,820 steps", "supported"),
    ],
)  # fmt: skip
def test_a_figure_is_checked_by_its_formula(formula: str, inputs: str, effect: str, status: str) -> None:
    verdict = _judged(formula, inputs, effect)
    assert verdict.status == status
    assert verdict.assessment.why.startswith(f"{formula} = {ARITHMETIC[formula].expression} = ")


def test_every_formula_is_checked_by_a_figure() -> None:
    mark = next(item for item in test_a_figure_is_checked_by_its_formula.pytestmark if item.name == "parametrize")
    assert {row[0] for row in mark.args[1]} == set(ARITHMETIC)


def test_a_footnote_shows_the_formula() -> None:
    assert "140,000,000,000 B (140 GB)" in footnote(
        _judged("gradient-bytes", 'parameters = "70B", dtype = "bf16"', "140 GB")
    )


@pytest.mark.parametrize(
    ("raw", "problem"),
    [
        (_claim("gradient", "", "1 GB"), "claim[0].formula: there is no formula 'gradient'; known: gradient-bytes"),
        (_claim("gradient-bytes", 'parameters = "70B"', "1 GB"), "inputs: gradient-bytes takes dtype"),
        (_claim("local-tokens", "sequence = 8, contex = 2", "4"), "takes no contex"),
        (_claim("local-tokens", "sequence = 10, context = 4", "2.5"), "cannot be shared evenly by 4 ranks"),
        (_claim("local-tokens", 'sequence = "long", context = 4', "4"), "sequence: 'long' is not one number"),
        (_claim("local-tokens", "sequence = 0, context = 4", "4"), "must be above 0"),
        (_claim("all-reduce-bytes", 'size = "140 Gbit", ranks = 8', "245 GB"), "size: '140 Gbit' is not in bytes"),
        (_claim("all-reduce-bytes", 'size = "140", ranks = 8', "245 GB"), "size: '140' is not in bytes"),
        (_claim("all-reduce-bytes", 'size = "140 GB", ranks = "8 GB"', "245 GB"), "ranks: '8 GB' has the unit of"),
        (_claim("local-tokens", 'sequence = "128 KB", context = 4', "4"), "sequence: '128 KB' has the unit of"),
        (_claim("gradient-bytes", 'parameters = "70 GB", dtype = "bf16"', "1 GB"), "parameters: '70 GB' has the unit"),
        (_claim("gradient-bytes", 'parameters = "70b", dtype = "bf16"', "1 GB"), "parameters: '70b' has the unit of"),
        (_claim("amortization-steps", 'compile_seconds = "90 GB", step_seconds = 1', "9"), "is not in seconds"),
        (
            _claim("mfu", f'tokens_per_second_per_chip = "8.4k samples/s", {RATES}', "41 %"),
            "has the unit of something else; write 8.4k tok/s",
        ),
        (_claim("gradient-bytes", 'parameters = 1, dtype = "wide"', "1 GB"), "'wide' is not an element type"),
        (_claim("local-tokens", "sequence = 8, context = 4", "2 GB"), "a number of tokens, and not 'GB'"),
        (_claim("gradient-bytes", 'parameters = 1, dtype = "bf16"', "2"), "is bytes, such as 140 GB"),
        (_claim("pipeline-bubble", "stages = 2, micro_batches = 2", "3 GB"), "is a share"),
        (_claim("all-reduce-bytes", 'size = "140 GB"', "245 GB"), "takes ranks (ranks of the group)"),
        (_claim("all-reduce-bytes", 'size = "140 GB", ranks = 8', "175 %"), "is bytes, such as 140 GB"),
        (_claim("kv-cache-bytes", CACHE, "40 GB"), "takes kv_heads"),
        (
            _claim("mfu", "tokens_per_second_per_chip = 8400", "41 %"),
            "takes peak_flops_per_second (dense peak FLOP/s of a chip)",
        ),
        (_claim("mfu", f"tokens_per_second_per_chip = 8400, {RATES}", "407 TFLOP/s"), "is a share"),
        (
            _claim("mfu", f"tokens_per_second_per_chip = 67200, {RATES}", "329 %"),
            "is above the peak: state tokens a second of one chip",
        ),
        (_claim("local-heads", "heads = 8, tensor = 2", "4", 'candidate = "3f9c"'), "candidate: "),
        (_claim("local-heads", "heads = 8, tensor = 2", "4").replace(b'"arithmetic"', b'"mfu"'), "formula: it belongs"),
    ],
)
def test_what_does_not_fit_the_formula_is_refused(raw: bytes, problem: str) -> None:
    assert problem in _problems(raw)


def test_a_claim_of_arithmetic_survives_a_store() -> None:
    from receipts.judging.claim import claim_from_json, claim_to_json

    (claim,) = parse_claims(_claim("expert-capacity", EXPERTS, "77"), "claims.toml")
    assert claim_from_json(claim_to_json(claim), "it") == claim
    assert json.loads(claim_to_json(claim))["inputs"]["capacity_factor"] == 1.2
