"""Cheap forgeries of evidence: each is refused, or graded down with the reason."""

from __future__ import annotations

import json
import os
import random
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from receipts.base.errors import UsageError
from receipts.emit import Recorder
from receipts.judging.facts import Facts
from receipts.judging.judge import judge_receipt
from receipts.judging.side import check_distinct
from receipts.judging.verdict import ReceiptVerdict
from receipts.publish.receipt import Origins
from receipts.questions.sides import groups
from receipts.receipt import Document, parse, read
from receipts.receipt.parse import UNWRITTEN, sealed
from receipts.workflows.evidence import amended, verify
from rule_cases import build, parsed, rulebook

Tree = dict[str, Any]
SEQUENCE, WIDTH, BEGIN = 512, 64, 20.0


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The receipt of a job of three steps; its path is witnessed by no file yet."""
    out = tmp_path_factory.mktemp("job") / "run.json"
    with Recorder("cpu-torch", out=out, probes=False, quiet=True) as rec:
        rec.state("run.context", "golden")
        rec.state("batch.sequence_length", SEQUENCE)
        rec.state("model.head_dim", WIDTH)
        rec.state("numerics.compute_dtype", "fp32")
        rec.state("wheels.torch", "2.9.0+cpu")
        for _ in range(3):
            with rec.step(tokens=SEQUENCE):
                pass
    return out


def _trace(recorded: Path) -> Tree:
    """A whole trace of the launch, as kineto writes it with shapes."""
    started = datetime.fromisoformat(json.loads(recorded.read_bytes())["run"]["started"]).timestamp()
    dims = [[2, 8, SEQUENCE, WIDTH]] * 3
    events = [
        {"ph": "X", "cat": "cpu_op", "name": "ProfilerStep#1", "ts": BEGIN, "dur": 90},
        {"ph": "X", "cat": "cpu_op", "name": "aten::_scaled_dot_product_flash_attention_for_cpu", "ts": 2 + BEGIN}
        | {"dur": 5, "args": {"Input Dims": dims, "Input type": ["float"] * 3}},
        {"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 9 + BEGIN, "dur": 5},
    ]
    return {
        "schemaVersion": 1,
        "PyTorch Version": "2.9.0",
        "host_name": os.uname().nodename,
        "baseTimeNanoseconds": int(started * 1e9),
        "traceEvents": [event | {"pid": os.getpid()} for event in events],
        "traceName": "trace.json",
    }


def _whole(recorded: Path, folder: Path, trace: Tree) -> tuple[Tree, ReceiptVerdict]:
    """The receipt with what a trace shows, and its verdict."""
    own = Path(shutil.copy(recorded, folder / "run.json"))
    (folder / "trace.json").write_text(json.dumps(trace))
    document = amended(str(own), [str(folder / "trace.json")]).document
    read_back = parse(document)
    verdict = judge_receipt(read_back, rulebook().lanes.of("cpu-torch"), rulebook().rules)
    return json.loads(read_back.raw), verdict


def test_a_trace_of_the_launch_itself_is_read(recorded: Path, tmp_path: Path) -> None:
    tree, verdict = _whole(recorded, tmp_path, _trace(recorded))
    assert tree["path"]["witnessed"]["attention"] == "sdpa_flash"
    assert "path.witnessed.attention" not in verdict.grade_why


def test_the_log_of_the_trainer_shows_the_framework_that_the_job_stated(tmp_path: Path) -> None:
    with Recorder("cpu-torch", out=tmp_path / "run.json", probes=False, quiet=True) as rec:
        rec.observe(framework="hf-trainer", frameworks=["hf-trainer"])
        with rec.step():
            pass
    # Since transformers 5 the figures are quoted; none of the records says its step.
    rows = [
        f"{{'loss': '{9 - n / 9:.3f}', 'grad_norm': '1.2', 'learning_rate': '0.001', 'epoch': '0.{n}'}}"
        for n in range(1, 4)
    ]
    (tmp_path / "train.log").write_text("\n".join(rows) + "\n")
    tree = json.loads(amended(str(tmp_path / "run.json"), [str(tmp_path / "train.log")]).document.raw)
    (entry,) = [item for item in tree["evidence"] if item.get("uri") == "train.log"]
    assert {"path.witnessed.framework", "path.witnessed.frameworks"} <= entry["read"].keys()


def test_a_log_does_not_say_which_clock_timed_the_steps_of_the_receipt(recorded: Path, tmp_path: Path) -> None:
    own = shutil.copy(recorded, tmp_path / "run.json")
    names = ("fwd_microstep", "bwd_microstep"), ("fwd", "bwd", "bwd_inner", "bwd_allreduce", "step")
    lines = [f"[Rank 0] time (ms) | {' | '.join(f'{name}: 4.70' for name in row)}" for row in names] * 3
    (tmp_path / "engine.log").write_text("\n".join(lines) + "\n")
    tree = json.loads(amended(str(own), [str(tmp_path / "engine.log")]).document.raw)
    assert tree["path"]["witnessed"]["framework"] == "deepspeed"
    assert "DeepSpeed timers" not in str(tree)


def test_show_names_the_file_of_what_was_read_and_calls_an_edited_leaf_typed(recorded: Path, tmp_path: Path) -> None:
    tree, _ = _whole(recorded, tmp_path, _trace(recorded))
    (entry,) = [item for item in tree["evidence"] if "read" in item and item["uri"] == "trace.json"]
    own = Origins(parse(amended(str(tmp_path / "run.json"), [str(tmp_path / "trace.json")]).document))
    assert own.of("path.witnessed.attention") == f"trace.json, {entry['read']['path.witnessed.attention']}"
    assert own.of("model.head_dim") == "the job"
    assert Origins(parse(read(recorded))).of("model.head_dim") == "the job"
    assert Origins(parsed(tree)).of("path.witnessed.attention") == "typed: edited after its program wrote it"


def _later(trace: Tree) -> None:
    trace["baseTimeNanoseconds"] += 3600 * 10**9


def _earlier(trace: Tree) -> None:
    trace["baseTimeNanoseconds"] -= 86400 * 10**9


def _longer(trace: Tree) -> None:
    first = trace["traceEvents"][0]
    trace["traceEvents"] += [first | {"name": f"ProfilerStep#{number}"} for number in range(2, 9)]


def _other_version(trace: Tree) -> None:
    trace["PyTorch Version"] = "2.4.1"


def _other_shape(trace: Tree) -> None:
    trace["traceEvents"][1]["args"]["Input Dims"] = [[2, 8, SEQUENCE // 4, WIDTH]] * 3


def _half_shape(trace: Tree) -> None:
    trace["traceEvents"][1]["args"]["Input Dims"] = [[2, 8, SEQUENCE // 2, WIDTH]] * 3


def _other_host(trace: Tree) -> None:
    trace["host_name"] = "another-machine"


def _other_type(trace: Tree) -> None:
    trace["traceEvents"][1]["args"]["Input type"] = ["c10::BFloat16"] * 3


def _other_process(trace: Tree) -> None:
    for event in trace["traceEvents"]:
        event["pid"] = os.getpid() + 1


def _other_heads(trace: Tree) -> None:
    trace["traceEvents"][1]["args"]["Input Dims"] = [[2, 8, SEQUENCE, 2 * WIDTH]] * 3


@pytest.mark.parametrize(
    ("forge", "why"),
    [
        (_later, "it covers 20"),
        (_earlier, "it covers 20"),
        (_longer, "it covers 8 steps, of 3"),
        (_other_version, "it states 2.4.1, and the receipt 2.9.0"),
        (_other_host, "it was taken on another-machine"),
        (_other_shape, "its attention runs on 128 × 64"),
        (_half_shape, "its attention runs on 256 × 64"),
        (_other_type, "its attention runs in bf16"),
        (_other_process, "it was taken in process"),
        (_other_heads, "its attention runs on 512 × 128"),
    ],
)
def test_a_valid_trace_of_another_launch_is_refused(
    recorded: Path, tmp_path: Path, forge: Callable[[Tree], None], why: str
) -> None:
    trace = _trace(recorded)
    forge(trace)
    with pytest.raises(UsageError, match=why):
        _whole(recorded, tmp_path, trace)


def test_a_trace_of_another_launch_beside_a_log_of_this_one_shows_nothing(recorded: Path, tmp_path: Path) -> None:
    own, trace = Path(shutil.copy(recorded, tmp_path / "run.json")), _trace(recorded)
    (tmp_path / "trace.json").write_text(json.dumps(trace))
    _later(trace)
    trace["traceEvents"][1]["name"] = "aten::_scaled_dot_product_attention_math"
    (tmp_path / "other.json").write_text(json.dumps(trace))
    whole = amended(str(own), [str(tmp_path / "trace.json"), str(tmp_path / "other.json")])
    tree = json.loads(parse(whole.document).raw)
    assert tree["path"]["witnessed"]["attention"] == "sdpa_flash"
    assert [path.name for path in whole.files] == ["trace.json"]
    assert "is of another launch, and is not read" in "".join(tree["notes"]["ingest.contradictions"])


@pytest.mark.parametrize("listed", [True, False])
def test_a_report_with_more_marks_than_steps_is_of_the_launch_that_lists_it(tmp_path: Path, listed: bool) -> None:
    report = tmp_path / "metrics.txt"
    counts = {"CreateDataHandles": 90, "UncachedCompile": 1, "xla::mm": 12, "MarkStep": 6, "ExecuteComputation": 6}
    counts["aten::_local_scalar_dense"] = 3
    report.write_text("".join(f"Counter: {name}\n  Value: {count}\n" for name, count in counts.items()))
    with Recorder("cpu-torch", out=tmp_path / "run.json", probes=False, quiet=True) as rec:
        if listed:
            rec.attach(report, "torch-xla-metrics")
        for _ in range(3):
            with rec.step(tokens=SEQUENCE):
                pass
    if not listed:
        with pytest.raises(UsageError, match="it covers 6 steps, of 3"):
            amended(str(tmp_path / "run.json"), [str(report)])
        return
    tree = json.loads(amended(str(tmp_path / "run.json"), [str(report)]).document.raw)
    assert tree["path"]["witnessed"]["host_transfers_per_step"] == 1.0
    assert "6 ends of programs were marked in the 3 steps" in "".join(tree["notes"]["ingest.remarks"])


def test_what_nothing_binds_to_its_launch_is_read_and_that_is_remarked(recorded: Path, tmp_path: Path) -> None:
    trace = _trace(recorded)
    del trace["baseTimeNanoseconds"], trace["PyTorch Version"], trace["host_name"]
    del trace["traceEvents"][1]["args"], trace["traceEvents"][0]
    for event in trace["traceEvents"]:
        del event["pid"]
    tree, _ = _whole(recorded, tmp_path, trace)
    assert "shows that it is of this launch" in "".join(tree["notes"]["ingest.remarks"])


@pytest.mark.parametrize("content", ["", "x", '{"schemaVersion": 1, "traceEvents": []}'])
def test_a_file_that_shows_nothing_is_refused(recorded: Path, tmp_path: Path, content: str) -> None:
    (tmp_path / "trace.json").write_text(content)
    with pytest.raises(UsageError, match="known to any reader"):
        amended(str(recorded), [str(tmp_path / "trace.json")])


def test_a_truncated_trace_is_called_broken(recorded: Path, tmp_path: Path) -> None:
    text = json.dumps(_trace(recorded))
    (tmp_path / "trace.json").write_text(text[: text.index("aten::mm")])
    whole = amended(str(recorded), [str(tmp_path / "trace.json")])
    read_back = parse(whole.document)
    assert "the trace is broken" in "".join(json.loads(read_back.raw)["notes"]["ingest.remarks"])
    verdict = judge_receipt(read_back, rulebook().lanes.of("cpu-torch"), rulebook().rules)
    assert (verdict.grade, "posture" in verdict.grade_why) == ("recorded", True)


def _relabelled(tree: Tree) -> None:
    tree["path"] = {"witnessed": {"attention": "sdpa_flash"}}
    tree["evidence"] = [{"kind": "torch-profile", "sha256": "1" * 64, "level": "kernels"}]


def _claimed_reading(tree: Tree) -> None:
    _relabelled(tree)
    tree["evidence"][0]["read"] = {"path.witnessed.attention": "whole file"}


def test_a_digest_without_a_file_is_evidence_that_nobody_keeps_and_verify_misses(recorded: Path) -> None:
    tree = json.loads(recorded.read_bytes())
    _claimed_reading(tree)
    tree["run"] |= {"recorded": {"by": "ingest", "digest": UNWRITTEN}}
    tree["run"].pop("entries")
    claimed = parse(Document(sealed(json.dumps(tree).encode()), "claimed.json"))
    lane = replace(rulebook().lanes.of("cpu-torch"), witness=("attention",), grade="kept")
    verdict = judge_receipt(claimed, lane, rulebook().rules)
    assert (verdict.grade, verdict.grade_why) == ("evidenced", "1 of the files that show its path are not kept")
    assert "R316" in {item.code for item in verdict.findings}
    done = verify(claimed, lane, {})
    assert (done.exit_code, [item.word for item in done.checks]) == (3, ["same", "missing"])


def _faster(tree: Tree) -> None:
    tree["measurement"]["step_durations_seconds"] = [0.01, 0.01, 0.01]


def _named_witness(tree: Tree) -> None:
    tree["run"]["witness_for"], tree["run"]["kind"] = "another-launch", "profile"


def _slower_steps(count: int = 80, seed: int = 4) -> list[float]:
    draw = random.Random(seed)
    return [round(0.2 * (1 + draw.gauss(0, 0.02)), 6) for _ in range(count)]


def test_one_launch_shuffled_under_other_names_is_no_second_launch() -> None:
    steps = _slower_steps()
    shuffled = random.Random(5).sample(steps, len(steps))
    one, copy, other = (
        parsed(build({"set": {"run.launch": name, "measurement.step_durations_seconds": own}}))
        for name, own in (("one", steps), ("copy", shuffled), ("other", _slower_steps(seed=6)))
    )
    launches = [rulebook().launch(item) for item in (one, copy, other)]
    with pytest.raises(UsageError, match="are one launch recorded twice"):
        check_distinct([launches[0], launches[1]], [launches[2]])
    check_distinct([launches[0], launches[2]], [])
    assert groups([one, copy], rulebook().lanes.of("cpu-torch")) == []


def _copied(tree: Tree) -> None:
    tree["run"]["launch"], tree["run"]["started"] = "copy-2", "2026-03-03T09:00:00Z"
    tree["measurement"]["step_durations_seconds"].reverse()


def _signed_off(tree: Tree) -> None:
    _claimed_reading(tree)
    tree["run"]["recorded"] = {"by": "ingest", "digest": "0" * 64}


@pytest.mark.parametrize("forge", [_relabelled, _claimed_reading, _faster, _named_witness, _copied, _signed_off])
def test_an_edit_of_a_recorded_receipt_is_graded_typed(
    recorded: Path, tmp_path: Path, forge: Callable[[Tree], None]
) -> None:
    tree = json.loads(recorded.read_bytes())
    forge(tree)
    forged = tmp_path / "forged.json"
    forged.write_text(json.dumps(tree))
    verdict = judge_receipt(parse(read(forged)), rulebook().lanes.of("cpu-torch"), rulebook().rules)
    assert (verdict.grade, verdict.grade_why) == ("typed", "it was edited after its program wrote it")


@pytest.mark.parametrize(
    ("written", "stranger", "grade"),
    [(False, False, "recorded"), (True, True, "recorded"), (True, False, "evidenced")],
)
def test_a_witness_raises_the_grade_only_as_its_program_wrote_it_and_of_the_same_actor(
    recorded: Path, written: bool, stranger: bool, grade: str
) -> None:
    own = parse(read(recorded))
    tree = json.loads(recorded.read_bytes())
    run = tree["run"]
    _claimed_reading(tree)
    run |= {"launch": "profiled", "kind": "profile", "witness_for": own.receipt.run.launch}
    run["recorded"]["digest"] = UNWRITTEN
    run.pop("entries", None)
    raw = json.dumps(tree).encode()
    witness = parse(Document(sealed(raw) if written else raw, "witness.json"))
    lane = replace(rulebook().lanes.of("cpu-torch"), witness=("attention",))
    strangers = frozenset({witness.id} if stranger else ())
    verdict = judge_receipt(own, lane, rulebook().rules, Facts(witnesses=(witness,), strangers=strangers))
    assert witness.id in verdict.witnesses
    assert verdict.grade == grade
    said = [item.found for item in verdict.findings if "another actor" in item.found]
    assert len(said) == stranger


def _jax_trace(folder: Path, seconds: float, name: str = "vm.trace.json") -> Path:
    """A trace of JAX's profiler, which says how long it took and not when."""
    plane = {"ph": "M", "pid": 701, "name": "process_name", "args": {"name": "/host:CPU"}}
    calls = [
        {"ph": "X", "pid": 701, "tid": 1, "ts": at * 1e6, "dur": 9.0, "name": "PjitFunction(train_step)"}
        for at in (0.0, seconds)
    ]
    (path := folder / name).write_text(json.dumps({"displayTimeUnit": "ns", "traceEvents": [plane, *calls]}))
    return path


def test_a_jax_trace_that_outlasts_the_launch_is_refused_and_another_is_said_to_be_unbound(
    recorded: Path, tmp_path: Path
) -> None:
    with pytest.raises(UsageError, match="its events take 3600 s, and the launch took less"):
        amended(str(recorded), [str(_jax_trace(tmp_path, 3600.0))])
    tree = json.loads(amended(str(recorded), [str(_jax_trace(tmp_path, 0.5))]).document.raw)
    remarks = "".join(tree["notes"]["ingest.remarks"])
    assert "no time, host or process in it shows that it is of this launch; it agrees in measurement.step_du" in remarks


@pytest.mark.parametrize(
    ("hours", "host", "process", "why"),
    [
        (2, "", 0, "it covers 20"),
        (0, "another-machine", 0, "it was taken on another-machine"),
        (0, "", 1, "it was taken in process"),
        (0, "", 0, ""),
    ],
)
def test_an_export_of_nsight_systems_is_bound_by_time_host_and_process(
    recorded: Path, tmp_path: Path, hours: int, host: str, process: int, why: str
) -> None:
    run = json.loads(recorded.read_bytes())["run"]
    began = int(datetime.fromisoformat(run["started"]).timestamp() + 3600 * hours) * 10**9
    with closing(sqlite3.connect(tmp_path / "run.sqlite")) as database:
        database.executescript(
            "CREATE TABLE StringIds (id INT, value TEXT); INSERT INTO StringIds VALUES (1, 'flash_fwd_kernel');"
            "CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (start INT, end INT, shortName INT, globalPid INT, deviceId INT);"
            f"INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (5, 9, 1, {(os.getpid() + process) << 24}, 0);"
            "CREATE TABLE TARGET_INFO_SESSION_START_TIME (utcEpochNs INT);"
            f"INSERT INTO TARGET_INFO_SESSION_START_TIME VALUES ({began});"
            "CREATE TABLE TARGET_INFO_SYSTEM_ENV (name TEXT, value TEXT);"
            f"INSERT INTO TARGET_INFO_SYSTEM_ENV VALUES ('Hostname', '{host or run['host']}');"
        )
        database.commit()
    if why:
        with pytest.raises(UsageError, match=why):
            amended(str(recorded), [str(tmp_path / "run.sqlite")])
        return
    tree = json.loads(amended(str(recorded), [str(tmp_path / "run.sqlite")]).document.raw)
    assert tree["path"]["witnessed"]["attention"]
    assert "shows that it is of this launch" not in json.dumps(tree.get("notes"))
