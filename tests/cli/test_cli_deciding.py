"""One command for each open verdict: in `receipts list --next`, `receipts compare` and the report; it can be run."""

from __future__ import annotations

import io
import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

import rule_cases
from command_line import Shell


def piped(shell: Shell, monkeypatch: pytest.MonkeyPatch, command: str, **values: str) -> Any:
    """Run `receipts show … | receipts submit - …`, with a value for each leaf; the answer of its second part."""
    first, second = (shlex.split(part)[1:] for part in command.split(" | "))
    words = [f"{word[:-5]}{values[word[:-6]]}" if word.endswith("=VALUE") else word for word in second]
    document = shell(*first).out
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(document.encode())))
    return shell(*words)


def command_of(out: str) -> str:
    """The command under the heading."""
    return out.partition("What would decide")[2].splitlines()[1].strip()


def test_a_missing_fact_is_stated_on_the_stored_receipt(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    stored = shell.store("one", model__depth=None)
    assert shell("list", "--json").json[0]["status"] == "open"
    command = command_of(shell("list", "--next").out)
    assert command.startswith(f"receipts show {stored[:12]} --raw | receipts submit - --set model.depth=VALUE")
    assert shell("list", "--next", "--json").json[0]["next"] == command
    done = piped(shell, monkeypatch, command, **{"model.depth": "8"})
    assert done.code == 0, done.err
    (row,) = shell("list", "--next", "--json").json
    assert (row["status"], row["next"]) == ("valid", None)


def test_a_path_that_nobody_saw_wants_a_profile(shell: Shell) -> None:
    shell.store("one", path__witnessed__attention=None)
    (row,) = shell("list", "--next", "--json").json
    assert "--evidence PROFILE --supersede 'its profile'" in row["next"]


def test_a_comparison_of_single_launches_wants_another_launch(shell: Shell) -> None:
    a = shell.store("a", numerics__seed=1)
    b = shell.store("b", numerics__learning_rate=0.001, numerics__seed=2)
    decided = shell("compare", a, b)
    assert decided.code == 3
    assert command_of(decided.out) == f"receipts run --plan {b[:12]} -- python train.py --depth 8 --steps 300"
    assert shell("compare", a, b, "--json").json["next"] == command_of(decided.out)


def test_a_label_that_names_a_program_by_its_path_is_no_file(shell: Shell) -> None:
    a = shell.store("one", run__label="/opt/bin/python a.py")
    assert shell("show", "label=/opt/bin/python a.py", "--json").json["id"] == a


def test_a_comparison_with_a_gap_wants_the_fact_of_the_side_that_lacks_it(shell: Shell) -> None:
    a, b = shell.write("a"), shell.write("b", numerics__learning_rate=0.001, numerics__optimizer=None)
    decided = shell("compare", a, b)
    assert command_of(decided.out).startswith(f"receipts submit {b} --set numerics.optimizer=VALUE")


OPEN_LIST: dict[str, Any] = {"features__complete": False, "run__context": "one preset"}


def test_an_option_that_only_one_side_sets_is_stated_on_each_launch_of_the_other(
    shell: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stored(name: str, at: int, **leaves: Any) -> str:
        own = {"measurement__stated": None, "numerics__seed": at, **OPEN_LIST, **leaves}
        steps = rule_cases.durations({"seed": f"{name} {at}"})
        return shell.store(f"{name}-{at}", measurement__step_durations_seconds=steps, **own)

    a = [stored("a", at) for at in range(2)]
    for at in range(2):
        stored("b", at, features__extra_delay="0.05")
    verdict = shell("compare", "label=a-*", "label=b-*", "--json").json
    loop = verdict["next"]
    assert loop.startswith("for id in ")
    assert "--set features.extra_delay=VALUE --supersede" in loop
    assert {item[:12] for item in a} == set(loop.split(";")[0].split()[3:])
    for item in a:
        command = loop.partition("; do ")[2].removesuffix("; done").replace("$id", item[:12])
        assert piped(shell, monkeypatch, command, **{"features.extra_delay": "off"}).code == 0
    settled = shell("compare", "label=a-*", "label=b-*", "--json").json
    assert settled["comparable"] == "yes" != verdict["comparable"]
    assert [item["axis"] for item in settled["difference"]["changed"]] == ["features.extra_delay"]


def test_an_option_that_only_one_side_sets_is_off_where_the_other_list_is_complete(shell: Shell) -> None:
    a, b = shell.store("a"), shell.store("b", features__extra_delay="0.05")
    (change,) = shell("compare", a, b, "--json").json["difference"]["changed"]
    assert (change["members"][0]["a"], change["members"][0]["b"]) == ("unset", "0.05")


def test_a_list_that_one_side_alone_captured_whole_is_said_to_be_whole(shell: Shell) -> None:
    a, b = shell.store("a"), shell.store("b", features__extra_delay="0.05", features__complete=False)
    assert "--set features.complete=true" in shell("compare", a, b, "--json").json["next"]


def test_a_comparison_with_one_unsteady_side_wants_a_launch_of_that_side(shell: Shell) -> None:
    drifting = [0.5 + 0.01 * step for step in range(60)]
    unsteady = {"measurement__step_durations_seconds": drifting, "measurement__stated": None}
    a = shell.write("a", numerics__seed=1, **unsteady)
    b = shell.write("b", numerics__learning_rate=0.001, numerics__seed=2)
    assert f"--plan {a} " in command_of(shell("compare", a, b).out)
    assert f"--plan {a} " in command_of(shell("compare", b, a).out)


def test_the_report_has_the_command_of_every_inconclusive_row(shell: Shell) -> None:
    shell.store("a")
    b = shell.store("b", numerics__learning_rate=0.001)
    said = shell("report", "weekly", "--since", "2026-03-01", "--until", "2026-03-08", "-o", "out")
    assert said.code == 0, said.err
    text = " ".join(path.read_text() for path in Path(shell.folder / "out").rglob("*.json"))
    pairs = (
        [pair for lane in json.loads(text)["lanes"] for pair in lane["inconclusive"]["shown"]] if text[0] == "{" else []
    )
    assert any(f"receipts run --plan {b[:12]}" in pair["next"] for pair in pairs)
