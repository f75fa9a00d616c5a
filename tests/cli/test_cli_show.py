"""``receipts show``."""

from __future__ import annotations

import random

import pytest

from command_line import HOSTILE, Shell


def test_it_is_headed_by_the_five_answers(shell: Shell) -> None:
    said = shell("show", shell.write("one"))
    assert said.code == 0
    answers = shell("show", "one.json", "--json").json["answers"]
    assert len(answers) == 5
    places = [said.out.index(question) for question in answers]
    assert places == sorted(places)
    assert places[-1] < said.out.index("Measured")


@pytest.mark.parametrize(
    ("memory", "said"),
    [
        (0.0, "nearly independent"),
        (0.4, "means of 8 steps each are nearly independent"),  # of AR(1) 0.4 the means of 4 have 0.15, of 8 0.07
        (0.98, "no 10 batches of them have independent means"),
    ],
)
def test_the_memory_of_the_steps_is_told(shell: Shell, memory: float, said: str) -> None:
    chance, steps, now = random.Random(7), [], 0.0
    for _ in range(600):
        now = memory * now + chance.gauss(0, 0.001)
        steps.append(round(0.8 + now, 6))
    shell.write("one", measurement__step_durations_seconds=steps, measurement__step_flags=None)
    (line,) = [line for line in shell("show", "one.json").out.splitlines() if "autocorrelation" in line]
    number, told = line.strip().removeprefix("autocorrelation of neighboring steps: ").split("; ")
    assert float(number) == pytest.approx(memory, abs=0.1)
    assert told == said


def test_json_carries_id_verdict_and_stated_leaves(shell: Shell) -> None:
    data = shell("show", shell.store("one"), "--json").json
    assert data["id"] == shell.made["one"]
    assert data["verdict"]["status"] == "valid"
    assert data["stated"]["batch.micro_batch"] == 8


def test_raw_gives_back_the_bytes_as_they_came(shell: Shell) -> None:
    receipt = shell.store("one")
    assert shell("show", receipt, "--raw").out == (shell.folder / "one.json").read_text(encoding="utf-8")


def test_facts_lists_every_stated_leaf(shell: Shell) -> None:
    said = shell("show", shell.write("one"), "--facts")
    assert "numerics.learning_rate" in said.out


def test_a_failure_is_told_with_its_class_and_bytes(shell: Shell) -> None:
    failure = {"class": "runtime_alloc", "phase": "steady", "requested_bytes": 2**31}
    said = shell("show", shell.write("oom", run__outcome="oom", failure=failure))
    assert "Failure" in said.out
    assert "2.00 GiB" in said.out


def test_a_replaced_receipt_says_by_what_and_why(shell: Shell) -> None:
    first = shell.store("one")
    shell.store("two", run__launch="launch-one", run__supersedes={"target": first, "reason": "wrong label"})
    assert f"no longer stands: see {shell.made['two'][:12]}, wrong label" in shell("show", first).out


def test_hostile_text_is_shown_escaped(shell: Shell) -> None:
    shell.write(
        "evil", run__label=HOSTILE, flags={"complete": True, "X" + HOSTILE: HOSTILE}, run__started_stated=HOSTILE
    )
    for words in (("show", "evil.json", "--facts"), ("show", "evil.json", "--json")):
        said = shell(*words)
        assert said.code == 0
        assert not {"\x1b", "\u202e", "\x07", "\x9b"} & set(said.out), words
    assert "\\x1b[31m" in shell("show", "evil.json").out


def test_a_failure_is_attributed_to_the_blocks_whose_operator_it_names(shell: Shell) -> None:
    failure = {"phase": "steady", "class": "host", "operator": "model/attention.py:40 scores"}
    said = shell("show", shell.write("gone", run__outcome="oom", failure=failure))
    assert "pressure: A (attention blocks)" in said.out
    bare = {"phase": "steady", "class": "host", "operator": "train.py:40 step"}
    assert "pressure" not in shell("show", shell.write("other", run__outcome="oom", failure=bare)).out
