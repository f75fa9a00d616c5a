"""A store keeps what it was given: a document with a secret in it is refused, with the place."""

from __future__ import annotations

import json

import pytest

from receipts.base.errors import InputError
from receipts.receipt import Document
from receipts.store import open_store
from receipts.workflows.submit import submit
from store_receipts import RULEBOOK, raw

ADDRESS = "s3://KEYID:s3cretkey@bucket/data"


@pytest.mark.parametrize(
    ("section", "leaf", "text"),
    [("run", "label", "hf_" + "a1B2" * 6), ("data", "dataset", ADDRESS), ("notes", "how", ["a", ADDRESS])],
)
def test_a_document_with_a_secret_is_refused_and_its_place_named(
    section: str, leaf: str, text: object, made_url: str
) -> None:
    tree = json.loads(raw())
    tree.setdefault(section, {})[leaf] = text
    with open_store(made_url) as store:
        (ended,) = submit([Document(json.dumps(tree).encode(), "run.json")], store, RULEBOOK)
        assert isinstance(ended.error, InputError)
        assert [problem.at for problem in ended.error.problems] == [f"{section}.{leaf}"]
        assert not store.entries([ended.document.id] if ended.document is not None else [])
