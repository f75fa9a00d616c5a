"""What a report was computed from, as Parquet: every receipt that it looked at, and every comparison that it made.

Both follow the schema of an export (`receipts.workflows.datasets`): the same names, types and metadata, and a receipt's
id leads from either to `report.json`, and from there to the page. The same store, ``as of`` and rules give the same
bytes, as long as the version of pyarrow, which signs its files, is the same.
"""

from __future__ import annotations

import io
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final

from receipts.judging.verdict import Level
from receipts.questions.week.collect import Basis, Looked, WeekData

if TYPE_CHECKING:
    from receipts.questions.week.data import JudgedPair
    from receipts.workflows.datasets import Dataset


FORMAT: Final = "receipts-report"
VERSION: Final = 1
FILES: Final = ("comparisons.parquet", "receipts.parquet")
_LEVEL: Final = 6  # of zstd, as an export has it
_DOCUMENT: Final = ("axes", "document", "document_bytes", "superseded_reason", "superseded_at")
_CONSTANT: Final = ("judged_rules", "judged_at")  # said once, in the metadata of the file


@lru_cache(maxsize=1)
def datasets() -> Mapping[str, Dataset]:
    """Both datasets by the names of their files, without the ending."""
    from receipts.workflows.datasets import Dataset, DatasetField
    from receipts.workflows.datasets import datasets as exported

    held = [item for item in exported()["receipts"].fields if item.name not in (*_DOCUMENT, *_CONSTANT)]
    own = (
        DatasetField(
            "judged_errors", "strings", "Codes of the rules of level E that it offends under the report's rules"
        ),
        DatasetField("in_interval", "bool", "Whether it ran in the report's interval; else it was compared with", True),
    )
    side = "Ids of the launches of side {}, oldest first"
    pairs = (
        DatasetField("lane", "string", "Lane of B", True),
        DatasetField("a", "strings", side.format("A"), True),
        DatasetField("b", "strings", side.format("B"), True),
        DatasetField("metric", "string", "What was compared", True),
        DatasetField("status", "string", "accepted, rejected, inconclusive: after Holm over the report", True),
        DatasetField("comparable", "string", "yes, unknown, no", True),
        DatasetField("path", "string", "witnessed, unwitnessed, left", True),
        DatasetField("effect", "string", "faster, slower, equivalent, ambiguous, indicated, unproven", True),
        DatasetField("counted", "strings", "Axes that changed and count", True),
        DatasetField("unknown", "strings", "Axes that nobody can call equal", True),
        DatasetField("ratio", "double", "B over A of the metric; null where there is none"),
        DatasetField("low", "double", "Lower end of its 95 % interval, unadjusted"),
        DatasetField("high", "double", "Upper end of its 95 % interval, unadjusted"),
        DatasetField("stated", "bool", "Whether the numbers are as stated, so that no effect follows", True),
        DatasetField("codes", "strings", "Codes of what refuses it or leaves it open", True),
    )
    intro = "Receipts that the report looked at: of the interval, and what these were compared with"
    return {
        "receipts": Dataset("receipts", intro, (*held, *own)),
        "comparisons": Dataset(
            "comparisons", "Comparisons of the report, those that its page leaves out as well", pairs
        ),
    }


def parquet(basis: Basis, data: WeekData) -> dict[str, bytes]:
    """Both files by name."""
    about = {
        "format": f"{FORMAT}/{VERSION}",
        "store": data.store,
        "rules": data.rules,
        "judge": data.judge,
        "since": data.since.isoformat(),
        "until": data.until.isoformat(),
        "as_of": data.as_of.isoformat(),
    }
    pairs = (_pair(lane, item) for lane in sorted(basis.compared) for item in basis.compared[lane])
    return {
        "comparisons.parquet": _file(datasets()["comparisons"], pairs, about),
        "receipts.parquet": _file(datasets()["receipts"], map(_receipt, basis.looked), about),
    }


def _receipt(item: Looked) -> dict[str, Any]:
    row = item.entry._asdict()
    row["number"], row["run_lane"] = row.pop("seq"), row.pop("lane")
    row["superseded_by"] = row["superseded_by"] or None
    verdict = item.verdict
    row |= dict.fromkeys(("judged_status", "judged_path", "judged_taints", "judged_errors"))
    if verdict is not None:
        row["judged_status"], row["judged_path"] = verdict.status, verdict.path
        row["judged_taints"] = [kind.value for kind in verdict.tainted]
        errors = (finding.code for finding in verdict.findings if finding.level is Level.ERROR)
        row["judged_errors"] = list(dict.fromkeys(errors))
    row["in_interval"] = item.in_interval
    return row


def _pair(lane: str, item: JudgedPair) -> dict[str, Any]:
    names = ("metric", "status", "comparable", "path", "effect", "counted", "unknown", "ratio", "low", "high", "stated")
    return {
        **{name: getattr(item, name) for name in names},
        "lane": lane,
        "a": [ref.id for ref in item.a],
        "b": [ref.id for ref in item.b],
        "codes": list(dict.fromkeys(reason.code for reason in item.reasons)),
    }


def _file(dataset: Dataset, rows: Iterable[dict[str, Any]], about: Mapping[str, str]) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    from receipts.workflows.datasets import arrow_schema

    wanted = arrow_schema(dataset)
    wanted = wanted.with_metadata({**wanted.metadata, **{name.encode(): text.encode() for name, text in about.items()}})
    buffer = io.BytesIO()
    pq.write_table(
        pa.Table.from_arrays(_columns(rows, wanted), schema=wanted),
        buffer,
        compression="zstd",
        compression_level=_LEVEL,
        version="2.6",
        store_schema=True,
    )
    return buffer.getvalue()


def _columns(rows: Iterable[dict[str, Any]], wanted: Any) -> Any:
    """Rows as columns of a schema, by way of JSON lines.

    `pyarrow.array` imports pandas, where there is one, before it takes a list: that costs five times what writing the
    Parquet of a week does.
    """
    import orjson
    import pyarrow as pa
    from pyarrow.json import ParseOptions, ReadOptions, read_json

    lines = b"\n".join(map(orjson.dumps, rows))
    if not lines:
        return wanted.empty_table().columns
    whole = ReadOptions(use_threads=False, block_size=len(lines) + 1)
    known = ParseOptions(explicit_schema=wanted, unexpected_field_behavior="ignore")
    return read_json(pa.BufferReader(lines), whole, known).columns
