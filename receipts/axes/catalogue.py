"""What counts on a lane: its axes, the leaves of each, and the bookkeeping that describes nothing of what is computed.

``validators/bookkeeping.toml`` holds the names of options and variables that are bookkeeping, with reasons, and the
three laws by which they are read; a lane, or a ``receipts.toml``, adds names of its own. Names that vocabularies know
as a leaf cannot be listed. A catalogue lists the axes of a lane, the axes that follow each, and what is not
applicable there; configurations (`receipts.axes.configuration`) can be compared by their digests only under one
catalogue.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache, cached_property, lru_cache
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from receipts.axes.effective import OPEN_MAPS, axis_leaves, axis_of
from receipts.axes.switches import BROUGHT_BY, DECIDED, FOLLOWS, LOADED, only_tells
from receipts.base.environment import bundled_folder
from receipts.base.errors import RuleError
from receipts.base.untrusted_text import parse_toml
from receipts.emit.launch_values import is_number, normal

if TYPE_CHECKING:
    from receipts.axes.lane import Lane


LENGTH: Final = "length"
TOPOLOGY: Final = "topology"
# Roles that `[bookkeeping]` of a lane or a receipts.toml may name.
EXTENDED: Final = ("replicate", "output", "naming", "logging", "rendezvous", "resume", "length", "profile")
_IDLE: Final = ("true", "false", "none", "")  # of an option that names a place, where it names none
# What vocabularies know of a launch beside its settings.
_NO_SETTINGS: Final = ("numerics.seed", "data.order_seed", "run.label")


@cache
def bookkeeping_table() -> Mapping[str, Any]:
    """The table that ships."""
    return MappingProxyType(parse_toml(bookkeeping_file().read_bytes()))


def bookkeeping_file() -> Path:
    """Where the table is: its digest is part of every rule set's."""
    return bundled_folder("validators") / "bookkeeping.toml"


@cache
def leaves_by_name() -> Mapping[str, frozenset[str]]:
    """The leaves that an argument of this name states: those of the frameworks' vocabularies, and their own names."""
    known: dict[str, set[str]] = {}
    text = Path(__file__).with_name("argument_names.json").read_text(encoding="utf-8")
    for name, paths in json.loads(text).items():
        known.setdefault(name, set()).update(paths)
    for leaf in axis_leaves():
        known.setdefault(leaf.path.rpartition(".")[2], set()).add(leaf.path)
        known.setdefault(leaf.path, set()).add(leaf.path)
    return {name: frozenset(paths) for name, paths in known.items()}


@dataclass(frozen=True)
class Bookkeeping:
    """The roles of names: the table that ships, and the names that were added to it, by role."""

    added: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @cached_property
    def _names(self) -> Mapping[str, str]:
        shipped = ((name, role) for role, entry in bookkeeping_table()["roles"].items() for name in entry["names"])
        return {**dict(shipped), **{name: role for role, names in self.added.items() for name in names}}

    def role(self, key: str, *values: str | None) -> str:
        """The role of an option whose values on both sides are given; empty if it counts.

        Of `--seed 3 big` the second word may be the program's own: where such words differ, the option counts.
        """
        parts = key.split(".")
        if (
            len({_further(value) for value in values if value is not None}) > 1
            and parts[-1] not in bookkeeping_table()["lists"]
        ):
            return ""
        for at in range(len(parts)):
            if role := self._names.get(".".join(parts[at:])):
                return role
        table, last, above = bookkeeping_table(), parts[-1], parts[:-1]
        if not set(table["sections"]).isdisjoint(above):
            return "logging"
        if last in table["generic"] and not set(table["parents"]).isdisjoint(above):
            return "naming"
        length = bookkeeping_table()["roles"][LENGTH]
        if last in length["generic"] and (not above or above[-1] in length["parents"]):
            return LENGTH
        places = (role for role, names in table["places"].items() if last in names)
        role = next(places, "")
        if role and all(
            value is None
            or (not is_number(value) and ("/" in value or "." in value.strip(".")))  # a path
            or normal(value) in _IDLE
            for value in values
        ):
            return role
        # What a name holds by names of its own, as `--run-name lr=0.1`.
        return next((self._names[part] for part in above if self._names.get(part) == "naming"), "")

    def variable(self, name: str, *values: str | None) -> str:
        """The role of an environment variable; empty if it counts."""
        for role, names in bookkeeping_table()["environment"].items():
            if any(name == item or (item[-1] == "*" and name.startswith(item[:-1])) for item in names):
                return str(role)
        telling = all(value is None or only_tells(f"flags.{name}", value) for value in values)
        return "logging" if telling else self._names.get(name, "")

    def of_witness(self, key: str) -> bool:
        """Whether a launch may differ in an input from the one whose path it shows: it was told to profile."""
        return key.rpartition(".")[2] in bookkeeping_table()["roles"]["profile"]["of_witnesses"]

    def follows_length(self, keys: frozenset[str]) -> bool:
        """Whether the schedule of a launch with these keys follows its length: it has one, and no length of its own."""
        last, entry = {key.rpartition(".")[2] for key in keys}, bookkeeping_table()["roles"][LENGTH]
        return not last.isdisjoint(entry["schedules"]) and last.isdisjoint(entry["schedule_lengths"])


BUILT_IN_BOOKKEEPING: Final = Bookkeeping()


def bookkeeping_reason(role: str) -> str:
    """Why a role is not a setting."""
    return str(bookkeeping_table()["roles"].get(role, {}).get("why", "it changes no step"))


def checked_bookkeeping(table: Any, where: str) -> dict[str, tuple[str, ...]]:
    """A table ``[bookkeeping]`` of a lane or of receipts.toml. Raises RuleError that names the key."""
    if not isinstance(table, dict):
        raise RuleError(f"{where}: bookkeeping must be a table of lists of names, as output = ['artifact_dir']")
    for role, names in table.items():
        if role not in EXTENDED:
            raise RuleError(f"{where}: bookkeeping: there is no role {role!r}; known: {', '.join(EXTENDED)}")
        if not isinstance(names, list) or not all(isinstance(name, str) and name for name in names):
            raise RuleError(f"{where}: bookkeeping.{role} must be a list of names")
        for name in names:
            leaves = leaves_by_name().get(name) or leaves_by_name().get(name.rpartition(".")[2], frozenset())
            if settings := sorted(leaves.difference(_NO_SETTINGS)):
                what = f"{name} is a name of {settings[0]}, a setting; nothing may leave it out"
                raise RuleError(f"{where}: bookkeeping.{role}: {what}")
    return {role: tuple(names) for role, names in table.items()}


def _further(value: str) -> str:
    """The words of an option's value but the first; empty if it is one word."""
    form = normal(value)
    return form[1:-1].partition(", ")[2] if form[:1] == "[" and value[-1:] == "]" else ""


# One more whenever an effective value is read otherwise than before: indexes made by another version are made anew.
CATALOGUE_VERSION: Final = 8
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
    # Axis → those that may differ because it does, and because those do in turn.
    direct: dict[str, set[str]] = {}
    links = [*FOLLOWS.items(), *DECIDED.items(), *((switch, leaf) for switch, (leaf, _) in BROUGHT_BY.items())]
    for switch, leaf in (*links, *((library, "wheels") for library in LOADED)):
        direct.setdefault(axis_of(leaf), set()).add(axis_of(switch))
    for when, then in couplings:
        direct.setdefault(when, set()).update(then)
    follow = {}
    for axis in direct:
        seen, waiting = set[str](), [axis]
        while waiting:
            new = direct.get(waiting.pop(), set()) - seen
            seen |= new
            waiting += new
        follow[axis] = frozenset(seen - {axis})
    followers = sorted((axis, sorted(names)) for axis, names in follow.items())
    table = bookkeeping_file().read_text(encoding="utf-8")
    identity = [CATALOGUE_VERSION, leaves, followers, sorted(missing), bookkeeping, table]
    lower = eight_bytes(f"catalogue\0{compact_json(identity)}") & (1 << _LOWER) - 1
    return AxisCatalogue(edition() << _LOWER | lower, leaves, follow, missing)


@lru_cache(maxsize=1)
def edition() -> int:
    """Which values an axis has and which leaves are of it, as 16 signed bits: equal parts of one mean the same."""
    identity = [CATALOGUE_VERSION, [(leaf.path, leaf.axis) for leaf in axis_leaves()], OPEN_MAPS]
    return edition_of(eight_bytes(f"edition\0{compact_json(identity)}"))


def edition_of(catalogue: int) -> int:
    """The edition of a catalogue, by its digest."""
    return catalogue >> _LOWER


def eight_bytes(text: str) -> int:
    """The first 8 bytes of the SHA-256 of a text, as a signed integer."""
    return int.from_bytes(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()[:8], "big", signed=True)
