"""``--help`` of every command, and what happens to a mistyped one."""

from __future__ import annotations

import click
import pytest

from command_line import Shell
from receipts import __version__
from receipts.cli.group import commands


def _all() -> list[tuple[str, ...]]:
    group = click.Group()
    found: list[tuple[str, ...]] = []
    for name in commands():
        found.append((name,))
        command = group.get_command(click.Context(group), name)
        if isinstance(command, click.Group):
            found.remove((name,))
            found += [(name, inner) for inner in command.commands]
    return found


@pytest.mark.parametrize("words", _all(), ids=" ".join)
def test_every_command_helps_with_examples_that_name_it(shell: Shell, words: tuple[str, ...]) -> None:
    said = shell(*words, "--help")
    assert said.code == 0
    assert "Examples:" in said.out
    examples = said.out.partition("Examples:")[2]
    assert f" {' '.join(words)}" in examples
    assert all(len(line) <= 100 for line in said.lines)


_WITHOUT_JSON = ("db", "import", "report", "completion", "init", "serve", "mcp", "attest", "help", "open")


@pytest.mark.parametrize(
    "name",
    # What attest prints is JSON as it is.
    [name for name in commands() if name not in _WITHOUT_JSON],
)
def test_every_command_speaks_json(shell: Shell, name: str) -> None:
    said = shell(name, "--help")
    assert "--json" in said.out or "COMMAND" in said.out


def test_help_of_the_program_names_every_command_with_one_line(shell: Shell) -> None:
    said = shell("--help")
    assert "Exit codes" in said.out
    assert "receipts help all" in said.out
    listed = shell("help", "all").out
    assert all(f" {name} " in listed for name in commands())
    first = said.out.partition("Commands:")[2].partition("More:")[0].strip().splitlines()
    assert len(first) <= 10
    assert all(line.split()[0] in commands() for line in first if line.startswith("  "))


@pytest.mark.parametrize(
    ("words", "old"),
    [
        (("audit", "verify"), ("verify",)),
        (("audit", "evidence", "list"), ("evidence", "list")),
        (("audit", "schema"), ("db", "check")),
        (("fit", "preflight"), ("preflight",)),
        (("fit", "ceiling"), ("ceiling",)),
        (("watch", "incident", "list"), ("incident", "list")),
    ],
)
def test_a_merged_verb_keeps_its_old_name(shell: Shell, words: tuple[str, ...], old: tuple[str, ...]) -> None:
    new, before = shell(*words, "--help"), shell(*old, "--help")
    assert new.code == 0
    assert new.out == before.out


def test_which_command_withdraws_what_is_one_table(shell: Shell) -> None:
    out = shell("help", "which").out
    assert all(f"receipts {verb}" in " ".join(out.split()) for verb in ("retract", "purge", "decide", "submit"))
    assert shell("help", "compare").out == shell("compare", "--help").out


def test_version_is_one_line(shell: Shell) -> None:
    assert shell("--version").out == shell("-V").out == f"receipts {__version__}\n"


def test_a_mistyped_command_is_answered_with_the_one_near_it(shell: Shell) -> None:
    said = shell("comapre", "a", "b")
    assert said.code == 2
    assert "Did you mean compare?" in said.err


def test_a_mistyped_word_below_a_verb_is_answered_with_those_that_there_are(shell: Shell) -> None:
    said = shell("report", "weakly")
    assert said.code == 2
    assert "Did you mean 'weekly'? There are claim, compare, lane, " in said.err


def test_a_missing_argument_is_a_wrong_call(shell: Shell) -> None:
    said = shell("compare", "a.json")
    assert said.code == 2
    assert "B" in said.err


def test_a_configuration_that_is_not_there_is_refused(shell: Shell) -> None:
    said = shell("--config", "none.toml", "lanes")
    assert said.code == 2
    assert "none.toml" in said.err
