"""`import receipts`: the answers of the commands, in Python."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import receipts
import rule_cases
from command_line import Shell
from receipts.base.errors import InputError, NotFound

pytestmark = pytest.mark.slow

DOCS = Path(receipts.__file__).parents[1] / "docs"
CHANGES: tuple[dict[str, Any], ...] = (
    {},
    {"batch__micro_batch": 2},
    {"batch__sequence_length": 512},
    {"path__witnessed__attention": "math"},
    {"flags__OMP_NUM_THREADS": {"value": 4, "before_runtime": True}},
)


def fill(shell: Shell) -> None:
    """A receipt for each change, two launches of the first."""
    for number, change in enumerate(CHANGES):
        shell.store(f"run-{number}", **change)
    shell.store("again")


@pytest.fixture
def filled(shell: Shell, tmp_path_factory: pytest.TempPathFactory) -> Shell:
    """A shell with a store of a few receipts."""
    kept = tmp_path_factory.getbasetemp() / "api-store"
    kept.mkdir(exist_ok=True)
    return shell.filled(kept, fill)


def test_importing_loads_nothing_of_the_engine() -> None:
    code = "import sys, receipts; print([name for name in sys.modules if name.startswith('receipts.')])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "[]\n"


def test_a_name_that_is_not_offered_is_an_attribute_error() -> None:
    assert not hasattr(receipts, "nothing_of_that_name")
    assert {"load", "check", "compare", "open"} <= set(dir(receipts))


def test_every_answer_equals_the_command_s_byte_for_byte(filled: Shell) -> None:
    with receipts.open() as store:
        answers = {
            ("show", "run-1"): store.get("run-1"),
            ("list", "batch.micro_batch=2"): store.find(batch__micro_batch=2),
            ("neighbours", "run-0"): store.neighbours("run-0"),
            ("claim", "list"): store.claims(),
        }
        for words, answer in answers.items():
            assert answer.to_json() + "\n" == filled(*words, "--json").out, words
            assert answer.page().title


def test_files_are_compared_as_the_command_compares_them(shell: Shell) -> None:
    a, b = shell.write("a"), shell.write("b", batch__micro_batch=2)
    printed = shell("compare", a, b, "--json").out
    loaded = receipts.load(a)
    for one in (a, loaded, loaded.raw, json.loads(loaded.raw)):
        answer = receipts.compare(one, receipts.load(b))
        assert answer.to_dict()["status"] == json.loads(printed)["status"]
    assert receipts.compare(a, b).to_json() + "\n" == printed
    assert receipts.check(b).to_json() + "\n" == shell("check", b, "--json").out


def test_tables_have_typed_columns(filled: Shell) -> None:
    with receipts.open() as store:
        runs = store.find("chips>=1", lane="cpu-torch")
        table, steps = runs.frame(), runs.steps()
        assert len(runs) == len(table) == len(CHANGES) + 1
        assert runs[0].id == table["id"][0] == next(iter(runs)).id
        frontier = store.frontier().frame()
    kinds = {name: str(table[name].dtype) for name in ("id", "chips", "tokens_per_second", "stands", "started")}
    assert kinds == {
        "id": "string",
        "chips": "Int64",
        "tokens_per_second": "Float64",
        "stands": "boolean",
        "started": "datetime64[us, UTC]",
    }
    assert table["batch.micro_batch"].tolist().count(2) == 1
    assert [str(kind) for kind in steps.dtypes] == ["string", "string", "Int64", "Float64", "boolean"]
    counts = steps.groupby("receipt")["step"].max()
    assert (counts >= 10).all()
    assert isinstance(frontier, pd.DataFrame)


def test_one_condition_is_a_text_or_a_list(filled: Shell) -> None:
    with receipts.open() as store:
        assert store.list("outcome=ok").to_dict() == store.list(["outcome=ok"]).to_dict()


def test_an_empty_list_is_an_empty_table(filled: Shell) -> None:
    with receipts.open() as store:
        assert store.find(lane="cpu-torch", outcome="oom").frame().empty
        assert store.find(lane="cpu-torch", outcome="oom").steps().empty
        near = store.neighbours("run-0", axis="parallelism.tensor").frame()
        assert near.empty
        some = store.neighbours("run-0").frame()
        assert list(near.columns) == list(some.columns), "so a table without rows is sorted like any other"
        assert len(some)


def test_submitting_says_what_the_store_says(shell: Shell) -> None:
    file = shell.write("one")
    with receipts.open(create=True) as store:
        first, again = store.submit(file), store.submit(receipts.load(file))
        assert (first.new, again.new, first.id) == (True, False, again.id)
        assert json.loads(shell("list", "--json").out)[0]["id"] == first.id
        with pytest.raises(InputError, match="run"):
            store.submit({"schema_version": "1.0"})
        with pytest.raises(NotFound, match="nothing"):
            store.compare("nothing", "one")


def test_a_notebook_shows_what_the_page_says(filled: Shell) -> None:
    with receipts.open() as store:
        html = store.compare("run-0", "run-4")._repr_html_()
        shown = store.find()._repr_html_()
        printed = str(store.compare("run-0", "run-4"))
    assert printed.splitlines()[0].startswith(("ACCEPTED", "REJECTED", "UNDECIDED"))
    assert "Effect of B against A" in printed
    assert "threads" in html.lower()
    assert html.count("<script") == 0
    # The theme of the notebook and not of the screen: Jupyter, VS Code, Colab.
    assert all(theme in html for theme in ('data-jp-theme-light="false"', "vscode-dark", 'theme="dark"'))
    assert "run-3" in shown


def test_a_leaf_that_is_mistyped_or_unstated_is_told_apart(tmp_path: Path) -> None:
    (tmp_path / "run.json").write_text(json.dumps(rule_cases.base("cpu")), encoding="utf-8")
    receipt = receipts.load(tmp_path / "run.json")
    with pytest.raises(KeyError, match=r"no leaf batch\.micro_bath; did you mean batch\.micro_batch"):
        receipt["batch.micro_bath"]
    with pytest.raises(KeyError, match=r"data\.order_seed is not stated"):
        receipt["data.order_seed"]


def test_a_path_is_not_an_open_store() -> None:
    with pytest.raises(TypeError, match=r"open one with receipts\.open"):
        receipts.Store("lab.sqlite")  # type: ignore[arg-type]  # as a notebook may say
