"""Reading an export back, whichever form it has: rows in `ORDER`, a few hundred at once, each value of its kind."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from itertools import chain
from pathlib import Path
from typing import Any, Final, Literal

import orjson
from pydantic import AwareDatetime, BaseModel, ConfigDict, ValidationError, create_model

from receipts.base.environment import extra
from receipts.base.errors import InputError, Problem, UsageError
from receipts.base.files import SMALL, read_small
from receipts.plugins.exchange.export import ABOUT
from receipts.workflows.datasets import FORMAT, ORDER, VERSION, Dataset, Kind, Row, arrow_schema, datasets

_CHUNK: Final = 250
_MAX_LINE: Final = 64 * 2**20  # a document of 16 MiB as a JSON text, with its verdict
_MADE: Final = "write it again with: receipts export"
Part = tuple[str, list[Row]]


@dataclass(frozen=True)
class ExportSource:
    """An export that can be read. `store` is the id of the store that it came from, `rows` how many rows there are.

    `parts` gives rows by dataset; after receipts come their verdicts.
    """

    place: str
    store: str
    whole: bool
    rows: Mapping[str, int]
    parts: Callable[[], Iterator[Part]]


def source(place: Path) -> ExportSource:
    """The export at a place: a folder of Parquet, or a file of JSON lines.

    Raises UsageError if there is none, and InputError for one that is cut off, damaged or of a newer version.
    """
    if place.is_dir():
        return _folder(place)
    if not place.exists():
        raise UsageError(f"{place}: there is no such file or folder; name what `receipts export` wrote")
    return _file(place)


def _about(place: Path, manifest: Any) -> Mapping[str, Any]:
    """What an export says of itself, checked."""
    if not isinstance(manifest, dict) or manifest.get("format") != FORMAT:
        raise _wrong(place, "", "this is not an export of receipts", _MADE)
    if manifest.get("version") != VERSION:
        newer = f"it has version {manifest.get('version')}, and this program reads {VERSION}"
        raise _wrong(place, "version", newer, "upgrade the program: pip install --upgrade frontier-receipts")
    store = manifest.get("store")
    if not isinstance(store, dict) or not isinstance(store.get("id"), str):
        raise _wrong(place, "store.id", "it does not say which store it came from", _MADE)
    return manifest


def _wrong(place: Path | str, at: str, what: str, do: str) -> InputError:
    return InputError(str(place), [Problem(at, what, do)])


# Parquet


def _folder(place: Path) -> ExportSource:
    try:
        manifest = _about(place, orjson.loads(read_small(place / ABOUT)))
        held = manifest["datasets"]
        files = {name: list(held[name]["files"].items()) for name in ORDER}
        rows = {name: int(held[name]["rows"]) for name in ORDER}
    except FileNotFoundError:
        raise _wrong(
            place, "", f"there is no {ABOUT} in this folder", "name the folder that receipts export wrote"
        ) from None
    except (orjson.JSONDecodeError, KeyError, TypeError, ValueError, AttributeError):
        raise _wrong(place, ABOUT, "it is damaged", _MADE) from None
    except OSError as error:
        raise UsageError(f"{place}: {error.strerror}; check its permissions") from None
    problems = []
    for file, size in chain.from_iterable(files.values()):
        path = place / file
        inside = not Path(file).is_absolute() and ".." not in Path(file).parts
        if not inside or not path.is_file():
            problems.append(Problem(file, "it is not there", "copy the folder again, whole"))
        elif path.stat().st_size != size:
            problems.append(
                Problem(file, f"it has {path.stat().st_size:,} bytes, not {size:,}", "copy it again, whole")
            )
    if problems:
        raise InputError(str(place), problems)
    names = {name: [file for file, _ in by_dataset] for name, by_dataset in files.items()}
    return ExportSource(
        str(place), manifest["store"]["id"], bool(manifest.get("whole")), rows, lambda: _parts(place, names)
    )


def _parts(place: Path, files: Mapping[str, Sequence[str]]) -> Iterator[Part]:
    for name in ORDER:
        if name == "verdicts":
            continue
        if name != "receipts":
            for file in files[name]:
                yield from ((name, rows) for rows in _batches(place, file, datasets()[name]))
            continue
        # They lie in equal parts, receipts and their verdicts in one order.
        for file, other in zip(files["receipts"], files["verdicts"], strict=True):
            yield from _together(place, file, other)


def _together(place: Path, receipts: str, verdicts: str) -> Iterator[Part]:
    every_verdict = chain.from_iterable(_batches(place, verdicts, datasets()["verdicts"]))
    waiting = next(every_verdict, None)
    for rows in _batches(place, receipts, datasets()["receipts"]):
        yield "receipts", rows
        ids = {row["id"] for row in rows}
        group = []
        while waiting is not None and waiting["receipt"] in ids:
            group.append(waiting)
            waiting = next(every_verdict, None)
        yield "verdicts", group
    if waiting is not None:
        raise _wrong(place, verdicts, f"a verdict on {waiting['receipt'][:12]} is apart from its receipt", _MADE)


def _batches(place: Path, file: str, dataset: Dataset) -> Iterator[list[Row]]:
    pa = extra("pyarrow", "data", f"{place}, which is Parquet,")
    pq = extra("pyarrow.parquet", "data")

    try:
        # The file's own name, not its folders': the file contains what they say.
        with pq.ParquetFile(place / file, buffer_size=2**20, pre_buffer=False) as opened:
            _check_columns(place, file, opened.schema_arrow, arrow_schema(dataset))
            # What the axes are follows from the document: that is read, and its map is as many texts again.
            names = [field.name for field in dataset.fields if field.kind != "axes"]
            there = [name for name in names if opened.schema_arrow.get_field_index(name) >= 0]
            for batch in opened.iter_batches(batch_size=_CHUNK, columns=there):
                # A column that came to exports later is not stated in earlier ones.
                yield [{name: row.get(name) for name in names} for row in batch.to_pylist()]
    except (pa.ArrowException, OSError) as error:
        raise _wrong(place, file, f"it cannot be read: {' '.join(str(error).split())[:200]}", "copy it again") from None


def _check_columns(place: Path, file: str, columns: Any, wanted: Any) -> None:
    problems = []
    for field in wanted:
        at = columns.get_field_index(field.name)
        if at < 0 and not field.nullable:
            problems.append(Problem(file, f"it has no column {field.name}", _MADE))
        elif at >= 0 and not columns.field(at).type.equals(field.type):
            problems.append(Problem(file, f"{field.name} is of type {columns.field(at).type}, not {field.type}", _MADE))
    if problems:
        raise InputError(str(place), problems)


# JSON lines


def _file(place: Path) -> ExportSource:
    try:
        with place.open("rb") as stream:
            first = stream.readline(SMALL)
            stream.seek(max(0, stream.seek(0, 2) - 65536))
            last = stream.read().rstrip(b"\n").rpartition(b"\n")[2]
        manifest = _about(place, _json(place, 1, first))
        end = _json(place, -1, last)
    except OSError as error:
        raise UsageError(f"{place}: {error.strerror}; check its permissions") from None
    if end.get("end") != FORMAT:
        raise _wrong(place, "", "its last line is not the end of an export: it was cut off", "copy it again, whole")
    try:
        rows = {name: int(end["rows"].get(name, 0)) for name in ORDER}
    except (KeyError, ValueError, TypeError, AttributeError):
        raise _wrong(place, "rows", "its last line does not say how many rows there are", _MADE) from None
    return ExportSource(
        str(place), manifest["store"]["id"], bool(manifest.get("whole")), rows, lambda: _counted(place, rows)
    )


def _json(place: Path, number: int, text: bytes) -> dict[str, Any]:
    at = f"line {number}" if number > 0 else "last line"
    try:
        tree = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise _wrong(place, at, f"this is not JSON: {error}", _MADE) from None
    if not isinstance(tree, dict):
        raise _wrong(place, at, "this is not a JSON object", _MADE)
    return tree


def _counted(place: Path, stated: Mapping[str, int]) -> Iterator[Part]:
    """Every part; raises InputError after the last where there are other rows than the last line says."""
    counts = dict.fromkeys(ORDER, 0)
    for name, rows in _lines(place):
        counts[name] += len(rows)
        yield name, rows
    problems = [
        Problem(
            name, f"its last line says {stated[name]:,} rows, and there are {count:,}", "copy the file again, whole"
        )
        for name, count in counts.items()
        if count != stated[name]
    ]
    if problems:
        raise InputError(str(place), problems)


def _lines(place: Path) -> Iterator[Part]:
    with place.open("rb") as stream:
        numbered = enumerate(iter(lambda: stream.readline(_MAX_LINE), b""), 1)
        next(numbered)
        name, rows, reached = "", list[Row](), 0
        for number, text in numbered:
            tree = _json(place, number, text)
            if "end" in tree:
                break
            kind = str(tree.get("in"))
            if kind not in datasets():
                raise _wrong(place, f"line {number}", f"there is no dataset {kind!r}", _MADE)
            if ORDER.index(kind) < reached and kind != "receipts":
                raise _wrong(place, f"line {number}", f"{kind} come after what needs them", _MADE)
            reached = ORDER.index("receipts") if kind == "verdicts" else ORDER.index(kind)
            # Verdicts stay in one part: they are taken in with the receipts before them.
            if kind != name or (len(rows) >= _CHUNK and kind != "verdicts"):
                yield from [(name, rows)] if rows else []
                name, rows = kind, []
            rows.append(_typed(place, number, kind, text))
        yield from [(name, rows)] if rows else []


_KINDS: Final[Mapping[Kind, Any]] = {
    "string": str,
    "int64": int,
    "double": float,
    "bool": bool,
    "timestamp": AwareDatetime,
    "strings": list[str],
    "subjects": list[dict[Literal["side", "receipt"], str]],
    "axes": dict[str, str],
}


@cache
def _model(name: str) -> type[BaseModel]:
    """What a row of a dataset holds, each value of its kind."""
    fields: dict[str, Any] = {
        field.name: _KINDS[field.kind] if field.required else (_KINDS[field.kind] | None, None)
        for field in datasets()[name].fields
    }
    return create_model(name, __config__=ConfigDict(strict=True), **fields)


def _typed(place: Path, number: int, name: str, text: bytes) -> Row:
    try:
        return _model(name).model_validate_json(text).__dict__
    except ValidationError as error:
        first = error.errors(include_url=False, include_context=False)[0]
        field = next(field for field in datasets()[name].fields if field.name == first["loc"][0])
        what = "is missing" if first["type"] == "missing" or first["input"] is None else f"is no {field.kind}"
        raise _wrong(place, f"line {number}", f"{field.name} {what}", _MADE) from None
