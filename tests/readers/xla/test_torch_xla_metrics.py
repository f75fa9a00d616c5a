"""torch_xla's metrics reports: durations as they were, and what a table proves."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from late_compiles import late
from receipts.ingest.literals import size
from receipts.ingest.reading import Reading, Report, Timing
from receipts.ingest.scan import scan
from receipts.ingest.source import Source
from receipts.readers.xla.metrics import TorchXlaMetrics, TorchXlaMetricsJson, seconds

TAIL = (
    "  ValueRate: 011ms200.000us / second\n  Rate: 3.5 / second\n  Percentiles: 1%=001ms002.000us; 99%=002ms003.000us\n"
)


def metric(name: str, samples: int, accumulator: str) -> str:
    return f"Metric: {name}\n  TotalSamples: {samples}\n  Accumulator: {accumulator}\n{TAIL}"


def counters(**counts: int) -> str:
    return "".join(f"Counter: {name.replace('__', '::')}\n  Value: {count}\n" for name, count in counts.items())


def full(*, compiles: int = 2, steps: int = 16, executions: int = 16, more: str = "", **counts: int) -> str:
    """A report as `met.metrics_report()` orders it: the lazy core's block, then the runtime's."""
    lazy = metric("LazyTracing", 900, "031ms794.263us") + counters(CachedCompile=executions - compiles)
    lazy += counters(UncachedCompile=compiles) if compiles else ""
    lazy += counters(xla__mm=96, xla__add=64)
    runtime = metric("CompileTime", compiles, "03s704ms868.692us") if compiles else ""
    runtime += metric("ExecuteTime", executions, "132ms117.599us") + more
    return lazy + runtime + counters(CreateDataHandles=400, MarkStep=steps, **counts)


def reading(text: str) -> Reading:
    found = scan([text.encode()], [TorchXlaMetrics])
    assert len(found) == 1
    return found[0]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("637.640us", 0.00063764),
        ("132ms117.599us", 0.132117599),
        ("132ms617.599us", 0.131617599),
        ("07s703ms868.692us", 6.702868692),
        ("07s203ms168.692us", 7.203168692),
        ("01m00s500ms000.000us", 60.5),
        ("02h30m10s100ms000.000us", 5410.1),
        ("02d12h30m30s000ms001.000us", 131370 + 1e-6),
        ("000.310us", 3.1e-7),
    ],
)
def test_a_rounded_unit_is_taken_back(text: str, expected: float) -> None:
    assert seconds(text) == pytest.approx(expected, rel=1e-12)


def _printed(nanoseconds: int) -> str:
    """What `MetricFnTime` prints: each unit rounded, its floor taken away."""
    units = (("d", 86400e9), ("h", 3600e9), ("m", 60e9), ("s", 1e9), ("ms", 1e6))
    value, text = float(nanoseconds), ""
    for suffix, scale in units:
        count = value / scale
        if count >= 1 or text:
            text += f"{count:0{3 if suffix == 'ms' else 2}.0f}{suffix}"
            value -= int(count) * scale
    return f"{text}{value / 1e3:07.3f}us"


@pytest.mark.parametrize("start", [7, 999_000, 61_700_000_000, 86_399_999_000_001, 400_000_000_000_000])
def test_what_the_printer_printed_is_decoded_exactly(start: int) -> None:
    for step in range(200):
        nanoseconds = start + step * 7_919_377_013
        assert seconds(_printed(nanoseconds)) == pytest.approx(nanoseconds / 1e9, abs=2e-9)


@pytest.mark.parametrize("text", ["12.00", "4.00KB", "nanB", "", "1s2m", "1us2us", "x1s", "9" * 5000 + "s"])
def test_what_is_no_duration_is_none(text: str) -> None:
    assert seconds(text) is None


@pytest.mark.parametrize(("text", "expected"), [("4.00B", 4), ("2.50KB", 2560), ("1.00GB", 1 << 30), ("12us", None)])
def test_sizes_are_binary(text: str, expected: int | None) -> None:
    assert size(text) == expected


def test_a_clean_report_proves_that_nothing_fell_back() -> None:
    found = reading(full())
    assert found.complete
    assert found.fallbacks == {}
    assert (found.host_transfers, found.steps_covered) == (0, 16)
    assert found.timings["CompileTime"] == Timing(2, 2.703868692)
    assert found.compile.compiles == 2


def test_a_fallback_is_an_operator_that_is_no_host_read() -> None:
    found = reading(full(aten__nonzero=16, aten___local_scalar_dense=16))
    assert found.fallbacks == {"aten::nonzero": 16}
    assert found.host_transfers == 16


def test_a_printed_tensor_leaves_a_transfer_and_no_operator() -> None:
    found = reading(full(executions=32, more=metric("TransferFromDeviceTime", 16, "090ms100.000us")))
    assert (found.fallbacks, found.host_transfers) == ({}, 16)


def test_an_elided_report_proves_presence_only() -> None:
    found = reading(full() + "...\n")
    assert not found.complete
    assert found.fallbacks is None
    assert found.compile.compiles == 2


def test_metrics_shortened_by_hand_make_an_excerpt() -> None:
    text = "Metric: LazyTracing\n  TotalSamples: 900\n  Accumulator: 031ms794.263us\n" + full()
    assert not reading(text.replace(metric("LazyTracing", 900, "031ms794.263us"), "")).complete


def test_a_cleared_table_knows_no_total() -> None:
    found = reading(full(compiles=0))
    assert not found.complete
    assert (found.compile.compiles, found.fallbacks) == (None, None)


def test_tensors_without_an_execution_prove_nothing() -> None:
    found = reading(counters(CreateXlaTensor=400, RegisterXLAFunctions=1, xla__mm=12))
    assert (found.complete, found.fallbacks, found.compile.compiles) == (False, None, None)


def test_the_short_report_has_no_counter_of_compiles() -> None:
    text = counters(CachedCompile=14) + metric("CompileTime", 2, "402ms742.422us")
    found = reading(text + metric("ExecuteTime", 16, "116ms944.317us") + counters(MarkStep=16))
    assert (found.compile.compiles, found.complete, found.fallbacks) == (2, True, {})


def test_a_compile_a_step_is_a_storm() -> None:
    assert late(reading(full(compiles=16))) == 14


def test_a_mark_with_nothing_pending_is_no_step() -> None:
    # `torch_xla.compile` marks before and behind its step, and a loader marks beside the loop.
    assert late(reading(full(compiles=12, steps=24, executions=12))) == 10
    assert reading(full(steps=24, executions=12)).steps_covered == 12
    # The last executions may not have ended.
    assert reading(full(steps=12, executions=10)).steps_covered == 12


def test_a_metrics_file_tells_steps_that_its_report_does_not_mark() -> None:
    excerpts = (
        f"[MetricsData; step={step}]\n{metric('CompileTime', compiles, '03s704ms868.692us')}"
        f"{metric('ExecuteTime', step + 2, '132ms117.599us')}"
        for step, compiles in ((3, 4), (9, 10))
    )
    assert late(reading("".join(excerpts))) == 6


def test_three_compiles_alone_do_not_say_when() -> None:
    assert late(reading(full(compiles=3))) is None


def test_two_reports_of_one_run_tell_compiles_after_warm_up() -> None:
    early = full(compiles=2, steps=5, executions=5)
    assert late(reading(early + "step 16 done\n" + full(compiles=3))) == 1
    assert late(reading(early + "\n" + full(compiles=2))) == 0


def test_a_metrics_file_is_cumulative() -> None:
    text = "".join(
        f"[MetricsData; step={step}]\n{full(compiles=min(step + 1, 2), steps=step + 1, executions=step + 1)}\n"
        for step in range(9)
    )
    found = reading(text)
    assert (found.compile.compiles, late(found), found.steps_covered) == (2, 0, 9)


def test_a_table_that_was_cleared_between_two_reports_starts_anew() -> None:
    found = reading(full(steps=20, executions=20) + full(compiles=2, steps=4, executions=4))
    assert found.counters["MarkStep"] == 4
    assert any("cleared" in remark.text for remark in found.remarks)


def test_eager_mode_is_seen() -> None:
    text = metric("EagerOpCompileTime", 50, "01s100ms000.000us") + metric("EagerOpExecuteTime", 700, "100ms000.000us")
    found = reading(text + counters(UncachedCompile=50, ExecuteComputation=700, xla__mm=20))
    assert [(item.leaf, item.value) for item in found.seen] == [("framework", "torch-xla"), ("posture", "eager")]


def test_eager_steps_are_reported_with_their_reads_like_lazy_ones() -> None:
    text = metric("EagerOpExecuteTime", 700, "100ms000.000us") + metric("TransferFromDeviceTime", 1, "001ms000.000us")
    found = reading(text + counters(UncachedCompile=50, ExecuteComputation=700, MarkStep=5, xla__mm=20))
    assert found.reports == [Report(5, 50, reads=1, programs=140)]


def test_a_report_that_is_quoted_within_a_line_of_code_is_whole() -> None:
    text = metric("CompileTime", 5, "02s100ms000.000us") + counters(MarkStep=5, aten__nonzero=12).rstrip()
    assert reading(f"`{text}`\n").counters["aten::nonzero"] == 12


def test_programs_that_dynamo_handed_over_are_seen() -> None:
    found = reading(full(DynamoSyncInputExecuteTime=15))
    assert ("posture", "whole_graph") in [(item.leaf, item.value) for item in found.seen]


def test_a_program_that_is_timed_and_not_counted_is_a_compile() -> None:
    # Dynamo's, to 2.7.
    text = counters(UncachedCompile=4, DynamoSyncInputExecuteTime=11) + metric("CompileTime", 6, "03s704ms868.692us")
    assert reading(text).compile.compiles == 6


def test_the_persistent_cache_counts_only_what_it_loaded() -> None:
    found = reading(full(PersistentCacheMiss=2))
    assert (found.compile.cache_hits, found.compile.cache_misses) == (0, 2)
    assert reading(full()).compile.cache_hits is None
    failed = reading(full(PersistentCacheDeserializeFailure=2))
    assert any("could not be loaded" in remark.text for remark in failed.remarks)


def test_a_program_from_the_persistent_cache_is_no_compile() -> None:
    text = full(compiles=0, PersistentCacheHit=2)
    assert (reading(text).compile.compiles, reading(text).compile.cache_hits) == (0, 2)


def test_the_label_of_old_reports_is_read() -> None:
    text = metric("CompileTime", 31, "06m09s401ms746.001us").replace("Accumulator", "Counter")
    assert reading(text).timings["CompileTime"].seconds == pytest.approx(369.400746001)


def test_names_of_xrt_are_read() -> None:
    found = reading(full(more=metric("TransferFromServerTime", 16, "090ms100.000us")))
    assert found.host_transfers == 16


def test_indentation_prefixes_and_wrapped_percentiles_are_passed_over() -> None:
    text = "".join(f"    {line}\n" for line in full().splitlines()).replace("; 99%", ";\n      99%")
    assert reading(text).complete
    prefixed = "".join(f"I1120 10:00:00.1 7 main.py:3] {line}\n" for line in full(aten__median=3).splitlines())
    assert reading(prefixed).fallbacks == {"aten::median": 3}


def test_compiles_are_not_counted_by_steps_where_no_execution_is_shown() -> None:
    assert reading(full(compiles=5, steps=7, executions=7)).reports != []
    assert reading(counters(UncachedCompile=5, MarkStep=7, xla__mm=96)).reports == []


def test_a_report_behind_what_a_program_printed_without_a_line_break_is_whole() -> None:
    found = reading("epoch 1 ......" + metric("CompileTime", 4, "03s204ms000.000us"))
    assert found.timings["CompileTime"].samples == 4


def test_other_counters_are_not_of_torch_xla() -> None:
    assert scan([b"Counter: requests\nhello\nMetric: latency is 3 ms\n"], [TorchXlaMetrics]) == []


def test_a_table_as_json_is_the_same_table(tmp_path: Path) -> None:
    path = tmp_path / "counters.json"
    metrics = {
        "CompileTime": {"total_samples": 2, "accumulator": 3_546_445_157.0},
        "ExecuteTime": [8, 1_000_000.0, []],
        "InboundData": {"total_samples": 3, "accumulator": 12.0},
    }
    counts = {"CachedCompile": 6, "MarkStep": 8, "UncachedCompile": 2, "xla::mm": 9, "CreateXlaTensor": 40}
    path.write_text(json.dumps({"counters": counts, "metrics": metrics}))
    source = Source(path, "counters.json")
    assert TorchXlaMetricsJson.claims(source.head)
    (found,) = TorchXlaMetricsJson().read(source)
    assert found.timings["CompileTime"] == Timing(2, 3.546445157)
    assert "InboundData" not in found.timings
    assert (found.complete, found.fallbacks, found.compile.compiles) == (True, {}, 2)


def test_a_list_of_fallback_operators_has_no_counts(tmp_path: Path) -> None:
    path = tmp_path / "executed_fallback_ops.json"
    path.write_text('["aten::_unique2", "aten::_local_scalar_dense"]')
    (found,) = TorchXlaMetricsJson().read(Source(path, path.name))
    assert found.fallbacks == {"aten::_unique2": 1}


@pytest.mark.parametrize("content", ['["aten::a', '["aten::a"]]', '{"counters": {"MarkStep": "x"}}', "[" * 100_000])
def test_broken_json_is_told(tmp_path: Path, content: str) -> None:
    path = tmp_path / "counters.json"
    path.write_text(content)
    (found,) = TorchXlaMetricsJson().read(Source(path, path.name))
    assert found.remarks


def test_a_byte_order_mark_is_no_part_of_the_first_line() -> None:
    text = "Metric: CompileTime\n  TotalSamples: 2\n  Accumulator: 001ms250.000us\n"
    (found,) = scan(["\ufeff".encode() + text.encode()], [TorchXlaMetrics])
    assert "CompileTime" in found.timings


def test_a_report_quoted_in_a_text_keeps_its_first_metric() -> None:
    found = reading("`" + metric("CompileTime", 5, "04m19s324ms429.976us"))
    assert found.timings["CompileTime"].samples == 5


def test_marks_at_which_nothing_runs_are_no_steps() -> None:
    found = reading(metric("ExecuteTime", 16, "116ms944.317us") + counters(MarkStep=48, UncachedCompile=2, xla__mm=96))
    assert found.steps_covered == 16
