"""Exporting a store: one state of it, written whole or not at all.

The file or folder is made beside its place, and moved there when all went well.
"""

from __future__ import annotations

import os
import shutil
import uuid
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal

import orjson

from receipts import __version__
from receipts.base import files
from receipts.base.environment import extra
from receipts.base.errors import UsageError
from receipts.plugins.exchange.rows import Partition, last_of, plain_row, receipt_row, verdict_row, week
from receipts.workflows.datasets import FORMAT, ORDER, VERSION, Row

if TYPE_CHECKING:
    from receipts.plugins.exchange.rows import CsvTable, JsonLines, ParquetWriter
    from receipts.store import Filters, Store
    from receipts.store.snapshot import Snapshot


ABOUT: Final = "export.json"


@contextmanager
def whole_file(place: Path, *, force: bool) -> Iterator[Path]:
    """A file to write to, which becomes ``place`` when all went well. Raises UsageError if it may not."""
    _check(place, force)
    if place.is_dir():
        raise UsageError(f"{place}: this is a folder; name a file")
    with files.writable(place), files.staged(place, over=force) as staged:
        yield staged


@contextmanager
def whole_folder(place: Path, *, force: bool) -> Iterator[Path]:
    """A folder to write to, which becomes ``place`` when all went well. Raises UsageError if it may not.

    An earlier export is replaced where it is forced; a folder with anything else in it never is.
    """
    _check(place, force)
    if place.exists() and not place.is_dir():
        raise UsageError(f"{place}: this is a file, and this format fills a folder; name a folder")
    if place.is_dir() and any(place.iterdir()) and not (place / ABOUT).is_file():
        raise UsageError(f"{place}: this folder holds something else than an export and is left alone; name another")
    staged = place.with_name(f".{place.name}.{uuid.uuid4().hex[:8]}.partial")
    try:
        with files.writable(place):
            staged.mkdir()
            yield staged
            for path in staged.rglob("*"):
                files.to_disk(path)
            old = staged.with_suffix(".old")
            if place.exists():
                os.replace(place, old)
            os.replace(staged, place)
            files.to_disk(place.parent)
            shutil.rmtree(old, ignore_errors=True)
    finally:
        shutil.rmtree(staged, ignore_errors=True)


def _check(place: Path, force: bool) -> None:
    if not place.parent.is_dir():
        raise UsageError(f"{place}: there is no folder {place.parent}; make it with: mkdir -p {place.parent}")
    if place.exists() and not force:
        raise UsageError(f"{place}: this is there already; name another place, or replace it with --force")


if TYPE_CHECKING:
    Writer = ParquetWriter | JsonLines | CsvTable

Format = Literal["parquet", "jsonl", "csv"]
Progress = Callable[[int, int], None]
_CHUNK: Final = 250


@dataclass(frozen=True)
class ExportOptions:
    """What to export. Times are when receipts ran: the end of the run, else its start; ``until`` is left out.

    ``raw`` leaves the texts of a CSV as they are, which a spreadsheet may run as formulas.
    """

    filters: Filters | None = None
    since: datetime | None = None
    until: datetime | None = None
    raw: bool = False

    @property
    def whole(self) -> bool:
        """Whether that is everything."""
        return self.filters is None and self.since is None and self.until is None

    def words(self) -> list[str]:
        """The conditions, as they were asked for."""
        words = [str(item) for item in self.filters.conditions] if self.filters else []
        words += [f"since {self.since.isoformat()}"] if self.since else []
        return [*words, *([f"until {self.until.isoformat()}"] if self.until else [])]


@dataclass(frozen=True)
class Exported:
    """What was written: rows by dataset, and the bytes of all files."""

    place: str
    format: Format
    rows: Mapping[str, int]
    bytes: int


def export(
    store: Store,
    place: Path,
    form: Format,
    options: ExportOptions,
    *,
    force: bool = False,
    progress: Progress | None = None,
) -> Exported:
    """Write a store, or what was asked of it, to a folder (Parquet) or a file.

    Raises UsageError if the place may not be written, and StoreError; then nothing is left there.
    """
    from receipts.store.snapshot import snapshot

    with snapshot(store) as state:
        work = _Work(state, options, progress)
        about = {
            "format": FORMAT,
            "version": VERSION,
            "program": __version__,
            "exported_at": datetime.now(UTC),
            "store": state.identity._asdict(),
            "whole": options.whole,
            "conditions": options.words(),
        }
        write = {"parquet": _parquet, "jsonl": _jsonl, "csv": _csv}[form]
        size = write(work, about, place, force)
    return Exported(str(place), form, work.counts(), size)


def _parquet(work: _Work, about: Mapping[str, Any], place: Path, force: bool) -> int:
    extra("pyarrow", "data", "Parquet")
    from receipts.plugins.exchange.rows import ParquetWriter

    with whole_folder(place, force=force) as folder:
        with ParquetWriter(folder) as writer:
            work.write(writer, by_folder=True)
        held = {
            name: {"rows": work.counts()[name], "files": {file: (folder / file).stat().st_size for file in files}}
            for name, files in writer.files.items()
        }
        manifest = orjson.dumps({**about, "datasets": held}, option=orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z)
        (folder / ABOUT).write_bytes(manifest + b"\n")
        return sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())


def _jsonl(work: _Work, about: Mapping[str, Any], place: Path, force: bool) -> int:
    from receipts.plugins.exchange.rows import JsonLines, json_line

    with whole_file(place, force=force) as file:
        with file.open("wb") as stream:
            stream.write(json_line(dict(about)))
            work.write(JsonLines(stream), by_folder=False)
            # Whoever reads it sees by this line that nothing was cut off.
            stream.write(json_line({"end": FORMAT, "rows": work.counts()}))
        return file.stat().st_size


def _csv(work: _Work, about: Mapping[str, Any], place: Path, force: bool) -> int:
    from receipts.plugins.exchange.rows import CsvTable

    with whole_file(place, force=force) as file:
        with file.open("w", encoding="utf-8", newline="") as stream:
            work.write_receipts(CsvTable(stream, raw=work.options.raw))
        return file.stat().st_size


class _Work:
    """One state of a store on its way to a writer."""

    def __init__(self, state: Snapshot, options: ExportOptions, progress: Progress | None) -> None:
        self._state = state
        self.options = options
        self._progress = progress
        self._count: Counter[str] = Counter()
        # Ids as 32 bytes: of a part of a million receipts a set of texts would take twice the room.
        self._chosen: set[bytes] = set()

    def counts(self) -> dict[str, int]:
        """Rows written, by dataset."""
        return {name: self._count[name] for name in ORDER if name in self._count}

    def write(self, writer: Writer, *, by_folder: bool) -> None:
        """Every dataset, in `ORDER`."""
        self._count.update(dict.fromkeys(ORDER, 0))
        places = self._places(by_folder)
        for name in ("purges", "supersessions"):
            self._plain(writer, name)
        self._all_receipts(writer, places)
        self._add(writer, "comparisons", (verdict_row("comparisons", item) for item in self._state.comparisons()))
        self._plain(writer, "pins")
        self._claims(writer)
        for name in ("decisions", "quotes", "incidents", "envelopes", "erased", "seals"):
            self._plain(writer, name)

    def write_receipts(self, writer: Writer) -> None:
        """Receipts and nothing else."""
        self._count["receipts"] = 0
        self._all_receipts(writer, self._places(by_folder=False))
        self._count.pop("verdicts", None)

    def _all_receipts(self, writer: Writer, places: Mapping[Partition, array[int]]) -> None:
        total = sum(len(numbers) for numbers in places.values())
        done = 0
        for partition in sorted(places):
            numbers = places[partition]
            for start in range(0, len(numbers), _CHUNK):
                chunk = list(numbers[start : start + _CHUNK])
                row_verdicts = list(self._state.verdicts(chunk))
                last = last_of(row_verdicts)
                rows = [receipt_row(whole, last.get(whole.entry.id)) for whole in self._state.receipts(chunk)]
                # In the order of the receipts, so that both are read side by side.
                order = {row["id"]: at for at, row in enumerate(rows)}
                rows_of_verdicts = (verdict_row("verdicts", item) for item in row_verdicts)
                verdicts = sorted(rows_of_verdicts, key=lambda row: (order[row["receipt"]], row["number"]))
                for name, part in (("receipts", rows), ("verdicts", verdicts)):
                    writer.add(name, part, partition)
                    self._count[name] += len(part)
                done += len(chunk)
                if self._progress is not None:
                    self._progress(done, total)

    def _places(self, by_folder: bool) -> dict[Partition, array[int]]:
        places: dict[Partition, array[int]] = {}
        everything = Partition("", "")
        options = self.options
        for place in self._state.places(options.filters):
            if (options.since and place.ended < options.since) or (options.until and place.ended >= options.until):
                continue
            key = Partition(week(place.ended), place.lane) if by_folder else everything
            places.setdefault(key, array("q")).append(place.seq)
            if not options.whole:
                self._chosen.add(bytes.fromhex(place.id))
        return places

    def _claims(self, writer: Writer) -> None:
        """Claims; of a part of the store those alone whose verdicts stand on receipts of that part."""
        wanted: set[str] | None = None
        if not self.options.whole:
            stands: dict[str, bool] = {}
            for item in self._state.claim_verdicts():
                stands[item.about or ""] = stands.get(item.about or "", True) and self._has(item.subjects)
            wanted = {claim for claim, holds in stands.items() if holds}
            # And whatever replaced one of them: what was withdrawn here must not stay valid elsewhere.
            replaced = [(row["claim"], row["successor"]) for row in self._state.rows("claim_supersessions")]
            while new := {other for claim, other in replaced if claim in wanted and other} - wanted:
                wanted |= new
        self._plain(writer, "claims", "id", wanted)
        self._plain(writer, "claim_supersessions", "claim", wanted)
        rows = (verdict_row("claim_verdicts", item) for item in self._state.claim_verdicts())
        self._add(
            writer, "claim_verdicts", (row for row in rows if wanted is None or row["claim"] in wanted), all_of=True
        )

    def _plain(
        self,
        writer: Writer,
        name: str,
        column: str = "receipt",
        wanted: set[str] | None = None,
    ) -> None:
        if name in ("seals", "erased") and not self.options.whole:
            return  # a seal over rows of which some are left out can hold no more
        rows = map(plain_row, self._state.rows(name))
        if wanted is not None:
            rows = (row for row in rows if row[column] in wanted)  # type: ignore[assignment]  # an iterator of rows, too
        self._add(writer, name, rows, all_of=wanted is not None or name in ("purges", "claims", "claim_supersessions"))

    def _add(self, writer: Writer, name: str, rows: Iterable[Row], *, all_of: bool = False) -> None:
        kept = iter(rows if all_of or self.options.whole else filter(self._speaks, rows))
        while chunk := list(islice(kept, _CHUNK)):
            writer.add(name, chunk)
            self._count[name] += len(chunk)

    def _speaks(self, row: Row) -> bool:
        """Whether a row speaks of chosen receipts alone."""
        if "subjects" in row:
            return self._has([(item["side"], item["receipt"]) for item in row["subjects"]])
        receipt = row.get("receipt")  # an incident is about a line, and stays with the whole store
        return receipt is not None and bytes.fromhex(receipt) in self._chosen

    def _has(self, subjects: Iterable[tuple[str, str]]) -> bool:
        return all(bytes.fromhex(receipt) in self._chosen for _, receipt in subjects)
