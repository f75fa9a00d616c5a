"""The pages of merge and recover: the receipt that was written of what a run left behind, and what is wrong with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from receipts.base.units import counted
from receipts.publish.page import Page

if TYPE_CHECKING:
    from receipts.emit.merge import Merged


def merged(item: Merged, written: str | None) -> Page:
    """The receipt of many ranks, where they disagree, and which are missing; nothing is ``written`` without them."""
    from receipts.emit.rank_join import ranks

    steps = len(item.tree.get("measurement", {}).get("step_durations_seconds", ()))
    lead = item.disagreements
    if item.missing:
        lead = (*lead, f"parts of {ranks(item.missing)} are missing; name them, or their journals")
    if written is None:
        return Page("Merge", ("nothing was written; --partial writes what there is",), lead=lead)
    answer = f"wrote {written}: {counted(steps, 'step')}, {item.tree['run']['outcome']}"
    return Page("Merge", (answer,), lead=lead, next=((f"receipts check {written}", "next"),))


def recovered(data: Mapping[str, Any]) -> Page:
    """The receipt of a journal, and how its run ended."""
    follow = (f"receipts check {data['written']}", "next")
    if data["world"] > 1:
        why = f"this is rank {data['rank']} of {data['world']}; next, merge every part"
        follow = ("receipts merge PART… -o run.json", why)
    answer = f"wrote {data['written']}: {data['steps']} steps, {data['outcome']}"
    return Page("Recover", (answer,), lead=tuple(_ending(data["failure"])), next=(follow,))


def _ending(failure: Mapping[str, Any]) -> Iterator[str]:
    if failure:
        kind = f"{failure['class']}, " if "class" in failure else ""
        yield f"{kind}phase {failure.get('phase', 'unknown')}, after step {failure.get('step', 0)}"
        yield from str(failure.get("message", "")).splitlines()[:1]
