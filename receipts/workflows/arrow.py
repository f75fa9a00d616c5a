"""Datasets as Arrow has them: schemas with what every field is, and rows as tables.

A field's metadata has `says`, and where there are such `path` (JSON path in the document) and `unit`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import pyarrow as pa

from receipts.workflows.datasets import FORMAT, VERSION, Dataset, DatasetField, Kind, Row


@lru_cache(maxsize=1)
def _types() -> dict[Kind, Any]:
    return {
        "string": pa.string(),
        "int64": pa.int64(),
        "double": pa.float64(),
        "bool": pa.bool_(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "strings": pa.list_(pa.field("element", pa.string(), nullable=False)),
        "subjects": pa.list_(
            pa.field(
                "element",
                pa.struct(
                    [pa.field("side", pa.string(), nullable=False), pa.field("receipt", pa.string(), nullable=False)]
                ),
                nullable=False,
            )
        ),
        "axes": pa.map_(pa.string(), pa.field("value", pa.string(), nullable=False)),
    }


def schema(dataset: Dataset) -> Any:
    """The Arrow schema of a dataset, without the folders' `lane` and `week`."""
    about = {"format": f"{FORMAT}/{VERSION}", "dataset": dataset.name, "description": dataset.description}
    return pa.schema([_field(field) for field in dataset.fields], metadata=about)


def _field(field: DatasetField) -> Any:
    about = {"description": field.description, "path": f"$.{field.path}" if field.path else None, "unit": field.unit}
    metadata = {name: text for name, text in about.items() if text is not None}
    return pa.field(field.name, _types()[field.kind], nullable=not field.required, metadata=metadata)


def table(dataset: Dataset, rows: Sequence[Row]) -> Any:
    """Rows as a table of the dataset's schema."""
    wanted = schema(dataset)
    columns = [
        pa.array(
            [list(row[field.name].items()) if field.kind == "axes" else row[field.name] for row in rows],
            type=wanted.field(field.name).type,
        )
        for field in dataset.fields
    ]
    return pa.Table.from_arrays(columns, schema=wanted)


def rows(batch: Any) -> list[Row]:
    """The rows of a table or batch; a map is a dictionary again."""
    batch_rows: list[Row] = batch.to_pylist(maps_as_pydicts="strict")
    return batch_rows
