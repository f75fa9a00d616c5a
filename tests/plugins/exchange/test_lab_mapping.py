"""What the lab's mapping reads of a record's prose, on made-up rows."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from receipts.plugins.exchange.notebook import import_file


@pytest.fixture
def stated(checkout: Path, tmp_path: Path) -> Any:
    def read(**row: Any) -> Any:
        whole = {
            "id": "one",
            "kind": "training",
            "source": {"repo": "r", "path": "docs/notes.md", "section": "Sweep"},
            "outcome": "ok",
            "provenance": "measured",
            **row,
        }
        table = tmp_path / "runs.json"
        table.write_text(json.dumps([whole]))
        found = import_file(table, checkout / "examples" / "lab" / "mapping.toml")
        assert not found.refused
        return found.receipts[0].parsed.stated

    return read


@pytest.mark.parametrize(
    ("path", "section", "context"),
    [
        ("docs/notes.md", "Sweep", "r:docs/notes.md#Sweep"),
        ("docs/notes.md", "Sweep / Table 2", "r:docs/notes.md#Sweep"),
        ("docs/notes.md", "Sweep / Table 2 / Late", "r:docs/notes.md#Sweep"),
        ("bench/path_matrix_0514/adamw.json", "receipt", "r:bench/path_matrix_0514"),
        ("bench/baselines/path_matrix.json", "rows", "r:bench/baselines/path_matrix.json#rows"),
        ("reports/path_matrix/late.csv", "csv row", "r:reports/path_matrix/late.csv#csv row"),
    ],
)
def test_a_subsection_shares_its_sections_context_and_a_cell_that_of_its_matrix(
    stated: Any, path: str, section: str, context: str
) -> None:
    found = stated(source={"repo": "r", "path": path, "section": section})
    assert found["run.context"] == context


@pytest.mark.parametrize(
    ("section", "precision", "context"),
    [
        ("8 chips BF16", "bf16", "8 chips"),
        ("8 chips - FP8", "fp8", "8 chips"),
        ("8 chips FP8", None, "8 chips FP8"),
        ("BF16", "bf16", "BF16"),
        ("FP8 and the rest", "fp8", "FP8 and the rest"),
    ],
)
def test_tables_one_a_precision_are_one_where_their_rows_state_it(
    stated: Any, section: str, precision: str | None, context: str
) -> None:
    source = {"repo": "r", "path": "p", "section": section}
    assert stated(source=source, precision=precision)["run.context"] == f"r:p#{context}"


def test_a_sections_title_speaks_of_its_rows_unless_a_row_says_otherwise(stated: Any) -> None:
    source = {"repo": "r", "path": "p", "section": "Sweep (MBS=6, no indexer)"}
    assert stated(source=source)["features.indexer_loss"] == "off"
    assert stated(source=source, backends={"indexer_loss": "coeff 0.001"})["features.indexer_loss"] == "coeff 0.001"
    assert "features.indexer_loss" not in stated()


def test_a_remark_states_the_capacity_that_experts_are_padded_to(stated: Any) -> None:
    assert stated(notes=["Drop-and-pad: --moe-expert-capacity-factor 1.5"])["model.capacity_factor"] == 1.5


@pytest.mark.parametrize(
    ("remark", "shape"),
    [
        ("B=2 S=4096 H=8 bf16", "B=2 S=4096 H=8"),
        ("shape B=2 S=4096 H=8; fwd ms in notes", "B=2 S=4096 H=8"),
        ("scores, shape (sq=sk,b,h,d)=4096,2,8,64, synthetic", "sq=sk,b,h,d=4096,2,8,64"),
        ("x=(256,4096) w=(4096,4096)", "x=(256,4096) w=(4096,4096)"),
        ("hidden=3584 seq=4096 batch=2 fwd+bwd per iter", "hidden=3584 seq=4096 batch=2"),
        ("4096x4096, 10 warm-up 30 iters", "4096x4096"),
        ("256^3", "256^3"),
    ],
)
def test_a_microbenchmarks_shape_is_an_axis(stated: Any, remark: str, shape: str) -> None:
    assert stated(kind="kernel_microbench", notes=["12.5 us", remark])["features.shape"] == shape


def test_a_time_is_no_shape_and_a_training_run_has_none(stated: Any) -> None:
    assert "features.shape" not in stated(kind="kernel_microbench", notes=["12.5 us", "speedup 1.3x", "fwd 4.8 ms"])
    assert "features.shape" not in stated(notes=["256^3"])


@pytest.mark.parametrize(
    ("window", "statistic", "read"),
    [
        (None, "iters 3-5", "iters 3-5"),
        (None, "single cold iteration (the one before)", "single cold iteration"),
        (None, "mean incl. first step", "incl. first step"),
        (None, "mean (median 7010.8)", None),
        ("iters 3-6", "iter 3 only", "iters 3-6"),
    ],
)
def test_a_statistic_that_names_its_steps_is_a_window(
    stated: Any, window: str | None, statistic: str, read: str | None
) -> None:
    found = stated(window=window, metrics={"iter_ms": 5.0, "iter_ms_stat": statistic})
    assert found.get("measurement.window.stated") == read


def test_parameters_gathered_in_fp8_are_another_precision_of_the_same_recipe(stated: Any) -> None:
    plain = stated(precision="FP8 hybrid (delayed)", norm={"precision": "fp8_delayed"})
    gathered = stated(precision="FP8 hybrid (delayed) + fp8-param-gather", norm={"precision": "fp8+param_gather"})
    names = ("numerics.compute_dtype", "numerics.fp8_recipe", "numerics.fp8_scope")
    assert [plain.get(name) for name in names] == ["fp8", "delayed", None]
    assert [gathered.get(name) for name in names] == ["fp8+param_gather", "delayed", None]


@pytest.mark.parametrize(
    ("asked", "posture", "backend"),
    [
        ("none", "eager", "none"),
        ("not requested (eager)", "eager", "none"),
        ("on", None, "torch.compile"),
        ("mode=max-autotune", None, "mode=max-autotune"),
        ("warm inductor/Triton cache", None, None),
        (None, None, None),
    ],
)
def test_whether_anything_compiles_belongs_to_the_posture(
    stated: Any, asked: str | None, posture: str | None, backend: str | None
) -> None:
    found = stated(compile_posture={"torch_compile": asked})
    assert (found.get("compile.posture"), found.get("compile.backend")) == (posture, backend)


def test_two_fp8_recipes_by_name_are_two(stated: Any) -> None:
    assert stated(norm={"precision": "fp8_dynamic"})["numerics.fp8_recipe"] == "dynamic"
    assert stated(norm={"precision": "fp8_delayed"})["numerics.fp8_recipe"] == "delayed"
    assert "numerics.fp8_recipe" not in stated(norm={"precision": "fp8"})


def test_a_setting_that_the_file_has_no_word_for_is_a_feature(stated: Any) -> None:
    found = stated(parallelism={"schedule": "1F1B", "zero_stage": 3}, author="somebody")
    assert found["parallelism.schedule"] == "1F1B"
    assert found["features.parallelism.zero_stage"] == 3
    assert "features.author" not in found


def test_the_active_memory_of_an_allocator_is_live(stated: Any) -> None:
    figure = {"where": "device", "value": 2, "unit": "GiB", "kind": "active"}
    found = stated(hardware={"count": 1}, metrics={"peak_mem": [figure]})
    assert found["memory.chips[0].peak_bytes"] == 2 * 2**30


@pytest.mark.parametrize(
    ("window", "metrics", "statistic"),
    [
        (None, {"iter_ms": 5.0, "iter_ms_stat": "median"}, "median"),
        (None, {"iter_ms": 5.0, "iter_ms_stat": "mean (median 4.9)", "tok_per_s": 900}, None),
        ("5 warm-up, 15 measured, median", {"iter_ms": 5.0, "tok_per_s": 900}, "median"),
        ("tok_sec is the mean of per-step rates", {"iter_ms": 5.0, "iter_ms_stat": "mean"}, "mean_of_rates"),
    ],
)
def test_a_step_times_statistic_is_no_rates(
    stated: Any, window: str | None, metrics: dict[str, Any], statistic: str | None
) -> None:
    assert stated(window=window, metrics=metrics).get("measurement.stated.statistic") == statistic


@pytest.mark.parametrize(
    ("word", "outcome"),
    [
        ("completed", "ok"),
        ("slow", "ok"),
        ("incomplete", "preempted"),
        ("stuck at step 3", "hang"),
        ("segfault", "crash"),
        ("not run", "crash"),
        ("unstable", "nan"),
        ("loss_spike", "nan"),
        ("final loss nan", "nan"),
    ],
)
def test_an_outcome_is_read_in_the_words_that_people_use(stated: Any, word: str, outcome: str) -> None:
    assert stated(outcome=word)["run.outcome"] == outcome


@pytest.mark.parametrize(
    ("kind", "read"),
    [("finetune", "training"), ("ablation", "training"), ("nccl", "microbench"), ("decode", "serving")],
)
def test_a_kind_is_read_in_the_words_that_people_use(stated: Any, kind: str, read: str) -> None:
    assert stated(kind=kind)["run.kind"] == read


@pytest.mark.parametrize(("word", "read"), [("claimed", "quoted"), ("derived", "projected"), ("reported", "quoted")])
def test_what_nobody_measured_is_not_measured(stated: Any, word: str, read: str) -> None:
    assert stated(provenance=word)["run.provenance"] == read


@pytest.mark.parametrize(
    ("text", "dtype"),
    [("BF16 (FP8 off)", "bf16"), ("bfloat16", "bf16"), ("BF16 mixed", "bf16"), ("Float8 rowwise", "fp8")],
)
def test_a_precision_is_one_type_in_every_spelling(stated: Any, text: str, dtype: str) -> None:
    assert stated(precision=text)["numerics.compute_dtype"] == dtype


def test_the_kernels_of_a_row_are_a_set(stated: Any) -> None:
    one, other = (stated(backends={"kernels": names}) for names in (["CuTe", "Liger"], ["Liger", "CuTe"]))
    assert one["features.kernels"] == other["features.kernels"] == "CuTe + Liger"


def test_a_sequence_of_4k_is_4096_long_and_a_switch_of_recompute_is_read(stated: Any) -> None:
    found = stated(seq_len="4K", recompute=False, lr="cosine 3e-4", iterations="100 steps")
    assert found["batch.sequence_length"] == 4096
    assert found["numerics.recompute"] == "off"
    assert (found["numerics.learning_rate"], found["numerics.schedule"]) == (3e-4, "cosine")
    assert found["measurement.steps"] == 100
