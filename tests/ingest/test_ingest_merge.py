"""What several files say of one launch: configuration, path, memory, compiling, ending, identity."""

from __future__ import annotations

import gzip
import os
from datetime import datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from ingest_evidence import at, file, ingested, reading, stepping, told
from receipts.base.errors import InputError
from receipts.ingest.clock import first_stamp, stamp
from receipts.ingest.evidence import FileEvidence
from receipts.ingest.leaves import read_settings
from receipts.ingest.reading import AllocationFailure, MemoryRow, Place, Reading, Remark, Report


def test_a_leaf_comes_with_its_file_and_line(tmp_path: Path) -> None:
    found = ingested(file(tmp_path, reading(hardware__chips=8)))
    (item,) = [item for item in found.leaves if item.path == "hardware.chips"]
    assert (item.value, str(item.where)) == (8, "run.log:1")


def test_two_sources_that_differ_leave_the_leaf_unstated(tmp_path: Path) -> None:
    a = file(tmp_path, reading(batch__micro_batch=2), name="a.log")
    b = file(tmp_path, reading(batch__micro_batch=4), name="b.log")
    found = ingested(a, b)
    assert at(found, "batch.micro_batch") is None
    (item,) = found.contradictions
    assert item.path == "batch.micro_batch"
    assert "a.log:1 says 2" in item.what
    assert "b.log:1 says 4" in item.what
    assert not item.stands


def test_what_a_program_printed_stands_above_its_command_line(tmp_path: Path) -> None:
    asked = file(tmp_path, reading("command-line", parallelism__tensor=4), name="run.sh")
    found = ingested(asked, file(tmp_path, reading(parallelism__tensor=2)))
    assert at(found, "parallelism.tensor") == 2
    (item,) = found.contradictions
    assert item.stands == "2"


def test_a_file_that_says_two_things_of_a_leaf_says_none(tmp_path: Path) -> None:
    torn = reading(parallelism__tensor=2)
    torn.state("parallelism.tensor", 4, line=90)
    found = ingested(file(tmp_path, torn))
    assert at(found, "parallelism.tensor") is None
    assert len(found.contradictions) == 1


def test_a_weaker_source_that_contradicts_itself_tears_nothing(tmp_path: Path) -> None:
    asked = reading("command-line", parallelism__tensor=2)
    asked.state("parallelism.tensor", 4, line=9)
    found = ingested(file(tmp_path, asked, name="run.sh"), file(tmp_path, reading(parallelism__tensor=8)))
    assert at(found, "parallelism.tensor") == 8
    (item,) = found.contradictions
    assert item.stands == "8"
    assert item.what == "run.log:1 says 8; run.sh:1 says 2; run.sh:9 says 4"


def test_a_file_that_repeats_a_value_in_fewer_digits_says_one_thing(tmp_path: Path) -> None:
    twice = reading(numerics__learning_rate=0.0003141592)
    twice.state("numerics.learning_rate", 0.000314, line=7)
    found = ingested(file(tmp_path, twice))
    assert at(found, "numerics.learning_rate") == 0.0003141592
    assert not found.contradictions


def test_a_million_values_of_a_leaf_cost_a_few(tmp_path: Path) -> None:
    torn = reading(parallelism__tensor=1)
    for tensor in range(2, 1000):
        torn.state("parallelism.tensor", tensor, line=tensor)
    (item,) = ingested(file(tmp_path, torn)).contradictions
    assert item.what == "; ".join(f"run.log:{tensor} says {tensor}" for tensor in range(1, 5))
    assert len(torn.others["parallelism.tensor"]) == 3


def test_the_bytes_of_two_programs_are_those_of_one_of_them(tmp_path: Path) -> None:
    programs = []
    for name, sizes in (("a.txt", (10, 1, 900)), ("b.txt", (800, 700, 5))):
        program = Reading("xla-memory", records=1)
        program.compile.argument_bytes, program.compile.output_bytes, program.compile.temp_bytes = sizes
        programs.append(file(tmp_path, program, name=name))
    found = ingested(*programs)
    assert [at(found, f"compile.{name}_bytes") for name in ("argument", "output", "temp")] == [800, 700, 5]
    bare = Reading("xla-memory", records=1)
    bare.compile.argument_bytes = 9000
    found = ingested(*programs, file(tmp_path, bare, name="c.txt"))
    assert [at(found, f"compile.{name}_bytes") for name in ("argument", "output", "temp")] == [9000, None, None]


def test_the_words_of_a_value_are_those_of_the_place_that_gave_it(tmp_path: Path) -> None:
    one = reading(model__parameters_total=8_000_000_000, model__parameters_total_stated="8B")
    other = reading(model__parameters_total=8_000_000_000, model__parameters_total_stated="8.0e9")
    found = ingested(file(tmp_path, one, name="a.log"), file(tmp_path, other, name="b.log"))
    assert at(found, "model.parameters_total_stated") == "8B"
    assert not found.contradictions


def test_the_words_of_a_start_are_those_of_the_earliest(tmp_path: Path) -> None:
    late = reading(run__started="2026-03-02T10:00:00+01:00", run__started_stated="ten o'clock")
    early, end = reading(run__started="2026-03-02T08:30:00Z"), reading(run__finished="2026-03-02T09:00:00Z")
    later = reading(run__finished="2026-03-02T12:00:00+01:00")
    found = ingested(*(file(tmp_path, item, name=f"{at}.log") for at, item in enumerate((late, early, end, later))))
    assert at(found, "run.started") == "2026-03-02T08:30:00Z"
    assert at(found, "run.started_stated") is None
    assert at(found, "run.finished") == "2026-03-02T12:00:00+01:00"


def test_spellings_of_one_value_do_not_contradict(tmp_path: Path) -> None:
    a = file(tmp_path, reading(hardware__accelerator="NVIDIA H200", numerics__learning_rate=3e-4), name="a.log")
    b = file(tmp_path, reading(hardware__accelerator="h200-sxm", numerics__learning_rate=0.0003), name="b.log")
    assert not ingested(a, b).contradictions


def test_regions_that_a_trace_numbers_are_those_that_a_log_names(tmp_path: Path) -> None:
    named = file(tmp_path, reading(compile__regions=["model.forward"]), name="a")
    numbered = file(tmp_path, reading(compile__regions=["compiled region 0/0"]), name="b")
    assert not ingested(named, numbered).contradictions
    other = file(tmp_path, reading(compile__regions=["loss.forward"]), name="c")
    assert ingested(named, other).contradictions


def test_ranks_of_several_hosts_name_the_first(tmp_path: Path) -> None:
    found = ingested(*(file(tmp_path, reading(run__host=f"n{i}"), name=f"{i}.log") for i in range(3)))
    assert at(found, "run.host") == "n0"
    assert not found.contradictions


def monitor(clock: float, watts: float, heat: float, reasons: list[str] | None, spread: float = 0.0) -> Reading:
    health = {"clock_mhz": clock, "power_watts": watts, "temperature_celsius": heat, "clock_spread": spread}
    stated = health if reasons is None else health | {"throttle_reasons": reasons}
    return reading("nvidia-smi", **{f"measurement__health__{name}": value for name, value in stated.items()})


def test_monitors_of_two_hosts_are_read_together(tmp_path: Path) -> None:
    hosts = monitor(1980.0, 690.0, 61.0, []), monitor(1485.0, 610.0, 88.0, ["hw_thermal_slowdown"], 0.02)
    found = ingested(*(file(tmp_path, item, name=f"n{rank}.csv") for rank, item in enumerate(hosts)))
    assert at(found, "measurement.health") == {
        "clock_mhz": 1732.5,
        "power_watts": 650.0,
        "temperature_celsius": 88.0,
        "throttle_reasons": ["hw_thermal_slowdown"],
        "clock_spread": 0.25,
    }
    assert not found.contradictions


def test_the_spread_of_one_hosts_clocks_is_not_lost_beside_another(tmp_path: Path) -> None:
    hosts = monitor(1980.0, 690.0, 61.0, [], 0.3), monitor(1980.0, 690.0, 61.0, [])
    found = ingested(*(file(tmp_path, item, name=f"n{rank}.csv") for rank, item in enumerate(hosts)))
    assert at(found, "measurement.health.clock_spread") == 0.3


def test_clocks_of_two_times_are_no_spread_of_chips(tmp_path: Path) -> None:
    parts = monitor(1980.0, 690.0, 61.0, []), monitor(345.0, 90.0, 40.0, [])
    texts = (f"2026/03/02 {hour}:00:00.123, 0\n2026/03/02 {hour}:59:00.123, 0\n" for hour in ("09", "10"))
    files = [
        file(tmp_path, item, name=f"{at}.csv", text=text)
        for at, (item, text) in enumerate(zip(parts, texts, strict=True))
    ]
    assert at(ingested(*files), "measurement.health.clock_spread") == 0.0


def test_a_host_that_was_not_asked_may_have_throttled(tmp_path: Path) -> None:
    hosts = monitor(1980.0, 690.0, 61.0, []), monitor(1980.0, 690.0, 61.0, None)
    found = ingested(*(file(tmp_path, item, name=f"n{rank}.csv") for rank, item in enumerate(hosts)))
    assert at(found, "measurement.health.throttle_reasons") is None
    assert "n1.csv shows no throttle reasons" in told(found)
    slow = monitor(1980.0, 690.0, 61.0, ["sw_power_cap"]), hosts[1]
    found = ingested(*(file(tmp_path, item, name=f"n{rank}.csv") for rank, item in enumerate(slow)))
    assert at(found, "measurement.health.throttle_reasons") == ["sw_power_cap"]


def test_a_setting_stands_above_every_file_and_is_noted(tmp_path: Path) -> None:
    found = ingested(file(tmp_path, reading(hardware__chips=8)), hardware__chips=16)
    assert at(found, "hardware.chips") == 16
    assert found.tree["notes"]["ingest.stated_by_user"] == ["hardware.chips"]
    assert found.contradictions[0].stands == "16, as --set states"


def test_what_fits_no_leaf_is_told_and_left_out(tmp_path: Path) -> None:
    found = ingested(file(tmp_path, reading(hardware__chips=-1, model__hiden=3, batch__micro_batch="x" * 900)))
    assert "hardware" not in found.tree
    assert "no such leaf" in told(found)


def test_whole_numbers_that_were_printed_as_decimals_are_whole(tmp_path: Path) -> None:
    assert at(ingested(file(tmp_path, reading(model__hidden=4096.0))), "model.hidden") == 4096


def test_kernels_stand_above_the_backends_own_word(tmp_path: Path) -> None:
    log, profile = Reading("te-debug", records=1), Reading("torch-profiler", records=1)
    log.see("attention", "te_fused", "backend", 7)
    profile.see("attention", "te_unfused", "kernels")
    found = ingested(file(tmp_path, log), file(tmp_path, profile, name="trace.json"))
    assert at(found, "path.witnessed.attention") == "te_unfused"
    assert found.contradictions[0].path == "path.witnessed.attention"


def test_several_values_of_one_level_stand_together(tmp_path: Path) -> None:
    log = Reading("te-debug", records=1)
    for line, value in enumerate(("te_fused", "te_flash", "te_fused"), start=1):
        log.see("attention", value, "backend", line)
    assert at(ingested(file(tmp_path, log)), "path.witnessed.attention") == "te_fused+te_flash"


def test_an_argument_is_what_was_asked_for_and_no_witness(tmp_path: Path) -> None:
    log = Reading("megatron", records=1)
    log.see("attention", "te_flash", "intent", 3)
    found = ingested(file(tmp_path, log))
    assert at(found, "path.intended.attention") == "te_flash"
    assert at(found, "path.witnessed") is None


def test_a_wish_stands_beside_what_was_seen(tmp_path: Path) -> None:
    wish, program = Reading("stablehlo", records=1), Reading("hlo", records=1)
    wish.see("attention", "pallas_splash", "intent", 3)
    wish.see("compute_dtype", "bf16", "intent", 4)
    program.see("attention", "xla_unfused", "kernels", 9)
    program.see("compute_dtype", "fp32", "kernels", 8)
    found = ingested(file(tmp_path, wish, name="before.txt"), file(tmp_path, program, name="after.txt"))
    assert at(found, "path.intended.attention") == "pallas_splash"
    assert at(found, "numerics.compute_dtype") == "bf16"
    assert at(found, "path.witnessed.attention") == "xla_unfused"
    assert not found.contradictions


def test_a_wish_contradicts_no_setting(tmp_path: Path) -> None:
    log, program = reading(numerics__compute_dtype="bf16"), Reading("stablehlo", records=1)
    program.see("compute_dtype", "fp32", "intent")
    found = ingested(file(tmp_path, log), file(tmp_path, program, name="before.txt"))
    assert at(found, "numerics.compute_dtype") == "bf16"
    assert not found.contradictions


def test_a_library_below_a_framework_is_no_second_host(tmp_path: Path) -> None:
    log = stepping([1.0], "maxtext")
    log.see("framework", "maxtext", "backend")
    compiles = Reading("jax-compiles", records=1)
    compiles.see("framework", "jax", "kernels")
    found = ingested(file(tmp_path, log, compiles))
    assert at(found, "path.witnessed.frameworks") == ["maxtext"]


def test_two_hosts_are_both_listed_and_neither_is_the_one(tmp_path: Path) -> None:
    log = Reading("deepspeed", records=1)
    log.see("framework", "deepspeed", "backend")
    log.see("framework", "megatron-lm", "backend")
    found = ingested(file(tmp_path, log))
    assert at(found, "path.witnessed.frameworks") == ["deepspeed", "megatron-lm"]
    assert at(found, "path.witnessed.framework") is None


def test_reports_of_one_run_count_fallbacks_on_and_not_twice(tmp_path: Path) -> None:
    early, late = Reading("torch-xla-metrics", records=1), Reading("torch-xla-metrics", records=1)
    early.fallbacks, early.host_transfers, early.steps_covered, early.compile.compiles = {"aten::median": 5}, 5, 5, 2
    late.fallbacks, late.host_transfers, late.steps_covered, late.compile.compiles = {"aten::median": 20}, 20, 20, 3
    early.reports, late.reports = [Report(5, 2, 5)], [Report(20, 3, 20, programs=2)]
    found = ingested(file(tmp_path, early, name="warm.txt"), file(tmp_path, late, name="end.txt"))
    assert at(found, "path.witnessed.fallbacks") == {"aten::median": 20}
    assert at(found, "path.witnessed.host_transfers_per_step") == 1.0
    assert at(found, "compile.compiles") == 3
    assert at(found, "compile.compiles_after_warmup") == 1


def test_no_fallback_is_a_statement_and_silence_is_none(tmp_path: Path) -> None:
    whole, silent = Reading("torch-xla-metrics", records=1), Reading("torch-xla-metrics", records=1)
    whole.fallbacks = {}
    assert at(ingested(file(tmp_path, whole)), "path.witnessed.fallbacks") == {}
    assert at(ingested(file(tmp_path, silent)), "path.witnessed") is None


def rows(*items: MemoryRow) -> Reading:
    made = stepping([1.0] * 20)
    made.memory = list(items)
    return made


def test_chips_have_the_highest_peak_and_what_was_last_in_use(tmp_path: Path) -> None:
    first = MemoryRow(Place(1), 0, None, 1, bytes_used=5, peak_bytes=9)
    then = MemoryRow(Place(2), 0, None, 10, bytes_used=6, peak_bytes=30)
    last = MemoryRow(Place(3), 0, None, 20, bytes_used=4, peak_bytes=20)
    assert at(ingested(file(tmp_path, rows(first, then, last))), "memory.chips") == [
        {"chip": 0, "phase": "post_step0", "bytes_used": 5, "peak_bytes": 9, "step": 1},
        {"chip": 0, "phase": "steady", "bytes_used": 4, "peak_bytes": 30, "step": 10},
    ]


def test_a_figure_that_names_no_chip_is_that_of_the_only_chip(tmp_path: Path) -> None:
    one = rows(MemoryRow(Place(1), peak_bytes=7))
    found = ingested(file(tmp_path, one), hardware__chips=1)
    assert at(found, "memory.chips") == [{"chip": 0, "phase": "steady", "peak_bytes": 7}]


def test_a_figure_that_names_none_of_many_chips_is_given_to_none(tmp_path: Path) -> None:
    log = file(tmp_path, rows(MemoryRow(Place(1), peak_bytes=7, bytes_used=9)))
    found = ingested(log, hardware__chips=8, run__outcome="oom")
    assert at(found, "memory.chips") is None
    assert at(found, "memory.aggregate") == {"bytes": 7, "over": "unstated", "kind": "live"}


def test_memory_of_some_chips_is_not_that_of_a_launch_that_ended_well(tmp_path: Path) -> None:
    for row in (MemoryRow(Place(1), chip=0, peak_bytes=7), MemoryRow(Place(1), peak_bytes=7)):
        found = ingested(file(tmp_path, rows(row)), hardware__chips=8)
        assert at(found, "memory") is None
        assert "add the logs of every rank" in told(found)


def test_a_crash_is_not_convicted_of_the_one_figure_that_its_log_prints(tmp_path: Path) -> None:
    one = file(tmp_path, rows(MemoryRow(Place(1), peak_bytes=7)))
    assert at(ingested(one, hardware__chips=8, run__outcome="crash"), "memory") is None


def test_files_of_numbered_ranks_are_chips(tmp_path: Path) -> None:
    files = [file(tmp_path, rows(MemoryRow(Place(1), peak_bytes=rank)), name=f"rank_{rank}/out.log") for rank in (3, 7)]
    found = ingested(*files, hardware__chips=8, run__outcome="oom")
    assert [row["chip"] for row in at(found, "memory.chips")] == [3, 7]


def test_a_file_alone_is_no_rank_by_its_name(tmp_path: Path) -> None:
    one = file(tmp_path, rows(MemoryRow(Place(1), peak_bytes=7)), name="rank_3.log")
    assert at(ingested(one, hardware__chips=8), "memory.chips") is None


def failed(**more: Any) -> Reading:
    made = Reading("oom", records=1)
    made.failures.append(
        AllocationFailure(Place(9), True, "capacity", requested_bytes=1 << 30, message="CUDA out of memory", **more)
    )
    return made


def test_a_failed_allocation_is_the_outcome(tmp_path: Path) -> None:
    found = ingested(file(tmp_path, failed(chip=3)))
    assert at(found, "run.outcome") == "oom"
    assert at(found, "failure") == {
        "phase": "unknown",
        "class": "capacity",
        "requested_bytes": 1 << 30,
        "message": "CUDA out of memory",
        "chip": 3,
    }


def test_a_failure_that_the_run_outlived_is_told_and_no_outcome(tmp_path: Path) -> None:
    earlier = file(tmp_path, failed(step=4), name="worker.log")
    found = ingested(earlier, file(tmp_path, stepping([1.0] * 20)))
    assert at(found, "run.outcome") == "unknown"
    assert at(found, "failure") is None
    assert "the run went on to step 20" in told(found)


def test_a_failure_that_says_it_is_not_fatal_is_no_outcome(tmp_path: Path) -> None:
    assert at(ingested(file(tmp_path, failed(fatal=False))), "run.outcome") == "unknown"


@pytest.mark.parametrize("prefix", ["", "[rank3]: "])
def test_a_traceback_at_the_end_is_a_crash(tmp_path: Path, prefix: str) -> None:
    text = "2026-03-02 09:00:00 begin\nTraceback (most recent call last):\n  File x\nKeyError: 'loss'\n"
    text = "".join(prefix + line + "\n" for line in text.splitlines())
    found = ingested(file(tmp_path, stepping([1.0] * 3, "torchtitan"), text=text))
    assert at(found, "run.outcome") == "crash"
    assert at(found, "failure.message") == "KeyError: 'loss'"


def test_an_exception_that_was_ignored_is_no_crash(tmp_path: Path) -> None:
    text = "2026-03-02 09:00:00 x\nException ignored in: <x>\nTraceback (most recent call last):\nOSError: gone\n"
    assert at(ingested(file(tmp_path, stepping([1.0]), text=text)), "run.outcome") == "unknown"


def test_the_start_is_the_first_stamp_of_the_log_with_its_words(tmp_path: Path) -> None:
    found = ingested(file(tmp_path, stepping([1.0]), text="no stamp\n[2026-03-02 09:00:00,125] [INFO] begin\n"))
    assert at(found, "run.started") == "2026-03-02T09:00:00.125000Z"
    assert at(found, "run.started_stated") == "2026-03-02 09:00:00,125 (no zone in the log; read as UTC)"


def test_a_date_far_inside_a_line_is_no_stamp(tmp_path: Path) -> None:
    text = "x" * 120 + " data of 2020-01-01 00:00:00\n"
    assert first_stamp(file(tmp_path, text=text)) is None


@pytest.mark.parametrize(
    ("text", "time"),
    [
        ("2026-03-02T09:00:00Z go", "2026-03-02T09:00:00+00:00"),
        ("2026/03/02 09:00:00+0200 go", "2026-03-02T09:00:00+02:00"),
        ("Mon Mar  2 09:00:00 UTC 2026", "2026-03-02T09:00:00+00:00"),
    ],
)
def test_stamps_of_several_forms_are_read(text: str, time: str) -> None:
    found = stamp(text)
    assert found is not None
    assert (found.time.isoformat(), found.zoned) == (time, True)


@pytest.mark.parametrize("text", ["2026-13-40 09:00:00", "12026-03-02 09:00:00", "09:00:00", "2026-03-02"])
def test_what_is_no_time_is_no_stamp(text: str) -> None:
    assert stamp(text) is None


def dated(made: FileEvidence, date: str) -> FileEvidence:
    """The file, last written at a time in UTC."""
    seconds = datetime.fromisoformat(f"{date}+00:00").timestamp()
    os.utime(made.path, (seconds, seconds))
    return made


@pytest.mark.parametrize(("date", "year"), [("2026-03-02 10:00:00", 2026), ("2026-01-05 10:00:00", 2025)])
def test_a_stamp_without_a_year_has_the_last_one_before_the_files_date(tmp_path: Path, date: str, year: int) -> None:
    log = file(tmp_path, stepping([1.0]), text="I0302 09:00:00.100000 7 train.py:1] go\n")
    found = ingested(dated(log, date))
    assert at(found, "run.started") == f"{year}-03-02T09:00:00Z"
    assert "no year and no zone in the log" in at(found, "run.started_stated")


def test_files_that_print_no_time_start_at_the_earliest_of_their_dates(tmp_path: Path) -> None:
    log = dated(file(tmp_path, stepping([1.0]), text="go\n"), "2026-03-02 09:10:00")
    other = dated(file(tmp_path, reading(), name="config.txt", text="x\n"), "2026-03-02 09:00:00")
    found = ingested(log, other)
    assert at(found, "run.started") == "2026-03-02T09:00:00Z"
    stated = "2026-03-02 09:00:00, when config.txt was last written, the earliest of 2; no file prints a time"
    assert at(found, "run.started_stated") == stated
    assert stated in told(found)


def test_the_date_of_a_file_is_no_part_of_the_launch(tmp_path: Path) -> None:
    log = file(tmp_path, stepping([1.0]), text="go\n")
    known = {"run__host": "n1", "run__command": "train"}
    first, second = (ingested(dated(log, date), **known) for date in ("2026-03-02 09:00:00", "2026-03-03 09:00:00"))
    assert at(first, "run.launch") == at(second, "run.launch")


def test_the_launch_is_that_of_host_start_and_command_where_all_are_known(tmp_path: Path) -> None:
    known: dict[str, Any] = {"run__host": "n1", "run__command": "train", "run__started": "2026-03-02T09:00:00Z"}
    a, b = (file(tmp_path, reading(**known), name=name, text=name) for name in ("a.log", "b.log"))
    assert at(ingested(a), "run.launch") == at(ingested(a, b), "run.launch")
    bare = file(tmp_path, reading(), name="c.log")
    assert at(ingested(bare), "run.launch") != at(ingested(bare, a, run__host=""), "run.launch")


LANES = (
    SimpleNamespace(
        name="one",
        accelerators=("h200-sxm",),
        frameworks=("megatron-lm",),
        path={"runtime": ("cuda",)},
        postures=("eager",),
        compile_exceptions=(),
        not_applicable={},
        unprinted={},
        witness=("attention", "gemm"),
        couplings=(),
        evidence="kernels",
    ),
)


def test_every_file_and_source_is_evidence_with_its_digest(tmp_path: Path) -> None:
    log = Reading("te-debug", records=4)
    log.see("attention", "te_fused", "backend", 7)
    made = file(tmp_path, stepping([1.0] * 3), log)
    steps, debug = at(ingested(made), "evidence")
    assert (steps["kind"], debug["kind"], debug["level"]) == ("megatron", "te-debug", "backend")
    assert steps["sha256"] == debug["sha256"] == made.sha256
    assert "level" not in steps
    assert debug["observed"] == {"records": 4, "attention.te_fused": 1}


def test_the_same_files_give_the_same_bytes(tmp_path: Path) -> None:
    def made() -> bytes:
        return ingested(file(tmp_path, reading(hardware__chips=8), stepping([1.0] * 3))).raw

    assert made() == made()


def test_settings_are_read_as_their_leaves_want_them() -> None:
    words = ["hardware.chips=8", "run.label=8", "flags.NCCL_ALGO=Ring", "parallelism.sequence=true", 'run.tags=["a"]']
    assert read_settings(words) == {
        "hardware.chips": 8,
        "run.label": "8",
        "flags.NCCL_ALGO": "Ring",
        "parallelism.sequence": True,
        "run.tags": ["a"],
    }


def test_all_wrong_settings_are_told_at_once() -> None:
    words = ["batch.micro_btch=2", "hardware.chips=many", "nonsense", "memory.chips=[]", "run.started=noon"]
    with pytest.raises(InputError) as refused:
        read_settings(words)
    said = str(refused.value)
    assert "did you mean batch.micro_batch" in said
    assert len(refused.value.problems) == 5


@pytest.mark.parametrize("lost", [0, 9], ids=["whole", "breaks off"])
def test_a_packed_log_ends_where_it_is_whole(tmp_path: Path, lost: int) -> None:
    made = file(tmp_path, stepping([1.0]), name="run.log.gz")
    packed = gzip.compress(b"2026-03-02 09:00:00 begin\n2026-03-02 09:20:00 done\n")
    made.path.write_bytes(packed[: len(packed) - lost])
    found = ingested(made)
    assert at(found, "run.started") == "2026-03-02T09:00:00Z"
    assert at(found, "run.finished") == (None if lost else "2026-03-02T09:20:00Z")


def test_a_million_remarks_are_a_bounded_number_of_lines(tmp_path: Path) -> None:
    noisy = tuple(Remark("note", f"remark {number}", Place(number)) for number in range(100_000))
    found = ingested(file(tmp_path, stepping([1.0]), remarks=noisy))
    assert len(found.messages) == 500
    assert found.omitted > 99_000
    assert len(found.raw) < 100_000


def test_names_that_are_no_text_cost_an_entry_its_counts_alone(tmp_path: Path) -> None:
    odd = Reading("torch-xla-metrics", records=1)
    odd.counters["\ud800"] = 3
    odd.remark("note", "half a sign: \udc00")
    found = ingested(file(tmp_path, odd))
    (entry,) = at(found, "evidence")
    assert set(entry) - {"producer"} == {"kind", "sha256"}
    assert "run.log: half a sign: ?" in found.tree["notes"]["ingest.remarks"]


def test_counters_of_a_path_come_as_the_rows_that_they_are(tmp_path: Path) -> None:
    rows = [{"name": "splash", "count": 40, "expected": 40, "steps": 20, "layers": 2}]
    found = ingested(file(tmp_path, reading("path-counters", measurement__path_counters=rows)))
    assert at(found, "measurement.path_counters") == rows
