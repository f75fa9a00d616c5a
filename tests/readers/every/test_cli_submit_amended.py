"""``receipts submit --evidence`` and ``--supersede``: a receipt with what files show, in place of an earlier one."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import Shell

pytestmark = pytest.mark.slow

FLASH = "aten::_scaled_dot_product_flash_attention_for_cpu"


def trace(shell: Shell, kernel: str = FLASH) -> None:
    """A folder with a profile of the processor's operators."""
    events = [
        {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 0, "dur": 990},
        {"ph": "X", "cat": "cpu_op", "name": kernel, "pid": 1, "tid": 1, "ts": 10, "dur": 10},
    ]
    (shell.folder / "trace").mkdir(exist_ok=True)
    document = {"schemaVersion": 1, "deviceProperties": [], "record_shapes": 1, "traceEvents": events}
    (shell.folder / "trace" / "trace.json").write_text(json.dumps(document), encoding="utf-8")


def test_a_receipt_is_stored_with_what_a_trace_shows(shell: Shell) -> None:
    path = shell.write("one", path__witnessed={"framework": "torch"})
    trace(shell)
    stored = shell("submit", path, "--evidence", "trace/")
    assert stored.code == 0, stored.err
    assert "path.witnessed.attention sdpa_flash (trace.json)" in stored.out
    (row,) = shell("list", "--json").json
    leaves = shell("show", row["id"], "--json").json["stated"]
    assert leaves["path.witnessed.attention"] == "sdpa_flash"
    assert leaves["run.launch"] == "launch-one"


def test_the_same_receipt_with_the_same_evidence_is_stored_once(shell: Shell) -> None:
    words = ("submit", shell.write("one"), "--evidence", "trace/")
    trace(shell)
    assert shell(*words).code == 0
    again = shell(*words)
    assert again.code == 0
    assert "already stored" in again.out


def test_evidence_for_what_is_no_receipt_is_a_mistake(shell: Shell) -> None:
    trace(shell)
    (shell.folder / "run.log").write_text("step 1\n", encoding="utf-8")
    refused = shell("submit", "run.log", "--evidence", "trace/")
    assert refused.code == 2
    assert "run.log is not a receipt" in refused.err
    assert "receipts ingest run.log trace/ --submit" in refused.err


def test_evidence_in_which_nothing_is_known_is_a_mistake(shell: Shell) -> None:
    (shell.folder / "notes.txt").write_text("lunch\n", encoding="utf-8")
    refused = shell("submit", shell.write("one"), "--evidence", "notes.txt")
    assert refused.code == 2
    assert "nothing in notes.txt is known to any reader" in refused.err
    assert shell("list").code != 0 or "one" not in shell("list").out


def test_a_later_receipt_of_a_launch_replaces_the_earlier_with_its_reason(shell: Shell) -> None:
    first = shell.store("one")
    path = shell.write("two", run__launch="launch-one")
    stored = shell("submit", path, "--supersede", "the batch was mistyped")
    assert stored.code == 0, stored.err
    assert f"supersedes {first[:12]}" in stored.out
    (row,) = shell("list", "--json").json
    assert "the batch was mistyped" in shell("show", first).out
    shown = shell("show", row["id"]).out
    assert "supersedes the earlier receipt of its launch: the batch was mistyped" in " ".join(shown.split())
    assert shell("submit", path, "--supersede", "the batch was mistyped").code == 0


def test_a_receipt_gains_evidence_after_it_was_stored(shell: Shell) -> None:
    first = shell.store("one")
    trace(shell)
    words = ("submit", "one.json", "--evidence", "trace/")
    refused = shell(*words)
    assert refused.code == 2
    assert '--supersede "' in refused.err
    stored = shell(*words, "--supersede", "the trace came later")
    assert stored.code == 0, stored.err
    assert f"supersedes {first[:12]}" in stored.out


def test_there_must_be_something_to_supersede_and_a_reason(shell: Shell) -> None:
    shell.store("other")
    refused = shell("submit", shell.write("one"), "--supersede", "why")
    assert refused.code == 2
    assert "the store has no receipt of launch launch-one" in refused.err
    assert "--supersede" in shell("submit", "one.json", "--supersede", " ").err
    folder = shell("submit", ".", "--supersede", "why")
    assert folder.code == 2
    assert "of one receipt each" in folder.err


def test_several_receipts_have_their_evidence_beside_each(shell: Shell) -> None:
    for name, kernel in (("one", FLASH), ("two", "aten::_scaled_dot_product_attention_math")):
        path = Path(shell.write(name, path__witnessed={"framework": "torch"}))
        trace(shell, kernel)
        (shell.folder / f"run-{name}").mkdir()
        path.rename(shell.folder / f"run-{name}" / "run.json")
        (shell.folder / "trace").rename(shell.folder / f"run-{name}" / "trace")
    stored = shell("submit", "run-one/run.json", "run-two/run.json", "--evidence", "trace/")
    assert stored.code == 0, stored.err
    seen = {row["label"]: shell("show", row["id"], "--json").json["stated"] for row in shell("list", "--json").json}
    attention = {name: leaves["path.witnessed.attention"] for name, leaves in seen.items()}
    assert attention == {"one": "sdpa_flash", "two": "sdpa_math"}


def test_launches_with_their_traces_are_an_accepted_comparison(shell: Shell) -> None:
    files = []
    for number in (1, 2, 3):
        for name, kernel, seconds in (("math", "aten::_scaled_dot_product_attention_math", 1.2), ("flash", FLASH, 0.8)):
            leaves = {"run__label": name, "features__torch.sdpa": name, "path__intended__attention": f"sdpa_{name}"}
            path = Path(shell.write(f"{name}-{number}", **leaves, evidence=[], run__context="loop"))
            tree = json.loads(path.read_bytes())
            tree["path"]["witnessed"].pop("attention")
            tree["measurement"].pop("stated")
            tree["measurement"]["step_durations_seconds"] = [seconds + number / 1e4 + at / 1e6 for at in range(60)]
            tree["measurement"] |= {"steps": 60, "window": {"start": 10, "stop": 60, "warmup_steps": 10}}
            folder = shell.folder / f"{name}-{number}"
            trace(shell, kernel)
            (shell.folder / "trace").rename(folder)
            path.unlink()
            (folder / "run.json").write_text(json.dumps(tree), encoding="utf-8")
            files.append(f"{name}-{number}/run.json")
    assert shell("submit", *files, "--evidence", "trace.json").code == 0
    decided = shell("compare", "label=math", "label=flash")
    assert "follows path.attention" in decided.out
    assert "accepted: comparable yes · path witnessed" in decided.out
    assert decided.code == 0


def test_evidence_of_one_receipt_is_found_beside_it(shell: Shell) -> None:
    path = Path(shell.write("one", path__witnessed={"framework": "torch"}))
    trace(shell)
    (shell.folder / "run-one").mkdir()
    path.rename(shell.folder / "run-one" / "run.json")
    (shell.folder / "trace").rename(shell.folder / "run-one" / "trace")
    stored = shell("submit", "run-one/run.json", "--evidence", "trace/")
    assert stored.code == 0, stored.err
    assert "path.witnessed.attention sdpa_flash" in stored.out


def test_a_trainers_state_bears_out_the_framework_that_the_receipt_states(shell: Shell) -> None:
    path = shell.write("one", path__witnessed={"framework": "hf-trainer", "frameworks": ["hf-trainer"]})
    records = [{"epoch": 0.1, "step": step, "loss": 4.0, "learning_rate": 1e-3} for step in (1, 2, 3)]
    state = {"global_step": 3, "max_steps": 3, "logging_steps": 1, "log_history": records}
    (shell.folder / "trainer_state.json").write_text(json.dumps(state), encoding="utf-8")
    assert shell("submit", path, "--evidence", "trainer_state.json").code == 0
    (row,) = shell("list", "--json").json
    receipt = shell("show", row["id"], "--raw").json
    read = {leaf for entry in receipt["evidence"] for leaf in entry.get("read", {})}
    assert {"path.witnessed.framework", "path.witnessed.frameworks"} <= read
