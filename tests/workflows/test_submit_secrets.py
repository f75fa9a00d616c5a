"""A store keeps what it was given: a document with a secret in it is refused, with the place."""

from __future__ import annotations

import json

import pytest

from planted import HONEST, ISSUED, NAMED
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


def _taken(url: str, notes: dict[str, dict[str, str]]) -> list[str]:
    tree = json.loads(raw())
    documents = [Document(json.dumps(tree | {"notes": entries}).encode(), name) for name, entries in notes.items()]
    with open_store(url) as store:
        ended = submit(documents, store, RULEBOOK)
        return [name for name, item in zip(notes, ended, strict=True) if not isinstance(item.error, InputError)]


def test_no_kind_of_secret_is_taken_even_behind_an_escape_sequence_or_as_a_name(made_url: str) -> None:
    kinds = ISSUED | {kind: text for kind, (text, _) in NAMED.items() if "?" not in text}
    planted = {kind: {"how": f"a note\n{text}"} for kind, text in kinds.items()}
    planted |= {"a name": {ISSUED["github"]: "x"}, "under a name": {"db_password": "hunter2pass"}}
    assert _taken(made_url, planted) == []


def test_honest_texts_are_taken(made_url: str) -> None:
    honest = {text: {"how": text, "pad_token_id": "0"} for text in HONEST}
    assert _taken(made_url, honest) == HONEST
