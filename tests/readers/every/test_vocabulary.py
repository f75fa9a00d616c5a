"""The tables of names: each is sound, each leaf exists, and no name means two things."""

from __future__ import annotations

import json
import types
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import jsonschema
import pytest

from receipts.emit.contract import contract
from receipts.emit.probes import megatron as probe
from receipts.ingest import megatron, tracker, vocabulary
from receipts.ingest.reader import line_readers
from receipts.ingest.reading import Reading
from receipts.ingest.steps import FIELDS

if TYPE_CHECKING:
    from receipts.emit.probing import ProbeOutput

SCHEMA = Path(vocabulary.__file__).with_name("tables") / "schema.json"
TABLES = vocabulary.tables()


def table(name: str) -> dict[str, Any]:
    return dict(vocabulary.table(name))


@pytest.mark.parametrize("name", TABLES)
def test_a_table_follows_the_schema(name: str) -> None:
    schema = json.loads(SCHEMA.read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(table(name), schema)


def test_every_framework_whose_names_a_tracker_has_is_asked() -> None:
    assert {table(name)["tracker"]["framework"] for name in TABLES if "tracker" in table(name)} == {
        dialect.framework for dialect in tracker.DIALECTS
    }


@pytest.mark.parametrize("name", TABLES)
def test_a_line_has_a_field_of_a_step(name: str) -> None:
    fields = {label.field for label in vocabulary.line(name).values()}
    assert not fields or fields & set(FIELDS)


@pytest.mark.parametrize("name", [name for name in TABLES if "arguments" in table(name)])
def test_arguments_state_leaves_of_the_receipt_and_each_name_one(name: str) -> None:
    arguments = table(name)["arguments"]
    assert {path for path in arguments if not path.startswith("features.")} <= contract().leaves.keys()
    names = [spelling for entry in arguments.values() for spelling in entry["names"]]
    assert len(names) == len(set(names))


def test_the_recorder_and_the_reader_of_logs_state_the_same_leaves_of_the_same_arguments() -> None:
    given: dict[str, Any] = {
        name: 2 for entry in table("megatron")["arguments"].values() for name in entry["names"][:1]
    }
    given |= {"params_dtype": "torch.bfloat16", "exp_avg_dtype": "torch.float32", "sequence_parallel": True}
    given |= {"optimizer": "adam", "lr": 0.5, "num_experts": 8, "hybrid_layer_pattern": "M*", "spec": "a"}
    given |= {"use_distributed_optimizer": True, "attention_backend": "fused", "transformer_impl": "transformer_engine"}
    reading = Reading("megatron")
    megatron.state_arguments(reading, {name: (str(value), 1) for name, value in given.items()})
    recorded: dict[str, Any] = {}
    probe.state(cast("ProbeOutput", _Stated(recorded)), probe.MegatronArguments(types.SimpleNamespace(**given)))
    logged = {path: stated.value for path, stated in reading.stated.items()}
    assert {path: value for path, value in recorded.items() if not path.startswith("path.witnessed")} == logged


class _Stated:
    """What a probe states, without the contract's checks."""

    rank = 0

    def __init__(self, into: dict[str, Any]) -> None:
        self._into = into

    def inputs(self, name: str, entries: dict[str, Any]) -> None:
        """The arguments themselves, which no log states."""

    def put(self, path: str, value: Any) -> None:
        if value is not None:
            self._into[path] = value

    def note(self, text: str) -> None:
        raise AssertionError(text)


@pytest.mark.parametrize("name", [name for name in TABLES if "statements" in table(name)])
def test_a_statement_is_of_a_leaf_of_the_receipt(name: str) -> None:
    paths = {path for path in table(name)["statements"] if not path.startswith(("features.", "wheels."))}
    assert paths <= contract().leaves.keys()


def test_the_order_of_readings_names_line_readers_alone() -> None:
    known = {kind.source for kind in line_readers()} | {f"{kind.source}:{kind.__name__}" for kind in line_readers()}
    assert set(vocabulary.order()) <= known
