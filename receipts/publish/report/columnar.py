"""Python values as Arrow arrays, built from their buffers.

`pyarrow.array` imports pandas, where there is one, before it takes a list: that costs five times what writing the
Parquet of a week does.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from itertools import accumulate
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from receipts.workflows.export.datasets import Kind

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND: Final = timedelta(microseconds=1)


def column(values: Sequence[Any], kind: Kind, type_: Any) -> Any:
    """An array of a kind of `receipts.workflows.export.datasets`; None is null. Raises KeyError for a kind that is not
    built."""
    return _BUILT[kind](values, type_)


def _numbers(code: str) -> Callable[[Sequence[Any], Any], Any]:
    def build(values: Sequence[Any], type_: Any) -> Any:
        return _array(type_, values, array(code, (0 if value is None else value for value in values)))

    return build


def _moments(values: Sequence[datetime | None], type_: Any) -> Any:
    counted = (0 if value is None else (value - _EPOCH) // _MICROSECOND for value in values)
    return _array(type_, values, array("q", counted))


def _flags(values: Sequence[bool | None], type_: Any) -> Any:
    return _array(type_, values, _bits(bool(value) for value in values))


def _texts(values: Sequence[str | None], type_: Any) -> Any:
    held = [b"" if value is None else value.encode("utf-8", "backslashreplace") for value in values]
    return _array(type_, values, _offsets(map(len, held)), b"".join(held))


def _lists(values: Sequence[Sequence[str] | None], type_: Any) -> Any:
    inner = _texts([item for value in values if value is not None for item in value], type_.value_type)
    offsets = _offsets(0 if value is None else len(value) for value in values)
    return _array(type_, values, offsets, children=[inner])


def _array(type_: Any, values: Sequence[Any], *buffers: Any, children: Sequence[Any] | None = None) -> Any:
    import pyarrow as pa

    present = [value is not None for value in values]
    bitmap = None if all(present) else pa.py_buffer(_bits(present))
    held = [bitmap, *map(pa.py_buffer, buffers)]
    return pa.Array.from_buffers(type_, len(values), held, children=children)


def _offsets(lengths: Iterable[int]) -> array[int]:
    return array("i", accumulate(lengths, initial=0))


def _bits(flags: Iterable[bool]) -> bytes:
    """Eight to a byte, the first in its lowest bit."""
    values = list(flags)
    eights = (values[at : at + 8] for at in range(0, len(values), 8))
    return bytes(sum(1 << place for place, flag in enumerate(eight) if flag) for eight in eights)


_BUILT: Final[Mapping[Kind, Callable[[Sequence[Any], Any], Any]]] = {
    "string": _texts,
    "int64": _numbers("q"),
    "double": _numbers("d"),
    "bool": _flags,
    "timestamp": _moments,
    "strings": _lists,
}
