"""The axes that count on a lane: the leaves of each, the axes that follow it, and what is not applicable there.

Configurations (`receipts.axes.configuration`) can be compared by their digests only under one catalogue.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Final, NamedTuple

from receipts.axes.bookkeeping import bookkeeping_file
from receipts.axes.effective import OPEN_MAPS, axis_leaves, axis_of
from receipts.axes.switches import BROUGHT_BY, DECIDED, FOLLOWS, LOADED

if TYPE_CHECKING:
    from receipts.axes.lane import Lane

# One more whenever an effective value is read otherwise than before: indexes made by another version are made anew.
VERSION: Final = 8
_LOWER: Final = 48  # bits of a catalogue below its edition
compact_json = json.JSONEncoder(separators=(",", ":"), sort_keys=True).encode


class AxisCatalogue(NamedTuple):
    """The axes of a lane, made once for its couplings, its bookkeeping and what is not applicable there.

    ``digest`` is that of all of it: configurations with another one cannot be compared by their digests. Its first 16
    bits are the edition, which says how parts are read on whatever lane.
    """

    digest: int
    leaves: tuple[tuple[str, str, bool], ...]  # path, axis, whether it may be unstated
    follow: Mapping[str, frozenset[str]]
    not_applicable: frozenset[str]


def catalogue_of(lane: Lane) -> AxisCatalogue:
    """The catalogue of a lane."""
    couplings = tuple((item.when, tuple(item.then)) for item in lane.couplings)
    return _catalogue(tuple(lane.not_applicable), couplings, tuple(sorted(lane.bookkeeping.items())))


@lru_cache(maxsize=64)
def _catalogue(
    not_applicable: tuple[str, ...],
    couplings: tuple[tuple[str, tuple[str, ...]], ...],
    bookkeeping: tuple[tuple[str, tuple[str, ...]], ...],
) -> AxisCatalogue:
    missing = frozenset(not_applicable)
    leaves = tuple(
        (leaf.path, leaf.axis, not (leaf.axis in missing or leaf.path in missing))
        for leaf in axis_leaves()
        if leaf.axis != "code"
    )
    follow = _followers(couplings)
    links = sorted((axis, sorted(names)) for axis, names in follow.items())
    identity = [VERSION, leaves, links, sorted(missing), bookkeeping, bookkeeping_file().read_text(encoding="utf-8")]
    lower = eight_bytes(f"catalogue\0{compact_json(identity)}") & (1 << _LOWER) - 1
    return AxisCatalogue(edition() << _LOWER | lower, leaves, follow, missing)


@lru_cache(maxsize=1)
def edition() -> int:
    """Which values an axis has and which leaves are of it, as 16 signed bits: equal parts of one mean the same."""
    identity = [VERSION, [(leaf.path, leaf.axis) for leaf in axis_leaves()], OPEN_MAPS]
    return edition_of(eight_bytes(f"edition\0{compact_json(identity)}"))


def edition_of(catalogue: int) -> int:
    """The edition of a catalogue, by its digest."""
    return catalogue >> _LOWER


def _followers(couplings: Sequence[tuple[str, tuple[str, ...]]]) -> Mapping[str, frozenset[str]]:
    """Axis → those that may differ because it does, and because those do in turn."""
    direct: dict[str, set[str]] = {}
    links = [*FOLLOWS.items(), *DECIDED.items(), *((switch, leaf) for switch, (leaf, _) in BROUGHT_BY.items())]
    links += [(library, "wheels") for library in LOADED]
    for switch, leaf in links:
        direct.setdefault(axis_of(leaf), set()).add(axis_of(switch))
    for when, then in couplings:
        direct.setdefault(when, set()).update(then)
    followers = {}
    for axis in direct:
        seen, waiting = set[str](), [axis]
        while waiting:
            new = direct.get(waiting.pop(), set()) - seen
            seen |= new
            waiting += new
        followers[axis] = frozenset(seen - {axis})
    return followers


def eight_bytes(text: str) -> int:
    """The first 8 bytes of the SHA-256 of a text, as a signed integer."""
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big", signed=True)
