"""The GitHub Action and the pre-commit hooks: their commands are run in a scratch repository, inputs put in."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import stat
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

import pytest

import line_store
from github_server import GitHub

pytestmark = pytest.mark.slow

_INPUT = re.compile(r"\$\{\{\s*inputs\.([\w-]+)\s*\}\}")


@dataclass(frozen=True)
class Step:
    """One step of a composite action."""

    name: str
    condition: str
    env: dict[str, str]
    run: str


def read_action(text: str) -> tuple[dict[str, str], list[Step]]:
    """Inputs with their defaults, and the steps. It reads the YAML that this one file is written in, and no more."""
    head, _, tail = text.partition("\nruns:\n")
    names = re.split(r"^  (?=[\w-]+:$)", head.partition("\ninputs:\n")[2], flags=re.MULTILINE)[1:]
    inputs = {}
    for block in names:
        default = re.search(r"^    default: (.*)$", block, re.MULTILINE)
        assert default, f"an input without a default: {block}"
        inputs[block.partition(":")[0]] = default[1].strip('"')
    steps = []
    for block in re.split(r"^    - ", tail, flags=re.MULTILINE)[1:]:
        fields = dict(re.findall(r"^\s*(name|if|shell): (.*)$", block, re.MULTILINE))
        assert fields["shell"] == "bash"
        env = dict(re.findall(r"^        ([A-Z_]+): (.*)$", block.partition("run:")[0], re.MULTILINE))
        run = block.partition("run:")[2]
        lines = run.splitlines()
        script = lines[0].strip() if lines[0].strip() != "|" else "\n".join(line[8:] for line in lines[1:])
        steps.append(Step(fields["name"], fields.get("if", ""), env, script))
    return inputs, steps


@pytest.fixture
def repository(tmp_path: Path) -> Path:
    """A scratch git repository with a page, and `receipts` on the path."""
    if shutil.which("git") is None:
        pytest.skip("needs git")
    subprocess.run(["git", "init", "-q", str(tmp_path / "repo")], check=True)
    (tmp_path / "repo" / "README.md").write_text("# x\n\nIt runs at 98k tok/s.\n")
    (tmp_path / "repo" / "docs").mkdir()
    (tmp_path / "repo" / "docs" / "a b.md").write_text("Nothing was measured.\n")
    command = tmp_path / "bin" / "receipts"
    command.parent.mkdir()
    root = Path(__file__).resolve().parents[2]
    command.write_text(
        f'#!/bin/sh\nPYTHONPATH={shlex.quote(str(root))} exec {shlex.quote(sys.executable)} -m receipts "$@"\n'
    )
    command.chmod(command.stat().st_mode | stat.S_IXUSR)
    return tmp_path / "repo"


def act(
    checkout: Path, repository: Path, job: dict[str, str] | None = None, **given: str
) -> list[tuple[str, int, str]]:
    """Run the action's steps as a runner does: in order, until one fails. Gives name, exit code and output.

    ``job`` are variables of the job.
    """
    inputs, steps = read_action((checkout / "action.yml").read_text())
    values = {**inputs, **{name.replace("_", "-"): value for name, value in given.items()}}
    assert set(values) == set(inputs), "an input that the action does not have"
    done = []
    for step in steps:
        asked = re.search(r"inputs\.([\w-]+) != ''", step.condition)
        if asked and not values[asked[1]]:
            continue
        env = {name: _INPUT.sub(lambda found: values[found[1]], text) for name, text in step.env.items()}
        path = f"{repository.parent / 'bin'}{os.pathsep}{os.environ['PATH']}"
        ran = subprocess.run(
            ["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step.run],
            cwd=repository,
            env={**os.environ, "PATH": path, "NO_COLOR": "1", **env, **(job or {})},
            capture_output=True,
            text=True,
            check=False,
        )
        done.append((step.name, ran.returncode, ran.stdout + ran.stderr))
        if ran.returncode:
            break
    return done


def test_no_input_is_pasted_into_a_script(checkout: Path) -> None:
    _, steps = read_action((checkout / "action.yml").read_text())
    assert [step.name for step in steps] == ["Install", "Lint", "Check claims", "Compare"]
    assert not [step.name for step in steps if "${{" in step.run]


def test_the_action_annotates_and_passes(checkout: Path, repository: Path) -> None:
    ((name, code, out),) = act(checkout, repository, version="", paths="README.md docs")
    assert (name, code) == ("Lint", 0)
    assert "::warning file=README.md,line=3,col=12" in out


@pytest.mark.parametrize("given", [{"strict": "true"}, {"max_warnings": "0"}])
def test_the_action_fails_where_it_is_asked_to(checkout: Path, repository: Path, given: dict[str, str]) -> None:
    ((_, code, _),) = act(checkout, repository, version="", **given)
    assert code == 1


def test_the_action_writes_sarif_also_where_it_fails(checkout: Path, repository: Path) -> None:
    ((_, code, _),) = act(checkout, repository, version="", strict="true", sarif="lint.sarif")
    assert code == 1
    log = json.loads((repository / "lint.sarif").read_text())
    assert [item["ruleId"] for item in log["runs"][0]["results"]] == ["K107"]


def test_the_action_checks_claims_and_may_let_open_ones_pass(checkout: Path, repository: Path) -> None:
    store = repository.parent / "store.sqlite"
    receipt = Path(__file__).parents[1] / "cases" / "base.json"
    subprocess.run(
        [repository.parent / "bin" / "receipts", "--store", store, "submit", receipt], check=True, capture_output=True
    )
    (repository / "claims.toml").write_text(
        'schema_version = "1.0"\n\n[[claim]]\nid = "fused"\ntext = "fused heads are 1.25x faster"\nkind = "speedup"\n'
        'metric = "tokens_per_second"\neffect = "1.25x"\naxis = "flags.FUSED"\n'
        'baseline = ["ffffffffffff"]\ncandidate = ["eeeeeeeeeeee"]\n'
    )
    (repository / "README.md").write_text("It is [1.25× faster](claim:fused).\n")
    given = {"version": "", "claims": "claims.toml", "store": str(store)}
    ((name, code, out),) = act(checkout, repository, **given)
    assert (name, code) == ("Lint", 3), out
    first, second = act(checkout, repository, **given, allow_open="true")
    assert (first[0], first[1]) == ("Lint", 0)
    assert (second[0], second[1]) == ("Check claims", 0), second[2]
    assert "unproven" in second[2]


def test_a_page_named_like_a_pattern_or_an_option_is_only_a_name(checkout: Path, repository: Path) -> None:
    ((_, code, out),) = act(checkout, repository, version="", paths="--strict")
    assert code == 2
    assert "no file or folder --strict" in out


def test_the_hooks_run_on_the_files_that_they_name(checkout: Path, repository: Path) -> None:
    text = (checkout / ".pre-commit-hooks.yaml").read_text()
    entries = re.findall(r"^  entry: (.*)$", text, re.MULTILINE)
    assert entries == ["receipts lint", "receipts claim check"]
    path = f"{repository.parent / 'bin'}{os.pathsep}{os.environ['PATH']}"
    ran = subprocess.run(
        [*shlex.split(entries[0]), "README.md", "docs/a b.md"],
        cwd=repository,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ran.returncode == 0
    assert "README.md:3:12: unreceipted K107" in ran.stdout
    (pattern,) = re.findall(r"^  files: (.*)$", text, re.MULTILINE)
    assert re.search(pattern, "docs/claims.toml")
    assert not re.search(pattern, "docs/myclaims.toml")


def test_the_page_shows_the_hooks_as_they_are_and_no_placeholder(checkout: Path) -> None:
    page = (checkout / "docs" / "ci.md").read_text(encoding="utf-8")
    hooks = (checkout / ".pre-commit-hooks.yaml").read_text(encoding="utf-8")
    for line in re.findall(r"^(?:- id| +name| +entry| +types| +files): .*$", hooks, re.MULTILINE):
        assert line.strip() in page
    assert "OWNER" not in page


def test_the_action_compares_with_the_main_branch_and_keeps_one_comment(checkout: Path, repository: Path) -> None:
    launches = [item.raw for item in line_store.line([1.0, 1.0, 1.2], run__finished=None)]
    git = ["git", "-C", str(repository), "-c", "user.name=x", "-c", "user.email=x@example.org"]
    (repository / "bench").mkdir()
    (repository / "bench" / "run.json").write_bytes(launches[0])
    for words in (["checkout", "-q", "-b", "main"], ["add", "."], ["commit", "-q", "-m", "x"]):
        subprocess.run([*git, *words], check=True)
    (repository / "bench" / "run.json").write_bytes(launches[2])
    (repository / "event.json").write_text('{"pull_request": {"number": 7}}')
    job = {"GITHUB_EVENT_NAME": "pull_request", "GITHUB_EVENT_PATH": "event.json", "GITHUB_REPOSITORY": "team/bench"}
    given = {"version": "", "paths": "", "compare": "bench/run.json", "baseline": "bench/run.json", "base_ref": "main"}
    with GitHub() as github:
        job |= {"GITHUB_API_URL": github.url, "RECEIPTS_STORE": str(repository.parent / "none.sqlite")}
        job |= {"GITHUB_STEP_SUMMARY": str(repository / "summary.md")}
        wrong = act(checkout, repository, job, **given, token="secret-token", badge="b.svg", junit="gate.xml")
        ((name, code, out),) = wrong
        assert (name, code) == ("Compare", 3), out
        (comment,) = github.comments
        assert "−16.66 % tokens_per_second" in comment["body"]
        assert "day 2" in (repository / "summary.md").read_text()
        assert "<svg" in (repository / "b.svg").read_text()
        assert "<error" in (repository / "gate.xml").read_text()
        (repository / "bench" / "run.json").write_bytes(launches[1])
        ((_, code, _),) = act(checkout, repository, job, **given, token="secret-token", allow_open="true")
        assert code == 0
        assert len(github.comments) == 1
        assert "day 1" in github.comments[0]["body"]
        ((_, code, out),) = act(checkout, repository, job, **given, token="another", allow_open="true")
        assert (code, "::warning::the comment was not written" in out) == (0, True), out
