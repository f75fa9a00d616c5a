"""Ingesting: what a run left behind, files of any known form, put together into one receipt.

`assemble` takes what `receipts.ingest.evidence.read` found and gives the tree of a receipt with the place of every
leaf, what was not found, and what does not agree. It fills nothing in.
"""

from __future__ import annotations

from receipts.ingest.assemble import Ingested, assemble
from receipts.ingest.draft import Contradiction, Message, MissingLeaf, SourcedLeaf, Where
from receipts.ingest.files import gather
from receipts.ingest.leaves import read_settings
from receipts.ingest.options import LaneOptions, Options

__all__ = [
    "Contradiction",
    "Ingested",
    "LaneOptions",
    "Message",
    "MissingLeaf",
    "Options",
    "SourcedLeaf",
    "Where",
    "assemble",
    "gather",
    "read_settings",
]
