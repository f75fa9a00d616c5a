"""Tables for pandas: columns of text, integers, numbers, truth values and times, each of which may lack a value."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from receipts.store import Entry

if TYPE_CHECKING:
    import pandas as pd

    from receipts.metrics import Launch

# Of the row of a receipt; what a store numbers for itself is left out.
INTERNAL = frozenset({"seq", "generation", "geometry", "layout"})
COLUMNS = tuple(name for name in Entry._fields if name not in INTERNAL)


def of_rows(rows: Sequence[Mapping[str, Any]], columns: Sequence[str] = ()) -> pd.DataFrame:
    """A table of rows: ``string``, ``Int64``, ``Float64``, ``boolean`` or ``datetime64[us, UTC]`` columns.

    Lists and maps are JSON texts. ``columns`` come first, whether or not a row has them.
    """
    import pandas as pd

    names = dict.fromkeys([*columns, *(name for row in rows for name in row)])
    return pd.DataFrame({name: _column([row.get(name) for row in rows]) for name in names})


def _column(values: list[Any]) -> Any:
    import pandas as pd

    kinds = {type(value) for value in values if value is not None}
    if kinds <= {bool} and kinds:
        return pd.array(values, dtype="boolean")
    if kinds <= {int} and kinds and all(value is None or abs(value) < 2**63 for value in values):
        return pd.array(values, dtype="Int64")
    if kinds <= {int, float} and kinds:
        return pd.array([None if value is None else float(value) for value in values], dtype="Float64")
    if kinds and all(hasattr(kind, "isoformat") for kind in kinds):
        return pd.to_datetime(pd.Series(values), utc=True).astype("datetime64[us, UTC]")
    return pd.array([None if value is None else _text(value) for value in values], dtype="string")


def _text(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)


def of_entry(entry: Entry, launch: Launch) -> dict[str, Any]:
    """The row of a stored receipt with the effective value of every axis, by its path."""
    return {**{name: getattr(entry, name) for name in COLUMNS}, **launch.settings.effective}


def of_steps(launches: Iterable[Launch]) -> pd.DataFrame:
    """A row for each step, in order: receipt, label, step (from 0), seconds, and whether it is in the steady segment.

    A launch whose steps are not kept has no rows.
    """
    import numpy as np
    import pandas as pd

    parts = []
    for launch in launches:
        seconds, segment = launch.durations, launch.segment
        steady = np.zeros(len(seconds), dtype=bool)
        if segment is not None and segment.status == "steady":
            steady[segment.of(range(len(seconds)))] = True
        parts.append(
            pd.DataFrame(
                {
                    "receipt": launch.parsed.id,
                    "label": launch.parsed.name,
                    "step": np.arange(len(seconds)),
                    "seconds": np.asarray(seconds, dtype=float),
                    "steady": steady,
                }
            )
        )
    columns = {"receipt": "string", "label": "string", "step": "Int64", "seconds": "Float64", "steady": "boolean"}
    table = pd.concat(parts, ignore_index=True) if parts else pd.DataFrame(columns=list(columns))
    return table.astype(columns)
