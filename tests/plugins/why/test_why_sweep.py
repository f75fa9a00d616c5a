"""The partition of a device's time: every nanosecond of a window has one owner."""

from __future__ import annotations

import random
from collections import Counter
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from receipts.plugins.why.profile import extract, read_profiles
from receipts.plugins.why.sweep import Window, partition, windows
from span_traces import span_trace

GEMM, ADD, NCCL = "nvjet_tst_128x256", "vectorized_elementwise_kernel", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL"


def owned(trace, *steps: Window) -> list[Counter[str]]:  # type: ignore[no-untyped-def]  # a trace of this test
    """By window: the time by kernel or by the cause of a gap. gemm is before elementwise, and communication last."""
    work, names = trace.devices["0"], trace.names.texts
    ranks = [{GEMM: 0, ADD: 1, NCCL: 2}.get(names[name], 3) for name in work.name]
    times: list[Counter[str]] = [Counter() for _ in steps]
    for at, length, row, cause in partition(trace, work, ranks, steps, host=False):
        times[at][names[work.name[row]] if row >= 0 else cause] += length
    return times


span = st.tuples(st.integers(0, 300), st.integers(0, 60), st.sampled_from([GEMM, ADD, NCCL]), st.integers(-1, 300))


@given(st.lists(span, min_size=1, max_size=30), st.lists(st.integers(0, 400), min_size=2, max_size=6, unique=True))
def test_the_owners_of_each_window_add_up_to_it(spans: list[tuple[int, int, str, int]], edges: list[int]) -> None:
    trace = span_trace(*((begin, begin + length, name, launched) for begin, length, name, launched in spans))
    steps = [Window(number, begin, end, "") for number, (begin, end) in enumerate(pairwise(sorted(edges)))]
    times = owned(trace, *steps)
    assert [sum(step.values()) for step in times] == [step.end - step.begin for step in steps]


@given(st.lists(span, min_size=1, max_size=30))
def test_work_owns_the_union_of_its_spans(spans: list[tuple[int, int, str, int]]) -> None:
    trace = span_trace(*((begin, begin + length, name, launched) for begin, length, name, launched in spans))
    (times,) = owned(trace, Window(0, 0, 400, ""))
    ran = {
        name: {at for begin, length, own, _ in spans if own == name for at in range(begin, begin + length)}
        for name in (GEMM, ADD, NCCL)
    }
    assert times[GEMM] == len(ran[GEMM])
    assert times[ADD] == len(ran[ADD] - ran[GEMM])
    assert times[NCCL] == len(ran[NCCL] - ran[GEMM] - ran[ADD])


def test_the_first_class_owns_what_runs_together() -> None:
    trace = span_trace((0, 100, ADD, 0), (20, 40, GEMM, 0), (30, 120, NCCL, 0))
    assert owned(trace, Window(0, 0, 120, "")) == [Counter({ADD: 80, GEMM: 20, NCCL: 20})]


def test_a_window_begins_with_the_first_activity_that_its_step_launched() -> None:
    # The host runs ahead: step 1 is over on the host before its first kernel begins.
    trace = span_trace(
        (100, 200, GEMM, 5),
        (200, 300, GEMM, 15),
        (320, 400, GEMM, 25),
        (420, 500, GEMM, 35),
        marks=[(1, 0, 9), (2, 10, 19), (3, 20, 29), (4, 30, 39)],
    )
    assert windows(trace, trace.devices["0"], host=False) == [
        Window(1, 100, 200, ""),
        Window(2, 200, 320, ""),
        Window(3, 320, 420, ""),
    ]


def test_the_last_step_has_no_end_and_no_window() -> None:
    trace = span_trace((0, 5, GEMM, 0), (10, 15, GEMM, 10), marks=[(1, 0, 9), (2, 10, 19)])
    assert [step.number for step in windows(trace, trace.devices["0"], host=False)] == [1]


def test_without_marks_there_is_no_window() -> None:
    trace = span_trace((0, 5, GEMM, 0))
    assert windows(trace, trace.devices["0"], host=False) == []


def test_a_kernel_that_began_before_its_step_moves_the_windows_before_it() -> None:
    # A copy of the next batch, on a stream of its own, launched in step 2 and clocked before the kernels of step 1.
    trace = span_trace(
        (50, 90, GEMM, 5), (40, 45, ADD, 12), (100, 120, GEMM, 22), marks=[(1, 0, 9), (2, 10, 19), (3, 20, 29)]
    )
    assert [(step.begin, step.end) for step in windows(trace, trace.devices["0"], host=False)] == [(40, 100)]


def test_marks_of_two_threads_are_one_step_each() -> None:
    trace = span_trace(
        (0, 9, GEMM, 0),
        (10, 19, GEMM, 10),
        (20, 29, GEMM, 20),
        marks=[(1, 0, 9), (1, 3, 5), (2, 10, 19), (2, 12, 14), (3, 20, 29)],
    )
    assert [(step.number, step.begin) for step in windows(trace, trace.devices["0"], host=False)] == [(1, 0), (2, 10)]


def test_a_long_step_and_one_that_compiles_are_set_aside_by_name() -> None:
    begins = [0, 10, 20, 30, 60, 70]
    trace = span_trace(
        *((begin, begin + 9, GEMM, begin) for begin in begins),
        marks=[(at, begin, begin + 8) for at, begin in enumerate(begins)],
        host=[("compile", 11, 13)],
    )
    assert [step.aside for step in windows(trace, trace.devices["0"], host=False)] == ["", "compiles", "", "long", ""]


@pytest.mark.parametrize(
    ("host", "launched", "causes"),
    [
        ([], 160, {"launch-bound": 60, "queued, not started": 40}),
        ([("data wait", 110, 150)], 160, {"data wait": 40, "launch-bound": 20, "queued, not started": 40}),
        (
            [("compile", 90, 130), ("data wait", 110, 150)],
            160,
            {"compile": 30, "data wait": 20, "launch-bound": 10, "queued, not started": 40},
        ),
        ([("after a sync", 50, 105)], 160, {"after a sync": 60, "queued, not started": 40}),
        ([("after a sync", 120, 125)], 160, {"launch-bound": 60, "queued, not started": 40}),  # begun on an idle device
        ([], 80, {"queued, not started": 100}),
        ([], 260, {"launch-bound": 100}),  # clocks apart: launched after it began
        ([], -1, {"gap, cause not in the trace": 100}),
    ],
)
def test_a_gap_is_laid_to_what_the_host_did(
    host: list[tuple[str, int, int]], launched: int, causes: dict[str, int]
) -> None:
    trace = span_trace((0, 100, GEMM, 0), (200, 300, GEMM, launched), host=host)
    (times,) = owned(trace, Window(0, 0, 300, ""))
    assert times == Counter({GEMM: 200, **causes})


def test_the_order_of_events_changes_no_byte() -> None:
    rng = random.Random(5)
    spans = [
        (at * 7, at * 7 + rng.randrange(20), rng.choice([GEMM, ADD, NCCL]), at * 7 - 3, rng.randrange(3))
        for at in range(200)
    ]
    marks = [(step, step * 280 - 3, step * 280 + 270) for step in range(5)]
    plain = extract(span_trace(*spans, marks=marks))
    rng.shuffle(spans)
    assert plain is not None
    assert extract(span_trace(*spans, marks=marks[::-1])) == plain
    (profile,) = read_profiles(plain)
    assert all(sum(step.times) == step.length for step in profile.steps)
    assert sum(row.time for row in profile.rows) == sum(profile.told)


def test_two_devices_of_a_file_have_a_profile_each() -> None:
    trace = span_trace((0, 5, GEMM, 0), (10, 15, GEMM, 10), marks=[(1, 0, 9), (2, 10, 19)])
    other = span_trace((3, 5, GEMM, 0), (17, 18, GEMM, 10))
    trace.devices["1"] = other.devices["0"]
    profiles = read_profiles(extract(trace) or b"[]")
    assert [(profile.device, [step.length for step in profile.steps]) for profile in profiles] == [
        ("0", [10]),
        ("1", [14]),
    ]


def test_rows_beyond_the_bound_are_one_of_their_class_and_still_add_up() -> None:
    spans = [(at * 10, at * 10 + 9, f"void some_{at:04}_gemm_kernel_{'x' * 100}()", at * 10) for at in range(900)]
    trace = span_trace(*spans, (9000, 9009, GEMM, 9000), marks=[(1, 0, 8990), (2, 9000, 9010)])
    (profile,) = read_profiles(extract(trace) or b"[]")
    assert len(profile.rows) <= 201
    assert [row.of for row in profile.rows if not row.name] == ["gemm"]
    assert sum(row.time for row in profile.rows) == 900 * 9
