"""Traces of torch.profiler: real ones of a CPU, and GPU events in kineto's form."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from receipts.ingest.device_profile import Timeline
from receipts.ingest.evidence import read
from receipts.ingest.reading import Reading
from receipts.readers.torch.profiler import TorchTraceReader

SAMPLE = Path(__file__).parent / "samples" / "torch_trace_flash.json.gz"
NCCL = "ncclDevKernel_AllReduce_Sum_bf16_RING_LL(ncclDevKernelArgsStorage<4096ul>)"
GEMM = "nvjet_sm90_tst_64x8_64x16_1x2_h_bz_TNT"


def event(category: str, name: str, begin: float = 0.0, duration: float = 1.0, **arguments: Any) -> dict[str, Any]:
    return {
        "ph": "X",
        "cat": category,
        "name": name,
        "pid": 0,
        "tid": 7,
        "ts": begin,
        "dur": duration,
        "args": arguments,
    }


def document(*events: dict[str, Any], **head: Any) -> dict[str, Any]:
    return {"schemaVersion": 1, "deviceProperties": [], **head, "traceEvents": list(events), "traceName": "t.json"}


def reading_of(tmp_path: Path, text: str | bytes) -> Reading:
    path = tmp_path / "trace.json"
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    (reading,) = read(path).readings
    return reading


def test_a_packed_trace_of_a_real_run_is_read_whole(tmp_path: Path) -> None:
    path = tmp_path / "any.name"
    shutil.copy(SAMPLE, path)
    (reading,) = read(path).readings
    assert reading.source == "torch-profiler"
    assert (reading.complete, reading.steps_covered) == (True, 2)
    assert [(item.value, item.level, item.count) for item in reading.seen if item.leaf == "attention"] == [
        ("sdpa_flash", "kernels", 2)
    ]


def test_a_host_read_without_a_device_is_no_transfer(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, gzip.decompress(SAMPLE.read_bytes()))
    assert reading.counters["aten::_local_scalar_dense"] == 2
    assert reading.host_transfers is None


@pytest.mark.parametrize("share", [0.3, 0.6, 0.99])
def test_a_cut_trace_says_so_and_keeps_what_stands_before(tmp_path: Path, share: float) -> None:
    whole = gzip.decompress(SAMPLE.read_bytes())
    reading = reading_of(tmp_path, whole[: int(len(whole) * share)])
    assert not reading.complete
    assert reading.records > 0
    assert "broken" in {remark.kind for remark in reading.remarks}


def test_a_trace_whose_packing_breaks_off_is_read_up_to_there(tmp_path: Path) -> None:
    reading = reading_of(tmp_path, SAMPLE.read_bytes()[:5000])
    assert not reading.complete
    assert reading.records > 0


def test_a_bad_name_behind_the_events_spoils_nothing(tmp_path: Path) -> None:
    text = json.dumps(document(event("cpu_op", "aten::_scaled_dot_product_attention_math"))).replace("t.json", "C:\\q")
    reading = reading_of(tmp_path, text)
    assert reading.complete
    assert reading.seen[0].value == "math"


def test_bad_text_among_the_events_leaves_the_trace_incomplete(tmp_path: Path) -> None:
    events = [event("cpu_op", "aten::mm") for _ in range(3)]
    text = json.dumps(document(*events)).replace('"dur": 1.0', '"dur": nan', 2)
    reading_or_none = [item for item in read(_write(tmp_path, text)).readings if item.complete]
    assert reading_or_none == []


def _write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "bad.json"
    path.write_text(text)
    return path


def test_exposed_communication_is_what_no_computation_covers(tmp_path: Path) -> None:
    # On the device: communication 0-10 and 20-30, computation 5-12 and 28-40; in the file in no order.
    events = (
        event("kernel", GEMM, 28.0, 12.0, device=0, stream=7),
        event("kernel", NCCL, 20.0, 10.0, device=0, stream=20),
        event("kernel", GEMM, 5.0, 7.0, device=0, stream=7),
        event("kernel", NCCL, 0.0, 10.0, device=0, stream=20),
        event("user_annotation", "ProfilerStep#3"),
        event("gpu_user_annotation", "ProfilerStep#3"),
    )
    reading = reading_of(tmp_path, json.dumps(document(*events)))
    assert reading.steps_covered == 1
    assert reading.stated["measurement.exposed_communication_seconds"].value == pytest.approx(13e-6)


def test_the_machine_is_read_off_the_head(tmp_path: Path) -> None:
    device = {"id": 0, "name": "NVIDIA H200", "totalGlobalMem": 150_000_000_000, "computeMajor": 9, "computeMinor": 0}
    info = {"backend": "nccl", "rank": 3, "world_size": 16, "nccl_version": "2.27.5", "pg_config": [{"ranks": [0, 1]}]}
    head = {"deviceProperties": [device, device | {"id": 1}], "distributedInfo": info, "cuda_runtime_version": 12080}
    reading = reading_of(tmp_path, json.dumps(document(event("kernel", GEMM, device=0), **head)))
    stated = {path: item.value for path, item in reading.stated.items()}
    assert stated == {
        "hardware.accelerator": "NVIDIA H200",
        "hardware.chips": 16,
        "platform.nccl": "2.27.5",
        "platform.cuda": "12.8",
    }


def test_copies_to_the_host_are_transfers_and_graph_launches_are_graphs(tmp_path: Path) -> None:
    events = (
        event("kernel", GEMM, device=0),
        event("gpu_memcpy", "Memcpy DtoH (Device -> Pageable)"),
        event("gpu_memcpy", "Memcpy HtoD (Pageable -> Device)"),
        event("cpu_op", "aten::_local_scalar_dense"),
        event("cpu_op", "aten::_local_scalar_dense"),
        event("cuda_runtime", "cudaGraphLaunch"),
        event("cpu_op", "Optimizer.step#AdamW.step"),
    )
    reading = reading_of(tmp_path, json.dumps(document(*events)))
    assert (reading.host_transfers, reading.steps_covered, reading.fallbacks) == (1, 1, {})
    assert ("cuda_graphs", "true") in {(item.leaf, item.value) for item in reading.seen}


def test_a_list_of_events_alone_is_a_trace(tmp_path: Path) -> None:
    text = json.dumps([event("cpu_op", "aten::_scaled_dot_product_efficient_attention")])
    assert reading_of(tmp_path, text).seen[0].value == "mem_efficient"


@pytest.mark.parametrize(
    "odd",
    [
        {"ph": "X", "cat": "kernel", "name": 7, "ts": 1, "dur": 1},
        {"ph": "X", "cat": "kernel", "name": GEMM, "ts": "x", "dur": None, "args": []},
        {"ph": "X", "cat": "kernel", "name": NCCL, "ts": 10**400, "dur": 1, "args": {"device": -1}},
        {"ph": "X", "cat": ["kernel"], "name": GEMM},
        17,
    ],
)
def test_odd_events_raise_nothing(tmp_path: Path, odd: Any) -> None:
    reading = reading_of(tmp_path, json.dumps(document(event("kernel", NCCL, device=0), odd)))
    assert reading.records >= 1


@pytest.mark.parametrize(
    "head",
    [
        b'{"displayTimeUnit":"ns","metadata":{"highres-ticks":true}, "traceEvents":[{"ph":"M"}]}',
        b"{}",
        b"[1, 2]",
        b"text",
    ],
)
def test_traces_of_other_programs_are_left_to_others(head: bytes) -> None:
    assert not TorchTraceReader.claims(head)


def test_a_timeline_that_cannot_keep_all_kernels_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("receipts.ingest.device_profile.MAX_SPANS", 1)
    timeline = Timeline()
    for at in range(3):
        timeline.add(0, float(at), 1.0, communicates=True)
    assert timeline.lost == 2
