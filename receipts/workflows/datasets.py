"""What an export holds: its datasets and their fields, as values. Columns of the store's tables are its fields.

Every field is of a type that DuckDB, Spark and BigQuery all read: see `KINDS`. The report's Parquet files use the
same fields. ``python -m receipts.workflows.datasets`` prints the tables of docs/export.md.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, Final, Literal, NamedTuple

FORMAT: Final = "receipts-export"
VERSION: Final = 1

Row = dict[str, Any]
Kind = Literal["string", "int64", "double", "bool", "timestamp", "strings", "subjects", "axes"]
KINDS: Final[Mapping[Kind, str]] = {
    "string": "text in UTF-8",
    "int64": "64-bit integer",
    "double": "64-bit float",
    "bool": "true or false",
    "timestamp": "microseconds since 1970, UTC",
    "strings": "list of text",
    "subjects": "list of (side, receipt)",
    "axes": "map from text to text",
}


class DatasetField(NamedTuple):
    """One column. `path` is the value's path in the document, `unit` what it is counted in."""

    name: str
    kind: Kind
    description: str
    required: bool = False
    path: str | None = None
    unit: str | None = None


class Dataset(NamedTuple):
    """One kind of rows. A partitioned one lies in folders by lane and week."""

    name: str
    description: str
    fields: tuple[DatasetField, ...]
    partitioned: bool = False


# The order in which an import takes them in, and JSON lines carry them: what was erased or superseded is known before
# a receipt comes, and what speaks of several receipts comes after all of them.
ORDER: Final = (
    *("purges", "supersessions", "receipts", "verdicts", "comparisons", "pins"),
    *("claims", "claim_supersessions", "claim_verdicts", "decisions", "quotes", "incidents", "envelopes"),
    *("erased", "seals"),
)
PLAIN: Final = (
    *("purges", "supersessions", "pins", "claims", "claim_supersessions", "decisions", "quotes"),
    *("incidents", "envelopes", "erased", "seals"),
)
_KIND: Final[Mapping[type, Kind]] = {str: "string", int: "int64", float: "double"}
_JUDGED: Final = (
    DatasetField("judged_status", "string", "Status in its last verdict: valid, open, invalid"),
    DatasetField("judged_path", "string", "Path in its last verdict: witnessed, unwitnessed, left"),
    DatasetField("judged_taints", "strings", "Kinds of metric that an error spoils in that verdict"),
    DatasetField("judged_rules", "string", "Digest of the rule set of that verdict"),
    DatasetField("judged_at", "timestamp", "Time of that verdict"),
)
_STANDING: Final = (
    DatasetField("stands", "bool", "Whether it was neither superseded nor retracted", required=True),
    DatasetField("superseded_by", "string", "Id of the receipt that superseded it; null if it stands or was retracted"),
    DatasetField("superseded_reason", "string", "Why it no longer stands"),
    DatasetField("superseded_at", "timestamp", "When it was superseded or retracted"),
)
_DOCUMENT: Final = (
    DatasetField("axes", "axes", "Every axis leaf's effective value by its path; lists as JSON", required=True),
    DatasetField("document_bytes", "int64", "Length of the document", required=True, unit="bytes"),
    DatasetField("document", "string", "The document byte for byte: its SHA-256 is the id", required=True),
)
_VERDICT: Final = (
    DatasetField("status", "string", "valid, open, invalid", required=True),
    DatasetField("path", "string", "witnessed, unwitnessed, left", required=True),
    DatasetField(
        "taints", "strings", "Kinds of metric that an error spoils: all, rate, mfu, memory, loss", required=True
    ),
    DatasetField("codes", "strings", "Codes of its findings, in order", required=True),
)
_COMPARISON: Final = (
    DatasetField("status", "string", "accepted, rejected, inconclusive", required=True),
    DatasetField("metric", "string", "The metric asked for"),
    DatasetField("comparable", "string", "yes, unknown, no", required=True),
    DatasetField("path", "string", "witnessed, unwitnessed, left", required=True),
    DatasetField("effect", "string", "faster, slower, equivalent, ambiguous, indicated, unproven", required=True),
    DatasetField("codes", "strings", "Codes of its findings, in order", required=True),
)
_GIVEN: Final = (
    DatasetField("rules", "string", "Digest of the rule set", required=True),
    DatasetField("judge", "string", "Version of the judge", required=True),
    DatasetField("judged_at", "timestamp", "When it was judged", required=True),
    DatasetField("document", "string", "The verdict as JSON", required=True),
)
_NUMBER: Final = DatasetField("number", "int64", "The row's number in the store that was exported", required=True)
_SUBJECTS: Final = DatasetField(
    "subjects", "subjects", "The receipts that it is about, each with its side", required=True
)


@lru_cache(maxsize=1)
def datasets() -> Mapping[str, Dataset]:
    """Every dataset by its name, in the order of `ORDER`."""
    from receipts.store.tables import metadata

    judged = DatasetField("receipt", "string", "Id of the receipt that was judged", required=True)
    claim = DatasetField("claim", "string", "Id of the claim", required=True)
    status = DatasetField("status", "string", "supported, refuted, unproven, stale", required=True)
    by_name = {
        "receipts": Dataset(
            "receipts", "One row per receipt, with its document", (*_columns(), *_JUDGED, *_STANDING, *_DOCUMENT), True
        ),
        "verdicts": Dataset(
            "verdicts",
            "Verdicts on single receipts, in the folder of the receipt",
            (_NUMBER, judged, *_VERDICT, *_GIVEN),
            True,
        ),
        "comparisons": Dataset(
            "comparisons", "Comparisons of two groups of receipts", (_NUMBER, _SUBJECTS, *_COMPARISON, *_GIVEN)
        ),
        "claim_verdicts": Dataset("claim_verdicts", "Verdicts on claims", (_NUMBER, claim, status, _SUBJECTS, *_GIVEN)),
    }
    for name in PLAIN:
        table: Any = metadata.tables[name]
        columns = [column for column in table.columns if column.name != "seq" or "number" not in table.columns]
        by_name[name] = Dataset(name, table.comment, tuple(_field(column) for column in columns))
    return {name: by_name[name] for name in ORDER}


def _columns() -> Iterator[DatasetField]:
    """The columns of the table of receipts. What `lane` would be called is the name of a folder."""
    from receipts import metrics
    from receipts.store.entry import ENTRY
    from receipts.store.tables import receipts

    for column in receipts.columns:
        field, item = _field(column), ENTRY[column.name]
        # An export that was written before these came has none; an import reads them from the verdict.
        required = field.required and item.name not in ("tainted", "undecided")
        unit = metrics.get(item.name).unit if item.metric else item.unit
        name = "run_lane" if item.name == "lane" else field.name
        yield field._replace(name=name, path=item.path, unit=unit, required=required)


def _field(column: Any) -> DatasetField:
    from receipts.store.tables import Utc

    if column.name == "seq":
        return _NUMBER
    kind = "timestamp" if isinstance(column.type, type(Utc)) else _KIND[column.type.python_type]
    # AT is a word of SQL's own in DuckDB and BigQuery.
    name = "written_at" if column.name == "at" else str(column.name)
    return DatasetField(name, kind, column.comment, required=not column.nullable)


@lru_cache(maxsize=1)
def _arrow_types() -> dict[Kind, Any]:
    import pyarrow as pa

    def required(name: str, kind: Any) -> Any:
        return pa.field(name, kind, nullable=False)

    subject = pa.struct([required("side", pa.string()), required("receipt", pa.string())])
    return {
        "string": pa.string(),
        "int64": pa.int64(),
        "double": pa.float64(),
        "bool": pa.bool_(),
        "timestamp": pa.timestamp("us", tz="UTC"),
        "strings": pa.list_(required("element", pa.string())),
        "subjects": pa.list_(required("element", subject)),
        "axes": pa.map_(pa.string(), required("value", pa.string())),
    }


def arrow_schema(dataset: Dataset) -> Any:
    """The Arrow schema of a dataset, without the folders' `lane` and `week`.

    A field's metadata has its description, and where there are such `path` (JSON path in the document) and `unit`.
    """
    import pyarrow as pa

    fields = []
    for field in dataset.fields:
        path = f"$.{field.path}" if field.path else None
        about = {"description": field.description, "path": path, "unit": field.unit}
        metadata = {name: text for name, text in about.items() if text is not None}
        fields.append(pa.field(field.name, _arrow_types()[field.kind], nullable=not field.required, metadata=metadata))
    about = {"format": f"{FORMAT}/{VERSION}", "dataset": dataset.name, "description": dataset.description}
    return pa.schema(fields, metadata=about)


def arrow_table(dataset: Dataset, rows: Sequence[Row]) -> Any:
    """Rows as a table of the dataset's schema."""
    import pyarrow as pa

    wanted = arrow_schema(dataset)
    columns = [
        pa.array(
            [list(row[field.name].items()) if field.kind == "axes" else row[field.name] for row in rows],
            type=wanted.field(field.name).type,
        )
        for field in dataset.fields
    ]
    return pa.Table.from_arrays(columns, schema=wanted)


def as_markdown() -> str:
    """One table a dataset."""
    lines = ["| type | in Parquet |", "| --- | --- |", *(f"| {kind} | {storage} |" for kind, storage in KINDS.items())]
    for dataset in datasets().values():
        where = " In folders by lane and week." if dataset.partitioned else ""
        lines += ["", f"### {dataset.name}", "", f"{dataset.description}.{where}", ""]
        lines += ["| field | type | what it is |", "| --- | --- | --- |"]
        for field in dataset.fields:
            path = f" (`{field.path}`)" if field.path and field.path not in field.description else ""
            unit = f", {field.unit}" if field.unit and field.unit not in field.description else ""
            optional = "" if field.required else ", may be null"
            lines.append(f"| `{field.name}` | {field.kind}{optional} | {field.description}{unit}{path} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    sys.stdout.write(as_markdown())
