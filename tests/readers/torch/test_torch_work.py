"""What a trace of torch shows of the work in its steps, for rules to hold against what is stated."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from receipts.ingest.evidence import read
from receipts.ingest.reading import Reading

QUERY = [2, 4, 16, 8]
Event = dict[str, Any]


def _event(name: str, at: float, took: float, dims: list[Any] | None = None, category: str = "cpu_op") -> Event:
    row: Event = {"ph": "X", "cat": category, "name": name, "ts": at, "dur": took, "pid": 7, "tid": 7}
    return row if dims is None else {**row, "args": {"Input Dims": dims, "Input type": ["float"] * len(dims)}}


def _step(number: int, *, timed: bool = True, again: bool = False) -> list[Event]:
    """Two layers of attention over two rows of 16 tokens, from 1,000 times the number on."""
    at = 1000.0 * number
    attention = "aten::_scaled_dot_product_flash_attention_for_cpu"
    events = [_event(f"ProfilerStep#{number}", at, 900, category="user_annotation")]
    if timed:
        events.append(_event(f"receipts.step#{number}", at + 10, 800, category="user_annotation"))
    events += [
        _event("aten::embedding", at + 20, 5, [[100, 32], [2, 16]]),
        _event(attention, at + 30, 5, [QUERY, QUERY, QUERY]),
        _event(attention, at + 40, 5, [QUERY, QUERY, QUERY]),
        _event("aten::addmm", at + 50, 5, [[100], [32, 32], [32, 100]]),
        _event("aten::nll_loss_forward", at + 60, 5, [[32, 100], [32]]),
        _event("autograd::engine::evaluate_function: AddmmBackward0", at + 100, 300),
        _event("aten::linear", at + 500, 5, [[2, 16, 32], [100, 32]]),
        _event("Optimizer.step#SGD.step", at + 600, 50, category="user_annotation"),
    ]
    return events + ([_event(attention, at + 150, 5, [QUERY, QUERY, QUERY])] if again else [])


def _read(folder: Path, events: list[Event]) -> Reading:
    path = folder / "trace.json"
    path.write_text(json.dumps({"schemaVersion": 1, "deviceProperties": [], "traceEvents": events}))
    (reading,) = read(path).readings
    return reading


def _work(reading: Reading) -> dict[str, int]:
    return {name[5:]: count for name, count in reading.counters.items() if name.startswith("work.")}


def test_the_work_of_all_timed_steps_is_counted_with_its_largest_sizes(tmp_path: Path) -> None:
    reading = _read(tmp_path, [*_step(3), *_step(4)])
    assert _work(reading) == {
        "steps": 2,
        "backward_nanoseconds": 300_000,
        "attention_calls": 4,
        "attention_repeats": 0,
        "attention_tokens": 128,
        "attention_rows": 2,
        "attention_heads": 4,
        "attention_length": 16,
        "attention_width": 32,
        "table_rows": 100,
        "table_width": 32,
        "tokens": 64,
        "micro_tokens": 32,
        "sequence": 16,
        "loss_rows": 64,
        "loss_classes": 100,
        "head_rows": 64,
        "matmul_flops": 2 * 2 * 32 * 32 * 100,
    }
    assert reading.counters["step.3.nanoseconds"] == 800_000


def test_work_beside_the_steps_whose_marks_are_there_does_not_count(tmp_path: Path) -> None:
    whole = _work(_read(tmp_path, _step(3)))
    assert _work(_read(tmp_path, [*_step(3), *(row for row in _step(4) if "tep#4" not in row["name"])])) == {
        **whole,
        "backward_nanoseconds": 600_000,  # it is the trace's, whose steps have room for it or not
    }


def test_what_the_backward_pass_computes_again_is_no_more_work(tmp_path: Path) -> None:
    work = _work(_read(tmp_path, _step(3, again=True)))
    assert (work["attention_calls"], work["attention_repeats"]) == (2, 1)


def test_marks_of_another_profiler_count_where_each_has_one_optimizer_step(tmp_path: Path) -> None:
    assert _work(_read(tmp_path, _step(3, timed=False)))["steps"] == 1
    halves = [row for row in _step(4, timed=False) if not row["name"].startswith("Optimizer")]
    assert _work(_read(tmp_path, [*_step(3, timed=False), *halves])) == {}


@pytest.mark.parametrize(
    ("name", "missing"),
    [
        ("aten::_grouped_mm", "matmul_flops"),
        ("mylib::fused_mlp", "matmul_flops"),
        ("FlashAttnFunc", "attention_calls"),
    ],
)
def test_nothing_is_stated_of_what_other_operators_may_have_computed(tmp_path: Path, name: str, missing: str) -> None:
    assert missing not in _work(_read(tmp_path, [*_step(3), _event(name, 3055, 1, [[32, 32], [32, 32]])]))


def test_a_compiled_step_states_no_work(tmp_path: Path) -> None:
    assert _work(_read(tmp_path, [*_step(3), _event("Torch-Compiled Region: 0/0", 3025, 400)])) == {}


def test_a_trace_of_the_recorder_without_shapes_was_changed_and_shows_no_path(tmp_path: Path) -> None:
    bare = [{name: value for name, value in row.items() if name != "args"} for row in _step(3)]
    reading = _read(tmp_path, bare)
    assert not reading.complete
    assert "it was changed" in reading.remarks[0].text
    assert not any(seen.leaf == "posture" for seen in reading.seen)
