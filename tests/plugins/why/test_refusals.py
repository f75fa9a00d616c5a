"""Every refusal of an explanation, with its message; and what must not be refused."""

from __future__ import annotations

import tomllib
from fractions import Fraction
from typing import Any

import pytest

import store_receipts
from receipts.base.environment import bundled_folder
from receipts.plugins.why.difference import TracedLaunch
from receipts.plugins.why.profile import Profile
from receipts.plugins.why.refusals import Refusal, of_pair, of_residual, of_side
from time_profiles import MS, launch, profile, steady

SENTENCES = tomllib.loads((bundled_folder("reports") / "words" / "why.toml").read_text())
GOOD = steady(gemm=80)
RECEIPT = store_receipts.parsed(run__host="bench3.site", wheels={"torch": {"version": "2.9.0+cu128"}})
AT = "A (x) device 0: "
START = RECEIPT.receipt.run.started.timestamp()


def side(own: Profile, receipt: Any = RECEIPT) -> list[Refusal]:
    """What is refused of a side with one profile."""
    return list(of_side("A", [launch("x", own)], {"x": receipt}))


def named(refusals: list[Refusal]) -> list[str]:
    return [item.name for item in refusals]


def test_a_whole_trace_of_the_launch_is_not_refused() -> None:
    facts = {"host": "bench3", "torch": "2.9.0", "between": (START, START + 1), "rank": 0}
    assert side(steady(gemm=80, facts=facts)) == []


@pytest.mark.parametrize(
    ("own", "name", "what"),
    [
        (
            steady(gemm=80, broken="it is cut"),
            "broken",
            f"{AT}the trace is broken (it is cut): what it lacks looks like what became faster",
        ),
        (steady(gemm=80, lost=7000), "too-large", f"{AT}7,000 events were too many to keep"),
        (
            steady(gemm=80, marks=0),
            "no-marks",
            f"{AT}the trace marks no steps (ProfilerStep, NVTX ranges or StepTraceAnnotation)",
        ),
        (steady(2, gemm=80), "few-steps", f"{AT}2 whole steps are traced, and a table needs 3"),
        (
            profile([{"gemm": 80}] * 4, asides=["long", "compiles"]),
            "few-steps",
            f"{AT}2 whole steps are traced, beside 2 that are set aside, and a table needs 3",
        ),
        (
            steady(gemm=80, told=(80, 5, 15)),
            "unclassed",
            f"{AT}15% of the working time has no class, by operator or by name; 10% is the most",
        ),
        (
            steady(gemm=20, CUDA_graph=60, told=(20, 0, 60)),
            "unclassed",
            f"{AT}75% of the working time has no class, most of it within CUDA graphs that the trace shows as one row"
            " each: what ran inside is not told",
        ),
        (
            steady(gemm=80, facts={"host": "other7"}),
            "another-launch",
            "A (x): the trace is of host other7, and the receipt of bench3.site",
        ),
        (
            steady(gemm=80, facts={"torch": "2.8.0"}),
            "another-launch",
            "A (x): the trace is of torch 2.8.0, and the receipt of 2.9.0+cu128",
        ),
        (
            steady(gemm=80, facts={"between": (START - 9e6, START - 8e6)}),
            "another-launch",
            "A (x): the trace was made at another time than the launch",
        ),
    ],
)
def test_a_trace_that_cannot_carry_a_table_is_refused(own: Profile, name: str, what: str) -> None:
    (refused,) = side(own)
    assert (refused.name, refused.what) == (name, what)
    assert refused.do


def test_too_few_steps_name_the_command_that_traces_enough() -> None:
    assert "receipts record --why" in side(steady(2, gemm=80))[0].do


def test_a_side_without_a_trace_is_refused() -> None:
    (refused,) = of_side("B", [], {})
    assert refused.what == "the store has no time profile of B"
    assert "receipts record --why" in refused.do


def test_a_thinned_trace_is_refused() -> None:
    own = profile([{"gemm": 80}] * 4)
    thin = own.steps[0].__class__(9, 80 * MS, "", 20, (80 * MS,))
    refused = side(Profile(**{**{name: getattr(own, name) for name in own.__slots__}, "steps": (*own.steps, thin)}))
    assert refused[0].what == f"{AT}one step has 20 activities and another 100: events are missing"


def test_the_trace_of_another_process_is_refused() -> None:
    receipt = store_receipts.parsed(run__processes=[17, 18])
    assert named(side(steady(gemm=80, facts={"processes": [4242]}), receipt)) == ["another-launch"]
    assert side(steady(gemm=80, facts={"processes": [4242, 18]}), receipt) == []


def test_the_trace_of_another_accelerator_or_world_is_refused() -> None:
    receipt = store_receipts.parsed(hardware__accelerator="NVIDIA H200", hardware__chips=8)
    assert (
        named(side(steady(gemm=80, facts={"accelerator": "NVIDIA H100 80GB HBM3", "world": 4}), receipt))
        == ["another-launch"] * 2
    )


def pair(a: TracedLaunch | Profile, b: TracedLaunch | Profile, *axes: str) -> list[Refusal]:
    """What is refused of two sides."""
    left, right = (item if isinstance(item, TracedLaunch) else launch("x", item) for item in (a, b))
    return list(of_pair([left], [right], axes))


def test_marked_steps_without_a_launch_in_them_are_said_to_lack_launches() -> None:
    (refused,) = side(profile([], marks=6))
    assert (refused.name, refused.what.partition(": ")[2]) == (
        "few-steps",
        "6 steps are marked, and the trace shows of no activity in which one it was launched",
    )


def test_rank_0_is_not_laid_beside_rank_1() -> None:
    refused = pair(launch("a", GOOD, rank="rank 0"), launch("b", GOOD, rank="rank 1"))
    assert [item.what for item in refused] == [
        "A is traced on rank 0 and B on rank 1: ranks of a job differ by their part of it"
    ]


@pytest.mark.parametrize(
    ("b", "axes", "name"),
    [
        (steady(gemm=80, facts={"accelerator": "NVIDIA H200"}), (), "hardware"),
        (steady(gemm=80, facts={"world": 16}), (), "hardware"),
        (GOOD, ("batch.micro_batch",), "work"),
        (GOOD, ("dimensions",), "work"),
        (GOOD, ("topology",), "work"),
        (steady(gemm=80, facts={"options": {"record_shapes": False, "with_stack": True}}), (), "options"),
        (steady(gemm=80, launches=250), (), "launches"),
        (steady(gemm=80, launches=40), ("data.loader",), "launches"),
    ],
)
def test_sides_that_were_not_traced_alike_are_refused(b: Profile, axes: tuple[str, ...], name: str) -> None:
    facts = {"accelerator": "NVIDIA H100", "world": 8, "options": {"record_shapes": True, "with_stack": True}}
    assert named(pair(steady(gemm=80, facts=facts), b, *axes)) == [name]


@pytest.mark.parametrize("axis", ["posture", "cuda_graphs", "optimizer", "path.attention"])
def test_an_axis_that_fuses_may_change_how_often_a_step_launches(axis: str) -> None:
    assert pair(GOOD, steady(gemm=80, launches=10), axis) == []


def residual(measured: tuple[float, float], traced: tuple[float, float], noise: float = 0) -> list[str]:
    """What is refused of steps in milliseconds."""
    pairs = [(Fraction(a * MS), Fraction(b * MS)) for a, b in (measured, traced)]
    return [item.what for item in of_residual(*pairs, Fraction(noise * MS))]  # type: ignore[arg-type]  # two pairs


def test_a_profiler_that_slows_a_side_shows_another_step() -> None:
    assert residual((100, 110), (116, 126)) == ["A ran 16% slower while it was traced: the trace shows another step"]
    assert len(residual((100, 110), (190, 200))) == 2
    assert residual((100, 110), (114, 124)) == []


def test_traces_with_the_other_sign_are_refused() -> None:
    assert residual((100, 110), (110, 100)) == [
        "the traced steps differ by −10.000 ms, the measured ones by +10.000 ms: the traces show the opposite"
    ]


def test_what_is_not_in_the_traces_is_bounded_by_the_effect_or_the_noise() -> None:
    assert residual((100, 120), (100, 114)) == ["+6.000 ms of the measured +20.000 ms is not in the traces"]
    assert residual((100, 120), (100, 115)) == []
    assert residual((100, 120), (100, 114), noise=3) == []


def test_every_refusal_says_what_to_do() -> None:
    refusals = {name.removesuffix("_do") for name in SENTENCES if name.endswith("_do")}
    assert len(refusals) == 20
    assert all(name in SENTENCES for name in refusals)
