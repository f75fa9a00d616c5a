"""The quick reader of receipts answers only where the exact one would refuse nothing, and answers the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from receipts.base.errors import InputError
from receipts.metrics.stated import Lazy
from receipts.receipt import parse
from receipts.receipt.load import MAX_DEPTH, MAX_DIGITS, Document, parse_json, surely_strict
from receipts.receipt.parse import Parsed, _modelled

RUN = {
    "launch": "one",
    "lane": "cpu-torch",
    "kind": "training",
    "outcome": "ok",
    "provenance": "measured",
    "started": "2026-11-20T09:00:00Z",
}
TEXTS = st.text(max_size=6, alphabet=st.characters() | st.sampled_from('":{}[],\\ '))
ENTRIES = st.dictionaries(TEXTS, st.booleans() | st.integers() | st.floats() | TEXTS | st.lists(TEXTS), max_size=5)


def receipt(**parts: str) -> Document:
    """A receipt with parts as they are written in JSON."""
    more = "".join(f', "{name}": {text}' for name, text in parts.items())
    return Document(f'{{"schema_version": "1.0", "run": {json.dumps(RUN)}{more}}}'.encode(), "run.json")


def quickly(document: Document) -> Parsed | None:
    """The receipt as `parse` returns it without the exact reader; None where it asks that one."""
    parsed = _modelled(document)
    return parsed if parsed is not None and surely_strict(document.raw, parsed.flat.keys_written) else None


@given(ENTRIES, st.sampled_from([None, 1]), st.booleans())
def test_what_the_quick_reader_takes_the_exact_one_takes_too(
    entries: dict[str, Any], indent: int | None, escaped: bool
) -> None:
    try:
        notes = json.dumps(entries, indent=indent, ensure_ascii=escaped, separators=(",", " : "))
        quick = quickly(receipt(notes=notes))
    except UnicodeEncodeError:
        return
    if quick is not None:
        tree = parse_json(receipt(notes=notes))
        assert quick.receipt == type(quick.receipt).model_validate_json(json.dumps(tree))
        assert (quick.receipt.notes or {}).keys() == entries.keys()


def test_a_plain_receipt_is_read_by_the_quick_reader() -> None:
    quick = quickly(receipt(model='{"hidden" : 64}', flags='{"A": {"value": 1}, "B.c": "x: y"}', evidence="[]"))
    assert quick is not None
    assert quick.stated["flags.A.value"] == 1


def test_a_null_is_a_key_and_states_nothing() -> None:
    quick = quickly(receipt(model='{"hidden": null, "depth": 2}'))
    assert quick is not None
    assert "model.hidden" not in quick.stated


@pytest.mark.parametrize("notes", ['{"a": "\\": 1"}', '{"a": "0", "b": "' + "7" * MAX_DIGITS + '"}'])
def test_what_the_quick_reader_cannot_tell_is_left_to_the_exact_one(notes: str) -> None:
    assert quickly(receipt(notes=notes)) is None
    assert parse(receipt(notes=notes)).receipt.run.launch == "one"


@pytest.mark.parametrize(
    "part",
    [
        '{"a": 1, "a" : 2}',
        '{"a": 1, "\\u0061": 2}',
        '{"a": 1, "a"\n: 2}',
        '{"a": "\\u0022:", "b": 1, "b": 2}',
        '{"a": 1e400}',
        '{"a": NaN}',
        '{"a": -Infinity}',
        '{"a": 12345678901234567890123456}',
        '{"a": -1234567890123456789012345}',
        '{"a": "\\ud800"}',
        '{"a":' * MAX_DEPTH + "1" + "}" * MAX_DEPTH,
    ],
)
@pytest.mark.parametrize("section", ["notes", "features", "wheels"])
def test_what_the_exact_reader_refuses_passes_no_quick_one(section: str, part: str) -> None:
    document = receipt(**{section: part})
    assert quickly(document) is None
    with pytest.raises(InputError):
        parse_json(document)


def test_a_long_integer_keeps_every_digit() -> None:
    assert parse_json(Document(b'{"a": 1234567890123456789012345}', "run.json")) == {"a": 1234567890123456789012345}


def test_a_lazy_sequence_makes_no_more_than_is_looked_at_and_nothing_twice() -> None:
    made: list[int] = []

    def counting() -> Iterator[int]:
        for item in range(5):
            made.append(item)
            yield item

    numbers = Lazy(counting())
    assert next(iter(numbers)) == 0
    assert made == [0]
    one, other = iter(numbers), iter(numbers)
    assert [next(one), next(one), next(other)] == [0, 1, 0]
    assert list(numbers) == [0, 1, 2, 3, 4]
    assert made == [0, 1, 2, 3, 4]
    assert not Lazy(iter(()))
