"""Exports in the formats of other programs: one log, run or group of records for each current launch.

They carry what a receipt states and nothing else; what a format cannot say is left out.
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import orjson

from receipts.workflows.export.export import ExportOptions
from receipts.workflows.export.hud import hud_records
from receipts.workflows.export.mlflow_store import MlflowStore
from receipts.workflows.export.mllog import mllog_lines
from receipts.workflows.export.target import ABOUT, whole_file, whole_folder

if TYPE_CHECKING:
    from receipts.receipt import Parsed
    from receipts.store import Store
    from receipts.store.entries import Entry

ForeignFormat = Literal["mllog", "mlflow", "hud-v3"]


def export_foreign(store: Store, place: Path, form: ForeignFormat, options: ExportOptions, *, force: bool) -> int:
    """Write the current launches that fit; returns their number.

    ``mllog`` and ``mlflow`` fill a folder, ``hud-v3`` is a file. Raises UsageError where the place may not be written.
    """
    count = 0
    if form == "hud-v3":
        with whole_file(place, force=force) as file, file.open("wb") as stream:
            separator = b"[\n"
            for entry, parsed in _chosen(store, options):
                count += 1
                for record in hud_records(entry, parsed):
                    stream.write(separator + orjson.dumps(record))
                    separator = b",\n"
            stream.write(b"\n]\n" if separator == b",\n" else b"[]\n")
        return count
    with whole_folder(place, force=force) as folder:
        runs = MlflowStore(folder, place)
        for entry, parsed in _chosen(store, options):
            count += 1
            if form == "mlflow":
                runs.add(entry, parsed)
            else:
                (folder / f"{entry.id[:16]}.log").write_text("".join(mllog_lines(parsed)), encoding="utf-8")
        about = {"format": form, "exported_at": datetime.now(UTC), "launches": count, "conditions": options.words()}
        (folder / ABOUT).write_bytes(orjson.dumps(about, option=orjson.OPT_INDENT_2 | orjson.OPT_UTC_Z) + b"\n")
    return count


def _chosen(store: Store, options: ExportOptions) -> Iterator[tuple[Entry, Parsed]]:
    for entry in store.find(options.filters and options.filters._replace(superseded=False)):
        at = entry.finished or entry.started
        if (options.since is None or at >= options.since) and (options.until is None or at < options.until):
            yield entry, store.parsed(entry.id)
