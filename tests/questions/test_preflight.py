"""Preflight: what is known, likely or predicted of a plan, the next rung, and a launcher's candidates in order."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from receipts.axes.lane import Lane
from receipts.questions.ladder import FIRST_THAT_REDUCES, idle, next_rung
from receipts.questions.plan import parse_plan, read_plan, write_plan
from receipts.questions.preflight import Fit, PreflightAnswer, answered, candidates, preflight, ranked
from receipts.receipt import Document, Parsed, parse
from receipts.store import Store, open_store
from store_receipts import RULEBOOK, parsed, ready

OOM = {"run__outcome": "oom", "failure": {"phase": "first_window", "class": "capacity", "requested_bytes": 2**30}}
LANE = RULEBOOK.lanes.get("cpu-torch")


@pytest.fixture
def store(made_url: str) -> Iterator[Store]:
    with open_store(made_url) as made:
        yield made


def _nothing(plan: Parsed, lane: Lane) -> Fit | None:
    return None


def _ask(store: Store | None, lane: Lane = LANE, **leaves: Any) -> PreflightAnswer:
    return preflight(parsed(**leaves), lane, store, _nothing)


def test_a_launch_of_the_signature_that_worked_is_known_to_work(store: Store) -> None:
    worked = store.submit(*ready())
    answer = _ask(store)
    assert (answer.status, answer.code) == ("worked", 0)
    assert answer.by is not None
    assert answer.by.id == worked.id


def test_one_that_failed_is_known_to_fail_and_tells_how(store: Store) -> None:
    store.submit(*ready(**OOM))
    answer = _ask(store)
    assert (answer.status, answer.code, answer.failure_type) == ("failed", 1, "capacity")
    assert answer.by is not None
    assert (answer.by.phase, answer.by.requested_bytes) == ("first_window", 2**30)


def test_of_two_that_disagree_the_newest_decides(store: Store) -> None:
    store.submit(*ready(**OOM))
    store.submit(*ready(run__started="2126-03-05T00:00:00Z", run__finished=None))
    answer = _ask(store)
    assert (answer.status, answer.worked, answer.failed) == ("worked", 1, 1)


def test_another_shape_or_another_axis_is_unknown(store: Store) -> None:
    store.submit(*ready())
    assert _ask(store, numerics__recompute="full").status == "unknown"
    assert _ask(store, numerics__recompute="full").code == 3


def test_what_is_superseded_or_not_measured_is_not_known(store: Store) -> None:
    store.retract(store.submit(*ready(**OOM)).id, "another process held the chip")
    store.submit(*ready(run__provenance="illustrative"))
    assert _ask(store).status == "unknown"
    store.submit(*ready(run__provenance="quoted"))
    assert _ask(store).status == "likely"


def test_a_failure_under_other_wheels_is_a_prediction_that_says_so(store: Store) -> None:
    store.submit(*ready(**OOM, wheels__torch="2.8.0+cpu"))
    answer = _ask(store)
    assert answer.status == "predicted"
    assert answer.by is not None
    assert [item.leaf for item in answer.by.unlike] == ["wheels.torch"]
    assert "wheels.torch 2.8.0+cpu there" in answer.why


def test_a_flag_counts_where_the_lane_says_that_a_runtime_reads_it(store: Store) -> None:
    store.submit(*ready(**OOM, flags__OMP_NUM_THREADS="7", flags__LC_ALL="C"))
    assert _ask(store, flags__LC_ALL="POSIX", flags__OMP_NUM_THREADS="7").status == "failed"
    assert _ask(store, flags__OMP_NUM_THREADS="8").status == "predicted"


def test_a_smaller_pressure_that_failed_predicts_the_larger_and_no_smaller_one(store: Store) -> None:
    store.submit(*ready(**OOM, batch__micro_batch=16, batch__global_batch=16))
    assert _ask(store, batch__micro_batch=32).status == "predicted"
    assert _ask(store, batch__micro_batch=16, batch__sequence_length=512).status == "predicted"
    assert _ask(store, batch__micro_batch=32, batch__sequence_length=128).status == "unknown"
    assert _ask(store, batch__micro_batch=8).status == "unknown"


def test_a_larger_pressure_that_worked_makes_the_smaller_likely(store: Store) -> None:
    store.submit(*ready(batch__micro_batch=16))
    answer = _ask(store, batch__micro_batch=8)
    assert (answer.status, answer.code) == ("likely", 0)
    assert answer.by is not None
    assert ("batch.micro_batch", "16", "8") in answer.by.pressures


def test_features_dominate_only_where_they_are_stated(store: Store) -> None:
    on, off = {"features__tensor_statistics": True}, {"features__tensor_statistics": False}
    store.submit(*ready(**OOM, **off))
    assert _ask(store, **on).status == "predicted"
    assert _ask(store).status == "unknown"


def test_what_another_process_took_says_nothing_of_the_plan(store: Store) -> None:
    store.submit(*ready(run__outcome="oom", failure={"phase": "startup", "class": "foreign_process"}))
    assert _ask(store).status == "unknown"


def test_a_plan_without_a_shape_is_unknown_and_says_what_is_missing(store: Store) -> None:
    answer = _ask(store, batch__micro_batch=None)
    assert (answer.status, answer.missing) == ("unknown", ("batch.micro_batch",))


@pytest.mark.parametrize(("total", "status"), [(30, "unknown"), (34, "unknown"), (36, "predicted")])
def test_the_estimate_predicts_a_failure_only_beyond_its_own_tolerance(total: int, status: str) -> None:
    def estimator(plan: Parsed, lane: Lane) -> Fit:
        return Fit(total * 2**30, 32 * 2**30, "activations", 0.10)

    answer = preflight(parsed(), LANE, None, estimator)
    assert answer.status == status
    assert answer.failure_type == ("estimated" if status == "predicted" else None)


def _rung(store: Store, lane: Lane = LANE, **leaves: Any) -> Any:
    plan = parsed(**leaves)

    def ask(other: Parsed) -> PreflightAnswer:
        return preflight(other, lane, store, _nothing)

    return next_rung(plan, lane, ask, ask(plan))


def test_the_first_rung_is_half_the_micro_batch_and_its_plan_is_ready(store: Store) -> None:
    store.submit(*ready(**OOM))
    rung = _rung(store)
    assert (rung.name, rung.reason) == ("device_batch", None)
    made = parse_plan(Document(rung.plan, "next"))
    assert made.stated["batch.micro_batch"] == parsed().stated["batch.micro_batch"] // 2
    assert made.stated["batch.global_batch"] == parsed().stated["batch.global_batch"]


def test_steps_that_are_known_to_fail_are_passed_over(store: Store) -> None:
    for micro in (8, 4, 2):
        store.submit(*ready(**OOM, batch__micro_batch=micro))
    rung = _rung(store, batch__micro_batch=8)
    assert rung.changes["batch.micro_batch"] == (8, 1)
    assert [item.rung for item in rung.skipped] == ["device_batch", "device_batch"]


def test_a_rung_that_is_used_up_stays_used_and_the_next_one_goes_on(store: Store) -> None:
    store.submit(*ready(**OOM, batch__micro_batch=1))
    rung = _rung(store, batch__micro_batch=2)
    assert rung.name == "sequence_length"
    assert rung.changes["batch.micro_batch"] == (2, 1)
    assert rung.changes["batch.sequence_length"] == (256, 128)
    assert rung.reason == FIRST_THAT_REDUCES


def test_a_failure_at_start_up_is_not_met_by_a_smaller_batch(store: Store) -> None:
    failure = {"phase": "startup", "class": "capacity"}
    store.submit(*ready(run__outcome="oom", failure=failure))
    lane = replace(LANE, ladder=("device_batch", "sequence_length", "features", "topology", "stop"))
    rung = _rung(store, lane)
    assert {item.rung for item in rung.skipped} >= {"device_batch", "sequence_length", "features"}
    assert rung.name == "stop"
    assert rung.plan is None


def test_a_kernel_of_fixed_blocks_is_not_met_by_a_shorter_sequence(store: Store) -> None:
    leaves = {"batch__micro_batch": 1}
    failure = {"phase": "compile", "class": "compile_vmem", "operator": "splash_mha_dkv_no_residuals.1"}
    store.submit(*ready(run__outcome="oom", failure=failure, **leaves))
    lane = replace(LANE, ladder=("device_batch", "sequence_length", "topology", "stop"))
    rung = _rung(store, lane, **leaves)
    assert rung.name == "stop"
    assert "blocks of a fixed size" in {item.rung: item.why for item in rung.skipped}["sequence_length"]


def test_a_degree_that_frees_nothing_is_skipped_with_both_estimates() -> None:
    folder = Path(__file__).parents[2] / "examples" / "fit"
    plan, lane = read_plan(str(folder / "moe-full-32-experts.plan.json")), RULEBOOK.lanes.get("tpu-maxtext")
    others = dict.fromkeys(f"parallelism.{name}" for name in ("tensor", "expert", "context"))
    narrow = parse_plan(Document(write_plan(plan, others), "plan"))
    failed = preflight(narrow, lane, None, lambda *_: Fit(2e12, 10**12, "activations", 0.1))
    only = replace(lane, ladder=("topology", "stop"))
    rung = next_rung(narrow, only, lambda other: preflight(other, only, None, _nothing), failed)
    assert rung.name == "stop"
    assert [item.why for item in rung.skipped] == [
        "pipeline 2: it frees nothing: the estimate goes from 35.88 GiB to 36.07 GiB",
    ]


def test_features_are_switched_off_where_batch_and_length_are_used_up(store: Store) -> None:
    leaves = {"batch__micro_batch": 1, "batch__sequence_length": 128, "features__tensor_statistics": True}
    store.submit(*ready(**OOM, **leaves))
    rung = _rung(store, **leaves)
    assert rung.name == "features"
    assert parse_plan(Document(rung.plan, "next")).stated["features.tensor_statistics"] is False


def test_the_last_rung_doubles_a_degree_that_divides_what_it_cuts(store: Store) -> None:
    leaves = {
        "hardware__chips": 8,
        "parallelism__data": 8,
        "model__heads": 8,
        "model__kv_heads": 8,
        "batch__global_batch": 8,
        "batch__micro_batch": 1,
        "batch__accumulation": 1,
        "batch__sequence_length": 128,
    }
    store.submit(*ready(**OOM, **leaves))
    rung = _rung(store, replace(LANE, ladder=("device_batch", "topology", "stop")), **leaves)
    assert rung.name == "topology"
    assert rung.changes["parallelism.tensor"] == (1, 2)
    assert parse_plan(Document(rung.plan, "next")).stated["parallelism.data"] == 4


def test_candidates_come_back_worked_first_failed_last_and_else_as_they_came(store: Store) -> None:
    store.submit(*ready(batch__micro_batch=16))
    store.submit(*ready(**OOM, batch__micro_batch=32))
    sizes = (64, 32, 7, 3, 16)
    lines = [json.dumps({"id": size, "plan": json.loads(parsed(batch__micro_batch=size).raw)}) for size in sizes]
    given = candidates("\n".join([*lines, ""]).encode(), "candidates.jsonl")
    found = ranked(given, lambda plan: preflight(plan, LANE, store, _nothing))
    told = [(item.candidate.given["id"], item.answer.status, item.answer.failure_type) for item in found]
    assert told == [
        (16, "worked", None),
        (7, "likely", None),
        (3, "likely", None),
        (64, "predicted", "capacity"),
        (32, "failed", "capacity"),
    ]


COMPILE = {"phase": "compile", "class": "compile_hbm", "used_bytes": 45_902_000_000, "limit_bytes": 33_554_432_000}


def _leaves(used: int, micro: int, length: int = 4096, **failure: Any) -> dict[str, Any]:
    return {
        "run__outcome": "oom", "run__launch": f"{used}-{micro}-{length}",
        "failure": COMPILE | {"used_bytes": used} | failure, "batch__micro_batch": micro,
        "batch__sequence_length": length, "batch__global_batch": 8 * micro,
    }  # fmt: skip


def _ran_out(used: int, micro: int, length: int = 4096, **failure: Any) -> Parsed:
    return parsed(**_leaves(used, micro, length, **failure))


@pytest.mark.parametrize(("failures", "rungs"), [
    ([(42, 8, 4096), (42, 4, 4096)], {"device_batch"}),
    ([(42, 8, 4096), (42, 4, 4096), (42, 4, 2048)], {"device_batch", "sequence_length"}),
    ([(42, 8, 4096), (42, 4, 4096), (30, 4, 2048)], {"device_batch"}),
    ([(42, 8, 4096), (41, 4, 4096)], set()),
    ([(42, 8, 4096), (42, 8, 4096), (35, 4, 4096)], set()),
    ([(42, 8, 4096), (42, 4, 2048)], set()),
])  # fmt: skip
def test_a_rung_that_did_not_move_the_printed_bytes_is_idle(failures: list[Any], rungs: set[str]) -> None:
    assert set(idle([_ran_out(used * 10**9, *at) for used, *at in failures], LANE)) == rungs


def test_what_a_full_allocator_held_is_no_need() -> None:
    held = {"phase": "first_window", "class": "runtime_alloc", "limit_bytes": 43 * 10**9}
    assert idle([_ran_out(42 * 10**9, micro, **held) for micro in (8, 4)], LANE) == {}


def test_what_moved_nothing_is_skipped_and_says_so(store: Store) -> None:
    lane = replace(LANE, ladder=("device_batch", "sequence_length", "topology", "stop"))
    for micro in (8, 4):
        store.submit(*ready(**_leaves(42 * 10**9, micro)))
    answer = answered(_ran_out(42 * 10**9, 4), lane, store)
    assert answer.rung is not None
    why = {item.rung: item.why for item in answer.rung.skipped}
    assert why["device_batch"].endswith("the failure printed 39.12 GiB alike")
    assert "sequence_length" not in why or "alike" not in why["sequence_length"]


def test_an_idle_batch_and_length_bring_the_topology_earlier() -> None:
    folder = Path(__file__).parents[2] / "examples" / "fit"
    plan, lane = read_plan(str(folder / "moe-full-32-experts.plan.json")), RULEBOOK.lanes.get("tpu-maxtext")
    failed = preflight(plan, lane, None, lambda *_: Fit(2e12, 10**12, "activations", 0.1))
    tree = json.loads((folder / "moe-full-32-experts.json").read_bytes())
    ran_out = []
    for micro, length in ((8, 4096), (4, 4096), (4, 2048)):
        tree["batch"] |= {"micro_batch": micro, "global_batch": 4 * micro, "sequence_length": length}
        ran_out.append(parse(Document(json.dumps(tree).encode(), str(micro))))
    ladder = replace(lane, ladder=("device_batch", "sequence_length", "topology", "stop"))
    before, after = (
        next_rung(plan, ladder, lambda _: replace(failed, status="unknown"), failed, items) for items in ((), ran_out)
    )
    assert before.name == "device_batch"
    assert (after.name, after.reason) == ("topology", FIRST_THAT_REDUCES)
    assert "batch.micro_batch" not in after.changes
    assert after.plan is not None
    assert json.loads(after.plan)["run"]["label"] == plan.receipt.run.label
