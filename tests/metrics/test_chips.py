"""Memory by physical chip and phase: who leads, who peaks earlier, what is left, what is missing, what moved."""

from __future__ import annotations

from typing import Any

import pytest

import rule_cases
from receipts import metrics
from receipts.metrics import Launch
from receipts.metrics import chip_pressure as words
from receipts.metrics.chip_pressure import pressure
from receipts.metrics.chips import METRICS, PHASES, Account, account, account_json
from receipts.receipt.measurement import AggregateMemory, ChipMemory, Memory

GIB = 2**30


def row(chip: int, peak: float | None, phase: str = "steady", **more: Any) -> ChipMemory:
    amounts = {"peak_bytes": int(peak * GIB)} if peak is not None else {}
    return ChipMemory.model_validate({"chip": chip, "phase": phase, **amounts, **more})


def made(*rows: ChipMemory, chips: int | None = None) -> Account:
    return Account(Memory(chips=rows), chips)


def peaks(*values: float, chips: int | None = None) -> Account:
    return made(*(row(chip, value) for chip, value in enumerate(values)), chips=chips or len(values))


def test_live_pool_and_used_have_leaders_of_their_own() -> None:
    one = made(
        row(0, 10, bytes_used=9 * GIB, peak_reserved_bytes=30 * GIB),
        row(1, 20, bytes_used=2 * GIB, peak_reserved_bytes=21 * GIB),
        chips=2,
    )
    (phase,) = one.phases
    leaders = {name: ranking.leaders for name in METRICS[:3] if (ranking := phase.ranking(name)) is not None}
    assert leaders == {"used": (0,), "peak": (1,), "pool": (0,)}
    assert phase.ranking("headroom") is None


def test_the_leader_stands_above_the_median_chip_by_the_skew() -> None:
    ranking = peaks(10, 10, 10, 12).phases[0].ranking("peak")
    assert ranking is not None
    assert (ranking.leaders, ranking.lowest_chip) == ((3,), 0)
    assert ranking.skew == pytest.approx(0.2)


def test_a_lone_chip_has_no_skew() -> None:
    ranking = peaks(10).phases[0].ranking("peak")
    assert ranking is not None
    assert ranking.skew is None


def test_the_tightest_chip_is_the_one_with_the_least_of_its_own_limit() -> None:
    one = made(row(0, 20, bytes_limit=100 * GIB), row(1, 15, bytes_limit=16 * GIB), chips=2)
    tightest = one.tightest
    assert tightest is not None
    assert (tightest.chip, tightest.headroom, tightest.left) == (1, GIB, pytest.approx(1 / 16))


def test_headroom_is_taken_from_the_live_peak_and_from_nothing_else() -> None:
    assert made(row(0, None, bytes_used=5 * GIB, bytes_limit=16 * GIB, peak_reserved_bytes=6 * GIB)).tightest is None


def test_chips_that_peak_earlier_are_told_with_their_step() -> None:
    (phase,) = made(row(0, 10, step=12), row(1, 10, step=40), row(2, 10, step=12), chips=3).phases
    moment = phase.moment
    assert moment is not None
    assert (moment.chips, moment.step, moment.last_step) == ((0, 2), 12, 40)
    assert words.earlier(phase) == "chips 0 and 2 peak first, at step 12, and the last at step 40"


def test_a_missing_chip_is_named() -> None:
    (phase,) = made(row(0, 1), row(1, 1), row(3, 1), chips=4).phases
    assert (phase.missing, phase.unnamed, phase.whole) == ((2,), 0, False)
    assert list(words.faults(phase)) == ["chip 2 has no row"]


def test_a_chip_that_another_phase_lists_is_missing_where_none_are_counted() -> None:
    one = made(row(0, 1, "post_init"), row(1, 1, "post_init"), row(0, 1))
    steady = one.get("steady")
    assert steady is not None
    assert steady.missing == (1,)


def test_ordinals_may_have_gaps() -> None:
    (phase,) = made(*(row(chip, 1) for chip in (8, 9, 12, 13)), chips=4).phases
    assert phase.whole


def test_a_missing_chip_whose_ordinal_cannot_be_known_is_counted() -> None:
    (phase,) = made(*(row(chip, 1) for chip in (8, 9, 12)), chips=4).phases
    assert (phase.missing, phase.unnamed) == ((), 1)


def test_a_doubled_chip_is_named_and_read_as_its_tightest() -> None:
    first, second = row(0, 10, bytes_limit=20 * GIB, step=3), row(0, 12, bytes_limit=30 * GIB, step=9)
    (phase,) = made(first, row(1, 11), second, chips=2).phases
    chip = phase.get(0)
    assert chip is not None
    assert phase.doubled == (0,)
    assert (chip.peak, chip.limit, chip.step, chip.rows) == (12 * GIB, 20 * GIB, 9, (0, 2))


def test_phases_stand_in_the_order_of_a_run() -> None:
    one = made(row(0, 1, "steady"), row(0, 1, "post_init"), row(0, 1, "post_step0"), row(0, 1, "post_compile"))
    assert tuple(phase.name for phase in one.phases) == PHASES


def aggregated(chips: int, **figure: Any) -> Launch:
    tree = rule_cases.base()
    rule_cases.put(tree, "memory", {"aggregate": {"bytes": 100 * GIB, **figure}})
    rule_cases.put(tree, "hardware.chips", chips)
    receipt = rule_cases.parsed(tree)
    return Launch(receipt, rule_cases.rulebook().lanes.of(receipt.receipt.run.lane))


@pytest.mark.parametrize("over", ["mean", "sum", "rank0", "unstated"])
def test_a_figure_for_several_chips_is_no_chips_peak(over: str) -> None:
    assert aggregated(8, over=over, kind="live").read(metrics.get("peak_bytes")).value is None


def test_the_highest_of_several_chips_is_a_chips_peak_as_stated() -> None:
    reading = aggregated(8, over="max", kind="live").read(metrics.get("peak_bytes"))
    assert (reading.value, reading.source) == (100 * GIB, "stated")


@pytest.mark.parametrize(("kind", "live", "pool"), [("live", True, False), ("reserved", False, True)])
def test_live_and_pool_are_read_each_as_itself(kind: str, live: bool, pool: bool) -> None:
    launch = aggregated(1, over="max", kind=kind)
    found = [launch.read(metrics.get(name)).value is not None for name in ("peak_bytes", "peak_reserved_bytes")]
    assert found == [live, pool]


def test_process_memory_is_neither_live_nor_pool() -> None:
    launch = aggregated(1, over="max", kind="process")
    assert launch.read(metrics.get("peak_bytes")).value is None
    assert launch.read(metrics.get("peak_reserved_bytes")).value is None


def test_an_aggregate_enters_no_phase() -> None:
    one = Account(Memory(aggregate=AggregateMemory(bytes=GIB, over="sum", kind="process")), 8)
    assert not one.phases
    assert words.aggregate(one) == (
        "one figure for 8 chips, 1.00 GiB (their sum, the process's memory): it is no chip's own"
    )


def test_json_is_in_bytes_and_has_every_chip_of_every_phase() -> None:
    tree = rule_cases.base("megatron")
    data = account_json(account(rule_cases.parsed(tree)))
    assert [phase["phase"] for phase in data["phases"]] == list(PHASES)
    assert all(len(phase["chips"]) == 8 for phase in data["phases"])
    steady = data["phases"][-1]
    assert steady["ranking"]["peak_bytes"]["highest"] == max(chip["peak_bytes"] for chip in steady["chips"])
    assert steady["chips"][0]["headroom_bytes"] == 150109106995 - 118326349004


def test_pressure_moved_where_the_old_leader_fell_and_another_rose_and_leads() -> None:
    found = pressure([peaks(119, 80, 80)], [peaks(90, 80, 118)])
    assert (found.kind, found.relieved, found.burdened) == ("moved", 0, 2)
    assert found.margin.source == "assumed"


@pytest.mark.parametrize(
    ("b", "kind"),
    [
        ((90, 80, 85), "fell"),
        ((70, 78, 75), "fell"),
        ((119, 80, 118), "same"),
        ((119, 130, 80), "rose"),
        ((90, 95, 70), "moved"),
    ],
)
def test_pressure_fell_rose_or_stayed(b: tuple[float, ...], kind: str) -> None:
    assert pressure([peaks(119, 80, 80)], [peaks(*b)]).kind == kind


def test_what_lies_within_the_spread_of_equal_launches_is_no_move() -> None:
    a, b = [peaks(100, 99)], [peaks(97, 101)]
    assert pressure(a, b, spread=0.05).kind == "same"
    assert pressure(a, b, spread=0.0).kind == "moved"
    assert pressure(a, b, spread=0.0).margin.source == "exact"


def test_the_launches_of_one_side_show_their_own_spread() -> None:
    noisy = [peaks(100, 90), peaks(110, 90)]
    found = pressure(noisy, [peaks(98, 104)])
    assert found.margin.source == "launches"
    assert found.margin.share == pytest.approx(10 / 110)
    assert found.kind == "same"


def test_two_phases_are_compared_only_where_both_sides_state_them() -> None:
    a = made(row(0, 120, "post_init"), row(0, 60), chips=1)
    found = pressure([a], [peaks(60)])
    assert (found.phases, found.kind) == (("steady",), "same")


@pytest.mark.parametrize(
    ("a", "b", "why"),
    [
        (peaks(1, 2), peaks(1, 2, 3), "the sides have different chips"),
        (peaks(1, 2), peaks(1, chips=2), "B lacks a chip, or has one twice, in phase steady"),
        (made(chips=2), peaks(1, 2), "A has no row a chip"),
        (peaks(1, 2), made(row(0, 1, "post_init"), row(1, 2, "post_init"), chips=2), "no phase is on both sides"),
    ],
)
def test_nothing_is_said_of_chips_that_are_not_there(a: Account, b: Account, why: str) -> None:
    found = pressure([a], [b])
    assert (found.kind, found.why) == ("unknown", why)


def test_ordinals_are_said_in_runs() -> None:
    assert words.ordinals([3]) == "chip 3"
    assert words.ordinals([0, 1, 2, 3, 7]) == "chips 0 to 3 and 7"
    assert words.ordinals([1, 2]) == "chips 1 and 2"
    assert words.ordinals(range(0, 40, 2)) == "chips 0, 2, 4, 6, 8, 10, 12, 14 and 12 more"
