"""The frontier of fit: what was sustained, how well, where it failed next, and the gap."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import pytest

from command_line import Shell
from receipts.questions.ceiling import Ceiling, frontiers
from receipts.store import Store, open_store
from store_receipts import parsed, ready

OOM = {"run__outcome": "oom", "failure": {"phase": "compile", "class": "compile_hbm"}}
LANE = "cpu-torch"


@pytest.fixture
def store(made_url: str) -> Iterator[Store]:
    with open_store(made_url) as made:
        yield made


def _put(store: Store, micro: int, *, times: int = 1, days: int = 1, **leaves: Any) -> None:
    for number in range(times):
        day = f"2026-03-{1 + number % days:02}T09:00:00Z"
        store.submit(*ready(batch__micro_batch=micro, run__started=day, run__finished=None, **leaves))


def _ceilings(store: Store, **asked: Any) -> tuple[Ceiling, ...]:
    (group,) = frontiers(store.query.reached(LANE, **asked)).frontiers
    return group.ceilings


def test_grades_by_launches_days_and_hosts(store: Store) -> None:
    _put(store, 2, times=3, days=2)
    _put(store, 4, times=3)
    _put(store, 8)
    assert [(item.grade, item.size[1], item.launches, item.days) for item in _ceilings(store)] == [
        ("validated", 2, 3, 2),
        ("repeated", 4, 3, 1),
        ("peak", 8, 1, 1),
    ]


def test_three_launches_on_two_hosts_of_one_day_are_validated(store: Store) -> None:
    _put(store, 2, times=2, run__host="a")
    _put(store, 2, run__host="b")
    assert [(item.grade, item.hosts) for item in _ceilings(store)] == [("validated", 2)]


def test_a_shape_below_a_ceiling_of_its_grade_or_a_better_one_is_none(store: Store) -> None:
    _put(store, 4, times=3, days=3)
    _put(store, 2, times=2)
    _put(store, 2, batch__sequence_length=4096)
    assert [(item.grade, item.size[:2]) for item in _ceilings(store)] == [("validated", (256, 4)), ("peak", (4096, 2))]


def test_the_nearest_failure_its_cause_and_the_gap(store: Store) -> None:
    _put(store, 4, times=2)
    _put(store, 8, **OOM)
    _put(store, 64, **OOM)
    _put(store, 4, **OOM)
    _put(store, 2, **OOM, batch__sequence_length=8192)
    (item,) = _ceilings(store)
    assert [(cause.size[:2], cause.kinds) for cause in item.failures] == [((256, 8), ("compile_hbm in compile",))]
    assert item.gap == {"micro_batch": 2.0}
    assert item.failed_here == 1
    (group,) = frontiers(store.query.reached(LANE)).frontiers
    assert [cause.size[:2] for cause in group.elsewhere] == [(8192, 2)]


def test_geometries_layouts_and_chips_are_kept_apart_and_names_are_not(store: Store) -> None:
    for leaves in ({}, {"hardware__chips": 8}, {"model__hidden": 512}, {"parallelism__tensor": 2}):
        _put(store, 2, **leaves)
        _put(store, 2, **leaves, model__name="another name", model__family=None)
    found = frontiers(store.query.reached(LANE)).frontiers
    assert sorted((item.chips, [one.launches for one in item.ceilings]) for item in found) == [
        *([(1, [2])] * 3),
        (8, [2]),
    ]


def test_what_is_not_measured_or_no_longer_stands_is_left_out_and_what_has_no_shape_is_counted(store: Store) -> None:
    _put(store, 2)
    _put(store, 64, run__provenance="quoted")
    _put(store, 64, run__kind="profile")
    store.retract(store.submit(*ready(batch__micro_batch=64)).id, "the clock was wrong")
    store.submit(*ready(batch__micro_batch=None))
    found = frontiers(store.query.reached(LANE))
    assert [item.size[1] for group in found.frontiers for item in group.ceilings] == [2]
    assert found.shapeless == 1


def test_since_leaves_earlier_launches_out(store: Store) -> None:
    _put(store, 8)
    _put(store, 2, times=3, days=3)
    since = datetime(2026, 3, 2, tzinfo=UTC)
    assert [(item.size[1], item.launches) for item in _ceilings(store, since=since)] == [(2, 2)]


def test_facts_tell_days_and_hosts_where_a_ceiling_may_be_validated(store: Store) -> None:
    _put(store, 2, times=3, days=2, run__host="a")
    _put(store, 4, times=2)
    told = {item.micro_batch: (item.launches, item.days, item.hosts) for item in store.query.facts(parsed()).shapes}
    assert told == {2: (3, 2, 1), 4: (2, None, None)}


def test_the_command_says_grade_failure_and_gap(shell: Shell) -> None:
    for name in ("a", "b"):
        shell.store(name)
    shell.store("c", batch__micro_batch=16, run__outcome="oom", failure={"phase": "steady", "class": "host"})
    said = shell("ceiling", "--lane", LANE)
    assert said.code == 0
    assert "repeated" in said.out
    assert "gap: micro batch ×2" in " ".join(said.out.split())
    assert "host in steady" in " ".join(said.out.split())
    (group,) = shell("ceiling", "--lane", LANE, "--json").json["frontiers"]
    assert group["ceilings"][0]["gap"] == {"micro_batch": 2.0}


def test_one_launch_under_each_of_two_recompute_policies_repeats_nothing(shell: Shell) -> None:
    shell.store("a", numerics__recompute="none", numerics__recompute_applied="none")
    shell.store("b", numerics__recompute="full", numerics__recompute_applied="full")
    said = shell("ceiling", "--lane", LANE)
    assert said.code == 3
    assert "Each recompute policy, precision and optimizer has shapes of its own" in " ".join(said.out.split())
    groups = shell("ceiling", "--lane", LANE, "--json").json["frontiers"]
    assert [item["grade"] for group in groups for item in group["ceilings"]] == ["peak", "peak"]
    held = {group["ceilings"][0]["last_had"] for group in groups}
    assert held == {f"recompute {policy}, matmuls in fp32" for policy in ("off", "full")}


def test_without_a_repeated_shape_it_ends_with_3_and_without_a_lane_with_2(shell: Shell) -> None:
    shell.store("a")
    assert shell("ceiling", "--lane", LANE).code == 3
    assert shell("ceiling", "--lane", "cpu-jax").code == 3
    wrong = shell("ceiling", "--lane", "cpu-torhc")
    assert wrong.code == 2
    assert "did you mean cpu-torch" in wrong.err
    assert shell("ceiling", "--lane", LANE, "--since", "yesterday").code == 2


@pytest.mark.parametrize("columns", ["60", "120"])
def test_it_keeps_to_the_width(shell: Shell, columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    shell.store("a")
    shell.store("c", batch__micro_batch=64, run__outcome="oom", failure={"phase": "steady", "class": "host"})
    monkeypatch.setenv("COLUMNS", columns)
    assert max(map(len, shell("ceiling", "--lane", LANE).out.splitlines())) <= int(columns)
