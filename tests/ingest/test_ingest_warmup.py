"""Where the warm-up ends: a stated window decides, else the files, else two steps that are recorded as a default."""

from __future__ import annotations

from pathlib import Path

from ingest_evidence import at, file, ingested, stepping, told
from late_compiles import late
from receipts.ingest.reading import CompileSpan, Reading, Report

AFTER = "compile.compiles_after_warmup"
TRANSFERS = "path.witnessed.host_transfers_per_step"
WINDOW = "measurement.window"


def compiling(*steps: int, of: int = 20, source: str = "pt-xla-debug") -> Reading:
    """A log that shows a compile in each of some steps."""
    made = Reading(source, records=1)
    made.compile.compiles, made.compile.steps = len(steps), of
    made.compile.spans = [CompileSpan(1, step, step + 1) for step in steps]
    return made


def reporting(*reports: Report) -> Reading:
    """Reports of a process's counters."""
    made = Reading("torch-xla-metrics", records=1)
    made.reports = list(reports)
    made.host_transfers, made.steps_covered = reports[-1].reads, reports[-1].steps
    return made


def test_a_stated_window_decides_over_reports_and_phases(tmp_path: Path) -> None:
    reports = reporting(Report(5, 2), Report(20, 3))
    assert late(compiling(0, 1, 7), reports, window=8) == 0
    assert late(compiling(0, 1, 7), reports, window=7) == 1
    phases = Reading("jax-monitoring", records=1)
    phases.compile.after_warmup = 1
    assert late(phases, compiling(0, 1, 7), window=8) == 0


def test_a_report_before_and_one_after_tell_the_warm_up(tmp_path: Path) -> None:
    found = ingested(file(tmp_path, compiling(0, 1, 4), reporting(Report(5, 3), Report(20, 3))))
    assert at(found, AFTER) == 0
    assert at(found, f"{WINDOW}.warmup_steps") == 5
    assert at(found, f"{WINDOW}.stated") is None


def test_the_phases_of_a_file_decide_over_the_default() -> None:
    phases = Reading("jax-monitoring", records=1)
    phases.compile.after_warmup = 0
    assert late(phases, compiling(0, 1, 12)) == 0


def test_two_steps_are_a_default_and_recorded_as_one(tmp_path: Path) -> None:
    found = ingested(file(tmp_path, stepping([5.0, *[1.0] * 19]), compiling(0, 1)))
    assert at(found, f"{WINDOW}.warmup_steps") == 2
    assert at(found, f"{WINDOW}.stated") == "default"
    assert at(found, f"{WINDOW}.start") is None
    assert at(found, AFTER) == 0


def test_nothing_is_put_beside_a_window_that_somebody_states(tmp_path: Path) -> None:
    found = ingested(file(tmp_path, stepping([5.0, *[1.0] * 19]), compiling(0, 1)), measurement__window__start=4)
    assert at(found, f"{WINDOW}.warmup_steps") is None
    assert at(found, f"{WINDOW}.stated") is None


def test_a_compile_close_behind_a_default_is_not_shown_to_be_late(tmp_path: Path) -> None:
    found = ingested(file(tmp_path, compiling(0, 1, 4)))
    assert at(found, AFTER) is None
    assert "may lie after the warm-up" in told(found)
    assert late(compiling(0, 1, 4), window=2) == 1


def test_a_compile_far_behind_a_default_is_late() -> None:
    assert late(compiling(0, 1, 16)) == 1


def test_a_compile_in_most_steps_is_late_wherever_the_warm_up_ends() -> None:
    assert late(compiling(*range(6), of=6)) == 4


def test_a_compile_behind_a_read_at_the_end_of_reports_has_no_place() -> None:
    assert late(reporting(Report(5, 2, 0), Report(20, 3, 1))) is None
    assert late(reporting(Report(5, 2, 0), Report(20, 3, 0))) == 1


def test_reports_cannot_place_what_compiled_before_a_later_window() -> None:
    assert late(reporting(Report(5, 2, 0), Report(20, 3, 0)), window=10) is None


def test_sources_that_contradict_each_other_leave_the_compiles_out(tmp_path: Path) -> None:
    found = ingested(file(tmp_path, compiling(0, 1, 16), reporting(Report(5, 2, 0), Report(20, 2, 0))))
    assert at(found, AFTER) is None
    assert [item.path for item in found.contradictions] == [AFTER]


def test_a_few_reads_of_a_whole_process_may_be_those_of_its_end(tmp_path: Path) -> None:
    found = ingested(file(tmp_path, reporting(Report(5, 2, 0), Report(20, 2, 4))))
    assert at(found, TRANSFERS) is None
    assert "4 reads by the host in 20 steps" in told(found)


def test_a_read_in_every_step_is_one_of_the_steps(tmp_path: Path) -> None:
    assert at(ingested(file(tmp_path, reporting(Report(20, 2, 21)))), TRANSFERS) == 1.05


def test_reads_between_reports_of_steps_are_of_those_steps(tmp_path: Path) -> None:
    reports = reporting(Report(5, 2, 1), Report(10, 2, 2), Report(15, 2, 3), Report(20, 2, 7))
    assert at(ingested(file(tmp_path, reports)), TRANSFERS) == 0.2


def test_the_order_of_a_log_places_what_totals_cannot(tmp_path: Path) -> None:
    log = compiling(0, 1)
    log.host_transfers, log.steps_covered = 0, 20
    found = ingested(file(tmp_path, log, reporting(Report(20, 2, 4))))
    assert at(found, TRANSFERS) == 0.0
