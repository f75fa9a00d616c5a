"""That a store filled by `benchmarks.scaling.load` is the one that submitting the same documents makes, row by row.

Both begin with launches that were filled in, so that each shape is one that its lane sustained: of a launch that is the
first of its shape a verdict says so, which differs from one batch to the next and from what is filled in.
"""

from __future__ import annotations

import shutil
import tempfile
from itertools import islice
from pathlib import Path
from typing import Any, Final

from sqlalchemy import select

from benchmarks.scaling import load
from benchmarks.scaling.documents import Size
from benchmarks.scaling.launches import launches
from receipts.judging.rulebook import Rulebook
from receipts.receipt import Document
from receipts.store import open_store
from receipts.store.entries import unpack
from receipts.store.tables import metadata
from receipts.workflows.submit import BATCH, submit

# When a row was written, and the store's own id.
_OF_ITS_OWN: Final = {"submitted_at", "judged_at", "at", "created_at"}


BEFORE: Final = 2200  # launches that are there before: a state of the code has fewer


def differences(count: int, size: Size, before: int = BEFORE) -> list[str]:
    """Rows that differ between the two ways to store so many launches, as text; none is what it must give."""
    some = list(islice(launches(), before + count))
    with tempfile.TemporaryDirectory() as place:
        filled, submitted = Path(place) / "filled.sqlite", Path(place) / "submitted.sqlite"
        load.store(filled, some[:before], size, load.AT_ONCE)
        shutil.copy(filled, submitted)
        load.store(filled, some[before:], size, BATCH)
        documents = [Document(raw, "scale") for raw in _documents(filled)[before:]]
        with open_store(str(submitted)) as opened:
            for outcome in submit(documents, opened, Rulebook()):
                assert outcome.submitted is not None, outcome.error
                assert outcome.submitted.new
        one, other = _tables(filled), _tables(submitted)
    return [
        f"{name}: {left} is not {right}"
        for name in one
        for left, right in zip(one[name], other[name], strict=False)
        if left != right
    ] + [f"{name}: {len(one[name])} and {len(other[name])} rows" for name in one if len(one[name]) != len(other[name])]


def _documents(path: Path) -> list[bytes]:
    with open_store(str(path)) as opened, opened.database.reading() as connection:
        documents = metadata.tables["documents"]
        rows = connection.execute(select(documents).order_by(documents.c.receipt))
        return [unpack(row.codec, row.body, "a document") for row in rows]


def _tables(path: Path) -> dict[str, list[tuple[Any, ...]]]:
    found = {}
    with open_store(str(path)) as opened, opened.database.reading() as connection:
        for table in metadata.sorted_tables:
            columns = [column for column in table.columns if column.name not in _OF_ITS_OWN]
            if table.name != "stores":
                query = select(*columns).order_by(*table.primary_key.columns)
                found[table.name] = [tuple(row) for row in connection.execute(query)]
    return found
