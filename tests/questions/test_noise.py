"""The noise floor comes from launches that differ in nothing, and from nothing else."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

import rule_cases
from receipts.axes.lane import Lane, Lanes
from receipts.axes.replicates import replicates
from receipts.cli import output
from receipts.cli.group import run
from receipts.judging.comparison import Request, compare
from receipts.judging.facts import Facts
from receipts.metrics import Launch
from receipts.publish.tables import noise_floors
from receipts.questions.noise import noise_floor, survey, with_floor
from receipts.questions.sides import StoredLaunches, asked, groups
from receipts.receipt import Document, Parsed
from receipts.stats.noise import combined_checks
from receipts.store import Filters, Store, open_store
from receipts.workflows.submit import submit

pytestmark = pytest.mark.slow


def with_replicates(store: Store, group: list[Parsed], lane: Lane, other: list[Parsed]) -> list[Parsed]:
    """The group and every stored launch of its configuration."""
    return asked(StoredLaunches(store), lambda _: lane, group, other, join="all").a


def launches(count: int, *, rate: float = 3e-4, seconds: float = 0.8, name: str = "one") -> list[Parsed]:
    tree = rule_cases.build({"set": {"numerics.learning_rate": rate}, "steps": {"seconds": seconds}})
    tree["run"]["launch"] = name
    return rule_cases.group(tree, name, count)


def stored(path: Path, receipts: list[Parsed]) -> Store:
    store = open_store(str(path))
    outcomes = list(submit([Document(item.raw, item.source) for item in receipts], store, rule_cases.rulebook()))
    assert all(item.stored for item in outcomes), [str(item.error) for item in outcomes]
    return store


def test_the_floor_is_the_pooled_spread_of_equal_launches(tmp_path: Path) -> None:
    group = launches(4)
    lane = rule_cases.rulebook().lanes.of(group[0].receipt.run.lane)
    with stored(tmp_path / "noise.sqlite", group) as store:
        floor = noise_floor(store, group[0], lane)
    logs = [math.log(Launch(item, lane).summary.mean) for item in group]  # type: ignore[union-attr]  # all steady
    mean = sum(logs) / len(logs)
    expected = math.sqrt(sum((value - mean) ** 2 for value in logs) / (len(logs) - 1))
    assert floor.groups == 1
    assert floor.launches == 4
    assert floor.df == 3
    assert floor.sigma == pytest.approx(expected)
    assert floor.largest_spread == pytest.approx(max(logs) - min(logs))


def test_steps_that_somebody_typed_show_no_noise_where_a_program_must_write_them(tmp_path: Path) -> None:
    group = launches(4)
    lane = replace(rule_cases.rulebook().lanes.of("cpu-torch"), grade="recorded", grade_since=None)
    with stored(tmp_path / "noise.sqlite", group) as store:
        assert noise_floor(store, group[0], lane).sigma is None
        assert noise_floor(store, group[0], replace(lane, grade="typed")).sigma is not None


def test_launches_an_axis_apart_are_no_repeats(tmp_path: Path) -> None:
    one, other = launches(1, rate=1, name="x"), launches(1, rate=2, seconds=0.4, name="y")
    lane = rule_cases.rulebook().lanes.of(one[0].receipt.run.lane)
    with stored(tmp_path / "noise.sqlite", [*one, *other]) as store:
        floor = noise_floor(store, one[0], lane)
    assert floor.sigma is None
    assert floor.groups == 0
    assert with_floor(Facts(), floor).sigma is None


def test_another_shape_has_a_floor_of_its_own(tmp_path: Path) -> None:
    group = launches(3)
    tree = rule_cases.build(
        {"set": {"batch.sequence_length": 512}, "drop": ["measurement.tokens_per_step", "measurement.stated"]}
    )
    longer = rule_cases.parsed(tree)
    lane = rule_cases.rulebook().lanes.of(longer.receipt.run.lane)
    with stored(tmp_path / "noise.sqlite", group) as store:
        assert noise_floor(store, longer, lane).sigma is None
        assert noise_floor(store, group[0], lane).sigma is not None


def test_noisy_launches_of_another_context_change_no_verdict(tmp_path: Path) -> None:
    """Five against five, 10 % slower: three noisy launches of somebody else made that equivalent."""
    seconds = [0.8 * (1 + 0.0004 * i) for i in range(-2, 3)]
    a = [*(one for i, value in enumerate(seconds) for one in launches(1, seconds=value, name=f"a{i}"))]
    b = [*(one for i, value in enumerate(seconds) for one in launches(1, rate=7, seconds=1.1 * value, name=f"b{i}"))]
    noisy = []
    for i, value in enumerate((0.5, 0.8, 1.3)):
        tree = rule_cases.build({"set": {"run.context": "of-a-stranger"}, "steps": {"seconds": value}})
        tree["run"] |= {"launch": f"noisy{i}", "started": f"2026-03-02T1{i}:00:00+00:00"}
        del tree["run"]["finished"]
        noisy.append(rule_cases.parsed(tree))
    rulebook = rule_cases.rulebook()
    lane = rulebook.lanes.of(a[0].receipt.run.lane)
    verdicts = []
    with stored(tmp_path / "noise.sqlite", [*a, *b]) as store:
        for strangers in ((), noisy):
            list(submit([Document(item.raw, item.source) for item in strangers], store, rulebook))
            for left, right in ((a, b), (a[:1], b[:1])):
                facts = with_floor(store.query.facts([*left, *right]), noise_floor(store, left[0], lane))
                effect = compare(left, right, rulebook, Request(facts=facts)).results[0].effect
                verdicts.append((effect.kind, effect.delta, effect.low, effect.high))
    assert verdicts[:2] == verdicts[2:]
    assert [item[:2] for item in verdicts] == [("slower", 0.01)] * 4


def test_indicated_asks_for_eight_times_the_largest_spread_of_the_whole_lane(tmp_path: Path) -> None:
    group = launches(3)
    trees = [
        rule_cases.build(
            {
                "set": {"batch.sequence_length": 512},
                "drop": ["measurement.tokens_per_step", "measurement.stated"],
                "steps": item,
            }
        )
        for item in ({"seconds": 0.5}, {"seconds": 0.6})
    ]
    for i, tree in enumerate(trees):
        tree["run"] |= {"launch": f"wide{i}", "started": f"2026-03-02T1{i}:00:00+00:00"}
        del tree["run"]["finished"]
    lane = rule_cases.rulebook().lanes.of(group[0].receipt.run.lane)
    with stored(tmp_path / "noise.sqlite", [*group, *map(rule_cases.parsed, trees)]) as store:
        floor = noise_floor(store, group[0], lane)
    assert floor.largest_spread == pytest.approx(math.log(1.2), rel=0.05)
    assert floor.sigma is not None
    assert floor.sigma < 0.05, "another shape does not widen the interval"


def test_two_launches_of_one_configuration_share_no_repeats(tmp_path: Path) -> None:
    """A launch on both sides would be compared with itself."""
    one, other, third = launches(3)
    lane = rule_cases.rulebook().lanes.of(one.receipt.run.lane)
    with stored(tmp_path / "noise.sqlite", [one, other, third]) as store:
        assert with_replicates(store, [one], lane, [other]) == [one]
        assert len(with_replicates(store, [one], lane, [])) == 3


def test_a_copy_of_a_launch_is_no_repeat_of_it(tmp_path: Path) -> None:
    (one,) = launches(1, name="x")
    tree = json.loads(one.raw)
    tree["run"]["launch"] = "y"
    lane = rule_cases.rulebook().lanes.of(one.receipt.run.lane)
    with stored(tmp_path / "noise.sqlite", [one, rule_cases.parsed(tree)]) as store:
        assert noise_floor(store, one, lane).groups == 0
        assert with_replicates(store, [one], lane, []) == [one]


def test_a_launch_that_leaves_an_axis_open_is_no_repeat(tmp_path: Path) -> None:
    one, other = launches(2)
    tree = json.loads(other.raw)
    del tree["numerics"]["learning_rate"]
    lane = rule_cases.rulebook().lanes.of(one.receipt.run.lane)
    with stored(tmp_path / "noise.sqlite", [one, rule_cases.parsed(tree)]) as store:
        assert noise_floor(store, one, lane).groups == 0
        assert with_replicates(store, [one], lane, []) == [one]


def test_keys_group_as_differences_do() -> None:
    made = [*launches(3, name="x"), *launches(2, rate=7, name="y"), *launches(1, rate=8, name="z")]
    lane = rule_cases.rulebook().lanes.of(made[0].receipt.run.lane)
    found = groups(made, lane)
    assert [len(group) for group in found] == [3, 2]
    for group in found:
        assert all(replicates(group[0], other, lane) for other in group)
    assert not replicates(found[0][0], found[1][0], lane)


def test_a_survey_tells_each_shape_class_apart(tmp_path: Path) -> None:
    group = launches(4)
    tree = rule_cases.build(
        {"set": {"batch.sequence_length": 512}, "drop": ["measurement.tokens_per_step", "measurement.stated"]}
    )
    tree["run"]["launch"] = "alone"
    lanes = rule_cases.rulebook().lanes
    with stored(tmp_path / "noise.sqlite", [*group, rule_cases.parsed(tree)]) as store:
        found = {item.shape.sequence_length: item for item in survey(store, lanes)}
        floor = noise_floor(store, group[0], lanes.of(group[0].receipt.run.lane))
        assert survey(store, lanes, "nvidia-megatron") == []
    lone = found.pop(512)
    (many,) = found.values()
    assert replace(floor, of=many.floor.of) == many.floor
    assert (floor.of, many.floor.of) == ("of the same context and model", "of the same shape class")
    assert (many.stored, many.delta, many.delta_source) == (4, 0.01, "default")
    assert (lone.stored, lone.floor.groups, lone.floor.sigma, lone.delta_source) == (1, 0, None, "default")


def noise_command(path: Path, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    code = run(["--store", str(path), "noise", *words])
    return code, capsys.readouterr().out


def test_the_command_prints_what_the_data_carry_and_no_more(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "noise.sqlite"
    stored(path, launches(1)).close()
    code, printed = noise_command(path, capsys)
    assert code == 3
    assert "~" in printed
    assert "run one configuration twice" in " ".join(printed.split())
    stored(path, [*launches(4, rate=5, name="x"), *launches(4, rate=6, name="y")]).close()
    code, printed = noise_command(path, capsys, "--lane", "cpu-torch", "--json")
    (made,) = json.loads(printed)["classes"]
    assert code == 0
    assert (made["groups"], made["launches"], made["df"], made["delta"]) == (2, 8, 6, 0.01)
    assert made["missing"] is None
    assert made["self_check"]["pairs"] == 4
    assert noise_command(path, capsys, "--lane", "no-such-lane")[0] == 2


def test_a_declared_floor_is_called_declared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    group = launches(1)
    name = group[0].receipt.run.lane
    lane = replace(rule_cases.rulebook().lanes.of(name), sigma=0.008)
    with stored(tmp_path / "noise.sqlite", group) as store:
        (found,) = survey(store, FixedLanes(lane), name)
    assert (found.declared, found.delta, found.delta_source) == (0.008, 0.01, "default")
    output.show(noise_floors([found], combined_checks([found.check])))
    assert "declared, not measured" in capsys.readouterr().out


class FixedLanes(Lanes):
    """One lane, whatever is asked for."""

    def __init__(self, lane: Lane) -> None:
        super().__init__(())
        object.__setattr__(self, "lane", lane)

    __slots__ = ("lane",)

    def of(self, name: str) -> Lane:
        return self.lane


def test_a_launch_that_left_its_path_is_no_part_of_a_floor(tmp_path: Path) -> None:
    group, left = launches(3), []
    for item in launches(2, seconds=1.6, name="left"):
        tree = json.loads(item.raw)
        tree["compile"]["compiles_after_warmup"] = 3
        left.append(rule_cases.parsed(tree))
    lane = rule_cases.rulebook().lanes.of(group[0].receipt.run.lane)
    with stored(tmp_path / "noise.sqlite", [*group, *left]) as store:
        assert {row.status for row in store.find(Filters(())) if row.step_seconds and row.step_seconds > 1} == {
            "invalid"
        }
        assert noise_floor(store, group[0], lane).launches == 3
