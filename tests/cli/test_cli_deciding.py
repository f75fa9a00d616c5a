"""One command for each open verdict: in `receipts list --next`, `receipts compare` and the report; it can be run."""

from __future__ import annotations

import io
import json
import shlex
import sys
from pathlib import Path
from typing import Any

import pytest

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


def test_a_comparison_with_a_gap_wants_the_fact_of_the_side_that_lacks_it(shell: Shell) -> None:
    a, b = shell.write("a"), shell.write("b", numerics__learning_rate=0.001, numerics__optimizer=None)
    decided = shell("compare", a, b)
    assert command_of(decided.out).startswith(f"receipts submit {b} --set numerics.optimizer=VALUE")


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
