"""The partition agrees with other tools: TraceLens' five numbers to 1 µs, and HTA's idle and computing time.

The numbers are what TraceLens (``PytorchGPUEventAnalyser.compute_metrics``) and HTA (``get_temporal_breakdown``) print
of traces in their own repositories (``tests/traces``, ``tests/data``), which are looked for, flat, in the folder that
RECEIPTS_PUBLIC_TRACES names, and of one that is drawn here. HTA keeps the kernels of all steps but the last, and calls
a memset no computation. Of a B200 the sum of both kinds is held: TraceLens takes ``multimem_all_reduce_kernel`` for
computation.
"""

from __future__ import annotations

import os
import random
from collections import Counter
from pathlib import Path

import pytest

from receipts.ingest.source import Source
from receipts.ingest.spans import Activities, SpanService, SpanTrace
from receipts.plugins.why.classes import classes, kind_of
from receipts.plugins.why.profile import classed_work, host_kind
from receipts.plugins.why.sweep import Window, marks_of, partition
from receipts.readers.torch import profiler as profiler_module
from span_traces import KinetoTrace

# compute, exposed communication, exposed memcpy, idle, total in µs
TRACELENS = {
    "h100/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz": (45644.943, 0, 2.368, 4005.521, 49652.832),
    "h100/gaunernst_bert-small-uncased__1016001.json.gz": (307.198, 0, 2.240, 3598.387, 3907.825),
    "h100/google_owlv2-large-patch14-ensemble__1016001.json.gz": (552189.214, 0, 14570.259, 511528.906, 1078288.379),
    "mi300/Qwen_Qwen1.5-0.5B-Chat__1016005.json.gz": (43062.032, 0, 0.760, 4023.008, 47085.800),
    "mi300/gaunernst_bert-small-uncased__1016001.json.gz": (388.345, 0, 2.404, 3105.228, 3495.976),
    "mi300/resnet_act_checkpoint.json.gz": (26175.002, 55371.218, 2455.848, 2565.639, 86567.708),
    "b200/eager_trace.json.gz": (10771.683, 21.953, 802.843, 72890.698, 84487.178),
    "control/control.json.gz": (282582, 87267, 18738, 76007, 464594),
    "test/test.json.gz": (550307, 72359, 95277, 27296, 745239),
}
# idle, compute, whole in µs
HTA = {"control/control.json.gz": (62119, 234760, 383404), "test/test.json.gz": (46910, 429216, 628371)}


def spans_of(path: Path, monkeypatch: pytest.MonkeyPatch) -> tuple[SpanTrace, Activities]:
    """The spans of a trace with one device."""
    kept: list[SpanTrace] = []
    service = SpanService("x", host_kind, lambda trace: kept.append(trace) or b"x")  # type: ignore[func-returns-value]
    monkeypatch.setattr(profiler_module, "span_service", lambda: service)
    profiler_module.TorchTraceReader().read(Source(path, path.name))
    (trace,) = kept
    (work,) = trace.devices.values()
    return trace, work


def times(trace: SpanTrace, work: Activities, *, memset: str = "compute") -> dict[str, float]:
    """The time by kind in microseconds, from the first activity to the end of the last."""
    own, rank = classed_work(trace, work, host=False), classes().rank
    kinds = [memset if work.kind[row] == ord("s") else kind_of(of) for row, (of, _) in enumerate(own)]
    first = {"compute": 0, "communication": rank["communication"], "memcpy": rank["memcpy D2D"]}
    whole = Window(0, min(work.begin), max(work.end), "")
    sums: Counter[str] = Counter(total=whole.end - whole.begin)
    for _, length, row, _ in partition(trace, work, [first[kind] for kind in kinds], [whole], host=False):
        sums[kinds[row] if row >= 0 else "idle"] += length
    return {name: time / 1000 for name, time in sums.items()}


def public(name: str) -> Path:
    """A public trace; the test is skipped where nobody fetched it."""
    path = Path(os.environ.get("RECEIPTS_PUBLIC_TRACES", "")) / name.replace("/", "_")
    if not path.is_file():
        pytest.skip("RECEIPTS_PUBLIC_TRACES names no folder with this trace")
    return path


def holds(own: dict[str, float], wanted: tuple[float, ...], *, joined: bool = False) -> None:
    """Whether five numbers are TraceLens' to 1 µs, which holds sums of doubles."""
    kinds = ("compute", "communication", "memcpy", "idle", "total")
    ours = [own.get(kind, 0) for kind in kinds]
    if joined:
        ours, wanted = [ours[0] + ours[1], *ours[2:]], (wanted[0] + wanted[1], *wanted[2:])
    assert ours == pytest.approx(wanted, abs=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", TRACELENS)
def test_five_numbers_of_a_public_trace_are_those_of_tracelens(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    trace, work = spans_of(public(name), monkeypatch)
    holds(times(trace, work), TRACELENS[name], joined=name.startswith("b200"))


@pytest.mark.slow
@pytest.mark.parametrize("name", HTA)
def test_idle_and_computing_time_of_a_public_trace_are_those_of_hta(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    trace, work = spans_of(public(name), monkeypatch)
    marks, part = marks_of(trace), Activities()
    for row, launched in enumerate(work.launched):
        if marks[0][1] <= launched < marks[-1][1]:
            columns = (work.begin, work.end, work.lane, work.name, work.chain)
            part.add(*(column[row] for column in columns), launched, chr(work.kind[row]))
    own = times(trace, part, memset="memcpy")
    assert (own["idle"], own["compute"], own["total"]) == pytest.approx(HTA[name], rel=0.0005)


def drawn(path: Path) -> Path:
    """A trace of 400 activities on four streams that run beside each other, at today's time."""
    rng, trace = random.Random(46), KinetoTrace(base=1_700_000_000_000_000)
    kinds = [("gemm_kernel", "kernel"), ("ncclDevKernel_AllReduce_Sum", "kernel")]
    kinds += [("Memcpy HtoD", "gpu_memcpy"), ("Memset (Device)", "gpu_memset")]
    for at in range(400):
        name, category = rng.choice(kinds)
        begin = 40 * at + rng.randrange(100)
        trace.kernel(name, begin - 5, begin, rng.randrange(60), category=category, stream=rng.randrange(4))
    return trace.write(path)


def test_five_numbers_of_a_drawn_trace_are_those_of_tracelens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trace, work = spans_of(drawn(tmp_path / "trace.json"), monkeypatch)
    holds(times(trace, work), (4857, 2747, 1711, 6697, 16012))
