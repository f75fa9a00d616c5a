"""Plans: what may be absent, what a changed leaf brings along, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import rule_cases
from receipts.base.errors import InputError
from receipts.cli.ingest import skeleton
from receipts.judging.judge import judge_case
from receipts.judging.rule import Case
from receipts.judging.rulebook import RuleSet
from receipts.judging.verdict import Level
from receipts.metrics import Launch
from receipts.questions.plan import before_run, parse_plan, plan_of, read_plan, write_plan
from receipts.receipt import Document, Parsed
from rule_cases import rulebook


def _base(name: str, **leaves: Any) -> Parsed:
    tree = rule_cases.base(name)
    for path, value in leaves.items():
        rule_cases.put(tree, path.replace("__", "."), value)
    return rule_cases.parsed(tree)


def _changed(parsed: Parsed, **changes: Any) -> Parsed:
    wanted = {path.replace("__", "."): value for path, value in changes.items()}
    return parse_plan(Document(write_plan(parsed, wanted), "changed"))


def test_what_only_a_run_knows_may_be_absent() -> None:
    plan = plan_of({"run": {"lane": "cpu-torch"}, "batch": {"micro_batch": 4}}, "line 1")
    assert plan.stated["batch.micro_batch"] == 4
    assert plan.receipt.run.kind == "training"


def test_what_another_launch_applied_cannot_stand_against_what_a_plan_asks_for() -> None:
    tree = {"run": {"lane": "cpu-torch"}, "numerics": {"recompute": "full", "recompute_applied": "none"}}
    with pytest.raises(InputError, match=r"numerics\.recompute_applied: a launch applied 'none'"):
        plan_of(tree, "plan")
    ran = {**tree, "run": {"lane": "cpu-torch", "outcome": "ok"}}
    assert plan_of(ran, "receipt").stated["numerics.recompute_applied"] == "none"


def test_a_skeleton_and_a_receipt_are_plans(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(json.dumps(skeleton(rulebook().lanes.get("tpu-torch-xla"))))
    assert read_plan(str(tmp_path / "plan.json")).receipt.run.lane == "tpu-torch-xla"
    (tmp_path / "run.json").write_text(json.dumps(rule_cases.base("tpu")))
    assert read_plan(str(tmp_path / "run.json")).stated == _base("tpu").stated


def test_every_error_is_told_at_once_with_its_place() -> None:
    with pytest.raises(InputError) as refused:
        plan_of({"run": {"kind": "race"}, "batch": {"micro_batch": "4"}, "bach": {}}, "line 3")
    assert {problem.at for problem in refused.value.problems} == {"run.lane", "run.kind", "batch.micro_batch", "bach"}
    assert str(refused.value).startswith("line 3: ")


def test_a_written_plan_holds_what_was_decided_and_nothing_that_was_seen() -> None:
    parsed = _base("tpu")
    tree = before_run(parsed)
    assert set(tree["run"]) <= {"lane", "kind", "context", "tags"}
    assert not {"measurement", "memory", "failure", "evidence", "notes"} & set(tree)
    assert "witnessed" not in tree["path"]
    assert "recompute_applied" not in tree["numerics"]
    assert tree["flags"]["PJRT_DEVICE"] == "TPU"


def test_half_the_micro_batch_is_twice_the_accumulation() -> None:
    parsed = _base("megatron")
    found = _changed(parsed, batch__micro_batch=parsed.stated["batch.micro_batch"] // 2).stated
    assert found["batch.accumulation"] == parsed.stated["batch.accumulation"] * 2
    assert found["batch.global_batch"] == parsed.stated["batch.global_batch"]


def test_a_micro_batch_that_does_not_divide_the_global_batch_is_refused() -> None:
    with pytest.raises(InputError, match="no multiple of micro batch 3"):
        _changed(_base("megatron"), batch__micro_batch=3)


def test_another_tensor_degree_leaves_another_data_degree_and_no_mesh_of_the_old_one() -> None:
    parsed = _base("tpu")
    found = _changed(parsed, parallelism__tensor=4).stated
    assert (parsed.stated["parallelism.data"], found["parallelism.data"]) == (4, 2)
    assert found["parallelism.shard"] == 2
    assert found["batch.accumulation"] == parsed.stated["batch.accumulation"] * 2
    assert "parallelism.mesh_axes" not in found


def test_degrees_that_the_chips_cannot_hold_are_refused() -> None:
    with pytest.raises(InputError, match="8 chips cannot be divided"):
        _changed(_base("tpu"), parallelism__tensor=3)


def test_an_expert_degree_folded_into_data_leaves_data_alone() -> None:
    folded = _base("megatron", parallelism__tensor=1, parallelism__expert=4, parallelism__data=8)
    assert _changed(folded, parallelism__expert=8).stated["parallelism.data"] == 8
    beside = _base("megatron", parallelism__tensor=1, parallelism__expert=4, parallelism__data=2)
    assert _changed(beside, parallelism__expert=8).stated["parallelism.data"] == 1


def test_where_both_conventions_fit_the_data_degree_is_left_out() -> None:
    either = _base("megatron", parallelism__tensor=1, parallelism__expert=1, parallelism__data=8)
    assert "parallelism.data" not in _changed(either, parallelism__expert=2).stated


def test_other_dimensions_are_another_number_of_parameters() -> None:
    parsed = _base("megatron", model__parameters_total=4_730_000_000)
    assert "model.parameters_total" not in _changed(parsed, model__hidden=4096).stated
    assert "model.parameters_total" in _changed(parsed, batch__sequence_length=2048).stated


def test_a_leaf_is_taken_out_by_none_and_an_axis_of_the_path_is_what_is_intended() -> None:
    found = _changed(_base("megatron"), path__attention="te_flash3", features__ngram_hash=None).stated
    assert found["path.intended.attention"] == "te_flash3"
    assert "features.ngram_hash" not in found


def test_changes_that_are_none_are_told_together() -> None:
    with pytest.raises(InputError) as refused:
        write_plan(_base("megatron"), {"batch.mikro_batch": 2, "run.outcome": "oom", "memory.chips": []})
    said = str(refused.value)
    assert "did you mean batch.micro_batch" in said
    assert "run.outcome: only a run knows it" in said
    assert "memory.chips" in said


def test_a_value_of_another_type_is_refused_before_anything_is_counted_with_it() -> None:
    with pytest.raises(InputError, match="it must be a whole number"):
        write_plan(_base("megatron"), {"batch.micro_batch": "2"})


CHANGES: tuple[dict[str, Any], ...] = (
    *({"batch.micro_batch": size} for size in (1, 2, 4, 8, 16)),
    *({"batch.global_batch": size} for size in (8, 16, 32, 128)),
    *({f"parallelism.{name}": size} for name in ("tensor", "pipeline", "context", "expert") for size in (1, 2, 4, 8)),
    *({"hardware.chips": size} for size in (1, 2, 4, 16, 64)),
    {"parallelism.tensor": 4, "batch.micro_batch": 1},
    {"parallelism.expert": 2, "hardware.chips": 16, "batch.micro_batch": 2},
)


@pytest.mark.parametrize("name", ["cpu", "megatron", "tpu"])
@pytest.mark.parametrize("changes", CHANGES, ids=str)
def test_a_written_plan_accounts_for_its_chips_and_its_batch_or_is_refused(name: str, changes: dict[str, Any]) -> None:
    parsed = _base(name)
    lane = rulebook().lanes.of(parsed.receipt.run.lane)
    try:
        raw = write_plan(parsed, changes, lane)
    except InputError:
        return
    rules = rulebook().rules
    arithmetic = RuleSet(tuple(rules.get(code) for code in ("R105", "R106")), "")
    found = judge_case(Case(Launch(parse_plan(Document(raw, "plan")), lane), lane), arithmetic)
    assert not [item.found for item in found if item.level is Level.ERROR]
