"""Transformer Engine's debug log in the forms of its versions, and of the applications that print it."""

from __future__ import annotations

import pytest

from receipts.ingest.literals import Brackets, literal
from receipts.ingest.reading import Reading
from receipts.ingest.scan import scan
from receipts.readers.nvidia.transformer_engine import TransformerEngineReader

CONFIG = (
    "Running with config={'transformer_engine_version': '2.11.0+abc', 'compute_capability': 'sm90', "
    "'flash_attn_version': <Version('2.7.4')>, 'flash_attn_3_version': 'not installed', 'cudnn_version': '9.14.0', "
    "'qkv_type': <class 'torch.Tensor'>, 'qkv_dtype': torch.bfloat16, 'max_seqlen_q': tensor(57, dtype=torch.int32), "
    "'window_size': (-1, 0), 'attn_mask_type': 'causal', 'fp8': False, 'fp8_meta': {'recipe': margin=0, format=HYBRID}}"
)


def read(*lines: str) -> Reading:
    (reading,) = scan(["\n".join((*lines, "")).encode()], [TransformerEngineReader])
    return reading


def attention(reading: Reading) -> dict[str, int]:
    return {seen.value: seen.count for seen in reading.seen if seen.leaf == "attention"}


def silent(*lines: str) -> bool:
    return not any(reading.seen for reading in scan(["\n".join(lines).encode()], [TransformerEngineReader]))


@pytest.mark.parametrize(
    ("line", "path"),
    [
        ("[INFO     | DotProductAttention]: Running with FusedAttention backend (sub-backend 1)", "te_fused"),
        ("[INFO     | DotProductAttention]: Running with FlashAttention backend (version 2.8.3)", "te_flash"),
        ("INFO:DotProductAttention:Running with FlashAttention backend (version 3.0.0b1)", "te_flash"),
        ("[INFO     | DotProductAttention]: Running with FlashAttention backend ", "te_flash"),
        ("[rank3]:INFO:2026-01-02 03:04:05,678:Running with UnfusedDotProductAttention backend", "te_unfused"),
        ("DEBUG:DotProductAttention:Selected backend = FusedAttention (sub-backend 2).", "te_fused"),
        ("DEBUG:DotProductAttention:Selected backend = FlashAttention (2.7.2+vendor.3.4)", "te_flash"),
        ('time="10:00" level=info msg="Running with FusedAttention backend (sub-backend 1)"', "te_fused"),
        ('{"level": "info", "message": "Running with FusedAttention backend (sub-backend 1)"}', "te_fused"),
        ("[DotProductAttention]: using flash-attn 2.4.2", "te_flash"),
        ("[DotProductAttention]: using cuDNN attention (sub-backend 1)", "te_fused"),
        ("[DotProductAttention]: using unfused DPA", "te_unfused"),
        ("Selected fused attention backend: NVTE_Fused_Attn_Backend.NVTE_F16_arbitrary_seqlen", "te_fused"),
        ("No fused attention backend available; falling back to unfused attention.", "te_unfused"),
        ("[12/01/26 10:00:00] INFO     Running with FusedAttention       dpa.py:2884", "te_fused"),
    ],
)
def test_a_selection_is_read_in_every_form(line: str, path: str) -> None:
    reading = read(line)
    assert attention(reading) == {path: 1}
    assert reading.seen[0].level == "backend"


def test_one_selection_told_at_two_levels_counts_once() -> None:
    reading = read(
        "[DEBUG    | DotProductAttention]: Selected backend = FusedAttention (sub-backend 1)",
        "[INFO     | DotProductAttention]: Running with FusedAttention backend (sub-backend 1)",
    )
    assert reading.counters == {"FusedAttention": 1}


def test_every_distinct_selection_is_seen() -> None:
    reading = read(
        "INFO:DotProductAttention:Running with FusedAttention backend (sub-backend 1)",
        "INFO:DotProductAttention:Running with FusedAttention backend (sub-backend 1)",
        "INFO:DotProductAttention:Running with UnfusedDotProductAttention backend",
    )
    assert reading.counters == {"FusedAttention": 2, "UnfusedDotProductAttention": 1}
    assert attention(reading) == {"te_fused": 2, "te_unfused": 1}


def test_a_selection_glued_to_a_step_is_one() -> None:
    glued = "Running with UnfusedDotProductAttention backend iteration        2/      90 | consumed samples: 4 |"
    assert attention(read(glued)) == {"te_unfused": 1}


def test_two_records_on_one_line_both_count() -> None:
    line = "INFO:DPA:Running with FlashAttention backend (version 2.7.4)"
    assert read(line + line).counters == {"FlashAttention": 2}


def test_what_ray_collapses_counts_for_every_process() -> None:
    line = "(Worker pid=7) Running with FusedAttention backend (sub-backend 1)"
    assert read(line + " [repeated 15x across cluster]").counters == {"FusedAttention": 15}
    assert read(line, "  [repeated 15x across cluster]").counters == {"FusedAttention": 15}


def test_ranks_are_told_apart() -> None:
    reading = read(*(f"[rank{rank}]: Running with FusedAttention backend (sub-backend 1)" for rank in (0, 1, 1)))
    assert {(seen.rank, seen.count) for seen in reading.seen} == {(0, 1), (1, 2)}
    assert reading.counters == {"FusedAttention": 3}


@pytest.mark.parametrize(
    "line",
    [
        '[rank0]:     self.logger.info("Running with UnfusedDotProductAttention backend")',
        '                "Running with FlashAttention backend (version %s)",',
        "the log must say `Running with FusedAttention backend`, else look again",
        '"message": "Running with FlashAttention backend (version %s)",',
        "Running with FlashAttention: True",
        '    "fused": "Selected backend = FusedAttention",',
        'assert "Selected backend = FlashAttention" in log',
        '# logs "Running with FusedAttention backend" where it can',
        "{'te': 'Selected backend = FusedAttention (sub-backend 1)', 'cudnn': 9}",
        'lines = ["Selected backend = UnfusedDotProductAttention", "done"]',
        "# Running with UnfusedDotProductAttention backend means that no fused kernel was found",
    ],
)
def test_quoted_source_and_prose_select_nothing(line: str) -> None:
    assert silent(line)


def test_versions_come_out_of_the_config() -> None:
    reading = read(f"[DEBUG    | DotProductAttention]: {CONFIG}")
    stated = {path: item.value for path, item in reading.stated.items()}
    assert stated == {
        "wheels.transformer-engine": "2.11.0+abc",
        "wheels.flash-attn": "2.7.4",
        "platform.cudnn": "9.14.0",
    }
    assert reading.version == "2.11.0+abc"


def test_a_recipe_in_the_config_is_no_fp8() -> None:
    assert not read(CONFIG).seen
    seen = read(CONFIG.replace("'fp8': False", "'fp8': True")).seen
    assert [(item.leaf, item.value, item.level) for item in seen] == [("compute_dtype", "fp8", "intent")]


def test_a_config_wrapped_at_any_place_is_read_whole() -> None:
    cut = CONFIG.index("cudnn_ver") + 4
    reading = read("DEBUG:x:" + CONFIG[:90], CONFIG[90:cut], CONFIG[cut:] + " Selected backend = FusedAttention")
    assert reading.stated["platform.cudnn"].value == "9.14.0"
    assert reading.counters == {"FusedAttention": 1}
    assert not [remark for remark in reading.remarks if remark.kind == "broken"]


def test_a_config_that_is_cut_gives_its_whole_entries_and_says_so() -> None:
    reading = read(CONFIG[:200], "INFO:DotProductAttention:Running with FusedAttention backend (sub-backend 1)")
    assert reading.stated["wheels.flash-attn"].value == "2.7.4"
    assert reading.counters == {"FusedAttention": 1}
    assert [remark.kind for remark in reading.remarks].count("broken") == 1


def test_reasons_are_told_once_with_their_count() -> None:
    reason = "DEBUG:DPA:Disabling FusedAttention for unsupported qkv_dtype = torch.float32. Supported: qkv_dtype = {x}."
    reading = read(reason, reason, "DEBUG:DPA:Selected backend = UnfusedDotProductAttention.")
    texts = [remark.text for remark in reading.remarks]
    assert "Disabling FusedAttention for unsupported qkv_dtype = torch.float32 (2 times)" in texts


def test_no_backend_is_a_failure_and_no_path() -> None:
    reading = read(
        "DEBUG:DotProductAttention:Selected backend = NoBackend.",
        "ValueError: No dot product attention backend is available for the provided inputs. Please run with …",
    )
    assert reading.counters == {"NoBackend": 1}
    assert not reading.seen
    assert [failure.is_oom for failure in reading.failures] == [False]


def test_fp8_of_a_linear_layer_is_seen_and_that_of_attention_is_noted() -> None:
    reading = read("[Linear]: using FP8 forward", "[FusedAttnFunc_qkvpacked]: using non-FP8 forward")
    assert {(item.leaf, item.value) for item in reading.seen} == {("gemm", "te_fp8"), ("compute_dtype", "fp8")}


def test_userbuffers_are_overlap_and_a_missing_package_is_a_hint() -> None:
    reading = read(
        "!!! [UB] Create Userbuffers Communicator",
        "flash-attn v3 may provide important feature support or performance improvement. Please install …",
    )
    assert [(item.leaf, item.value) for item in reading.seen] == [("overlap", "tp_comm")]


def test_a_grouped_gemm_that_was_asked_for_and_replaced_is_a_fallback() -> None:
    assert read("UserWarning: Fallback to cuBLAS grouped GEMM.").fallbacks == {"te_cutlass_grouped_gemm": 1}


def test_a_printed_dict_is_cut_apart_and_never_evaluated() -> None:
    found = literal(
        "{'a': __import__('os').system('false'), 'b': \"it's, {fine}\", 'c': (1, [2, 3]), 'd': <Version('1.2')>}"
    )
    assert found["a"] == "__import__('os').system('false')"
    assert (found["b"], found["c"], found["d"]) == ("it's, {fine}", [1, [2, 3]], "<Version('1.2')>")


@pytest.mark.parametrize("text", ["{", "{'a", "{'a': [((", "{'a': 'b\\", "{:,", "{" * 5000, "{" + "'" * 5000])
def test_a_broken_dict_has_no_end(text: str) -> None:
    block = Brackets(most=2)
    assert block.begin(text, 1) or text == "{:,"
    assert isinstance(literal(block.take()), dict)


def test_a_selection_whose_last_word_was_wrapped_is_one() -> None:
    line = "[INFO     | DotProductAttention]: Running with UnfusedDotProductAttention"
    assert attention(read(line, "backend")) == {"te_unfused": 1}


def test_flax_attention_says_in_two_lines_that_it_falls_back() -> None:
    reading = read(
        "transformer.py:598: UserWarning: Fused attention is not enabled because there is no available kernel.",
        "Fall back to the unfused attention.",
        "Please try to update the cuDNN and TE to the latest version.",
    )
    assert attention(reading) == {"te_unfused": 1}
