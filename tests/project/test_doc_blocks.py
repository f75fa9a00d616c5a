"""The blocks of docs/*.md: each is right by its language, names commands and options that exist, and runs as it shows.

They run on a store of the launches in examples/cpu. A block that cannot says so to its readers: `title="needs …"`.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import tomllib
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import NamedTuple

import click
import pytest
import yaml

from command_line import Shell
from page_sessions import Step, pattern, sessions
from receipts.cli.group import global_first, group

pytestmark = pytest.mark.slow

ROOT = Path(__file__).resolve().parents[2]
PAGES = sorted((ROOT / "docs").glob("*.md"))
BLOCK = re.compile(
    r'^(?P<indent> *)```(?P<language>\w+)(?: title="(?P<title>[^"\n]+)")?\n(?P<text>.*?)^(?P=indent)```$',
    re.DOTALL | re.MULTILINE,
)
SHELL = ("console", "sh")
# Pages whose sessions another test runs, in a store of their own.
ELSEWHERE = {
    "judge.md": "tests/plugins/judge/test_judge_page.py",
    "why.md": "tests/plugins/why/test_why.py",
}
# What stands for the files and the receipts of a reader.
FILES = {
    "before.json main.json": "attention-math-1.json",
    "after.json candidate.json pr-1.json": "attention-flash-1.json",
    "pr-2.json": "attention-flash-2.json",
    "pr-3.json": "attention-flash-3.json",
    "plan.json": "oom-1.json",
}
TABLES = {"claims.md": "claims.toml", "plan.md": "arms.toml"}
RECEIPTS = {"3f9c": "label=cpu attention math 4", "81aa": "label=cpu attention flash 5"}
OPERATOR = re.compile(r"[;&|()<>]+")


class Block(NamedTuple):
    """One fenced block of a page."""

    page: str
    line: int
    language: str
    title: str
    text: str

    @property
    def runs(self) -> bool:
        return not self.title.startswith("needs ") and self.page not in ELSEWHERE

    @property
    def steps(self) -> list[Step]:
        """What a reader types, with the output that the page shows of it."""
        if self.language != "console":
            return [Step(self.text, ())]
        return [step for session in sessions(f"```console\n{self.text}```") for step in session]

    @property
    def script(self) -> str:
        """What a reader types."""
        return "\n".join(step.command for step in self.steps)


def blocks(*languages: str) -> Iterator[Block]:
    """The blocks in these languages, of all pages."""
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        for match in BLOCK.finditer(text):
            if match["language"] in languages:
                line = text.count("\n", 0, match.start()) + 1
                yield Block(page.name, line, match["language"], match["title"] or "", dedent(match["text"]))


def commands(script: str) -> Iterator[list[str]]:
    """The words of each `receipts …` of a script, wherever it stands in its line."""
    for line in script.replace("\\\n", " ").splitlines():
        reader = shlex.shlex(line, posix=True, punctuation_chars=";&|()<>")
        reader.whitespace_split = True
        words: list[str] = []
        for word in [*reader, ";"]:
            if not OPERATOR.fullmatch(word):
                words.append(word)
                continue
            if "receipts" in words:
                yield words[words.index("receipts") + 1 :]
            words = []


def parse(words: list[str]) -> None:
    """Raise click's error for a command, an option or a missing value that the program does not know."""
    command: click.Command | None = group
    rest = global_first(words)
    while command is not None:
        context = click.Context(command, **command.context_settings)
        rest = command.make_parser(context).parse_args(rest)[1]
        if not isinstance(command, click.Group) or not rest:
            return
        _, command, rest = command.resolve_command(context, rest)


def test_every_block_names_its_language_and_the_site_shows_it_as_a_block() -> None:
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        assert len(BLOCK.findall(text)) * 2 == len(re.findall("^ *```", text, re.MULTILINE)), page.name


def test_every_block_is_right_by_its_language() -> None:
    readers = {"toml": tomllib.loads, "yaml": yaml.safe_load, "python": ast.parse}
    for block in blocks(*readers):
        readers[block.language](dedent(block.text))
    for block in blocks("json"):
        assert all(json.loads(line) for line in block.text.splitlines())
    scripts = "\n".join(block.script for block in blocks(*SHELL))
    checked = subprocess.run(["bash", "-n"], input=scripts, capture_output=True, text=True, check=False)
    assert checked.returncode == 0, checked.stderr


def test_every_command_of_the_pages_has_the_options_that_they_name() -> None:
    asked = [(f"{block.page}:{block.line}", block.script) for block in blocks(*SHELL)]
    for page in PAGES:
        prose = BLOCK.sub("", page.read_text(encoding="utf-8"))
        asked += [(page.name, " ".join(span.split())) for span in re.findall(r"`(receipts [^`]+)`", prose)]
    for block in blocks("yaml"):
        asked += [(block.page, line) for line in re.findall(r"^ *- (?:run: )?(.*\breceipts .*)$", block.text, re.M)]
    parsed = 0
    for place, script in asked:
        for words in commands(script):
            parsed += 1
            try:
                parse(words)
            except click.UsageError as error:
                if words[-1] != getattr(error, "option_name", None):  # a sentence names an option without its value
                    pytest.fail(f"{place}: receipts {shlex.join(words)}: {error}")
    assert parsed > 250


def test_a_command_that_does_not_exist_is_noticed() -> None:
    for words in (["comparee"], ["compare", "a", "b", "--nothing"], ["claim", "adds"]):
        with pytest.raises(click.UsageError):
            parse(words)


def test_the_pages_that_another_test_runs_are_named_there() -> None:
    assert all(page in (ROOT / test).read_text(encoding="utf-8") for page, test in ELSEWHERE.items())


def stage(folder: Path, script: str) -> None:
    """Put there what a script names and does not write itself."""
    for names, source in FILES.items():
        for name in names.split():
            (folder / name).unlink(missing_ok=True)
            if f"-o {name}" not in script:
                shutil.copyfile(ROOT / "examples" / "cpu" / source, folder / name)
    for block in blocks("toml"):
        if (name := TABLES.get(block.page)) and not (folder / name).exists():
            text = block.text.replace("grid 02", "cpu attention math").replace("grid 03", "cpu attention flash")
            (folder / name).write_text(text.replace("model.mtp_depth", "path.attention"), encoding="utf-8")


def fill(shell: Shell) -> None:
    """The receipts, the pin and the claim that the pages name."""
    shell("submit", *map(str, sorted((ROOT / "examples" / "cpu").glob("*.json"))))
    shell("submit", "schema/examples/nam56r-h200-megatron.json")
    shell("pin", "golden", "label=cpu attention math 5")
    assert shell("claim", "add", "claims.toml").code in (0, 1, 3)


@pytest.mark.parametrize("page", sorted({block.page for block in blocks(*SHELL) if block.runs}))
def test_the_commands_of_a_page_run_as_it_shows(
    page: str, shell: Shell, tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("examples", "schema"):
        (shell.folder / name).symlink_to(ROOT / name)
    monkeypatch.setenv("HOME", str(shell.folder))
    monkeypatch.delenv("XDG_CONFIG_HOME")
    kept = tmp_path_factory.getbasetemp() / "pages"
    kept.mkdir(exist_ok=True)
    stage(shell.folder, "")
    shell.filled(kept, fill)
    for block in blocks(*SHELL):
        if block.page != page or not block.runs:
            continue
        stage(shell.folder, block.script)
        for step in block.steps:
            for words in commands(step.command):
                ran = shell(*(os.path.expanduser(RECEIPTS.get(word, word)) for word in words))
                place = f"{page}:{block.line}: receipts {shlex.join(words)}"
                assert ran.code in (0, 1, 3), f"{place}: {ran.err}"
                assert not step.shown or re.fullmatch(pattern(step.shown), ran.out.lstrip()), (
                    f"{place}\n{ran.out}{ran.err}"
                )


def test_paths_that_pages_name_are_there() -> None:
    """What stands in capitals is a place for the reader's own name."""
    rooms = "receipts|validators|reports|tests|migrations|schema|examples|recorder"
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
    named = {
        (page.name, path.rstrip("/."))
        for page in pages
        for path in re.findall(rf"(?<![\w/.-])((?:{rooms})/[\w./-]+)", page.read_text(encoding="utf-8"))
        if not re.search(r"NAME|CODE|R999", path)
    }
    assert named
    assert sorted(item for item in named if not (ROOT / item[1]).exists()) == []
