"""Replicates: further launches of one configuration that the store holds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from receipts.axes import difference
from receipts.lane import Lane
from receipts.receipt import Document, Parsed, parse

if TYPE_CHECKING:
    from receipts.store import Store

MOST = 50


def with_replicates(store: Store, group: Sequence[Parsed], lane: Lane, other: Sequence[Parsed]) -> list[Parsed]:
    """The group, and every stored launch that stands and differs from it in no axis, known or unknown.

    The other side's launches are never taken. Failed launches, and those of another kind, replicate nothing.
    """
    head = group[0]
    taken = {item.receipt.run.launch for item in (*group, *other)}
    found = list(group)
    for receipt_id in store.replicate_candidates(head):
        if len(found) >= MOST:
            break
        candidate = parse(Document(store.document(receipt_id), receipt_id[:12]))
        run = candidate.receipt.run
        if run.launch in taken or run.kind != head.receipt.run.kind or run.outcome != head.receipt.run.outcome:
            continue
        apart = difference(head, candidate, tuple(lane.not_applicable))
        if not apart.changed and not apart.unknown:
            taken.add(run.launch)
            found.append(candidate)
    return found
