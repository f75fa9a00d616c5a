"""A question is one declaration: what it says of itself, and what it may load."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import click
import pytest

import receipts
from command_line import Shell
from receipts.api.question import every, integer, read_value
from receipts.api.questions.compare import compare
from receipts.base.errors import UsageError
from receipts.cli.group import group

HEAVY = ("pydantic", "sqlalchemy", "pandas", "receipts.store", "receipts.judging", "receipts.publish", "click")


def test_a_declaration_loads_neither_what_answers_it_nor_a_store() -> None:
    code = "import sys; from receipts.api.question import every; every(); print(*sorted(sys.modules))"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert "receipts.api.questions.compare" in loaded
    assert [name for name in loaded if name in HEAVY] == []


def test_every_parameter_says_what_it_is_and_every_default_is_one_of_its_choices() -> None:
    for question in every().values():
        assert question.summary
        for item in question.parameters:
            assert item.how.help or item.name == "order", (question.name, item.name)
            choices = item.how.kind.schema.get("enum")
            if choices and isinstance(item.default, str):
                assert item.default in choices, (question.name, item.name)


def test_every_question_is_a_command_in_every_form() -> None:
    context = click.Context(group)
    for question in every().values():
        if not question.verb:
            continue
        found: click.Command = group
        for word in question.name.split():
            assert isinstance(found, click.Group)
            found = found.get_command(context, word) or pytest.fail(question.name)
        options = {flag for item in found.params for flag in item.opts}
        assert {"--format", "--json"} <= options, question.name


def test_a_waiver_is_read_alike_with_its_quotes_and_without() -> None:
    waivers = next(item for item in compare.parameters if item.name == "waivers")
    for text in ('flags.X="why"', "flags.X=why", " flags.X = 'why' "):
        assert read_value(waivers, "waive", [text]) == {"flags.X": "why"}
    with pytest.raises(UsageError, match=r'^waive flags.X=""'):
        read_value(waivers, "waive", ['flags.X=""'])


def test_a_bound_of_a_request_is_none_of_the_command() -> None:
    assert integer(1, remote=100).schema == {"type": "integer", "minimum": 1, "maximum": 100}


def test_python_refuses_a_parameter_that_is_none(shell: Shell) -> None:
    with receipts.open(create=True) as store:
        with pytest.raises(TypeError, match="metrik"):
            store.compare("a", "b", metrik="mfu")  # type: ignore[call-arg]
        with pytest.raises(AttributeError, match="no attribute 'guess'"):
            store.guess("a")


def test_one_document_of_a_label_is_an_object_and_several_are_a_list(shell: Shell) -> None:
    for name in ("a", "b"):
        shell.store(name, run__label="both")
    shell.store("c")
    assert [item["id"] for item in shell("show", "both", "--json").json] == [shell.made["b"], shell.made["a"]]
    assert shell("show", "c", "--json").json["id"] == shell.made["c"]


def test_rows_of_an_answer_are_a_table_of_text(shell: Shell) -> None:
    shell.store("a")
    header, row = shell("list", "--format", "csv").lines
    assert dict(zip(header.split(","), row.split(","), strict=False))["label"] == "a"
    assert shell("list", "--format", "html").out.lower().startswith("<!doctype html>")


def test_a_gate_is_in_the_json_and_its_file_is_refused_without_one(shell: Shell) -> None:
    a, b = shell.write("a"), shell.write("b", batch__micro_batch=2)
    gate = shell("compare", a, b, "--require", "faster", "--json").json["gate"]
    assert (gate["require"], gate["answer"] in ("holds", "fails", "open")) == ("faster", True)
    assert "gate" not in shell("compare", a, b, "--json").json
    refused = shell("compare", a, b, "--junit", "gate.xml")
    assert (refused.code, "add --require" in refused.err) == (2, True)
    assert not Path("gate.xml").exists()
