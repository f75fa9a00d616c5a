"""Spans of a JAX profile: operations by what their program says, steps of the device or the host, launches."""

from __future__ import annotations

from pathlib import Path

import pytest

from protobuf_messages import integer, message
from receipts.ingest.protobuf import Message
from receipts.ingest.source import Source
from receipts.ingest.spans import SpanService, SpanTrace
from receipts.plugins.why.profile import extract, host_kind, read_profiles
from receipts.readers.xla.profile import Xplane
from receipts.readers.xla.spans import XlaSpans, bodies

TPU = "/device:TPU:0"


def spans() -> tuple[XlaSpans, list[SpanTrace]]:
    """A collector, and where it hands its trace over."""
    kept: list[SpanTrace] = []

    def keep(trace: SpanTrace) -> bytes | None:
        kept.append(trace)
        return extract(trace)

    return XlaSpans(SpanService("x", host_kind, keep), "JAX xplane"), kept


def times(raw: bytes | None) -> list[dict[str, int]]:
    """The time by class of each step of the first device."""
    assert raw is not None
    profile = read_profiles(raw)[0]
    return [{of: time for of, time in zip(profile.classes, step.times, strict=True) if time} for step in profile.steps]


def test_a_device_that_marks_its_steps_needs_no_host() -> None:
    collector, _ = spans()
    for at in range(3):
        begin = 1000 * at
        collector.event(TPU, "Steps", 1, str(at), begin, begin + 990, {})
        collector.event(TPU, "XLA Modules", 2, "jit_step(1)", begin, begin + 990, {})
        collector.event(TPU, "XLA Ops", 3, "%while.1 = (s32[]) while(%t)", begin, begin + 900, {})
        category = {"hlo_category": "convolution fusion"}
        collector.event(TPU, "XLA Ops", 3, "%fusion.7 = bf16[8] fusion(%a)", begin, begin + 500, category)
        collector.event(TPU, "Async XLA Ops", 4, "all-gather-start.1", begin + 100, begin + 700, {})
        collector.event(TPU, "XLA Ops", 3, "all-gather-done.1", begin + 600, begin + 700, {})
        collector.event(TPU, "XLA Ops", 3, "copy-done.3", begin + 700, begin + 710, {"hlo_category": "copy-done"})
    steps = times(collector.finish({}, ""))
    assert steps == [{"gemm": 500, "communication": 200, "copy": 10, "gap, cause not in the trace": 290}] * 2


def test_two_cores_are_two_devices_with_steps_of_their_own() -> None:
    collector, kept = spans()
    for core in (0, 1):
        for at in range(3):
            begin = 1000 * at + 17 * core
            collector.event(f"/device:TPU:{core}", "Steps", 1, str(at), begin, begin + 990, {})
            collector.event(f"/device:TPU:{core}", "XLA Ops", 3, "dot.1", begin, begin + 500, {})
    collector.finish({}, "")
    assert {device: marks[0] for device, marks in kept[0].device_marks.items()} == {
        "TPU:0": (0, 0, 990),
        "TPU:1": (0, 17, 1007),
    }


@pytest.mark.parametrize("numbered", [True, False])
def test_an_operation_was_launched_by_the_call_of_its_run(numbered: bool) -> None:
    collector, kept = spans()
    for at in range(3):  # the host runs ahead
        collector.event("/host:CPU", "python", 1, "train", 100 * at, 100 * at + 90, {"step_num": at})
        collector.event("/host:CPU", "python", 1, "$data.py:3 get_batch", 100 * at, 100 * at + 40, {})
        if numbered:
            name = "CommonPjRtLoadedExecutable::Execute (jit_f)"
            collector.event("/host:CPU", "python", 1, name, 100 * at + 50, 100 * at + 60, {"run_id": at - 9})
        else:
            name = "CommonPjRtLoadedExecutable::ExecuteHelperOnSingleDevice"
            collector.event("/host:CPU", "python", 1, name, 100 * at + 50, 100 * at + 60, {})
        operation = {"hlo_op": "dot", "run_id": at - 9, "device_ordinal": 0}
        collector.event("/host:CPU", "tf_XLAEigen/1", 2, "dot", 1000 * at + 500, 1000 * at + 1400, operation)
    assert times(collector.finish({}, "")) == [{"gemm": 900, "queued, not started": 100}] * 2
    assert list(kept[0].devices["CPU:0"].launched) == [50, 150, 250]
    assert kept[0].host[0] == ("data wait", 0, 40)


def test_an_operation_without_any_number_is_of_the_last_call_before_it() -> None:
    """As torch_xla 2.9 writes it on a CPU."""
    collector, kept = spans()
    for at in (0, 1000, 2000):
        collector.event("/host:CPU", "python", 1, "train", at, at + 900, {"step_num": at // 1000})
        collector.event("/host:CPU", "tf_pytorchxla/7", 1, "PjRtCpuExecutable::ExecuteHelper", at + 50, at + 60, {})
        operation = {"hlo_op": "dot.16", "hlo_module": "SyncTensorsGraph.137", "program_id": 1}
        collector.event("/host:CPU", "tf_XLAPjRtCpuClient/1", 2, "dot.16", at + 100, at + 700, operation)
    assert times(collector.finish({}, "")) == [{"gemm": 600, "launch-bound": 350, "queued, not started": 50}] * 2
    assert list(kept[0].devices["CPU:0"].launched) == [50, 1050, 2050]


def test_a_kernel_of_a_gpu_has_the_call_with_its_correlation_and_the_body_of_its_operation() -> None:
    collector, kept = spans()
    collector.event("/host:CUPTI", "driver", 1, "cuLaunchKernel", 40, 45, {"correlation_id": "7"})
    own = {"correlation_id": 7, "hlo_op": "gemm_fusion_dot.2"}
    collector.event("/device:GPU:0", "Stream #13(Compute)", 9, "gemm_fusion_dot_2", 60, 90, own)
    collector.event("/device:GPU:0", "XLA Ops", 9, "gemm_fusion_dot.2", 60, 90, {})  # what a tool derived
    collector.event("/device:GPU:0", "Stream #14(MemcpyH2D)", 9, "MemcpyH2D", 60, 95, {"correlation_id": 8})
    collector.finish({}, "")
    work = kept[0].devices["GPU:0"]
    assert (list(work.launched), bytes(work.kind)) == ([40, -1], b"xy")


def instruction(name: str, opcode: str, *rest: bytes) -> bytes:
    return message(2, message(1, name) + message(2, opcode) + b"".join(rest))


def program() -> bytes:
    """An HLO proto: a fusion of a product, one of a sum, and a custom call."""
    product = message(
        3, integer(5, 1) + instruction("p", "parameter") + instruction("d", "dot") + instruction("a", "add")
    )
    total = message(3, integer(5, 2) + instruction("r", "reduce", integer(38, 3)))
    adder = message(3, integer(5, 3) + instruction("s", "add"))
    entry = message(
        3,
        integer(5, 9)
        + instruction("ynn_fusion.4", "fusion", integer(38, 1))
        + instruction("add_fusion", "fusion", integer(38, 2))
        + instruction(
            "kernel.1", "custom-call", message(28, "tpu_custom_call"), message(7, message(2, "jit(f)/splash_mha"))
        ),
    )
    return message(1, message(1, "jit_f") + product + total + adder + entry)


def test_a_fusion_is_what_its_body_computes() -> None:
    hints = bodies(Message(program()))
    assert {name: hint for name, hint in hints.items() if len(name) > 1} == {
        "ynn_fusion.4": "hlo:fusion fusion add dot",
        "add_fusion": "hlo:fusion fusion add reduce",
        "kernel.1": "hlo:kernel tpu_custom_call jit(f)/splash_mha",
    }


def xplane() -> bytes:
    """A profile of a CPU: four annotated steps of one fusion, whose body is in the file's last plane."""

    def statistic(kind: int, value: int, field: int = 4) -> bytes:
        return message(4, integer(1, kind) + integer(field, value))

    def names(field: int, texts: dict[int, str]) -> bytes:
        return b"".join(
            message(field, integer(1, at) + message(2, integer(1, at) + message(2, text))) for at, text in texts.items()
        )

    def events(*rows: tuple[int, int, int, bytes]) -> bytes:
        return b"".join(
            message(4, integer(1, kind) + integer(2, 1000 * at) + integer(3, 1000 * long) + stats)
            for kind, at, long, stats in rows
        )

    python = [(1, 1000 * at, 990, statistic(1, at)) for at in range(4)]
    calls = [(2, 1000 * at + 10, 5, statistic(4, 70 + at)) for at in range(4)]
    work = [(3, 1000 * at + 100, 800, statistic(3, 5, 7) + statistic(4, 70 + at)) for at in range(4)]
    texts = names(4, {1: "train", 2: "CommonPjRtLoadedExecutable::Execute (jit_f)", 3: "ynn_fusion.4"})
    stats = names(5, {1: "step_num", 3: "hlo_op", 4: "run_id", 5: "ynn_fusion.4"})
    lines = message(3, message(2, "python") + integer(3, 7) + events(*python, *calls)) + message(
        3, message(2, "tf_XLAEigen/1") + integer(3, 7) + events(*work)
    )
    kind = message(
        4, integer(1, 1) + message(2, message(2, "jit_f(1)") + message(5, integer(1, 1) + message(6, program())))
    )
    metadata = (
        message(2, "/host:metadata")
        + kind
        + names(5, {1: "Hlo Proto", 2: "jaxlib_version"})
        + message(6, integer(1, 2) + message(5, "0.10.2"))
    )
    return message(1, message(2, "/host:CPU") + lines + texts + stats) + message(1, metadata)


def test_an_xplane_file_gives_a_profile_with_bodies(tmp_path: Path) -> None:
    path = tmp_path / "vm.xplane.pb"
    path.write_bytes(xplane())
    (reading,) = Xplane().read(Source(path, path.name))
    (raw,) = reading.extracts.values()
    (profile,) = read_profiles(raw)
    assert (profile.facts["jaxlib"], profile.device, profile.told) == ("0.10.2", "CPU:0", (2400, 0, 0))
    assert times(raw) == [{"gemm": 800, "launch-bound": 110, "queued, not started": 90}] * 3


def test_a_cut_xplane_file_gives_a_broken_profile_or_none(tmp_path: Path) -> None:
    whole, path = xplane(), tmp_path / "vm.xplane.pb"
    for keep in range(10, len(whole) - 1, 37):
        path.write_bytes(whole[:keep])
        (reading,) = Xplane().read(Source(path, path.name))
        assert all(profile.broken for raw in reading.extracts.values() for profile in read_profiles(raw)), keep
