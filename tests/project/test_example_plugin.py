"""The distribution of ``examples/plugin`` is installed beside the engine, and adds a reader, a question and pages."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

import rule_cases
from command_line import Shell

pytestmark = pytest.mark.slow

Call = Callable[..., subprocess.CompletedProcess[str]]
LOG = "".join(f"tinyloop> step {step}: loss={9 - step / 10} seconds=0.5\n" for step in range(1, 41))

SERVED = """
import os
from starlette.testclient import TestClient
from receipts.judging.rulebook import Rulebook
from receipts.plugins.serve.run import with_pages
from receipts.plugins.serve.server import Server, Settings
from receipts.store import open_store
with open_store(os.environ["RECEIPTS_STORE"]) as store:
    server = Server(store, Rulebook(), Settings(("testserver",), open=True))
    with TestClient(with_pages(server)) as client:
        print(client.get("/v1/outcomes").text)
"""


@pytest.fixture(scope="module")
def installed(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that pip installed the distribution into, without an index."""
    pytest.importorskip("hatchling")
    source = tmp_path_factory.mktemp("source") / "plugin"
    shutil.copytree(checkout / "examples" / "plugin", source)
    target = tmp_path_factory.mktemp("installed")
    pip = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-index", "--no-deps"]
    done = subprocess.run(
        [*pip, "--no-build-isolation", "--target", str(target), str(source)], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture
def call(installed: Path, shell: Shell) -> Call:
    """Python beside the distribution, in the shell's folder, with its store."""
    env = {**os.environ, "PYTHONPATH": f"{installed}{os.pathsep}{Path(rule_cases.__file__).parents[2]}"}
    env["RECEIPTS_STORE"] = str(shell.folder / "store.sqlite")

    def called(*words: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run([sys.executable, *words], cwd=shell.folder, env=env, capture_output=True, text=True)

    return called


@pytest.fixture
def stored(shell: Shell) -> None:
    """Three launches of one lane, one of which crashed."""
    for name in ("a", "b"):
        shell.store(name)
    oom = {"run__outcome": "crash", "run__exit_code": 1}
    assert shell("submit", shell.write("c", **oom)).code in (0, 1, 3)


def test_its_command_is_listed_where_it_says_and_answers(call: Call, stored: None) -> None:
    lines = call("-m", "receipts", "help", "all").stdout.splitlines()
    names = [line.split()[0] for line in lines if line.startswith("  ") and line.split()]
    assert names.index("outcomes") == names.index("list") + 1
    done = call("-m", "receipts", "outcomes", "--json")
    assert (done.returncode, done.stderr) == (0, "")
    assert json.loads(done.stdout) == [
        {"lane": "cpu-torch", "outcome": "crash", "launches": 1},
        {"lane": "cpu-torch", "outcome": "ok", "launches": 2},
    ]


def test_its_question_is_asked_of_an_open_store(call: Call, stored: None) -> None:
    done = call("-c", "import receipts\nwith receipts.open() as store: print([*store.outcomes()], end='')")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == str([
        {"lane": "cpu-torch", "outcome": "crash", "launches": 1},
        {"lane": "cpu-torch", "outcome": "ok", "launches": 2},
    ])  # fmt: skip


def test_its_question_is_an_operation_of_the_server(call: Call, stored: None) -> None:
    done = call("-c", SERVED)
    assert (done.returncode, done.stderr) == (0, "")
    rows = [("crash", 1), ("ok", 2)]
    assert json.loads(done.stdout) == [{"lane": "cpu-torch", "outcome": word, "launches": n} for word, n in rows]


def test_its_report_and_its_section_are_written(call: Call, stored: None, shell: Shell) -> None:
    done = call("-m", "receipts", "report", "outcomes", "outcomes.md")
    assert (done.returncode, done.stderr) == (0, "")
    assert "| cpu-torch | crash | 1 |" in " ".join((shell.folder / "outcomes.md").read_text().split(" "))
    started = json.loads((shell.folder / "a.json").read_bytes())["run"]["started"][:10]
    done = call("-m", "receipts", "report", "weekly", "--since", started, "--until", started, "--out", "week")
    assert done.returncode == 0, done.stderr
    page = (shell.folder / "week" / "report.md").read_text(encoding="utf-8")
    assert "How launches ended" in page


def test_its_reader_makes_a_receipt_of_a_log(call: Call, shell: Shell) -> None:
    (shell.folder / "run.log").write_text(LOG, encoding="utf-8")
    done = call("-m", "receipts", "ingest", "run.log", "--set", "run.started=2026-03-02T09:00:00Z", "-o", "run.json")
    assert done.returncode == 0, done.stderr
    assert "tinyloop (40 steps" in done.stdout
    receipt = json.loads((shell.folder / "run.json").read_bytes())
    assert receipt["measurement"]["step_durations_seconds"] == [0.5] * 40


def test_without_it_nothing_of_it_is_there(shell: Shell) -> None:
    assert "There is no command 'outcomes'" in shell("outcomes").err
