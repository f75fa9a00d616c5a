"""The lab's claims: where the product and a careful person agree, and that the benchmark says so."""

from __future__ import annotations

import importlib.util
import json
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from receipts.base.errors import UsageError

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def benchmark(checkout: Path) -> ModuleType:
    spec = importlib.util.spec_from_file_location("lab_agreement", checkout / "benchmarks" / "lab_agreement.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["lab_agreement"] = module
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def found(benchmark: ModuleType, cases: Path, checkout: Path) -> dict[str, Any]:
    judged, _, _ = benchmark.judge(cases / "lab", checkout / "examples" / "lab" / "mapping.toml")
    figures: dict[str, Any] = benchmark.summary(judged)
    return figures


def test_the_product_accepts_at_most_two_per_cent_of_what_the_person_rejects(found: dict[str, Any]) -> None:
    assert found["n"] > 100
    assert found["false_accepts"] <= 0.02


def test_the_product_rejects_at_most_eight_per_cent_of_what_the_person_accepts(found: dict[str, Any]) -> None:
    assert found["false_rejects"] <= 0.08


def test_what_is_left_open_is_at_most_a_third_and_names_its_fact(found: dict[str, Any]) -> None:
    assert found["undecided"] <= 0.35
    assert found["undecided_unnamed"] == 0


def test_the_arithmetic_of_the_records_follows_from_the_receipts(found: dict[str, Any]) -> None:
    assert found["counts"]["arithmetic"] > 300
    assert found["arithmetic_agree"] >= 0.98


def test_where_the_records_decide_the_product_decides_alike(found: dict[str, Any]) -> None:
    assert found["decided_agree"] >= 0.95


def test_as_claims_they_get_the_persons_verdict_and_none_is_supported_by_stated_numbers(found: dict[str, Any]) -> None:
    claims = found["claims"]
    assert claims["n"] == found["n"]
    assert claims["agree"] >= 0.90
    assert claims["reasons_agree"] >= 0.90
    assert claims["falsely_supported"] == 0
    assert all(item["product_reasons"] for item in claims["disagreements"])


def _claim(accept: bool, mechanical: str, axes: list[str]) -> dict[str, Any]:
    return {
        "id": "x1",
        "a": "one",
        "b": "two",
        "metric": "tok_per_s",
        "axes": {"stated_and_different": axes, "derived": []},
        "strict_one_axis": {"accept": accept, "reason": "made up", "mechanical_from_records": mechanical},
        "arithmetic": {"auto": {"a": {"tok_per_s_stated": 1000}, "values": [1000, 500], "change_a_vs_b_pct": 100.0}},
    }


def _run(name: str, rate: int, **batch: int | str) -> dict[str, Any]:
    return {
        "id": name,
        "kind": "training",
        "source": {"repo": "r", "path": "p", "section": "s"},
        "hardware": {"accelerator": "NVIDIA H200", "count": 8},
        "batch": batch,
        "metrics": {"tok_per_s": rate, "iter_ms": 1.0},
        "outcome": "ok",
        "provenance": "measured",
    }


def _folder(tmp_path: Path, claim: dict[str, Any], *runs: dict[str, Any]) -> Path:
    (tmp_path / "runs.json").write_text(json.dumps(runs))
    (tmp_path / "claims.json").write_text(json.dumps([claim]))
    return tmp_path


def test_two_changed_axes_that_a_person_accepts_count_as_a_false_rejection(
    benchmark: ModuleType, checkout: Path, tmp_path: Path
) -> None:
    runs = (_run("one", 1000, mbs=2, gbs=4), _run("two", 500, mbs=1, gbs=1))
    folder = _folder(tmp_path, _claim(True, "multi_axis", ["mbs", "gbs"]), *runs)
    judged, _, _ = benchmark.judge(folder, checkout / "examples" / "lab" / "mapping.toml")
    figures = benchmark.summary(judged)
    assert figures["false_rejects"] == 1.0
    assert figures["axes_agree"] == 1.0
    assert figures["arithmetic_agree"] == 1.0
    assert figures["disagreements"][0]["product_reasons"][0].startswith("C101")
    assert benchmark.broken_bars(figures)


def test_a_setting_that_only_the_records_have_a_word_for_is_the_axis_that_they_name(
    benchmark: ModuleType, checkout: Path, tmp_path: Path
) -> None:
    runs = (_run("one", 1000, packing="on"), _run("two", 500, packing="off"))
    folder = _folder(tmp_path, _claim(True, "one_axis", ["batch.packing"]), *runs)
    judged, _, _ = benchmark.judge(folder, checkout / "examples" / "lab" / "mapping.toml")
    assert judged[0].verdict.difference.axes == ("features.batch.packing",)
    assert judged[0].axes_agree


def test_a_second_change_that_no_record_states_is_counted_apart(
    benchmark: ModuleType, checkout: Path, tmp_path: Path
) -> None:
    runs = (_run("one", 1000, mbs=2), _run("two", 500, mbs=1))
    folder = _folder(tmp_path, _claim(False, "one_axis", ["mbs"]), *runs)
    judged, _, _ = benchmark.judge(folder, checkout / "examples" / "lab" / "mapping.toml")
    figures = benchmark.summary(judged)
    assert figures["false_accepts"] == 0.0
    assert figures["counts"]["not_in_record"] == 1
    assert not figures["disagreements"]


def test_a_figure_that_does_not_follow_is_an_arithmetic_disagreement(
    benchmark: ModuleType, checkout: Path, tmp_path: Path
) -> None:
    claim = _claim(True, "one_axis", ["mbs"])
    claim["arithmetic"]["auto"]["change_a_vs_b_pct"] = 42.0
    folder = _folder(tmp_path, claim, _run("one", 1000, mbs=2), _run("two", 500, mbs=1))
    judged, _, _ = benchmark.judge(folder, checkout / "examples" / "lab" / "mapping.toml")
    figures = benchmark.summary(judged)
    assert [item["figure"] for item in figures["arithmetic_disagreements"]] == ["change_a_vs_b_pct"]


def test_flops_a_token_follow_from_either_rate_that_a_row_states(
    benchmark: ModuleType, checkout: Path, tmp_path: Path
) -> None:
    claim = _claim(True, "one_axis", ["mbs"])
    claim["arithmetic"]["auto"] = {"a": {"gflop_per_token": 9.07}, "b": {"gflop_per_token": 9.2}}
    runs = [_run("one", 207000, mbs=2), _run("two", 207000, mbs=1)]
    for run in runs:
        run["metrics"] |= {"tok_per_s_per_gpu": 25900, "tflops_per_gpu": 235}
    judged, _, _ = benchmark.judge(_folder(tmp_path, claim, *runs), checkout / "examples" / "lab" / "mapping.toml")
    assert [check.agrees for check in judged[0].arithmetic] == [True, False]


def test_a_change_that_the_two_numbers_do_not_give_is_overstated(
    benchmark: ModuleType, checkout: Path, tmp_path: Path
) -> None:
    for stated, expected in (("+42 %", "refuted"), ("+100 %", "unproven"), ("1002 vs 501 (+100%)", "unproven")):
        claim = {**_claim(True, "one_axis", ["mbs"]), "stated_change": stated}
        folder = _folder(tmp_path, claim, _run("one", 1002, mbs=2), _run("two", 501, mbs=1))
        judged, _, _ = benchmark.judge(folder, checkout / "examples" / "lab" / "mapping.toml")
        figures = benchmark.summary(judged)["claims"]
        assert [item["stated"] for item in figures["overstated"]] == ([stated] if expected == "refuted" else [])
        assert figures["agree"] == (1.0 if expected == "unproven" else 0.0)


def test_a_claim_on_a_run_that_is_not_there_is_refused(benchmark: ModuleType, checkout: Path, tmp_path: Path) -> None:
    folder = _folder(tmp_path, _claim(True, "one_axis", []), _run("one", 1000))
    with pytest.raises(UsageError, match="two"):
        benchmark.judge(folder, checkout / "examples" / "lab" / "mapping.toml")


def test_a_claim_on_a_row_that_is_no_receipt_is_named_and_the_others_are_judged(
    benchmark: ModuleType, checkout: Path, tmp_path: Path
) -> None:
    broken = {**_run("two", 500, mbs=1), "outcome": "purple"}
    folder = _folder(tmp_path, _claim(True, "one_axis", ["mbs"]), _run("one", 1000, mbs=2), broken)
    judged, imported, lacking = benchmark.judge(folder, checkout / "examples" / "lab" / "mapping.toml")
    assert not judged
    assert lacking == ["x1"]
    assert "purple" in str(imported.refused[0].problems[0])
