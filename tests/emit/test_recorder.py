"""What a recorder writes, and that it never raises into the job."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path
from typing import Any

import pytest

from jobs import only, read, recorder
from receipts.emit import Recorder, ending
from receipts.emit.probing import ProbeOutput
from receipts.receipt import Parsed, parse
from receipts.receipt import read as read_document
from receipts.receipt.leaves import counted_entries


def checked(path: str) -> Parsed:
    """The receipt as the engine reads it; raises where it is none."""
    return parse(read_document(path))


def test_a_function_of_the_recorder_that_the_job_replaced_is_counted_and_opens_the_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    own = Recorder.step_past

    def halved(self: Recorder, begun: int, ended: int, tokens: int | None = None) -> None:
        own(self, ended - (ended - begun) // 2, ended, tokens)

    counters = []
    for replaced in (False, True):
        if replaced:
            monkeypatch.setattr(Recorder, "step_past", halved)
        with recorder(tmp_path) as rec, rec.step(tokens=512):
            pass
        counters.append(checked(rec.written).receipt.measurement.path_counters)  # type: ignore[union-attr]  # it has one
    assert counters[0] is None
    assert [(item.count, item.expected) for item in counters[1] or ()] == [(1, 0)]


def test_a_run_becomes_a_receipt(tmp_path: Path) -> None:
    with recorder(tmp_path, context="small", warmup=2, synchronisation="none", label="a") as rec:
        rec.state("model", {"depth": 8, "hidden": 64})
        rec.state({"batch": {"micro_batch": 4}, "features": {"dropout": 0.0, "complete": True}})
        rec.path(framework="torch", attention="sdpa_flash")
        for number in range(20):
            with rec.step(tokens=512):
                pass
            rec.loss(6.0 - number / 10)
            rec.gradient_norm(lambda: 1.5)
    found = checked(rec.written).stated
    assert found["model.hidden"] == 64
    assert found["features.dropout"] == 0.0
    assert found["path.intended.attention"] == "sdpa_flash"
    assert len(found["measurement.step_durations_seconds"]) == 20
    assert all(seconds > 0 for seconds in found["measurement.step_durations_seconds"])
    assert found["measurement.tokens_per_step"] == 512
    assert found["measurement.step_flags"] == {"warmup": [0, 1]}
    assert (found["measurement.window.start"], found["measurement.window.warmup_steps"]) == (2, 2)
    assert (found["measurement.loss.first"], found["measurement.loss.last"]) == (6.0, 4.1)
    assert (found["measurement.gradient_norm.first"], found["measurement.gradient_norm.largest"]) == (1.5, 1.5)
    assert (found["run.outcome"], found["run.exit_code"], found["run.provenance"]) == ("ok", 0, "measured")
    assert not list(tmp_path.glob("*.journal"))


def test_a_receipt_counts_the_entries_of_what_is_read_whole(tmp_path: Path) -> None:
    with recorder(tmp_path, warmup=1) as rec:
        rec.state({"features": {"dropout": 0.0, "complete": True}})
        for _ in range(4):
            with rec.step():
                pass
    found = checked(rec.written)
    assert found.receipt.run.entries == counted_entries(found.receipt)
    assert found.receipt.run.entries["measurement.step_durations_seconds"] == 4
    assert found.receipt.run.entries["features"] == 2


def test_a_misspelt_leaf_is_a_note_with_the_right_name(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with recorder(tmp_path, quiet=False) as rec:
        rec.state("model.hiden", 64)
        rec.state("batch.micro_batch", "four")
        rec.state("model.family", "transformer")
    notes = read(rec.written)["notes"]["recorder"]
    assert "did you mean model.hidden" in notes[0]
    assert notes[1] == "batch.micro_batch: it must be a whole number, and is 'four' (str)"
    assert "dense, moe, hybrid" in notes[2]
    assert "did you mean model.hidden" in capsys.readouterr().err


@pytest.mark.parametrize(
    "call",
    [
        lambda rec: rec.state(None),
        lambda rec: rec.state("model.depth", object()),
        lambda rec: rec.state("measurement.stated.mfu", float("nan")),
        lambda rec: rec.state("run.outcome", "splendid"),
        lambda rec: rec.loss(lambda: 1 / 0),
        lambda rec: rec.loss("much"),
        lambda rec: rec.gradient_norm(None),
        lambda rec: rec.memory("later", device=0),
        lambda rec: rec.memory("steady"),
        lambda rec: rec.memory("steady", device=-1),
        lambda rec: rec.counter("", -1),
        lambda rec: rec.observe(kind="x", level="certain"),
        lambda rec: rec.observe(smell="good"),
        lambda rec: rec.path(smell="good"),
        lambda rec: rec.attach(object()),
        lambda rec: rec.flag("lazy"),
        lambda rec: rec.window("here"),
        lambda rec: rec.step(tokens="many"),
        lambda rec: rec.step(tokens=-3),
        lambda rec: rec.span("holiday").__enter__(),
        lambda rec: rec.failure(None),
        lambda rec: rec.note(object()),
        lambda rec: rec.step_end(),
        lambda rec: rec.state("flags", {"A": {"value": None}}),
        lambda rec: rec.state("wheels", {"torch": 2}),
        lambda rec: rec.state("notes.x", "\ud800"),
        lambda rec: rec.state("model.name", "\ud800"),
    ],
)
def test_a_wrong_call_never_raises_and_never_spoils_the_receipt(tmp_path: Path, call: Any) -> None:
    with recorder(tmp_path) as rec:
        call(rec)
        with rec.step(tokens=8):
            pass
    found = checked(rec.written)
    assert len(found.stated["measurement.step_durations_seconds"]) == 1


@pytest.mark.parametrize(
    "options",
    [
        {"kind": "fun"},
        {"warmup": -1},
        {"warmup": "ten"},
        {"tags": 5},
        {"start_step": "x"},
        {"lane": ""},
        {"label": ""},
        {"synchronisation": ""},
        {"launch": 7},
        {"journal": "/proc/nowhere"},
        {"probes": [object()]},
    ],
)
def test_a_wrong_option_never_raises_and_never_spoils_the_receipt(tmp_path: Path, options: dict[str, Any]) -> None:
    with recorder(tmp_path, **options) as rec, rec.step(tokens=8):
        pass
    assert checked(rec.written).stated["run.outcome"] == "ok"


def test_a_place_that_cannot_be_written_does_not_stop_the_job(capsys: pytest.CaptureFixture[str]) -> None:
    with Recorder("cpu-torch", out="/proc/nowhere/run.json", probes=False) as rec, rec.step(tokens=8):
        pass
    assert rec.written == ""
    assert "the receipt could not be written" in capsys.readouterr().err


def test_an_older_receipt_is_kept(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text("mine", encoding="utf-8")
    with recorder(tmp_path, launch="12345678-aaaa") as rec:
        pass
    assert (tmp_path / "run.json").read_text(encoding="utf-8") == "mine"
    assert rec.written == str(tmp_path / "run.12345678.json")


def test_spans_flag_their_steps_and_count_once(tmp_path: Path) -> None:
    with recorder(tmp_path) as rec:
        with rec.span("compile"):
            for _ in range(2):
                with rec.step():
                    pass
        with rec.step(), rec.span("checkpoint"), rec.span("eval"):
            pass
        with rec.step(), rec.span("data"):
            pass
        with rec.span("eval"):
            pass
        with rec.span("profile"):
            for _ in range(2):
                with rec.step():
                    pass
        rec.flag("recompile")
        with rec.step(flag="data"):
            pass
        with rec.step():
            pass
    measured = read(rec.written)["measurement"]
    assert measured["step_flags"] == {
        "compile": [0, 1],
        "checkpoint": [2],
        "eval": [2],
        "profile": [4, 5],
        "recompile": [6],
        "data": [6],
    }
    spent = measured["goodput"]
    steps = sum(measured["step_durations_seconds"])
    # What checkpoint and data took inside their steps is theirs, and the evaluation inside the checkpoint is none.
    assert spent["step_seconds"] < steps
    assert min(spent.values()) >= 0


def test_a_step_that_raises_and_is_caught_does_not_count(tmp_path: Path) -> None:
    with recorder(tmp_path) as rec:
        for _ in range(3):
            with pytest.raises(KeyError), rec.step():
                raise KeyError("x")
        with rec.step():
            pass
    assert len(read(rec.written)["measurement"]["step_durations_seconds"]) == 1


def test_steps_are_the_same_with_and_without_a_with_block(tmp_path: Path) -> None:
    rec = recorder(tmp_path).start()
    for _ in range(3):
        rec.step_begin()
        rec.step_end(tokens=16)
    rec.step_end()
    rec.finish()
    rec.finish()
    measured = read(rec.written)["measurement"]
    assert len(measured["step_durations_seconds"]) == 3
    assert measured["tokens_per_step"] == 16


@pytest.mark.parametrize(
    ("counts", "stated"),
    [([8, 8, 16, 16], 12), ([8] * 19 + [4], 8), ([4, 4, *[8] * 18], 8)],
    ids=["of several lengths", "a short batch at the end", "a short warm-up"],
)
def test_tokens_that_change_are_those_of_nearly_every_step_or_their_mean(
    tmp_path: Path, counts: list[int], stated: int
) -> None:
    with recorder(tmp_path) as rec:
        rec.window(2 if counts[0] == 4 else 0)
        for tokens in counts:
            with rec.step(tokens=tokens):
                pass
    found = read(rec.written)
    assert found["measurement"]["tokens_per_step"] == stated
    assert f"{counts[0]} from step 0" in found["notes"]["recorder"][0]


@pytest.mark.parametrize("journal", [True, False])
def test_every_step_of_a_long_run_is_listed(tmp_path: Path, journal: bool) -> None:
    with recorder(tmp_path, journal=journal) as rec:
        for _ in range(30_000):
            with rec.step(tokens=8):
                pass
    assert len(read(rec.written)["measurement"]["step_durations_seconds"]) == 30_000


def test_a_run_beyond_what_a_receipt_lists_keeps_its_journal(tmp_path: Path) -> None:
    with recorder(tmp_path) as rec:
        for _ in range(100_010):
            with rec.step(tokens=8):
                pass
    found = checked(rec.written).stated
    assert len(found["measurement.step_durations_seconds"]) == 100_000
    assert found["measurement.steps"] == 100_010
    assert only(tmp_path, "*.journal").stat().st_size < 4 << 20


class _Tensor:
    """A value on a device: to read it is to wait."""

    reads = 0

    def __init__(self, value: float, attached: bool = True) -> None:
        self.value = value
        self.attached = attached

    def detach(self) -> _Tensor:
        return _Tensor(self.value, attached=False)

    def __float__(self) -> float:
        _Tensor.reads += 1
        assert not self.attached
        return self.value


def test_losses_on_a_device_are_read_at_the_end_and_few_are_kept(tmp_path: Path) -> None:
    _Tensor.reads = 0
    with recorder(tmp_path) as rec:
        for number in range(1000):
            with rec.step():
                pass
            rec.loss(_Tensor(10.0 - number / 1000))
        assert _Tensor.reads == 0
        assert not any(value.attached for _, value in rec._losses.waiting)
    loss = read(rec.written)["measurement"]["loss"]
    assert (loss["first"], loss["last"]) == (10.0, 9.001)
    assert _Tensor.reads <= 70
    assert loss["steps"][-1] == 999
    assert loss["steps"] == sorted(loss["steps"])
    assert "of 1000 values of loss were not read" in read(rec.written)["notes"]["recorder"][0]


def _one_step_and_then(rec: Recorder, error: Exception) -> None:
    with rec.step():
        rec.loss(_Tensor(1.0))
    with rec.step():
        raise error


def test_losses_on_a_device_are_not_read_after_a_failure(tmp_path: Path) -> None:
    _Tensor.reads = 0
    rec = recorder(tmp_path)
    with pytest.raises(RuntimeError), rec:
        _one_step_and_then(rec, RuntimeError("the device is gone"))
    assert _Tensor.reads == 0
    assert read(rec.written)["run"]["outcome"] == "crash"


def test_one_loss_that_is_not_finite_is_never_forgotten(tmp_path: Path) -> None:
    with recorder(tmp_path) as rec:
        for number in range(1000):
            with rec.step():
                pass
            rec.loss(float("nan") if number == 501 else 2.0)
    found = read(rec.written)
    assert found["measurement"]["loss"]["finite"] is False
    assert found["run"]["outcome"] == "ok"


def test_a_run_whose_last_loss_is_not_finite_diverged(tmp_path: Path) -> None:
    with recorder(tmp_path) as rec:
        with rec.step():
            rec.loss(2.0)
        with rec.step():
            rec.loss(float("inf"))
    found = checked(rec.written).stated
    assert found["run.outcome"] == "nan"
    assert "measurement.loss.last" not in found


CUDA = (
    "CUDA out of memory. Tried to allocate 3.00 GiB. GPU 1 has a total capacity of 79.10 GiB of which 1.25 GiB is "
    "free. Including non-PyTorch memory, this process has 77.85 GiB memory in use. Of the allocated memory 75.00 GiB "
    "is allocated by PyTorch, and 512.00 MiB is reserved by PyTorch but unallocated."
)
XLA = (
    "RESOURCE_EXHAUSTED: XLA:TPU compile permanent error. Ran out of memory in memory space hbm. Used 20.12G of 15.75G"
)


@pytest.mark.parametrize(
    ("error", "outcome", "kind"),
    [
        (RuntimeError(CUDA), "oom", "capacity"),
        (RuntimeError(CUDA.replace("512.00 MiB", "4.00 GiB")), "oom", "fragmentation"),
        (RuntimeError(CUDA.replace("allocate 3.00", "allocate 300.00")), "oom", "oversized_request"),
        (ValueError(XLA), "oom", "compile_hbm"),
        (
            RuntimeError("RESOURCE_EXHAUSTED: Out of memory while trying to allocate 123456 bytes."),
            "oom",
            "runtime_alloc",
        ),
        (MemoryError("Unable to allocate 3.00 GiB for an array"), "oom", "host"),
        (FloatingPointError("overflow"), "nan", "not_oom"),
        (RuntimeError("loss is NaN at iteration 5"), "nan", "not_oom"),
        (RuntimeError("NCCL timeout"), "crash", "not_oom"),
        (ValueError("memory format"), "crash", "not_oom"),
    ],
)
def test_an_exception_is_classified_by_its_words(tmp_path: Path, error: Exception, outcome: str, kind: str) -> None:
    rec = recorder(tmp_path, warmup=5)
    with pytest.raises(type(error)), rec:
        _one_step_and_then(rec, error)
    found = checked(rec.written).stated
    assert found["run.outcome"] == outcome
    assert found["failure.class"] == kind
    assert found["failure.phase"] == "first_window"
    assert found["failure.step"] == 1
    assert found["run.exit_code"] == 1
    assert found["failure.operator"].startswith("test_recorder.py:")
    if "GPU 1" in str(error):
        assert found["failure.chip"] == 1
        assert found["failure.free_bytes"] == int(1.25 * 2**30)


@pytest.mark.parametrize("words", ["while trying to allocate 123456 bytes", "allocating 123456 bytes"])
def test_what_xla_asked_for_in_vain_is_a_figure(words: str) -> None:
    assert ending.failure_of_text(f"RESOURCE_EXHAUSTED: Out of memory {words}.")[1]["requested_bytes"] == 123456


def test_a_failure_while_compiling_says_so(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError), recorder(tmp_path) as rec, rec.span("compile"):
        raise RuntimeError("no")
    assert read(rec.written)["failure"]["phase"] == "compile"


def test_a_failure_that_the_job_catches_can_be_stated(tmp_path: Path) -> None:
    with recorder(tmp_path) as rec, rec.step():
        try:
            raise RuntimeError(CUDA)
        except RuntimeError as error:
            rec.failure(error)
    assert checked(rec.written).stated["failure.class"] == "capacity"


def test_a_person_who_stops_it_preempts_it(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), recorder(tmp_path) as rec:
        raise KeyboardInterrupt
    assert read(rec.written)["run"]["outcome"] == "preempted"


def test_a_loop_of_asyncio_that_is_told_to_stop_is_preempted(tmp_path: Path) -> None:
    import asyncio

    async def loop() -> None:
        with recorder(tmp_path):
            await asyncio.sleep(60)

    async def main() -> None:
        task = asyncio.create_task(loop())
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task])

    asyncio.run(main())
    assert read(tmp_path / "run.json")["run"]["outcome"] == "preempted"
    assert "failure" not in read(tmp_path / "run.json")


def test_an_earlier_handler_of_sigterm_is_called_and_put_back(tmp_path: Path) -> None:
    called = []

    def mine(number: int, _frame: object) -> None:
        called.append(number)

    before = signal.signal(signal.SIGTERM, mine)
    try:
        with recorder(tmp_path) as rec:
            os.kill(os.getpid(), signal.SIGTERM)
            with rec.step():
                pass
        assert signal.getsignal(signal.SIGTERM) is mine
    finally:
        signal.signal(signal.SIGTERM, before)
    assert called == [signal.SIGTERM]
    assert read(rec.written)["run"]["outcome"] == "preempted"


def test_it_works_outside_the_main_thread(tmp_path: Path) -> None:
    written = []

    def run() -> None:
        with recorder(tmp_path) as rec, rec.step():
            pass
        written.append(rec.written)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert checked(written[0]).stated["run.outcome"] == "ok"


def test_what_is_missing_comes_with_the_call_that_states_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with recorder(tmp_path, quiet=False) as rec, rec.step(tokens=8):
        rec.state("model.depth", 2)
    found = {item.path: item.how for item in rec.missing()}
    assert "model.depth" not in found
    assert "measurement.step_flags" not in found
    assert found["model.pattern|model.architecture"] == 'rec.state("model.pattern", …)'
    assert "rec.observe(attention=" in found["path.witnessed.attention"]
    assert "rec.loss(value)" in found["measurement.loss.last"]
    assert "level backend" in found["evidence"]
    assert "Recorder(…, context=" in found["run.context"]
    said = capsys.readouterr().err
    assert f"lane cpu-torch asks for {len(found)} facts that nobody stated" in said


def test_a_lane_that_nobody_knows_is_told(tmp_path: Path) -> None:
    with recorder(tmp_path, lane="cpu-torhc") as rec:
        pass
    assert "did you mean cpu-torch" in read(rec.written)["notes"]["recorder"][0]


class _Probe:
    NAME = "test"

    @staticmethod
    def at_start(stated: ProbeOutput) -> None:
        stated.put("platform.cuda", "12.8")
        stated.put("model.depth", 9)
        stated.kept["n"] = 1
        stated.memory_row("post_init", device=0, bytes_used=5, bytes_limit=10)
        stated.flag("NCCL_DEBUG", "INFO", before_runtime=True)
        stated.wheel("torch", "2.9.1+cu128", editable=False)
        stated.complete("flags")
        raise RuntimeError("and then it broke")

    @staticmethod
    def at_phase(stated: ProbeOutput, phase: str) -> None:
        stated.note(f"{phase} at {stated.steps}")
        if phase == "post_step0":
            stated.mark_step("compile")

    @staticmethod
    def at_end(stated: ProbeOutput) -> None:
        assert stated.kept["n"] == 1
        stated.evidence("test-log", level="backend", observed={"calls": 3})
        stated.counter("calls", 3, expected=3)


def test_probes_state_what_they_read_and_their_faults_are_notes(tmp_path: Path) -> None:
    with recorder(tmp_path, probes=[_Probe]) as rec:
        rec.state("model.depth", 8)
        for _ in range(3):
            with rec.step(tokens=8):
                pass
    found = checked(rec.written)
    assert found.stated["platform.cuda"] == "12.8"
    assert found.stated["model.depth"] == 8
    assert found.stated["flags.NCCL_DEBUG.before_runtime"] is True
    assert found.stated["flags.complete"] is True
    assert found.stated["memory.chips[0].bytes_used"] == 5
    assert found.stated["evidence[0].observed.calls"] == 3
    assert found.stated["measurement.step_flags"] == {"compile": [1]}
    notes = read(rec.written)["notes"]
    assert notes["test"] == ["post_init at 0", "post_step0 at 1", "steady at 3"]
    assert "test: at_start: RuntimeError: and then it broke" in notes["recorder"]
    assert notes["caller"] == ["model.depth: test saw 9, and the caller states 8"]


class _Slow:
    NAME = "slow"
    MAY_BLOCK = True
    LIMIT_SECONDS = 0.05

    @staticmethod
    def at_start(stated: ProbeOutput) -> None:
        threading.Event().wait(0.5)
        stated.put("platform.cuda", "too late")


def test_a_probe_that_blocks_is_given_up(tmp_path: Path) -> None:
    with recorder(tmp_path, probes=[_Slow]) as rec:
        pass
    found = read(rec.written)
    assert "cuda" not in found.get("platform", {})
    assert any("slow: at_start was given up after" in line for line in found["notes"]["recorder"])


class _LastOnly:
    NAME, RANKS = "last", "first"

    @staticmethod
    def at_end(stated: ProbeOutput) -> None:
        stated.put("platform.cuda", "12.8")


@pytest.mark.parametrize(("rank", "stated"), [("0", True), ("1", False)])
def test_a_probe_may_run_on_the_first_rank_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, rank: str, stated: bool
) -> None:
    monkeypatch.setenv("RANK", rank)
    monkeypatch.setenv("WORLD_SIZE", "2")
    with recorder(tmp_path, probes=[_LastOnly], launch="l") as rec:
        pass
    assert ("cuda" in read(rec.written)["receipt"]["platform"]) is stated


def test_evidence_that_lies_here_gets_its_digest(tmp_path: Path) -> None:
    log = tmp_path / "te.log"
    log.write_text("x", encoding="utf-8")
    with recorder(tmp_path) as rec:
        rec.observe(attention="te_fused", kind="te-debug", level="backend", uri=log)
        rec.attach(log)
        rec.attach("s3://bucket/trace", kind="torch-profile", level="kernels")
    found = checked(rec.written).stated
    assert found["path.witnessed.attention"] == "te_fused"
    assert found["evidence[0].sha256"] == "2d711642b726b04401627ca9fbac32f5c8530fb1903cc4db02258717921a4881"
    assert "evidence[1].sha256" not in found


def test_the_session_that_the_environment_declares_is_recorded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RECEIPTS_SESSION", "array-7")
    with recorder(tmp_path) as rec, rec.step():
        pass
    assert checked(rec.written).receipt.run.session == "array-7"
