"""The tables of names: each is sound, each leaf exists, and no name means two things."""

from __future__ import annotations

import json
import tomllib
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from receipts.ingest.evidence import vocabulary
from receipts.ingest.evidence.steps import FIELDS

FOLDER = Path(vocabulary.__file__).parent
TABLES = sorted(place.stem for place in FOLDER.glob("*.toml"))


def table(name: str) -> dict[str, Any]:
    return tomllib.loads((FOLDER / f"{name}.toml").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", TABLES)
def test_a_table_follows_the_schema(name: str) -> None:
    schema = json.loads((FOLDER / "schema.json").read_text(encoding="utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(table(name), schema)


@pytest.mark.parametrize("name", TABLES)
def test_a_line_has_a_field_of_a_step(name: str) -> None:
    fields = {label.field for label in vocabulary.line(name).values()}
    assert not fields or fields & set(FIELDS)
