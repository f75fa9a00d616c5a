"""``receipts preflight``: exit codes, the written plan, ranking, and what a wrong call is told."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import Shell
from receipts.questions.plan import read_plan

pytestmark = pytest.mark.slow

FAILURE = {"phase": "first_window", "class": "capacity", "message": "out of memory", "used_bytes": 2**34}


def _failed(shell: Shell) -> str:
    shell.store("gone", run__outcome="oom", failure=FAILURE)
    return shell.write("plan")


def test_a_known_failure_ends_with_1_and_names_launch_and_rung(shell: Shell) -> None:
    said = shell("preflight", _failed(shell))
    assert said.code == 1
    assert said.out.startswith("known to fail: ")
    assert "capacity" in said.out
    assert "device_batch" in said.out


def test_a_known_success_ends_with_0_and_an_unknown_plan_with_3(shell: Shell) -> None:
    shell.store("good")
    assert shell("preflight", shell.write("plan")).code == 0
    assert shell("preflight", shell.write("other", numerics__recompute="full")).code == 3


def test_json_has_the_launch_and_the_rung(shell: Shell) -> None:
    told = shell("preflight", _failed(shell), "--json").json
    assert (told["status"], told["failure_type"], told["by"]["class"]) == ("failed", "capacity", "capacity")
    assert told["by"]["id"] == shell.made["gone"]
    assert told["next"]["rung"] == "device_batch"


def test_next_writes_a_ready_plan_and_keeps_what_is_there(shell: Shell) -> None:
    plan = _failed(shell)
    assert shell("preflight", plan, "--next", "next.json").code == 1
    half = read_plan(plan).stated["batch.micro_batch"] // 2
    assert read_plan("next.json").stated["batch.micro_batch"] == half
    again = shell("preflight", plan, "--next", "next.json")
    assert again.code == 2
    assert "exists and is kept" in again.err


def test_next_is_not_written_for_what_works(shell: Shell) -> None:
    shell.store("good")
    said = shell("preflight", shell.write("plan"), "--next", "next.json")
    assert said.code == 0
    assert "not written" in said.err
    assert not Path("next.json").exists()


def test_a_stored_receipt_is_a_plan(shell: Shell) -> None:
    assert shell("preflight", shell.store("good")[:12]).code == 0


def test_without_a_store_a_file_is_still_answered_and_an_id_is_not(shell: Shell) -> None:
    shell.unmade()
    said = shell("preflight", shell.write("plan"))
    assert said.code in (1, 3)
    assert "no store yet" in said.err
    assert shell("preflight", "3f9c").code == 4


def test_rank_reorders_and_writes_the_launchers_own_lines(shell: Shell) -> None:
    shell.store("gone", run__outcome="oom", failure=FAILURE)
    good = Path(shell.write("good", numerics__recompute="full"))
    bad = Path(shell.write("plan"))
    lines = [{"name": "first", "plan": json.loads(bad.read_text())}, json.loads(good.read_text())]
    Path("c.jsonl").write_text("".join(json.dumps(item) + "\n" for item in lines))
    said = shell("preflight", "--rank", "c.jsonl", "--out", "ordered.jsonl", "--json")
    assert said.code == 0
    assert [item["line"] for item in said.json] == [2, 1]
    assert said.json[1]["failure_type"] == "capacity"
    assert [json.loads(item) for item in Path("ordered.jsonl").read_text().splitlines()] == lines[::-1]
    assert "failed" in shell("preflight", "--rank", "c.jsonl").out


def test_where_every_candidate_fails_rank_ends_with_1(shell: Shell) -> None:
    plan = Path(_failed(shell))
    Path("c.jsonl").write_text(json.dumps(json.loads(plan.read_text())) + "\n")
    assert shell("preflight", "--rank", "c.jsonl").code == 1


def test_every_bad_line_is_told_with_its_number(shell: Shell) -> None:
    Path("c.jsonl").write_text('{"run": {}}\n\nnonsense\n{"run": {"lane": "cpu-torch"}, "bach": 1}\n')
    said = shell("preflight", "--rank", "c.jsonl")
    assert said.code == 2
    assert all(part in said.err for part in ("line 1, run.lane", "line 3", "line 4, bach"))


@pytest.mark.parametrize(
    "words", [(), ("plan.json", "--rank", "c.jsonl"), ("--rank", "c", "--next", "n"), ("plan.json", "--out", "o")]
)
def test_calls_that_make_no_sense_are_refused(shell: Shell, words: tuple[str, ...]) -> None:
    assert shell("preflight", *words).code == 2


@pytest.mark.parametrize("columns", ["60", "120"])
def test_it_keeps_to_the_width(shell: Shell, columns: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    lines = shell("preflight", _failed(shell)).out.splitlines()
    assert max(map(len, lines)) <= int(columns)


def test_a_launch_that_was_not_asked_for_is_told_of_the_failure_that_it_repeats(shell: Shell) -> None:
    shell.store("gone", run__outcome="oom", failure=FAILURE)
    again = shell.store("again", run__outcome="oom", failure=FAILURE, run__started="2126-03-05T09:00:00Z")
    said = shell("show", again)
    assert "R414" in said.out
    assert shell.made["gone"][:12] in said.out
    assert "R414" not in shell("show", shell.made["gone"]).out


@pytest.mark.parametrize("command", ["fit", "preflight"])
def test_a_layout_that_no_chips_can_hold_is_refused_with_every_place(shell: Shell, command: str) -> None:
    torn = {"parallelism.tensor": 7, "model.heads": 28, "model.experts": 6, "parallelism.expert": 4}
    path = shell.write("torn", base="megatron", **torn)
    said = shell(command, path)
    assert said.code == 2, said.out
    assert "R105" in said.err
    assert "R108" in said.err
