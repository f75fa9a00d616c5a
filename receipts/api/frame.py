"""Tables for pandas: rows of an answer, and the steps of launches.

Columns are text, integers, numbers, truth values or times, and each may lack a value.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final

from receipts.base.environment import extra

if TYPE_CHECKING:
    import pandas as pd

    from receipts.metrics import Launch

STEPS: Final[dict[str, Any]] = {
    "receipt": "string",
    "label": "string",
    "step": "Int64",
    "seconds": "Float64",
    "steady": "boolean",
}
_DTYPES: Final = (({bool}, "boolean"), ({int}, "Int64"), ({int, float}, "Float64"), ({datetime}, "datetime64[us, UTC]"))


def frame_of_rows(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> pd.DataFrame:
    """A table of rows: ``string``, ``Int64``, ``Float64``, ``boolean`` or ``datetime64[us, UTC]`` columns.

    Lists and maps are JSON texts. ``columns`` come first, whether or not a row has them.
    """
    pandas = extra("pandas", "data", "a table")
    names = dict.fromkeys([*columns, *(name for row in rows for name in row)])
    frame: pd.DataFrame = pandas.DataFrame({name: _column([row.get(name) for row in rows]) for name in names})
    return frame


def _column(values: list[Any]) -> Any:
    stated = [value for value in values if value is not None]
    kinds = {type(value) for value in stated}
    dtype: Any = next((dtype for known, dtype in _DTYPES if kinds and kinds <= known), "string")
    if dtype == "string":
        values = [value if value is None or isinstance(value, str) else _json(value) for value in values]
    elif dtype == "Int64" and any(abs(value) >= 2**63 for value in stated):
        dtype = "Float64"
    return extra("pandas", "data").array(values, dtype=dtype)


def _json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False, default=str)


def frame_of_steps(launches: Iterable[Launch]) -> pd.DataFrame:
    """A row for each step, in order: receipt, label, step (from 0), seconds, and whether it is in the steady segment.

    A launch whose steps are not kept has no rows.
    """
    pandas = extra("pandas", "data", "a table")
    columns: dict[str, list[Any]] = {name: [] for name in STEPS}
    for launch in launches:
        segment, count = launch.segment, len(launch.durations)
        steady = set(segment.of(range(count))) if segment is not None and segment.status == "steady" else ()
        columns["receipt"] += [launch.parsed.id] * count
        columns["label"] += [launch.parsed.name] * count
        columns["step"] += range(count)
        columns["seconds"] += launch.durations
        columns["steady"] += [step in steady for step in range(count)]
    frame: pd.DataFrame = pandas.DataFrame(
        {name: pandas.array(values, dtype=STEPS[name]) for name, values in columns.items()}
    )
    return frame
