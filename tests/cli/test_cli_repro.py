"""``receipts repro``."""

from __future__ import annotations

import subprocess

import pytest

from command_line import Shell


def _checked(script: str) -> None:
    done = subprocess.run(["sh", "-n"], input=script, text=True, capture_output=True, check=False)
    assert done.returncode == 0, done.stderr


def test_the_script_is_valid_sh_and_ends_with_the_command(shell: Shell) -> None:
    said = shell("repro", shell.write("one"))
    assert said.code == 0
    _checked(said.out)
    assert said.lines[-1] == "python train.py --depth 8 --steps 300"


def test_json_carries_the_parts_of_the_script(shell: Shell) -> None:
    said, data = shell("repro", shell.write("one")), shell("repro", "one.json", "--json").json
    assert data["command"] in said.out
    assert all(item in said.out for item in (*data["checkout"], *data["wheels"], *data["environment"]))


def test_what_is_not_stated_is_said_and_nothing_is_guessed(shell: Shell) -> None:
    said = shell("repro", shell.write("bare", run__command=None, wheels=None))
    assert "# not stated: the command line (run.command)" in said.lines
    assert not any("pip install" in line for line in said.lines)
    _checked(said.out)


@pytest.mark.parametrize("name", ["A; touch owned", "A=1\ntouch owned", "$(touch owned)", "--x\ntouch owned"])
def test_what_a_receipt_states_cannot_run_as_something_else(shell: Shell, name: str) -> None:
    hostile = {"complete": True, name: "1\ntouch owned"}
    path = shell.write(
        "evil", run__command=None, flags=hostile, hardware__accelerator="x\ntouch owned", wheels=None, code=None
    )
    said = shell("repro", path)
    _checked(said.out)
    subprocess.run(["sh"], input=said.out, text=True, check=True, cwd=shell.folder)
    assert not (shell.folder / "owned").exists()


def test_a_command_that_hides_something_from_its_reader_is_not_run(shell: Shell) -> None:
    said = shell("repro", shell.write("evil", run__command="true \x1b[8m; rm -rf x"))
    assert said.lines[-1].startswith("# control characters")
    assert "\x1b" not in said.out


def test_a_tab_of_the_command_stays_one(shell: Shell) -> None:
    said = shell("repro", shell.write("tabs", run__command="printf 'a\tb'"))
    assert said.lines[-1] == "printf 'a\tb'"


def test_a_name_of_several_configurations_is_refused_and_of_one_is_not(shell: Shell) -> None:
    ids = {shell.store("one"), shell.store("two")}
    assert shell("repro", "label=*", "--json").json["id"] in ids
    shell.store("three", numerics__learning_rate=0.001)
    said = shell("repro", "label=*")
    assert said.code == 2
    assert "3 receipts of several configurations are called 'label=*'" in said.err


@pytest.mark.parametrize("wheels", [{"--index-url=https://elsewhere": "1"}, {"torch": "1 --pre"}, {"-e": "x"}])
def test_no_wheel_becomes_an_option_of_pip(shell: Shell, wheels: dict[str, str]) -> None:
    said = shell("repro", shell.write("evil", wheels={**wheels, "jax": "0.10.2"}))
    command = said.out.partition("pip install ")[2].partition("\nexport")[0].partition("\npython")[0]
    assert command.split() == ["--", "\\", "jax==0.10.2"]
    (name,) = wheels
    assert f"# not stated: a wheel that pip can be given by name and version (wheels.{name})" in said.lines


def test_no_commit_becomes_an_option_of_git(shell: Shell) -> None:
    said = shell("repro", shell.write("evil", code={"commit": "--orphan=x", "repository": "--upload-pack=touch owned"}))
    assert "git" not in said.out.replace("# not stated: the commit", "")
