"""Steps that are none, what an integration may say, and when what lies on a device is read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from jobs import only, read, recorder
from receipts.emit import recovery
from receipts.emit.probing import ProbeOutput


class OnDevice:
    """A loss on a device; being read is counted."""

    reads = 0

    def __float__(self) -> float:
        type(self).reads += 1
        return 2.0


class Counting:
    """A probe that looks at its end how often the device was read."""

    NAME = "counting"

    @staticmethod
    def at_end(stated: ProbeOutput) -> None:
        stated.note(f"{OnDevice.reads} reads so far")


def test_a_step_that_is_abandoned_does_not_count_and_keeps_its_flags_to_itself(tmp_path: Path) -> None:
    with recorder(tmp_path) as rec:
        for number in range(4):
            rec.step_begin()
            if number == 1:
                rec.flag("recompile")
                assert rec.in_step
                rec.abandon_step("the batch was empty")
                assert not rec.in_step
            else:
                rec.step_end(tokens=8)
        rec.abandon_step("no step is running")
    found = read(rec.written)
    assert len(found["measurement"]["step_durations_seconds"]) == 3
    assert "recompile" not in found["measurement"].get("step_flags", {})
    assert found["notes"]["caller"] == ["step 1 was abandoned: the batch was empty"]


def test_a_step_that_is_abandoned_inside_its_block_does_not_count(tmp_path: Path) -> None:
    with recorder(tmp_path) as rec:
        for number in range(4):
            with rec.step(tokens=8):
                if number in (0, 2):
                    rec.abandon_step("out of memory")
    found = read(rec.written)
    assert len(found["measurement"]["step_durations_seconds"]) == 2
    assert "recorder" not in found.get("notes", {})


def test_of_steps_within_steps_the_inner_ones_count_and_it_is_told(tmp_path: Path) -> None:
    with recorder(tmp_path) as rec:
        for _ in range(3):
            with rec.step(tokens=8), rec.step(tokens=8):
                pass
    found = read(rec.written)
    assert len(found["measurement"]["step_durations_seconds"]) == 3
    assert found["notes"]["recorder"] == ["3 steps had other steps inside them, and did not count: the inner ones do"]


def test_a_window_without_a_step_is_a_note(tmp_path: Path) -> None:
    with recorder(tmp_path) as rec:
        with rec.step(tokens=8):
            pass
        rec.window(0, 1)
        rec.window(-3)
        rec.window(5, 2)
    found = read(rec.written)
    assert found["measurement"]["window"] == {"start": 0, "stop": 1}
    assert found["notes"]["recorder"][-1] == "window: ValueError: from 5 to 2 there is no step"


def test_an_abandoned_step_is_not_running_in_the_journal_either(tmp_path: Path) -> None:
    with recorder(tmp_path, warmup=1) as rec:
        with rec.step():
            pass
        rec.step_begin()
        rec.abandon_step()
        record = recovery.recover(str(only(tmp_path, "*.journal")))
        assert recovery.stuck(record) is None
    assert record.steps == 1
    assert record.failure["phase"] == "steady"


def test_a_step_may_have_begun_before_its_call(tmp_path: Path) -> None:
    from time import perf_counter_ns

    with recorder(tmp_path) as rec:
        rec.step_begin(perf_counter_ns() - 3_000_000_000)
        rec.step_end(tokens=8)
    assert read(rec.written)["measurement"]["step_durations_seconds"][0] >= 3.0


def test_what_lies_on_a_device_is_read_after_the_probes(tmp_path: Path) -> None:
    OnDevice.reads = 0
    with recorder(tmp_path, probes=[Counting]) as rec:
        for _ in range(5):
            with rec.step(tokens=8):
                pass
            rec.loss(OnDevice())
    found = read(rec.written)
    assert found["notes"]["counting"] == ["0 reads so far"]
    assert found["measurement"]["loss"]["last"] == 2.0


def test_an_integration_states_what_the_caller_may_overrule(tmp_path: Path) -> None:
    with recorder(tmp_path) as rec:
        door = rec.stated_by("some-trainer")
        door.put("batch.micro_batch", 4)
        door.put("batch.accumulation", 2)
        rec.state("batch.accumulation", 8)
        door.fault("a hook failed")
    found = read(rec.written)
    assert (found["batch"]["micro_batch"], found["batch"]["accumulation"]) == (4, 8)
    assert "some-trainer: a hook failed" in found["notes"]["recorder"]


def test_a_figure_of_memory_that_does_not_exist_is_a_note(tmp_path: Path) -> None:
    with recorder(tmp_path) as rec:
        given: dict[str, Any] = {"chip": 0, "peak_byts": 4}
        rec.memory("steady", **given)
    found = read(rec.written)
    assert "memory" not in found
    assert "a row of memory has no peak_byts" in found["notes"]["recorder"][0]


def test_a_wheel_under_another_spelling_is_not_missing(tmp_path: Path) -> None:
    with recorder(tmp_path, lane="cpu-torch-xla") as rec:
        assert "wheels.torch_xla" in {item.path for item in rec.missing()}
        rec.state("wheels.torch-xla", "2.9.0")
        assert "wheels.torch_xla" not in {item.path for item in rec.missing()}
