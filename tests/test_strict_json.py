"""The quick reader of documents answers only where the exact one would refuse nothing, and answers the same."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from receipts.errors import InputError
from receipts.metrics.lazy import Lazy
from receipts.receipt.load import MAX_DEPTH, Document, _exact, _plain, parse_json

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=4), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(max_size=4), VALUES, max_size=5), st.sampled_from([None, 1]), st.booleans())
def test_both_readers_give_the_same_tree(tree: dict[str, Any], indent: int | None, escaped: bool) -> None:
    try:
        raw = json.dumps(tree, indent=indent, ensure_ascii=escaped, separators=(",", " : ")).encode()
    except UnicodeEncodeError:
        return
    quick = _plain(raw)
    if quick is not None:
        assert repr(quick) == repr(_exact("run.json", raw, raw.decode()))


def test_a_plain_receipt_is_read_by_the_quick_reader() -> None:
    assert _plain(b'{"a": {"b": [1, 2.5e-3, {"c" : "x: y"}]}}') == {"a": {"b": [1, 0.0025, {"c": "x: y"}]}}


def test_a_text_that_looks_like_a_key_is_left_to_the_exact_reader() -> None:
    raw = b'{"a": "\\": 1"}'
    assert _plain(raw) is None
    assert parse_json(Document(raw, "run.json")) == {"a": '": 1'}


@pytest.mark.parametrize(
    "raw",
    [
        b'{"a": 1, "a" : 2}',
        b'{"a": 1, "\\u0061": 2}',
        b'{"x": [{"a": 1, "a"\n: 2}]}',
        b'{"a": 1e400}',
        b'{"a": 12345678901234567890123456}',
        b'{"a": "\\ud800"}',
        b'{"a":' * (MAX_DEPTH + 1) + b"1" + b"}" * (MAX_DEPTH + 1),
    ],
)
def test_what_the_exact_reader_refuses_passes_no_quick_one(raw: bytes) -> None:
    assert _plain(raw) is None
    with pytest.raises(InputError):
        parse_json(Document(raw, "run.json"))


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
