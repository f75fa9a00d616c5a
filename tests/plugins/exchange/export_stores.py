"""Stores for the tests of exports, and what an export says, put so that two can be held against one another."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import report_store
import rule_cases as cases
from receipts.judging.comparison import Request, compare
from receipts.plugins.exchange.export import Exported, ExportOptions, Format, export
from receipts.plugins.exchange.source import source
from receipts.plugins.exchange.store_import import ImportedStore, import_store
from receipts.receipt import Document, Parsed
from receipts.store import Store, open_store
from receipts.workflows.submit import submit
from store_receipts import claim_verdict, new_claim, publish, sign

# Numbers are a store's own, and so is what speaks of them.
OWN = ("seals", "erased")


def put(store: Store, receipts: list[Parsed]) -> list[str]:
    """Submit receipts; gives their ids."""
    outcomes = list(submit([Document(item.raw, item.source) for item in receipts], store, cases.rulebook()))
    assert all(item.submitted for item in outcomes), [str(item.error) for item in outcomes]
    return [item.submitted.id for item in outcomes if item.submitted]


def fill(url: str) -> Store:
    """A store with a row in each table: receipts of two weeks, superseded, retracted, purged, pinned and claimed."""
    store = open_store(url)
    base = report_store.launches("a", 3)
    ids = put(store, [*base, *report_store.everything()[3:]])
    again = {"target": ids[4], "reason": "it ran on a busy host"}
    launch = report_store.everything()[4].receipt.run.launch
    late = report_store.one("z", {**report_store.day(12), "run.launch": launch, "run.supersedes": again})
    put(store, late)
    store.record(compare(base[:2], base[2:], cases.rulebook(), Request(facts=store.query.facts(base))))
    publish(store, ids[0])
    sign(store, ids[0])
    store.published.add_claims([new_claim("third", ids[0])])
    store.published.record_claims([claim_verdict("third", ids[0])])
    for receipt, note in ((ids[0], None), (ids[1], "the better one"), (None, None), (ids[0], "back again")):
        store.pin("golden", receipt, note)
    store.published.decide(ids[0], "ship", "it held")
    store.retract(ids[2], "the clock was wrong")
    store.seal()
    store.purge(ids[5], "a token in the command")
    return store


def write(
    store: Store, place: Path, form: Format, asked: ExportOptions | None = None, *, force: bool = False
) -> Exported:
    """An export."""
    return export(store, place, form, asked or ExportOptions(), force=force)


def take(place: Path, store: Store) -> ImportedStore:
    """An import."""
    return import_store(source(place), store, cases.rulebook())


def content(place: Path) -> Mapping[str, list[str]]:
    """Every row of an export as text, sorted, without the numbers that are a store's own.

    Nor the map of axes, which the document tells and an import does not read from Parquet.
    """
    found: dict[str, list[str]] = {}
    aside = ("number", "axes")
    for name, rows in source(place).parts():
        if name not in OWN:
            texts = [json.dumps({key: row[key] for key in row if key not in aside}, default=str) for row in rows]
            found[name] = sorted([*found.get(name, ()), *texts])
    return {name: rows for name, rows in found.items() if rows}


def in_order(place: Path, dataset: str) -> list[Any]:
    """Rows of one dataset in the order in which the export has them, without their numbers."""
    return [{key: row[key] for key in row if key != "number"} for row in rows_of(place, dataset)]


def rows_of(place: Path, dataset: str) -> Iterator[Any]:
    """Rows of one dataset."""
    for name, rows in source(place).parts():
        if name == dataset:
            yield from rows
