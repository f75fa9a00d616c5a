"""The page of one leaf of the receipt: what it means, what it takes, an example."""

from __future__ import annotations

from shlex import quote
from typing import TYPE_CHECKING

from receipts.publish.page import Cell, Page
from receipts.publish.words import words

if TYPE_CHECKING:
    from receipts.ingest.leaves import LeafType
    from receipts.receipt.leaves import Leaf

say = words("leaf")


def page(leaf: Leaf, takes: LeafType | None) -> Page:
    """The whole page; ``takes`` is None for a leaf that cannot be stated on its own."""
    path = leaf.path.replace("*", "NAME")
    facts: list[tuple[str, str]] = [("type", takes.type if takes else say("not_stated_alone"))]
    if takes and takes.allowed:
        facts.append(("allowed", ", ".join(takes.allowed)))
    if takes:
        facts.append(("example", say("set", setting=quote(f"{path}={takes.example}"))))
    if leaf.unit:
        facts.append(("unit", leaf.unit))
    facts.append(("role", leaf.role.value))
    if leaf.axis:
        facts.append(("axis", say("itself") if leaf.axis == leaf.path else leaf.axis))
    facts.append(("since", leaf.since))
    headline: Cell = (say("headline", path=leaf.path, description=leaf.description),)
    return Page(leaf.path, headline, facts=tuple((say(name), (text,)) for name, text in facts))
