"""The row class of a receipt: its annotations are the columns of the table, and name leaves that there are."""

from __future__ import annotations

import pytest
from sqlalchemy import inspect

from receipts import metrics
from receipts.receipt.leaves import find_leaf
from receipts.store import open_store
from receipts.store.entry import COLUMNS, ENTRY, METRICS, Entry

pytestmark = pytest.mark.slow


@pytest.mark.parametrize("name", [item.name for item in ENTRY.values() if item.path is not None])
def test_a_leaf_of_a_column_is_in_the_catalogue_with_its_unit(name: str) -> None:
    path = ENTRY[name].path
    assert path is not None
    leaf = find_leaf(path)
    assert leaf is not None
    assert leaf.unit in (None, ENTRY[name].unit)
    assert ENTRY[name].comment.startswith(path)


def test_a_metric_of_a_column_is_registered() -> None:
    assert [metrics.get(name).name for name in METRICS] == list(METRICS)
    assert all(ENTRY[name].by_version for name in METRICS)


def test_the_table_has_the_columns_of_the_class_and_no_other(store_url: str) -> None:
    with open_store(store_url) as store:
        columns = inspect(store.database.engine).get_columns("receipts")
    assert {item["name"]: item["nullable"] for item in columns} == {
        item.name: not item.required for item in ENTRY.values()
    }
    assert [name for name in Entry._fields if name not in COLUMNS] == ["superseded_by", "stands"]
