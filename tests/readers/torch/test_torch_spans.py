"""Spans of a torch.profiler trace: times to the nanosecond, launches, chains of operators, the host's own time."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from receipts.ingest.source import Source
from receipts.ingest.spans import SpanService, SpanTrace, in_order, nanoseconds
from receipts.readers.torch import profiler as profiler_module
from span_traces import KinetoTrace


def spans_of(trace: KinetoTrace, folder: Path, monkeypatch: pytest.MonkeyPatch) -> SpanTrace:
    """What the reader hands over of a trace."""
    kept: list[SpanTrace] = []

    def extract(spans: SpanTrace) -> bytes:
        kept.append(spans)
        return b"extract"

    service = SpanService("of-this-test", lambda name: "sync" if "Synchronize" in name else "", extract)
    monkeypatch.setattr(profiler_module, "span_service", lambda: service)
    path = trace.write(folder / "trace.json")
    (reading,) = profiler_module.TorchTraceReader().read(Source(path, path.name))
    assert reading.extracts == {"of-this-test": b"extract"}
    return kept[0]


def chains(spans: SpanTrace, device: str = "0") -> list[tuple[Any, ...]]:
    """Each activity of a device by its name, its launch and the names around it."""
    work, names = spans.devices[device], spans.names.texts

    def names_of(chain: int) -> tuple[str, ...]:
        around, name = spans.chains[chain]
        return (*names_of(around), names[name]) if chain else ()

    return [
        (names[name], launched, *names_of(chain))
        for name, launched, chain in zip(work.name, work.launched, work.chain, strict=True)
    ]


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (1_700_000_000_123_456, 1_700_000_000_123_456_000),
        ("1700000000123456.789", 1_700_000_000_123_456_789),
        (0.5, 500),
        *((other, None) for other in ("no time", None, True, "NaN", "1e99", 10**400)),
    ],
)
def test_a_time_is_whole_nanoseconds(text: Any, wanted: int | None) -> None:
    assert nanoseconds(text) == wanted


def test_times_since_1970_keep_every_nanosecond(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = KinetoTrace()
    trace.step(1, 0, 1)
    path = trace.write(tmp_path / "trace.json")
    # json.dumps would round it, as a reader of doubles does: to 256 ns.
    event = '{"ph":"X","cat":"kernel","name":"k","pid":0,"tid":7,"ts":1700000000123456.789,"dur":1.013}'
    path.write_text(path.read_text().replace('"traceEvents": [', f'"traceEvents": [{event},'))
    kept: list[SpanTrace] = []
    service = SpanService("x", lambda _: "", lambda spans: kept.append(spans) or b"")  # type: ignore[func-returns-value]
    monkeypatch.setattr(profiler_module, "span_service", lambda: service)
    profiler_module.TorchTraceReader().read(Source(path, path.name))
    work = kept[0].devices["0"]
    assert (work.begin[0], work.end[0]) == (1_700_000_000_123_456_789, 1_700_000_000_123_457_802)


def test_a_kernel_has_its_launch_and_the_operators_around_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = KinetoTrace()
    trace.op("aten::linear", 0, 50)
    trace.op("aten::addmm", 5, 30)
    trace.kernel("gemm", 10, 100, 20)
    trace.kernel("splitK", 45, 120, 5)
    trace.kernel("alone", 70, 130, 5)
    spans = spans_of(trace, tmp_path, monkeypatch)
    assert chains(spans) == [
        ("gemm", 10_000, "aten::linear", "aten::addmm"), ("splitK", 45_000, "aten::linear"), ("alone", 70_000)
    ]  # fmt: skip


def test_without_a_launch_the_external_id_names_the_operator(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = KinetoTrace()
    trace.op("aten::mm", 0, 50, **{"External id": 9})
    trace.event("gemm", "kernel", 100, 20, 7, device=0, stream=7, **{"External id": 9})
    assert chains(spans_of(trace, tmp_path, monkeypatch)) == [("gemm", -1, "aten::mm")]


def test_the_backward_pass_stands_below_the_operator_of_the_forward_pass(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = KinetoTrace()
    trace.op("aten::scaled_dot_product_attention", 0, 50)
    trace.op("aten::_softmax", 10, 20, **{"Sequence number": 3})
    trace.op("autograd::engine::evaluate_function: SoftmaxBackward0", 100, 50, thread=2, **{"Sequence number": 3})
    trace.op("SoftmaxBackward0", 105, 40, thread=2, **{"Sequence number": 3})
    trace.kernel("softmax_backward", 110, 200, 5, thread=2)
    ((_, _, *chain),) = chains(spans_of(trace, tmp_path, monkeypatch))
    assert chain[:2] == ["aten::scaled_dot_product_attention", "aten::_softmax"]
    assert chain[-1] == "SoftmaxBackward0"


def test_where_no_device_computed_the_deepest_operator_is_what_ran(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = KinetoTrace(deviceProperties=[])
    trace.step(1, 0, 100)
    trace.op("aten::linear", 10, 60)
    trace.op("aten::mm", 20, 30)
    trace.op("aten::add", 80, 10)
    spans = spans_of(trace, tmp_path, monkeypatch)
    work, names = spans.devices["cpu"], spans.names.texts
    ran = [
        (names[name], begin // 1000, end // 1000)
        for name, begin, end in zip(work.name, work.begin, work.end, strict=True)
    ]
    assert ran == [("aten::linear", 10, 20), ("aten::mm", 20, 50), ("aten::linear", 50, 70), ("aten::add", 80, 90)]


def test_syncs_and_marks_are_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = KinetoTrace()
    trace.step(7, 0, 10)
    trace.event("cudaStreamSynchronize", "cuda_runtime", 3, 4)
    trace.kernel("gemm", 1, 2, 3)
    spans = spans_of(trace, tmp_path, monkeypatch)
    assert (spans.marks, spans.host) == ([(7, 0, 10_000)], [("sync", 3_000, 7_000)])


def test_a_graph_that_is_one_row_is_told_from_its_nodes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = KinetoTrace()
    trace.kernel("whole", 0, 1, 5, **{"graph id": 4})
    trace.kernel("node", 0, 7, 5, **{"graph id": 4, "graph node id": 2})
    assert bytes(spans_of(trace, tmp_path, monkeypatch).devices["0"].kind) == b"gk"


def test_a_cut_trace_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace = KinetoTrace()
    for at in range(50):
        trace.kernel("gemm", at, at, 1)
    kept: list[SpanTrace] = []
    service = SpanService("x", lambda _: "", lambda spans: kept.append(spans) or b"")  # type: ignore[func-returns-value]
    monkeypatch.setattr(profiler_module, "span_service", lambda: service)
    path = trace.write(tmp_path / "trace.json", cut=True)
    profiler_module.TorchTraceReader().read(Source(path, path.name))
    assert kept[0].broken


def test_activities_that_end_before_they_begin_are_a_broken_trace(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trace = KinetoTrace()
    trace.kernel("gemm", 0, 10, -4)
    assert spans_of(trace, tmp_path, monkeypatch).broken == "1 activities end before they begin"


def test_rows_come_in_order_whatever_the_order_of_the_column() -> None:
    rng = random.Random(1)
    column = [rng.randrange(-50, 1 << 40) for _ in range(5000)] + [7] * 9
    rng.shuffle(column)
    assert [column[row] for row in in_order(column, lambda row: row)] == sorted(column)
