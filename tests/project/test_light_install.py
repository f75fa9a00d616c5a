"""What `pip install frontier-receipts` brings is enough: commands answer alike without the libraries of the extras."""

from __future__ import annotations

import gzip
import json
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest

from receipts.api.answer import frame_of_rows
from receipts.base.errors import UsageError

pytestmark = pytest.mark.slow

EXTRAS = ("numpy", "pandas", "psycopg", "pyarrow")
PROGRAM = """
import contextlib, io, json, os, sys
for name in json.loads(sys.argv[1]):
    sys.modules[name] = None  # an import of it raises ModuleNotFoundError
from receipts.cli import main
answers = []
for words in json.loads(sys.argv[2]):
    out, err = io.StringIO(), io.StringIO()
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = main(words)
    answers.append([code, out.getvalue(), err.getvalue()])
sys.stdout.write(json.dumps(answers))
"""
A, B, FAILED = "attention-math-1.json", "attention-flash-1.json", "oom-1.json"
WEEK = ("--since", "2000-01-01", "--until", "2100-01-01", "--as-of", "2100-01-02T00:00Z")
COMMANDS = {
    "check": ("check", A, FAILED),
    "submit": ("submit", A, B, FAILED),
    "compare files": ("compare", A, B),
    "compare": ("compare", "cpu attention math 1", "cpu attention flash 1"),
    "list": ("list",),
    "show": ("show", A),
    "neighbours": ("neighbours", A),
    "noise": ("noise",),
    "chips": ("chips", A),
    "ceiling": ("ceiling", "--lane", "cpu-torch"),
    "preflight": ("preflight", A),
    "repro": ("repro", A),
    "report weekly": ("report", "weekly", "--out", "week", *WEEK),
    "report compare": ("report", "compare", A, B, "--out", "pair"),
    "export": ("export", "all.jsonl"),
    "ingest a trace": ("ingest", "trace.json", "--lane", "cpu-torch", "-o", "trace-receipt.json"),
    "verify": ("verify", "--all"),
    "db": ("db", "check"),
    "lint": ("lint", "page.md"),
    "rules": ("rules",),
}


def _answers(place: Path, missing: tuple[str, ...], *commands: tuple[str, ...]) -> list[tuple[int, str, str]]:
    """What commands answer in a folder where some libraries are not installed."""
    environment = {**os.environ, "RECEIPTS_STORE": "store.sqlite"}
    words = [sys.executable, "-c", PROGRAM, json.dumps(missing), json.dumps(commands)]
    done = subprocess.run(words, cwd=place, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [(code, out, err) for code, out, err in json.loads(done.stdout.replace(str(place), "PLACE"))]


def _folder(place: Path, checkout: Path) -> Path:
    """Receipts of real runs, a trace with GPU kernels, and a page."""
    place.mkdir()
    for name in (A, B, FAILED):
        shutil.copy(checkout / "examples" / "cpu" / name, place)
    sample = checkout / "tests" / "readers" / "torch" / "samples" / "torch_trace_flash.json.gz"
    trace = json.loads(gzip.decompress(sample.read_bytes()))
    names = ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "nvjet_sm90_tst_64x8_64x16_1x2_h_bz_TNT")
    trace["traceEvents"] += [
        {"ph": "X", "cat": "kernel", "name": name, "pid": 0, "tid": 7, "ts": 10.0 * at, "dur": 7.5, "args": {}}
        for at, name in enumerate(names * 3)
    ]
    (place / "trace.json").write_text(json.dumps(trace), encoding="utf-8")
    os.utime(place / "trace.json", (1.8e9, 1.8e9))
    (place / "page.md").write_text("# x\n\nIt runs at 98k tok/s.\n", encoding="utf-8")
    return place


@pytest.fixture(scope="module")
def answers(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> tuple[dict[str, Any], dict[str, Any]]:
    """What each command answers with the libraries and without, by its name."""
    root = tmp_path_factory.mktemp("light")
    both = [
        _answers(_folder(root / name, checkout), missing, *COMMANDS.values())
        for name, missing in (("whole", ()), ("light", EXTRAS))
    ]
    whole, light = (dict(zip(COMMANDS, each, strict=True)) for each in both)
    return whole, light


@pytest.fixture(scope="module")
def place(checkout: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder whose store has receipts."""
    place = _folder(tmp_path_factory.mktemp("needs") / "place", checkout)
    _answers(place, (), COMMANDS["submit"])
    return place


@pytest.mark.parametrize("name", [name for name in COMMANDS if name != "report weekly"])
def test_a_command_answers_the_same_without_the_extras(name: str, answers: Any) -> None:
    whole, light = answers
    assert whole[name][0] in (0, 1, 3), whole[name][2]
    assert light[name] == whole[name]


def test_a_report_without_pyarrow_is_the_same_but_for_its_parquet_and_says_so(answers: Any) -> None:
    whole, light = answers
    code, out, err = light["report weekly"]
    assert (code, out) == (0, re.sub(r"^.*\.parquet\n", "", whole["report weekly"][1], flags=re.MULTILINE))
    assert whole["report weekly"][1].count(".parquet") == 2
    assert err == (
        "written without comparisons.parquet and receipts.parquet: "
        "pyarrow is not installed, and Parquet needs it: pip install 'frontier-receipts[data]'\n"
    )


def test_a_report_that_is_written_again_without_pyarrow_leaves_no_parquet_of_before(place: Path) -> None:
    report = COMMANDS["report weekly"]
    _answers(place, (), report)
    assert len(list(place.glob("week/*.parquet"))) == 2
    _answers(place, EXTRAS, report)
    assert not list(place.glob("week/*.parquet"))
    assert (place / "week" / "report.json").is_file()


NEEDS = {
    "export": (("export", "folder"), "pyarrow", "data"),
    "import": (("import", "store", "exported"), "pyarrow", "data"),
    "zstd": (("ingest", "run.log.zst", "--lane", "cpu-torch"), "pyarrow", "data"),
    "postgres": (("--store", "postgresql+psycopg://me@nowhere.invalid/db", "list"), "psycopg", "postgres"),
}


@pytest.fixture(scope="module")
def without(place: Path) -> dict[str, tuple[int, str, str]]:
    """What each command answers that needs a library which is not installed, by its name."""
    _answers(place, (), ("export", "exported"))
    (place / "run.log.zst").write_bytes(bytes.fromhex("28b52ffd0458410000") + b"step 1 loss 2.0\n")
    answers = _answers(place, EXTRAS, *(words for words, _, _ in NEEDS.values()))
    return dict(zip(NEEDS, answers, strict=True))


@pytest.mark.parametrize("name", NEEDS)
def test_a_missing_extra_is_one_sentence_with_what_to_install(name: str, without: Any) -> None:
    _, library, extra = NEEDS[name]
    code, _, err = without[name]
    assert code == 2
    (line,) = err.splitlines()
    assert re.search(rf"{library} is not installed, and .+ needs it: pip install 'frontier-receipts\[{extra}\]'$", line)


def test_a_table_for_pandas_names_its_extra(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(UsageError, match=r"pandas is not installed.*pip install 'frontier-receipts\[data\]'"):
        frame_of_rows([{"a": 1}])


def test_all_is_every_extra_but_two_and_no_library_is_in_two_places(checkout: Path) -> None:
    project = tomllib.loads((checkout / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    (everything,) = extras["all"]
    assert set(re.findall(r"[a-z]+", everything.partition("[")[2])) == set(extras) - {"all", "aot", "keyless"}
    names = {re.split(r"[\[<>=]", entry)[0] for entry in project["dependencies"]}
    assert not names & set(EXTRAS)
