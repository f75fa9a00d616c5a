"""How well performance statements are told from other numbers, on prose made and labelled for it.

`heldout-*` was written and labelled before the first rule of the detector; `tuned-*` was used for the rules. The bars
are asserted for the whole; the held-out part has bars of its own, so that it shows a rule that was fitted to the rest.
"""

from __future__ import annotations

import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

pytestmark = pytest.mark.slow

CORPUS = Path(__file__).parent / "corpus"


@pytest.fixture(scope="module")
def bench(checkout: Path) -> ModuleType:
    """``benchmarks/lint_corpus.py``, loaded from its file."""
    spec = importlib.util.spec_from_file_location("lint_corpus", checkout / "benchmarks" / "lint_corpus.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


def test_the_corpus_is_as_large_and_as_mixed_as_it_says(bench: ModuleType) -> None:
    lines = [line for path in CORPUS.glob("*.md") for line in path.read_text().splitlines()]
    written = [line for line in lines if re.search(r"\w", line) and not line.startswith("```")]
    labels = list(bench.read_labels(CORPUS / "labels.jsonl"))
    marked = {(label.file, label.line) for label in labels}
    assert len(written) >= 250
    assert len(labels) >= 180
    assert len(written) - len(marked) >= 120, "statements alone show no precision"
    assert {label.file.split("-")[0] for label in labels} == {"heldout", "tuned"}


def test_a_label_stands_where_it_says(bench: ModuleType) -> None:
    for label in bench.read_labels(CORPUS / "labels.jsonl"):
        line = (CORPUS / label.file).read_text().splitlines()[label.line - 1]
        assert line[label.column - 1 : label.end - 1] == label.text


def test_statements_are_found_with_the_precision_and_recall_that_are_promised(bench: ModuleType) -> None:
    total = bench.score(CORPUS)
    assert total.precision >= 0.95, total.wrong
    assert total.recall >= 0.90, total.missed


def test_prose_that_no_rule_was_fitted_to_comes_out_nearly_as_well(bench: ModuleType) -> None:
    total = bench.score(CORPUS, "heldout-*")
    assert total.precision >= 0.93, str(total)
    assert total.recall >= 0.90, str(total)


def test_a_wrong_and_a_missed_statement_are_counted(bench: ModuleType, tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text("We measured 98k tok/s.\n\nIt takes a long while.\n")
    (tmp_path / "labels.jsonl").write_text('{"file": "a.md", "line": 3, "column": 4, "length": 5}\n')
    total = bench.score(tmp_path)
    assert (total.precision, total.recall) == (0.0, 0.0)
    assert len(total.wrong) == len(total.missed) == 1
