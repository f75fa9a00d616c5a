"""When a launch failed, as the steps tell that its log prints before the failure."""

from __future__ import annotations

import gzip
from bisect import bisect_left
from collections.abc import Callable
from pathlib import Path

import pytest

from ingest_evidence import at, file, ingested, stepping
from receipts.ingest.assembly import Ingested, assemble
from receipts.ingest.draft import Options
from receipts.ingest.evidence import read
from receipts.ingest.reading import AllocationFailure, Place, Reading

pytestmark = pytest.mark.slow


def _failing(line: int = 9, phase: str = "unknown", step: int | None = None) -> Reading:
    made = Reading("oom", records=1)
    made.failures.append(
        AllocationFailure(Place(line), True, "capacity", phase, message="CUDA out of memory", step=step)
    )
    return made


def _ended(folder: Path, steps: Reading, failing: Reading | None = None) -> tuple[str, int | None]:
    found = ingested(file(folder, steps, failing or _failing()))
    return at(found, "failure.phase"), at(found, "failure.step")


@pytest.mark.parametrize("first", [0, 1])
def test_behind_one_step_it_is_the_first_window_and_behind_two_it_is_steady(tmp_path: Path, first: int) -> None:
    assert _ended(tmp_path, stepping([1.0], first=first)) == ("first_window", first + 1)
    assert _ended(tmp_path, stepping([1.0, 1.0], first=first)) == ("steady", first + 2)
    assert _ended(tmp_path, stepping([1.0] * 40, first=first)) == ("steady", first + 40)


def test_a_record_of_several_steps_is_steady_and_leaves_the_step_open(tmp_path: Path) -> None:
    averages = stepping([1.0], first=10, every=10)
    averages.steps.interval = 10
    assert _ended(tmp_path, averages) == ("steady", None)


def test_one_record_far_from_the_start_leaves_the_phase_open(tmp_path: Path) -> None:
    assert _ended(tmp_path, stepping([1.0], first=5001)) == ("unknown", None)
    begun = ingested(file(tmp_path, stepping([1.0], first=5001), _failing()), run__start_step=5000)
    assert at(begun, "failure.phase") == "first_window"


def test_a_source_that_prints_its_first_step_alone_leaves_the_phase_open(tmp_path: Path) -> None:
    assert _ended(tmp_path, stepping([1.0], "torchtitan")) == ("unknown", None)
    assert _ended(tmp_path, stepping([1.0, 1.0], "torchtitan"))[0] == "steady"


def test_what_the_failure_says_itself_stays(tmp_path: Path) -> None:
    assert _ended(tmp_path, stepping([1.0, 1.0]), _failing(phase="compile")) == ("compile", 3)
    assert _ended(tmp_path, stepping([1.0, 1.0]), _failing(step=7)) == ("steady", 7)


def test_without_steps_in_its_own_file_nothing_is_told(tmp_path: Path) -> None:
    log = file(tmp_path, stepping([1.0, 1.0]), name="steps.log")
    other = file(tmp_path, _failing(), name="stderr.log")
    assert at(ingested(log, other), "failure.phase") == "unknown"


def _real(cases: Path, folder: Path, log: str, oom: str, steps: int) -> Ingested:
    """A real log up to that many steps, and the real message of a failure behind it."""
    lines = (cases / log).read_text(encoding="utf-8").splitlines(keepends=True)
    path = folder / "run.log"

    def has_steps(end: int) -> bool:
        path.write_text("".join(lines[:end]), encoding="utf-8")
        return max((len(reading.steps) for reading in read(path).readings), default=0) >= steps

    end = bisect_left(range(len(lines)), True, key=has_steps)
    path.write_text("".join(lines[:end]), encoding="utf-8")
    with path.open("a", encoding="utf-8") as stream:
        stream.write("\n" + (cases / oom).read_text(encoding="utf-8"))
    return assemble([read(path)], Options(lane="nvidia-megatron"))


@pytest.mark.parametrize(("steps", "phase"), [(1, "first_window"), (2, "steady"), (3, "steady")])
@pytest.mark.parametrize(
    ("log", "oom"),
    [
        ("logs/nvidia/megatron/01-v2021-fp16-overflow-argsdump.log", "logs/nvidia/oom/06-format-c-torch25plus.log"),
        ("logs/nvidia/nemo/01-nemo2-nemorun-default0-prefix.log", "logs/nvidia/oom/06-format-c-torch25plus.log"),
        ("logs/nvidia/nanotron/01-2024-humanformat-memory-stage-switch.log", "logs/nvidia/oom/10-hip-wording.log"),
        ("logs/xla/maxtext/01-v5p8-deepseek2-16b-steps.log", "logs/xla/oom/45-gpu-a100-sharding.log"),
    ],
)
def test_real_logs_that_end_in_a_real_failure(
    cases: Path, tmp_path: Path, log: str, oom: str, steps: int, phase: str
) -> None:
    found = _real(cases, tmp_path, log, oom, steps)
    assert at(found, "run.outcome") == "oom"
    assert at(found, "failure.phase") == phase


_LAUNCHER = """Traceback (most recent call last):
  File "torchrun", line 8, in <module>
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
train.py FAILED
Root Cause (first observed failure):
[0]:
  rank      : 0 (local_rank: 0)
  exitcode  : 3 (pid: 611)
  traceback : Traceback (most recent call last):
    File "train.py", line 12, in main
      step()
  RuntimeError: Connection closed by peer

============================================================
"""


def test_the_error_of_the_rank_that_failed_first_stands_for_torchruns_own(tmp_path: Path) -> None:
    ranks = "".join(
        f"[rank{rank}]: Traceback (most recent call last):\n[rank{rank}]: RuntimeError: {error}\n"
        for rank, error in ((1, "tokens.bin ends early"), (0, "Connection closed by peer"))
    )
    report = "".join(f"[{at}]:\n  rank      : {rank} (local_rank: {rank})\n" for at, rank in ((1, 0), (0, 1)))
    launcher = f"Traceback (most recent call last):\ntorch.elastic.ChildFailedError: \n{report}"
    found = ingested(file(tmp_path, name="stderr.txt", text=ranks + launcher))
    assert at(found, "failure.message") == "RuntimeError: tokens.bin ends early"


def test_a_crash_that_torchrun_reports_is_one(tmp_path: Path) -> None:
    found = ingested(
        file(tmp_path, Reading("torchtitan", records=1), name="stdout.txt"),
        file(tmp_path, name="stderr.txt", text=_LAUNCHER),
    )
    assert at(found, "run.outcome") == "crash"
    assert at(found, "run.exit_code") == 3
    assert at(found, "failure.message") == "RuntimeError: Connection closed by peer"
    assert {str(item.where) for item in found.leaves if item.path == "run.outcome"} == {"stderr.txt"}


def test_an_attempt_that_another_one_outran_is_not_the_end(tmp_path: Path) -> None:
    text = 'Traceback (most recent call last):\n  File "a.py", line 1, in <module>\nRuntimeError: lost\n'
    early = file(tmp_path, stepping([1.0] * 4), name="first.log", text=f"2026-03-02 09:00:00 begin\n{text}")
    later = file(tmp_path, stepping([1.0] * 20, first=5), name="second.log", text="2026-03-02 10:00:00 begin\n")
    assert at(ingested(early, later), "run.outcome") == "unknown"
    assert at(ingested(early), "run.outcome") == "crash"


@pytest.mark.parametrize(
    ("error", "outcome"),
    [
        ("RuntimeError: [gloo/transport/tcp/buffer.cc:9] Timed out waiting 1800000ms for recv operation", "hang"),
        ("torch.distributed.elastic.multiprocessing.api.SignalException: Process 17 got signal: 15", "preempted"),
        ("torch.distributed.elastic.multiprocessing.api.SignalException: Process 17 got signal: 11", "crash"),
    ],
)
def test_an_error_may_say_that_ranks_waited_or_that_the_launcher_was_told_to_stop(
    tmp_path: Path, error: str, outcome: str
) -> None:
    text = f'Traceback (most recent call last):\n  File "train.py", line 7, in <module>\n{error}\n'
    assert at(ingested(file(tmp_path, stepping([1.0] * 4), text=text)), "run.outcome") == outcome


def test_a_rank_that_a_signal_ended_stands_for_torchruns_own_error(tmp_path: Path) -> None:
    ranks = "".join(
        f"[{at}]:\n  rank      : {rank} (local_rank: {rank})\n  exitcode  : -{code} (pid: 9)  ({name})\n"
        f"  traceback : Signal {code} ({name}) received by PID 9\n"
        for at, rank, code, name in ((1, 1, 15, "SIGTERM"), (0, 0, 6, "SIGABRT"))
    )
    launcher = f"Traceback (most recent call last):\ntorch.elastic.ChildFailedError: \n{ranks}"
    found = ingested(file(tmp_path, name="stderr.txt", text=launcher))
    assert at(found, "failure.message") == "Signal 6 (SIGABRT) received by PID 9"
    assert at(found, "run.outcome") == "crash"


def test_records_without_steps_behind_a_failure_show_that_the_run_went_on(tmp_path: Path) -> None:
    records = "{'loss': 2.5, 'learning_rate': 1e-05, 'epoch': 0.5}\n" * 3
    errors = "RuntimeError: CUDA error: misaligned address\n", "CUDA out of memory. Tried to allocate 2.00 GiB.\n"
    for error in errors:
        failed = f'{records}Traceback (most recent call last):\n  File "train.py", line 3, in <module>\n{error}'
        for text, went_on in ((failed, False), (failed + records, True)):
            (log := tmp_path / "run.log").write_text(text, encoding="utf-8")
            assert (at(assemble([read(log)], Options()), "run.outcome") == "unknown") is went_on


def test_no_file_is_named_for_an_end_that_none_shows(tmp_path: Path) -> None:
    found = ingested(file(tmp_path, Reading("megatron", records=1)))
    assert {str(item.where) for item in found.leaves if item.path == "run.outcome"} == {"ingest"}


_STEP = (
    " [2026-09-01 10:00:0{0}] iteration        {0}/      3 | consumed samples:           32 | elapsed time per "
    "iteration (ms): 2210.0 | global batch size:    32 | lm loss: 9.0E+00 | grad norm: 1.2 |\n"
)
_STEPS = _STEP.format(1) + _STEP.format(2)
_LAST_WORDS = {
    "hang": "[rank3]:[E901 ProcessGroupNCCL.cpp:632] [Rank 3] Watchdog caught collective operation timeout: Work(1)\n",
    "preempted": "slurmstepd: error: *** STEP 8.0 ON n1 CANCELLED AT 2026-09-01T10:10:00 DUE TO PREEMPTION ***\n",
    "crash": "  traceback : Signal 9 (SIGKILL) received by PID 17\n",
}


@pytest.mark.parametrize(
    "words",
    [
        "W0901 10:00:09.123 17 api.py:741] Received Signals.SIGTERM death signal, shutting down",
        "[exiting program after receiving SIGTERM.] datetime: 2026-09-01 10:00:09",
        "[rank: 0] Received SIGTERM: 15",
        "[NeMo I 2026-09-01 10:00:09 preemption:67] Preemption detected, saving checkpoint and exiting",
        "*** SIGTERM received by PID 9 (TID 9) on cpu 3 from PID 1; stack trace: ***",
    ],
)
def test_a_launch_that_was_told_to_stop_was_preempted(tmp_path: Path, words: str) -> None:
    log = tmp_path / "run.log"
    log.write_text(f"{_STEPS}{words}\n")
    assert at(assemble([read(log)], Options()), "run.outcome") == "preempted"


@pytest.mark.parametrize("outcome", _LAST_WORDS)
def test_the_last_words_of_a_log_tell_how_it_ended_without_an_error(tmp_path: Path, outcome: str) -> None:
    log = tmp_path / "run.log"
    log.write_text(_STEPS + _LAST_WORDS[outcome] + "Sending process 14 closing signal SIGTERM\n")
    found = assemble([read(log)], Options())
    assert at(found, "run.outcome") == outcome
    assert at(found, "failure.message") == _LAST_WORDS[outcome].strip()


@pytest.mark.parametrize(
    "words",
    [
        "E0901 10:00:09.123 17 torch/distributed/elastic/api.py:874] failed (exitcode: -11) local_rank: 0 (pid: 18)",
        "[2026-09-01 10:00:09,123] [ERROR] [launch.py:321:sigkill_handler] exits with return code = 1",
        "train.sh: line 9:    18 Segmentation fault      (core dumped) python train.py",
        "/bin/bash: line 1: 12345 Killed                  torchrun train.py",
        "/usr/bin/bash: line 1:  4321 Aborted",
        "srun: error: n1: task 0: Exited with exit code 1",
        "[Rank 1] NCCL watchdog thread terminated with exception: CUDA error: an illegal memory access was encountered",
        "terminate called after throwing an instance of 'c10::Error'",
        "[CUDA ERROR] at file llmc/encoder.cuh:155:\nan illegal memory access was encountered",
        "[cuBLAS ERROR]: 14 llmc/matmul.cuh 230",
        "mpirun detected that one or more processes exited with non-zero status, thus causing",
        "Segmentation fault (core dumped)",
        "MPI_ABORT was invoked on rank 3 in communicator MPI_COMM_WORLD",
        "[1]    12345 segmentation fault  python train.py",
        "make: *** [Makefile:12: train] Error 1",
        "NCCL error in: ProcessGroupNCCL.cpp:1269, unhandled cuda error, NCCL version 2.14.3",
        "srun: error: Node failure on n7",
        "Fatal Python error: Aborted",
        "command terminated with exit code 1",
        "free(): invalid pointer",
        "*** SIGSEGV received by PID 9 (TID 11) on cpu 3 from PID 9; stack trace: ***",
        "F0901 10:00:09.123456 17 client.h:80] Terminating process because the JAX distributed service detected fatal "
        "errors. This most likely indicates that another task died; see the other task logs for more details.",
        "F0901 10:00:09.123456 17 a.h:77] Terminating process because the coordinator detected missing heartbeats.",
        "*** Check failure stack trace: ***",
    ],
)
def test_a_process_that_a_launcher_reports_as_failed_crashed(tmp_path: Path, words: str) -> None:
    log = tmp_path / "run.log"
    log.write_text(f"{_STEPS} 20%|██  | 2/10\r{words}\n")
    found = assemble([read(log)], Options())
    assert (at(found, "run.outcome"), at(found, "failure.message").split()) == ("crash", words.split())


@pytest.mark.parametrize(
    "words",
    [
        "[Rank 0] Terminating the process after attempting to dump debug info, due to ProcessGroupNCCL watchdog hang.",
        "ProcessGroupNCCL's watchdog got stuck for 480 seconds without making progress in monitoring collectives.",
    ],
)
def test_a_watchdog_that_is_stuck_is_a_hang(tmp_path: Path, words: str) -> None:
    log = tmp_path / "run.log"
    log.write_text(f"{_STEPS}{words}\n")
    assert at(assemble([read(log)], Options()), "run.outcome") == "hang"


@pytest.mark.parametrize("pack", [gzip.compress, lambda raw: raw.decode().encode("utf-16")], ids=["gzip", "UTF-16"])
def test_a_packed_log_that_ends_in_an_error_crashed(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    made = file(tmp_path, stepping([1.0]), name="run.log")
    made.path.write_bytes(pack(b'Traceback (most recent call last):\n  File "t.py", line 3\nValueError: bad batch\n'))
    assert at(ingested(made), "run.outcome") == "crash"


def test_a_cuda_error_without_its_traceback_stands_above_what_torch_advises(tmp_path: Path) -> None:
    log = tmp_path / "run.log"
    error = "RuntimeError: CUDA error: an illegal memory access was encountered"
    log.write_text(f"{_STEPS}{error}\nFor debugging consider passing CUDA_LAUNCH_BLOCKING=1\n")
    found = assemble([read(log)], Options())
    assert (at(found, "run.outcome"), at(found, "failure.message")) == ("crash", error)


_RAISED = (
    "torch._dynamo.exc.FailOnRecompileLimitHit: recompile_limit reached with one_graph=True.",
    "[rank3]: jaxlib.xla_extension.XlaRuntimeError: INTERNAL: Core halted unexpectedly: TPU:0",
    "ValueError: operands have other shapes",
    "KeyboardInterrupt",
)


@pytest.mark.parametrize("error", _RAISED)
@pytest.mark.parametrize("frames", ["", 'Traceback (most recent call last):\n  File "train.py", line 8, in <module>\n'])
def test_an_error_at_the_end_is_a_crash_with_and_without_its_traceback(tmp_path: Path, error: str, frames: str) -> None:
    log = tmp_path / "run.log"
    log.write_text(f"{_STEPS}{frames}{error}\n")
    found = assemble([read(log)], Options())
    assert at(found, "run.outcome") == "crash"
    assert at(found, "failure.message") == error.removeprefix("[rank3]: " if frames else "")


@pytest.mark.parametrize(
    "error",
    [
        "FloatingPointError: invalid value (nan) encountered in jit(train_step)",
        "RuntimeError: Function 'MulBackward0' returned nan values in its 0th output.",
        "ValueError: Rank 3, node gpu-7, iteration 12: Unexpected result nan (message='found NaN in the loss')",
    ],
)
def test_an_error_for_a_figure_that_is_no_number_is_a_divergence(tmp_path: Path, error: str) -> None:
    log = tmp_path / "run.log"
    log.write_text(f"{_STEPS}{error}\n")
    assert at(assemble([read(log)], Options()), "run.outcome") == "nan"


@pytest.mark.parametrize(
    "last",
    [
        "MeanSquaredError: 0.125",
        "model.Layers: 12 blocks",
        "wandb: Error while uploading a file",
        "Exception ignored in: <function Pool.__del__>\nAttributeError: 'NoneType' object has no attribute 'close'",
    ],
)
def test_what_only_looks_like_an_error_at_the_end_is_none(tmp_path: Path, last: str) -> None:
    log = tmp_path / "run.log"
    log.write_text(f"{_STEPS}{last}\n")
    assert at(assemble([read(log)], Options()), "run.outcome") == "unknown"


@pytest.mark.parametrize(
    ("words", "outcome"),
    [
        ('Traceback (most recent call last):\n  File "train.py", line 8, in <module>\n    main()', "crash"),
        ("jaxlib: Execution of replica 0 failed: INTERNAL: stream did not finish", "crash"),
        ("ValueError: retried and passed\ntraining is done", "ok"),
    ],
)
def test_an_end_is_read_from_what_stands_last(tmp_path: Path, words: str, outcome: str) -> None:
    log = tmp_path / "run.log"
    log.write_text(f"{_STEPS}{words}\n")
    assert at(assemble([read(log)], Options()), "run.outcome") == outcome


@pytest.mark.parametrize("after", [_STEP.format(3), "[after training is done] datetime: 2026-09-01 10:01:00\n"])
def test_words_before_a_later_step_or_in_a_run_that_ended_well_end_nothing(tmp_path: Path, after: str) -> None:
    log = tmp_path / "run.log"
    log.write_text(_STEPS + _LAST_WORDS["preempted"] + after)
    assert at(assemble([read(log)], Options()), "run.outcome") == "ok"
