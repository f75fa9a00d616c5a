"""Peak memory is exact only where the store's equal launches show it, and is then compared to the byte."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import rule_cases
from command_line import Shell
from receipts.judging.claim import claim_from_json
from receipts.judging.comparison import Request, compare
from receipts.judging.facts import Facts
from receipts.questions.claims.judgment import gather
from receipts.questions.noise import Floor, noise_floor, with_floor
from receipts.receipt import Document, Parsed
from receipts.stats.effect import exactly
from receipts.store import open_store
from receipts.workflows.submit import submit

pytestmark = pytest.mark.slow


def launches(*peaks: int, name: str = "one", pool: int | None = None, **leaves: Any) -> list[Parsed]:
    """Launches of one configuration whose only chip peaks at these bytes."""
    found = []
    for index, item in enumerate(rule_cases.group(rule_cases.build({"steps": {}}), name, len(peaks))):
        tree = json.loads(item.raw)
        row = {"chip": 0, "phase": "steady", "bytes_limit": 2**34, "peak_bytes": peaks[index]}
        row["peak_reserved_bytes"] = 700_000_000 + (0 if pool is None else pool * index)
        rule_cases.put(tree, "memory.chips", [row])
        rule_cases.put(tree, "run.launch", f"{name}-{index}")
        for path, value in leaves.items():
            rule_cases.put(tree, path.replace("__", "."), value)
        found.append(rule_cases.parsed(tree, f"{name}-{index}.json"))
    return found


def floor_of(folder: Path, *groups: list[Parsed]) -> Floor:
    receipts = [item for group in groups for item in group]
    lane = rule_cases.rulebook().lanes.of(receipts[0].receipt.run.lane)
    with open_store(str(folder / "store.sqlite")) as store:
        documents = [Document(item.raw, item.source) for item in receipts]
        assert all(done.stored for done in submit(documents, store, rule_cases.rulebook()))
        return noise_floor(store, receipts[0], lane)


def test_memory_is_exact_where_two_pairs_of_equal_launches_agree(tmp_path: Path) -> None:
    floor = floor_of(tmp_path, launches(640_000_000, 640_000_000, 640_000_000))
    assert floor.exact_memory == {"peak_bytes", "peak_reserved_bytes"}
    assert floor.chip_spread == 0.0


def test_one_pair_shows_nothing_exact(tmp_path: Path) -> None:
    assert floor_of(tmp_path, launches(640_000_000, 640_000_000)).exact_memory == frozenset()


def test_a_byte_between_equal_launches_makes_it_inexact(tmp_path: Path) -> None:
    floor = floor_of(tmp_path, launches(640_000_000, 640_000_001, 640_000_000))
    assert "peak_bytes" not in floor.exact_memory
    assert floor.chip_spread == pytest.approx(1 / 640_000_001)


def test_live_memory_may_be_exact_where_the_pool_is_not(tmp_path: Path) -> None:
    floor = floor_of(tmp_path, launches(640_000_000, 640_000_000, 640_000_000, pool=512))
    assert floor.exact_memory == {"peak_bytes"}


def test_a_figure_that_is_merely_stated_shows_nothing_exact(tmp_path: Path) -> None:
    figure = {"aggregate": {"bytes": 640_000_000, "over": "max", "kind": "live"}}
    assert floor_of(tmp_path, launches(1, 1, 1, memory=figure)).exact_memory == frozenset()


def without_steps(name: str, peak: int, **leaves: Any) -> list[Parsed]:
    """A launch whose time no noise floor could judge."""
    (item,) = launches(peak, name=name, **leaves)
    tree = json.loads(item.raw)
    del tree["measurement"]["step_durations_seconds"]
    return [rule_cases.parsed(tree, f"{name}.json")]


def test_launches_an_axis_apart_say_nothing_of_exactness(tmp_path: Path) -> None:
    made = [launches(640_000_000, name=f"s{seed}", numerics__learning_rate=seed) for seed in range(3)]
    floor = floor_of(tmp_path, *made)
    assert floor.exact_memory == frozenset()
    assert floor.chip_spread is None


def test_facts_carry_it_only_with_a_floor(tmp_path: Path) -> None:
    floor = floor_of(tmp_path, launches(640_000_000, 640_000_000, 640_000_000))
    assert Facts().exact_memory == frozenset()
    assert with_floor(Facts(), floor).exact_memory == floor.exact_memory


def effect(facts: Facts, a: int, b: int) -> tuple[str, str]:
    one, other = launches(a, name="a"), launches(b, name="b", batch__micro_batch=4)
    verdict = compare(one, other, rule_cases.rulebook(), Request(metric="peak_bytes", facts=facts))
    result = next(item for item in verdict.results if item.metric == "peak_bytes")
    return result.effect.kind, result.effect.design


def test_exact_memory_is_compared_to_the_byte_and_other_memory_is_not() -> None:
    exact = Facts(exact_memory=frozenset({"peak_bytes"}), chip_spread=0.0)
    assert effect(exact, 640_000_000, 639_999_999) == ("faster", "exact")
    assert effect(exact, 640_000_000, 640_000_000) == ("equivalent", "exact")
    assert effect(Facts(), 640_000_000, 639_999_999) == ("unproven", "single")


def test_memory_is_never_indicated_by_the_spread_of_step_times() -> None:
    assert effect(Facts(largest_spread=0.001), 640_000_000, 340_000_000)[0] == "unproven"
    assert effect(Facts(chip_spread=0.001), 640_000_000, 340_000_000)[0] == "indicated"


def test_sides_that_disagree_within_themselves_are_not_compared_exactly() -> None:
    assert exactly([5.0, 6.0], [5.0], better="lower") is None
    assert exactly([], [5.0], better="lower") is None


def test_better_may_be_higher() -> None:
    found = exactly([5.0], [6.0], better="higher")
    assert found is not None
    assert (found.kind, found.low, found.high) == ("faster", 1.2, 1.2)


def stored(shell: Shell, *groups: list[Parsed]) -> list[str]:
    ids = []
    for item in (item for group in groups for item in group):
        path = shell.folder / f"{item.receipt.run.launch}.json"
        path.write_bytes(item.raw)
        assert shell("submit", str(path)).code == 0
        ids.append(item.id)
    return ids


def test_compare_asks_the_store_whether_memory_is_exact(shell: Shell) -> None:
    a = launches(640_000_000, 640_000_000, 640_000_000)
    first, *_, last = stored(shell, a, without_steps("b", 630_000_000, batch__micro_batch=4))
    data = shell("compare", first, last, "-m", "peak_bytes", "--json").json
    result = next(item for item in data["results"] if item["metric"] == "peak_bytes")
    assert (result["effect"]["design"], result["effect"]["kind"]) == ("exact", "faster")
    assert data["memory"]["margin_source"] == "exact"


def test_a_claim_about_memory_asks_the_store_whether_it_is_exact(shell: Shell) -> None:
    *_, last = stored(shell, launches(640_000_000, 640_000_000, 640_000_000), without_steps("c", 640_000_000))
    claim = {
        "id": "fits",
        "text": "at most 0.6 GiB",
        "kind": "memory",
        "candidate": [last],
        "effect": "at most 0.6 GiB",
    }
    rulebook = rule_cases.rulebook()
    with open_store(str(shell.folder / "store.sqlite")) as store:
        facts = gather(claim_from_json(json.dumps(claim), "claim"), rulebook, store).facts
    assert facts is not None
    assert facts.exact_memory == {"peak_bytes", "peak_reserved_bytes"}
