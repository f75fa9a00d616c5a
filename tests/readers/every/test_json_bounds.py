"""A streamed document cannot nest or hold a text without bound, wherever its blocks are cut."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from receipts.ingest import reader
from receipts.ingest.reader import MAX_DEPTH, FileReader, JsonBounds
from receipts.ingest.reading import Reading
from receipts.ingest.source import Source
from receipts.readers.nvidia import nsys
from receipts.readers.torch.profiler import TorchTraceReader
from receipts.readers.xla.profile import JaxProfiler

DEEP = b'{"traceEvents": [' + b'{"a":' * 5000 + b"1" + b"}" * 5000 + b"]}"
TEXTS = st.text('a"\\[{]}\u00e9', max_size=4)
TREES = st.recursive(
    st.none() | TEXTS,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXTS, inner, max_size=3),
    max_leaves=8,
)


def _depth(tree: Any) -> int:
    if isinstance(tree, dict | list):
        return 1 + max(map(_depth, tree.values() if isinstance(tree, dict) else tree), default=0)
    return 0


@given(TREES, st.integers(1, 40), st.integers(0, 6), st.booleans())
def test_the_depth_is_that_of_the_document_wherever_it_is_cut(
    tree: Any, size: int, most: int, ascii_only: bool
) -> None:
    raw = json.dumps(tree, ensure_ascii=ascii_only).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "MAX_DEPTH", most)
        bounds = JsonBounds()
        try:
            for at in range(0, len(raw), size):
                bounds.check(raw[at : at + size])
        except ValueError:
            assert _depth(tree) > most
        else:
            assert _depth(tree) <= most


def test_a_text_without_end_is_refused_and_a_long_document_of_short_ones_is_not(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reader, "MAX_TEXT", 100)
    long = JsonBounds()
    long.check(b'["' + b"x" * 90)
    with pytest.raises(ValueError, match="a text in it is longer"):
        long.check(b"x" * 20)
    short = JsonBounds()
    for _ in range(50):
        short.check(b'["xxxxxxxx"],')


@pytest.mark.parametrize("reader", [TorchTraceReader, JaxProfiler])
def test_a_trace_that_nests_without_end_is_broken_and_read_as_far_as_it_goes(
    reader: type[FileReader], tmp_path: Path
) -> None:
    path = tmp_path / "trace.json"
    path.write_bytes(DEEP)
    source = Source(path, path.name)
    readings = reader().read(source)
    texts = [remark.text for reading in readings for remark in reading.remarks]
    assert any(f"nests deeper than {MAX_DEPTH} levels" in text for text in [*texts, source.broken])


def test_a_database_with_a_huge_text_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(nsys, "MAX_TEXT", 1000)
    path = tmp_path / "report.sqlite"
    with sqlite3.connect(path) as database:
        database.execute("CREATE TABLE StringIds (id INTEGER, value TEXT)")
        database.execute("CREATE TABLE CUPTI_ACTIVITY_KIND_KERNEL (shortName INTEGER, start INTEGER, end INTEGER)")
        database.execute("INSERT INTO StringIds VALUES (1, ?)", ("x" * 5000,))
        database.execute("INSERT INTO CUPTI_ACTIVITY_KIND_KERNEL VALUES (1, 0, 10)")
    database.close()
    reading = Reading("nsys")
    nsys.read_database(reading, Source(path, path.name))
    assert any("too big" in remark.text for remark in reading.remarks)
