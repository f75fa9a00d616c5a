"""Profiles of JAX: reads of arrays and executed programs, from traces and from xplane files."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import pytest

from protobuf_messages import integer, message
from receipts.ingest.reading import Reading
from receipts.ingest.source import Source
from receipts.readers.xla.profile import JaxProfiler, Xplane

HOST, DEVICE = 1, 2


def planes(*names: str) -> list[dict[str, Any]]:
    return [
        {"ph": "M", "pid": index, "name": "process_name", "args": {"name": name}}
        for index, name in enumerate(names, start=1)
    ]


def event(
    name: str, start: float, *, plane: int = HOST, thread: int = 7, dur: float = 1.0, **args: str
) -> dict[str, Any]:
    return {"ph": "X", "pid": plane, "tid": thread, "ts": start, "dur": dur, "name": name, "args": args}


def step(start: float) -> list[dict[str, Any]]:
    """One step on the host: a call told twice, one inside the other, and its execution."""
    return [
        event("PjitFunction(train_step)", start, dur=9.0),
        event("PjitFunction(train_step)", start + 1, dur=7.0),
        event("CommonPjRtLoadedExecutable::Execute (jit_train_step)", start + 2),
        event("[3] CommonPjRtLoadedExecutable::Execute (jit_train_step)", start + 2, thread=9),
    ]


def trace(tmp_path: Path, events: list[dict[str, Any]]) -> Path:
    path = tmp_path / "host.trace.json.gz"
    content = {"displayTimeUnit": "ns", "metadata": {"highres-ticks": True}, "traceEvents": events}
    path.write_bytes(gzip.compress(json.dumps(content).encode()))
    return path


def reading(path: Path, kind: type[JaxProfiler | Xplane] = JaxProfiler) -> Reading:
    source = Source(path, path.name)
    assert kind.claims(source.head)
    (found,) = kind().read(source)
    return found


def test_a_clean_profile_shows_no_read(tmp_path: Path) -> None:
    found = reading(trace(tmp_path, planes("/host:CPU") + step(0) + step(20) + step(40)))
    assert (found.host_transfers, found.steps_covered) == (0, 3)


def test_a_read_of_an_array_is_seen_once_however_many_events_tell_it(tmp_path: Path) -> None:
    read = [event("np.asarray(jax.Array)", 60), event("$array.py:615 _value", 60), event("$array.py:298 __float__", 60)]
    found = reading(trace(tmp_path, planes("/host:CPU") + (step(0) + read) * 4))
    assert (found.host_transfers, found.steps_covered) == (4, 4)


def test_a_call_inside_its_own_event_is_one_call(tmp_path: Path) -> None:
    calls = [item for at in (0, 20) for item in step(at) if item["name"].startswith("PjitFunction")]
    assert reading(trace(tmp_path, planes("/host:CPU") + calls)).steps_covered == 2


def test_kernels_of_a_device_are_named_by_their_operation(tmp_path: Path) -> None:
    threads = [
        {"ph": "M", "pid": DEVICE, "tid": 1, "name": "thread_name", "args": {"name": "XLA Modules"}},
        {"ph": "M", "pid": DEVICE, "tid": 2, "name": "thread_name", "args": {"name": "XLA Ops"}},
    ]
    ops = [
        event("jit_train_step(123456)", 0, plane=DEVICE, thread=1, dur=90.0),
        event("jit_add(7)", 95, plane=DEVICE, thread=1),
        event(
            "splash_mha_fwd_residuals.3", 1, plane=DEVICE, thread=2, tf_op="jit(train_step)/splash_mha_fwd/pallas_call:"
        ),
        event(
            "all-gather-start.5", 9, plane=DEVICE, thread=2, long_name="%all-gather-start.5 = bf16[8] all-gather-start"
        ),
        event("custom-call.9", 9, plane=DEVICE, thread=2, long_name='custom_call_target="tpu_custom_call"'),
    ]
    found = reading(trace(tmp_path, planes("/host:CPU", "/device:TPU:0") + threads + ops))
    assert {(item.leaf, item.value) for item in found.seen} == {
        ("framework", "jax"),
        ("runtime", "pjrt-tpu"),
        ("attention", "pallas_splash"),
    }
    assert found.counters["all-gather-start"] == 1
    assert found.counters["executions of jit_train_step"] == 1


def test_cudnn_attention_is_known_by_its_kernel(tmp_path: Path) -> None:
    kernel = event("cudnn_generated_fort_native_sdpa_sm90_flash_fprop_wgmma_f16_knob_7", 0, plane=DEVICE)
    found = reading(trace(tmp_path, [*planes("/host:CPU", "/device:GPU:0"), kernel]))
    assert ("attention", "cudnn_fmha") in [(item.leaf, item.value) for item in found.seen]


def test_a_profile_of_torch_xla_is_not_of_jax(tmp_path: Path) -> None:
    path = tmp_path / "localhost.xplane.pb"
    names = {1: "SyncTensorsGraphInternal", 2: "PjitFunction(f)"}
    for events, framework in (([(1, 0, 10)], "torch-xla"), ([(1, 0, 10), (2, 20, 10)], "jax")):
        path.write_bytes(plane("/host:CPU", "python", events, names))
        assert [seen.value for seen in reading(path, Xplane).seen if seen.leaf == "framework"] == [framework]


def test_a_trace_of_torch_is_not_of_jax() -> None:
    assert not JaxProfiler.claims(b'{"schemaVersion": 1, "deviceProperties": [], "traceEvents": [{"name": "/host:CPU"}')
    assert not JaxProfiler.claims(b'{"traceEvents": [{"ph": "X", "cat": "cpu_op", "name": "aten::mm"}')
    assert not JaxProfiler.claims(b"{}")


def test_a_trace_that_breaks_off_proves_presence_only(tmp_path: Path) -> None:
    path = trace(tmp_path, planes("/host:CPU") + step(0) * 50)
    content = gzip.decompress(path.read_bytes())
    path.write_bytes(content[: len(content) // 2])
    found = reading(path)
    assert found.records
    assert found.host_transfers is None
    assert any(remark.kind == "broken" for remark in found.remarks)


def plane(name: str, line: str, events: list[tuple[int, int, int]], names: dict[int, str]) -> bytes:
    """An XPlane: events are (metadata, offset, duration), with a statistic that nobody reads."""
    told = b"".join(
        message(4, integer(1, kind) + integer(2, offset) + integer(3, duration) + message(4, integer(1, 3)))
        for kind, offset, duration in events
    )
    entries = b"".join(
        message(4, integer(1, kind) + message(2, integer(1, kind) + message(2, text))) for kind, text in names.items()
    )
    return message(1, integer(1, 5) + message(2, name) + message(3, integer(1, 8) + message(2, line) + told) + entries)


def test_an_xplane_file_is_read_without_descriptors(tmp_path: Path) -> None:
    names = {
        1: "CommonPjRtLoadedExecutable::Execute (jit_train_step)",
        2: "np.asarray(jax.Array)",
        3: "PjitFunction(train_step)",
        300: "ThunkExecutor::Execute",
    }
    events = (
        [(1, at, 5) for at in range(0, 60, 10)] + [(2, at, 2) for at in range(0, 30, 10)] + [(3, 0, 9), (300, 1, 1)]
    )
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(plane("/host:CPU", "python", events, names))
    found = reading(path, Xplane)
    assert (found.host_transfers, found.steps_covered) == (3, 6)
    assert ("runtime", "cpu") in [(item.leaf, item.value) for item in found.seen]


def test_an_xplane_file_says_on_which_host_and_when_it_was_taken(tmp_path: Path) -> None:
    began = 1_795_426_951_105_552_200
    clocks = (integer(1, kind) + integer(3, began + kind * 10**9) for kind in (1, 2))
    stats = b"".join(message(6, clock) for clock in clocks) + message(6, integer(1, 3) + message(5, "a text"))
    task = message(1, integer(1, 5) + message(2, "Task Environment") + stats)
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(plane("/host:CPU", "python", [(1, 0, 5)], {1: "PjitFunction(f)"}) + task + message(4, "vm"))
    found = reading(path, Xplane)
    assert found.host == "vm"
    assert found.between == pytest.approx((began / 1e9 + 1, began / 1e9 + 2))
    assert not found.remarks


def test_instructions_in_an_xplane_file_prove_their_kernels(tmp_path: Path) -> None:
    names = {
        7: '%splash_mha_dkv.2 = bf16[8] custom-call(%a), custom_call_target="tpu_custom_call"',
        8: "%all-reduce.1 = f32[] all-reduce(%x)",
    }
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(plane("/device:TPU:0", "XLA Ops", [(7, 0, 5), (8, 6, 2), (7, 9, 5)], names))
    found = reading(path, Xplane)
    seen = {item.value: item.count for item in found.seen}
    assert seen["pallas_splash"] == 2
    assert found.counters["all-reduce"] == 1


@pytest.mark.parametrize("keep", [20, 60, 90])
def test_a_torn_xplane_file_is_told(tmp_path: Path, keep: int) -> None:
    content = plane("/host:CPU", "python", [(1, 0, 5)] * 9, {1: "PjitFunction(f)"})
    path = tmp_path / "host.xplane.pb"
    path.write_bytes(content[:keep])
    found = reading(path, Xplane)
    assert [remark.kind for remark in found.remarks] == ["broken"]
    assert found.host_transfers is None
