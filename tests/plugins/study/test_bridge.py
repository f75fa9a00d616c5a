"""Bridges over grids of known effects: gains telescope, orders differ by the interaction, what is missing is found."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from grid_store import Grid, keep
from receipts.axes.configuration import configuration
from receipts.base.errors import UsageError
from receipts.plugins.study.bridge import Bridge, bridge
from receipts.questions.plan import parse_plan
from receipts.receipt import Document, Parsed
from receipts.store import Store, open_store
from store_receipts import RULEBOOK

pytestmark = pytest.mark.slow

X, Y, Z = "flags.ALPHA", "flags.BETA", "numerics.learning_rate"
VALUES: dict[str, tuple[Any, Any]] = {X: ("0", "1"), Y: ("0", "1"), Z: (1e-4, 3e-4)}
FACTORS = {X: 0.90, Y: 0.95, Z: 1.08}
JOINT = {frozenset({X, Y}): 0.97}
CORNERS = [frozenset(some) for size in range(4) for some in itertools.combinations((X, Y, Z), size)]
EVERY = frozenset(VALUES)
NONE = frozenset[str]()


def grid() -> Grid:
    return Grid(VALUES, FACTORS, JOINT)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with open_store(f"sqlite:///{tmp_path / 'store.sqlite'}") as opened:
        yield opened


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Bridge]:
    """The bridge over a grid of which every corner is stored."""
    place = tmp_path_factory.mktemp("grid") / "store.sqlite"
    with open_store(f"sqlite:///{place}") as opened:
        made = grid().put(opened, CORNERS)
        yield bridge(opened, made[NONE][0], made[EVERY][0], RULEBOOK)


def between(store: Store, made: dict[frozenset[str], list[Parsed]], **options: Any) -> Bridge:
    return bridge(store, made[NONE][0], made[EVERY][0], RULEBOOK, **options)


def gains(found: Bridge) -> list[float]:
    return [hop.gain.log for chain in found.chains for hop in chain if hop.gain is not None]


def test_a_whole_grid_is_bridged_in_every_order_and_every_hop_is_accepted(whole: Bridge) -> None:
    assert (whole.status, whole.exit_code) == ("bridged", 0)
    assert set(whole.counted) == EVERY
    orders = {tuple(hop.axis for hop in chain) for chain in whole.chains}
    assert orders == set(itertools.permutations((X, Y, Z)))
    assert all(hop.verdict.status == "accepted" for chain in whole.chains for hop in chain)
    assert whole.route is None


def test_the_gains_of_every_chain_add_to_the_total_exactly(whole: Bridge) -> None:
    assert whole.total is not None
    for chain in whole.chains:
        added = math.fsum(hop.gain.log for hop in chain if hop.gain is not None)
        assert added == pytest.approx(whole.total.log, abs=1e-14)
        assert [hop.a for hop in chain[1:]] == [hop.b for hop in chain[:-1]]


def test_the_total_has_the_interval_of_its_ends_and_not_the_sum_of_the_hops(whole: Bridge) -> None:
    assert whole.total is not None
    assert whole.total.low is not None
    assert whole.total.high is not None
    true = -math.log(0.90 * 0.95 * 1.08 * 0.97)
    assert whole.total.low < true < whole.total.high
    widths = [hop.gain.high - hop.gain.low for hop in whole.chains[0] if hop.gain and hop.gain.high and hop.gain.low]
    assert whole.total.high - whole.total.low < sum(widths)


def test_the_range_over_orders_spans_the_interaction_and_nothing_else(whole: Bridge) -> None:
    joint = -math.log(0.97)
    for axis in (X, Y):
        found = whole.ranges[axis]
        assert found.low == pytest.approx(-math.log(FACTORS[axis]), abs=0.002)
        assert found.high == pytest.approx(-math.log(FACTORS[axis]) + joint, abs=0.002)
    assert whole.ranges[Z].high - whole.ranges[Z].low < 0.002


def test_the_interaction_is_reported_for_the_two_axes_that_have_one(whole: Bridge) -> None:
    shown = {item.axes for item in whole.interactions if item.shown}
    assert shown == {(X, Y)}
    assert len(whole.interactions) == 6
    for item in whole.interactions:
        if item.axes == (X, Y):
            assert item.together.log == pytest.approx(-math.log(0.97), abs=0.002)
            assert item.first[1].log - item.first[0].log == pytest.approx(item.together.log, abs=1e-12)
            assert item.second[1].log - item.second[0].log == pytest.approx(item.together.log, abs=1e-12)


def test_with_other_effects_the_same_holds_for_step_time(store: Store) -> None:
    two = Grid({X: VALUES[X], Z: VALUES[Z]}, {X: 1.2, Z: 0.8}, seed=7)
    corners = [NONE, frozenset({X}), frozenset({Z}), frozenset({X, Z})]
    made = two.put(store, corners)
    found = bridge(store, made[NONE][0], made[corners[-1]][0], RULEBOOK, metric="step_seconds")
    assert len(found.chains) == 2
    told = {hop.axis: hop.gain.ratio for hop in found.chains[0] if hop.gain is not None}
    assert told == {X: pytest.approx(1.2, rel=0.002), Z: pytest.approx(0.8, rel=0.002)}


@pytest.mark.parametrize("missing", [frozenset({X, Y}), frozenset({Z})])
def test_without_one_corner_the_chains_that_remain_are_the_bridge(store: Store, missing: frozenset[str]) -> None:
    made = grid().put(store, [corner for corner in CORNERS if corner != missing])
    found = between(store, made)
    assert len(found.chains) == 4
    for chain in found.chains:
        assert missing not in [frozenset(hop.axis for hop in chain[:count]) for count in range(4)]


def test_the_missing_corner_of_the_only_chain_is_the_cheapest_run_and_its_plan_is_that_corner(store: Store) -> None:
    made = grid().put(store, [NONE, frozenset({X}), EVERY])
    found = between(store, made)
    assert (found.status, found.exit_code, found.chains) == ("open", 3, ())
    assert found.route is not None
    (run,) = found.route.runs
    assert run.stored is None
    assert X in run.moved
    assert len(run.moved) == 2
    assert run.launches >= 3
    plan = parse_plan(Document(run.plan, "plan"))
    lane = RULEBOOK.lanes.get("cpu-torch")
    assert configuration(plan, lane).apart(configuration(made[NONE][0], lane)) == set(run.moved)
    states = [leg.state for leg in found.route.legs]
    assert states == ["accepted", "not run", "not run"]


def test_once_the_missing_run_is_stored_the_bridge_stands(store: Store) -> None:
    whole = grid()
    made = whole.put(store, [NONE, frozenset({X}), EVERY])
    route = between(store, made).route
    assert route is not None
    whole.put(store, [route.runs[0].moved])
    assert between(store, made).status == "bridged"


def test_of_two_ends_alone_two_configurations_are_missing_between_three_axes(store: Store) -> None:
    made = grid().put(store, [NONE, EVERY])
    route = between(store, made).route
    assert route is not None
    assert [len(run.moved) for run in route.runs] == [1, 2]


def test_the_smaller_shape_is_the_cheaper_run(store: Store) -> None:
    shapes = Grid({"batch.sequence_length": (512, 256), X: ("0", "1")}, {"batch.sequence_length": 0.5, X: 0.9})
    both = frozenset(shapes.values)
    made = shapes.put(store, [NONE, both])
    found = bridge(store, made[NONE][0], made[both][0], RULEBOOK, metric="tokens_per_second")
    assert found.route is not None
    assert [run.moved for run in found.route.runs] == [("batch.sequence_length",)]


def test_what_is_known_to_fail_is_passed_by_and_told(store: Store) -> None:
    whole = grid()
    made = whole.put(store, [NONE, frozenset({X}), EVERY])
    first = between(store, made).route
    assert first is not None
    failed = whole.launch(first.runs[0].moved, run__outcome="oom", run__exit_code=1)
    keep(store, [failed])
    second = between(store, made).route
    assert second is not None
    assert second.runs[0].moved != first.runs[0].moved
    assert any("ended oom" in why for _, why in second.avoided)


def test_a_chain_with_a_hop_that_is_refused_is_no_bridge_and_the_hop_is_named(store: Store) -> None:
    two = Grid({X: ("0", "1"), Y: ("0", "1")}, {X: 0.9, Y: 0.95})
    corners = [NONE, frozenset({X}), frozenset({X, Y})]
    made = two.put(store, [NONE, frozenset({X, Y})])
    cold = {"measurement__window": {"start": 0, "stop": 120, "warmup_steps": 0}}
    keep(store, [two.launch(corners[1], **cold) for _ in range(3)])
    found = bridge(store, made[NONE][0], made[corners[2]][0], RULEBOOK)
    assert found.chains == ()
    assert {hop.axis for hop in found.refused} == {X, Y}
    assert all(hop.verdict.status == "rejected" and "R201" in hop.reason for hop in found.refused)
    assert found.route is not None
    assert [run.moved for run in found.route.new] == [(Y,)]


def test_where_every_way_is_refused_the_exit_code_is_one(store: Store) -> None:
    one = Grid({X: ("0", "1")}, {X: 0.9})
    a, b = one.launch([]), one.launch([X], measurement__window={"start": 0, "stop": 120, "warmup_steps": 0})
    keep(store, [a, b])
    found = bridge(store, a, b, RULEBOOK)
    assert (found.status, found.exit_code) == ("refused", 1)
    assert found.route is None


def test_hops_of_too_few_launches_are_open_and_the_launches_are_asked_for(store: Store) -> None:
    made = grid().put(store, [NONE, frozenset({X}), frozenset({X, Y}), EVERY], launches=1)
    found = between(store, made)
    assert (found.status, found.chains) == ("open", ())
    assert found.route is not None
    assert [run.stored is not None for run in found.route.runs] == [True] * 4
    assert {run.launches for run in found.route.runs} == {2}


def test_receipts_that_are_not_stored_are_bridged_by_what_they_ran(store: Store) -> None:
    whole = grid()
    named = {"run__label": "one", "run__session": "one"}
    keep(store, [whole.launch(corner, **named) for corner in CORNERS for _ in range(3)])
    a, b = (whole.launch(corner, **named) for corner in ([], EVERY))
    found = bridge(store, a, b, RULEBOOK)
    assert found.status == "bridged"
    assert len(found.a.launches) > 1


def test_a_detour_over_a_value_that_neither_has_is_taken_where_no_shorter_chain_holds(store: Store) -> None:
    two = Grid({X: ("0", "1"), Y: ("0", "1")}, {X: 0.9, Y: 0.95})
    made = two.put(store, [NONE, frozenset({X, Y})])
    other = Grid({X: ("0", "2"), Y: ("0", "1")}, {X: 0.8, Y: 0.95}, seed=5)
    other.put(store, [frozenset({X}), frozenset({X, Y})])
    found = bridge(store, made[NONE][0], made[frozenset({X, Y})][0], RULEBOOK)
    assert [hop.axis for hop in found.chains[0]] == [X, Y, X]
    assert found.beyond
    assert found.total is not None
    assert math.fsum(gains(found)) == pytest.approx(found.total.log, abs=1e-14)


def test_what_is_unstated_on_one_side_keeps_the_two_apart(store: Store) -> None:
    whole = grid()
    made = whole.put(store, CORNERS)
    bare = whole.launch(EVERY, numerics__learning_rate=None)
    found = bridge(store, made[NONE][0], bare, RULEBOOK)
    assert (found.status, found.exit_code) == ("open", 3)
    assert "numerics.learning_rate" in found.unstated
    assert found.chains == ()


def test_launches_of_one_configuration_need_no_hop(store: Store) -> None:
    made = grid().put(store, [NONE])
    found = bridge(store, made[NONE][0], made[NONE][1], RULEBOOK)
    assert (found.exit_code, found.chains) == (0, ((),))


def test_two_lanes_two_kinds_and_one_launch_are_refused(store: Store) -> None:
    whole = grid()
    a = whole.launch([])
    with pytest.raises(UsageError, match="lane"):
        bridge(store, a, whole.launch([X], run__lane="nvidia-torchtitan"), RULEBOOK)
    with pytest.raises(UsageError, match="profile"):
        bridge(store, a, whole.launch([X], run__kind="profile"), RULEBOOK)
    with pytest.raises(UsageError, match="one launch"):
        bridge(store, a, a, RULEBOOK)


def test_no_more_hops_are_judged_than_were_asked_for(store: Store) -> None:
    made = grid().put(store, CORNERS)
    told: list[int] = []
    found = between(store, made, most=2, progress=told.append)
    assert len(found.hops) == 2
    assert told == [1, 2]
    assert (found.cut, found.chains, found.exit_code) == (True, (), 3)


def test_what_follows_an_axis_moves_with_it_and_is_no_hop_of_its_own(store: Store) -> None:
    depth = "model.mtp_depth"
    wired = {depth: (0, 1), "model.mtp_wiring": ("repeated", "repeated"), X: ("0", "1")}
    heads = Grid(wired, {depth: 1.1, X: 0.9})
    both = frozenset({depth, X})
    made = heads.put(store, [NONE, frozenset({depth}), both])
    a, b = made[NONE][0], made[both][0]
    lane = RULEBOOK.lanes.get("cpu-torch")
    assert "model.mtp_wiring" in configuration(a, lane).apart(configuration(b, lane))
    found = bridge(store, a, b, RULEBOOK)
    assert set(found.counted) == both
    (chain,) = found.chains
    assert [hop.axis for hop in chain] == [depth, X]


def test_what_the_metric_does_not_depend_on_needs_no_hop(store: Store) -> None:
    batch = "batch.global_batch"
    two = Grid({X: ("0", "1"), batch: (16, 32)}, {X: 0.9, batch: 2.0})
    both = frozenset({X, batch})
    made = two.put(store, [NONE, both])
    ends = made[NONE][0], made[both][0]
    memory = bridge(store, *ends, RULEBOOK, metric="peak_bytes")
    assert (memory.counted, [hop.axis for hop in memory.hops]) == ((X,), [X])
    assert set(bridge(store, *ends, RULEBOOK).counted) == both
