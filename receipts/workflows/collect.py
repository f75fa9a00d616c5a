"""Kept files that no receipt names any more, and what a purge has to take with it."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import TYPE_CHECKING

from receipts.base.errors import InputError, Problem
from receipts.receipt import parse
from receipts.receipt.parse import listed_digests
from receipts.store.evidence import KeptFile, KeptFiles, kept_files

if TYPE_CHECKING:
    from receipts.store import Store
    from receipts.workflows.evidence import Amended


def named_files(store: Store, since: datetime | None = None) -> dict[str, list[str]]:
    """The digests of all files that receipts of the store list, each with their ids; of launches ``since`` a time."""
    receipts: dict[str, list[str]] = {}
    for item in map(store.parsed, store.ids()):
        if since is None or item.receipt.run.started >= since:
            for digest in listed_digests(item):
                receipts.setdefault(digest, []).append(item.id)
    return receipts


def collect(store: Store, *, since: datetime | None = None, dry_run: bool = False) -> list[KeptFile]:
    """Forget the kept files that no receipt lists, or none of a launch ``since`` a time; what they were."""
    kept = kept_files(store.database.address)
    if kept is None:
        return []
    named = named_files(store, since)
    loose = [item for item in kept.all() if item.digest not in named]
    for item in loose if not dry_run else ():
        kept.remove(item.digest)
    return loose


def keep(store: Store, amended: Amended) -> None:
    """Keep the files that were read for a receipt. Raises InputError for one that changed meanwhile."""
    kept = kept_files(store.database.address)
    names = listed_digests(parse(amended.document))
    for file in amended.files if kept is not None else ():
        if kept is not None and kept.put(file) not in names:
            problem = Problem(str(file), "it changed while it was read", "submit again when its writer is done")
            raise InputError(amended.document.source, [problem])


def copy_all(source: KeptFiles | None, target: KeptFiles | None) -> int:
    """Copy kept files, each checked against its digest; how many. For a backup and a restore."""
    if source is None or target is None:
        return 0
    files = source.all()
    for item in files:
        with source.file(item.digest) as plain:
            target.put(plain)
    return len(files)


def forget(store: Store, digests: Iterable[str]) -> None:
    """Forget kept files of a purged receipt, but for those that another receipt lists."""
    kept = kept_files(store.database.address)
    wanted = kept.held(digests) if kept is not None else frozenset[str]()
    if kept is not None and wanted:
        named = named_files(store)
        for digest in wanted - named.keys():
            kept.remove(digest)
