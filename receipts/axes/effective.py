"""Effective axis values: what a switch does, not what was typed.

Sequence parallelism at tensor 1 is off, and so is a graph scope that nothing implements; on the path, what evidence
shows goes before what was asked for; a pattern is the stack that it makes, however often its tile is written out. Only
facts that the receipt states lead to an effective value.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import Any, Final, NamedTuple

from receipts.axes.switches import OF_STATE, SWITCHES, Stated, loaded_over, mesh_of, only_tells
from receipts.axes.switches import OFF as OFF  # rules import it from here
from receipts.receipt import Parsed
from receipts.receipt.accelerators import find_accelerator
from receipts.receipt.configuration import Witnessed
from receipts.receipt.document import COMPLETE
from receipts.receipt.leaf import Role
from receipts.receipt.leaves import Leaf, leaves
from receipts.receipt.names import parts, spelled

UNSET = "unset"
OPEN_MAPS = ("wheels", "flags", "patches", "features")
Value = Any
_NOTHING = frozenset({"none", "off"})
_DIGEST: Final = 64  # signs of a SHA-256 in hexadecimal
_SEPARATORS: Final = re.compile(r"[-_.]+")
_NAMES: Final = re.compile(r"[\w.+,; -]+")
_KIND: Final = re.compile(r"\s*(\d+)\s*[×x]?\s*([A-Za-z][\w -]*?)\s*")
# What evidence shows of a launch, and a plan cannot say.
_APPLIED: Final = "numerics.recompute_applied"
CHECKPOINT: Final = "checkpoint"
_SEEN: Final = (*(f"path.witnessed.{name}" for name in Witnessed.model_fields), _APPLIED)


def is_off(value: Value) -> bool:
    """Whether a feature of that effective value does not act; None is not known to."""
    return value in (OFF, UNSET, "none", "0", "false", 0, False)


@dataclass(frozen=True, slots=True)
class Member:
    """One leaf of an axis with both values; None if a side does not state it."""

    path: str
    a: Any
    b: Any


@dataclass(frozen=True, slots=True)
class Change:
    """An axis whose stated values differ, with each member that differs."""

    axis: str
    members: tuple[Member, ...]


class AxisLeaf(NamedTuple):
    """A member of an axis: ``path`` is the path of its effective value, ``axis`` the name under which it counts.

    ``stated_at`` are the leaves that it may be read from, the weightiest first.
    """

    path: str
    axis: str
    stated_at: tuple[str, ...]
    since: str


@lru_cache(maxsize=1)
def axis_leaves() -> tuple[AxisLeaf, ...]:
    """Every axis leaf outside the open maps; ``path.intended.x`` is the axis ``path.x``."""
    collected = []
    for leaf in leaves():
        if leaf.role is Role.AXIS and not leaf.path.endswith(".*"):
            path = leaf.path.replace("path.intended.", "path.")
            seen = (leaf.path.replace("path.intended.", "path.witnessed."),) if path != leaf.path else ()
            name = path if leaf.axis == leaf.path else leaf.axis or path
            collected.append(AxisLeaf(path, name, (*seen, leaf.path), leaf.since))
    return tuple(collected)


@cache
def later_leaves() -> frozenset[str]:
    """Axis leaves of a later schema: a receipt need not state one that is off, or that neither side states."""
    return frozenset(leaf.path for leaf in axis_leaves() if leaf.since != "1.0")


@cache
def leaves_of(role: Role) -> tuple[Leaf, ...]:
    """The catalogue's leaves of one role."""
    return tuple(leaf for leaf in leaves() if leaf.role is role)


def _stack(stated: Stated) -> Mapping[str, Value]:
    """The shortest tile that makes the stack, and the kind of its attention blocks where they have but one."""
    # What a command without receipts never needs.
    from receipts.receipt.patterns import STATELESS, family_of, shortest_tile

    pattern, depth = stated.get("model.pattern"), stated.get("model.depth")
    if pattern is None or depth is None:
        return {}
    values = {"model.pattern": shortest_tile(pattern, depth)}
    if family_of(pattern, stated.get("model.alphabet")) in STATELESS:
        values.update(dict.fromkeys(OF_STATE, OFF))
    kinds = _KIND.fullmatch(stated.get("model.attention_kinds") or "")
    if kinds is not None:  # how many the pattern has is its own to say, and R109 holds the count against it
        values["model.attention_kinds"] = kinds[2]
    return values


def wheel_name(key: str) -> str:
    """A distribution's name as indexes know it (PEP 503): ``transformer_engine`` is ``transformer-engine``."""
    return _SEPARATORS.sub("-", key).lower()


def canonical(value: Value) -> Value:
    """One form for values that mean the same: whole floats are integers, and ``none`` is ``off``."""
    if isinstance(value, str):
        return OFF if value.lower() in _NOTHING else value
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, list):
        # What is captured, or compiled, is a set: its order means nothing.
        return tuple(sorted((canonical(item) for item in value), key=str))
    return value


def one_form(path: str, value: Value) -> Value:
    """`canonical`, and one form for names that sources spell or order in several ways."""
    value = canonical(value)
    if not isinstance(value, str):
        return value
    if path == "parallelism.mesh_axes" and (mesh := mesh_of(value)):
        return ",".join(f"{name}:{size}" for name, size in mesh.items() if size > 1) or OFF
    if path == "model.attention_kinds":
        counts = [_KIND.fullmatch(part) for part in re.split("[+,]", value)]
        kinds = sorted((count[2], count[1]) for count in counts if count)
        return " + ".join(f"{number} {kind}" for kind, number in kinds) if all(counts) else value
    if path.startswith("path.") and path != "path.sharding" and _NAMES.fullmatch(value):  # and no sentence
        return "+".join(sorted(parts(value))) or value
    return spelled(path, value)


def in_words(value: Value) -> str:
    """A value for people: lists with commas, and of a digest what tells it from others; None is an input not given."""
    if value is None:
        return "not given"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple | list):
        return ", ".join(map(str, value)) or "none"
    if isinstance(value, float):
        return f"{value:.6g}"
    text = str(value)
    return f"{text[:12]}…" if len(text) == _DIGEST and text.isalnum() else text


def stated_words(value: Value) -> str:
    """The value of a leaf for people."""
    return "not stated" if value is None else in_words(value)


def flag_text(value: Value) -> str:
    """A flag's value as the command line would carry it: ``1`` and ``"1"`` are one, ``True`` is ``true``."""
    if isinstance(value, bool):
        return str(value).lower()
    # A text stays as it was typed: what `none` and `off` mean to a flag is its program's to say.
    return value if isinstance(value, str) else str(canonical(value))


class DecidedLeaves(NamedTuple):
    """All that effective values are read from: stated leaves by their paths, and the open maps by their names."""

    leaves: Stated
    maps: Mapping[str, Mapping[str, Any]]

    @property
    def before(self) -> DecidedLeaves:
        """What was decided before the run: without what evidence showed of it."""
        return self._replace(leaves={path: value for path, value in self.leaves.items() if path not in _SEEN})


def decided(parsed: Parsed) -> DecidedLeaves:
    """What a receipt states that effective values are read from."""
    leaves = parsed.flat.leaves
    maps = {name: getattr(parsed.receipt, name) or {} for name in OPEN_MAPS}
    return DecidedLeaves({path: leaves[path] for path in _read_paths() if path in leaves}, maps)


def effective(parsed: Parsed) -> Mapping[str, Value]:
    """Effective value by axis leaf path, for what is stated or follows from what is stated.

    Open maps stand here as ``flags.NAME`` and so on; ``map.complete`` is left to `receipts.axes.difference`.
    """
    kept = vars(parsed)
    if "effective_values" not in kept:  # a receipt is compared with many others
        kept["effective_values"] = effective_values(decided(parsed))
    known: Mapping[str, Value] = kept["effective_values"]
    return known


def intended(parsed: Parsed) -> Mapping[str, Value]:
    """`effective` values as they were decided before the run: without what evidence showed of it."""
    return effective_values(decided(parsed).before)


@lru_cache(maxsize=1)
def _read_paths() -> tuple[str, ...]:
    """The leaves outside the open maps that effective values may be read from: no other is handed to `_effective`."""
    places = [place for leaf in axis_leaves() for place in leaf.stated_at]
    return tuple(dict.fromkeys([*places, *_SEEN]))


def effective_values(of: DecidedLeaves) -> Mapping[str, Value]:
    """The effective values of what is stated, as `effective` gives them."""
    stated = of.leaves
    values: dict[str, Value] = {}
    for leaf in axis_leaves():
        for place in leaf.stated_at:
            value = stated.get(place)
            if value is not None:
                values[leaf.path] = one_form(leaf.path, value)
                break
    applied = stated.get(_APPLIED)
    # A profile shows that checkpoints ran, not by which policy: of two launches, only one may have been profiled.
    if applied is not None and (applied != CHECKPOINT or values.get("numerics.recompute", OFF) == OFF):
        values["numerics.recompute"] = canonical(applied)
    seen = stated.get("path.witnessed.posture")
    if seen is not None:
        values["compile.posture"] = canonical(seen)
    dtype = stated.get("path.witnessed.compute_dtype")
    if dtype is not None:
        values["numerics.compute_dtype"] = one_form("numerics.compute_dtype", dtype)
    merged = {**stated, **values}
    for switch in SWITCHES:
        if switch.holds(merged):
            values[switch.path] = switch.value
    implementation = canonical(stated.get("compile.cuda_graph_implementation"))
    scope = stated.get("compile.cuda_graph_scope")
    off = implementation == OFF or scope == [] or stated.get("path.witnessed.cuda_graphs") is False
    members = ("compile.cuda_graph_implementation", "compile.cuda_graph_scope")
    values.update(dict.fromkeys(members, OFF) if off else {})
    values.update(_stack(stated))
    machine = values.get("hardware.accelerator")
    if isinstance(machine, str) and (known := find_accelerator(machine)) is not None:
        values["hardware.accelerator"] = known.key
    values.update(_open(of.maps))
    for wheel, version in loaded_over(values).items():
        values[wheel] = version
        values.pop(f"{wheel}.digest", None)  # of what is installed, and was not loaded
    mtp, depth = values.get("features.mtp"), values.get("model.mtp_depth")
    # One fact counts once: the depth says already what the switch says, which without a depth does nothing.
    restated = ("true", "on", "yes", "1", str(depth))
    if mtp is not None and depth is not None and (depth == 0 or str(mtp).lower() in restated):
        del values["features.mtp"]
    return values


def _open(maps: Mapping[str, Mapping[str, Any]]) -> Mapping[str, Value]:
    values: dict[str, Value] = {}
    for name, entries in maps.items():
        for key, entry in entries.items():
            if key == COMPLETE:
                continue
            if name == "wheels":
                wheel = f"wheels.{wheel_name(key)}"
                if wheel in values:  # two spellings in one set: each stays as it was typed
                    wheel = f"wheels.{key}"
                values[wheel] = getattr(entry, "version", entry)
                # Two builds of one version are two wheels.
                if getattr(entry, "digest", None) is not None:
                    values[f"{wheel}.digest"] = entry.digest
            elif not only_tells(f"{name}.{key}", text := flag_text(getattr(entry, "value", entry))):
                values[f"{name}.{key}"] = text
    return values


def told_by(parsed: Parsed) -> Mapping[str, str]:
    """The flags of a receipt that only make its program tell more, which have no effective value."""
    flags = {f"flags.{key}": entry for key, entry in (parsed.receipt.flags or {}).items() if key != COMPLETE}
    texts = ((path, flag_text(getattr(entry, "value", entry))) for path, entry in flags.items())
    return {path: text for path, text in texts if only_tells(path, text)}


def is_complete(parsed: Parsed, name: str) -> bool:
    """Whether the open map was captured whole, so that an absent key is the stated value *unset*."""
    entries = getattr(parsed.receipt, name) or {}
    return entries.get(COMPLETE) is True


def axis_of(path: str) -> str:
    """The axis under which a leaf path counts."""
    head = path.partition(".")[0]
    if head == "wheels":
        return "wheels"
    if head in OPEN_MAPS:
        return path
    return _axis_table().get(path, path)


def axis_named(name: str) -> str:
    """The axis that a name means: an axis, a leaf of one, or the last part of a leaf. Raises NotFound."""
    return axis_of(leaf_named(name))


def leaf_named(name: str) -> str:
    """The axis that a name is, or else the path of the leaf that it means; see `axis_named`. Raises NotFound."""
    from receipts.base.errors import NotFound, near

    head, _, rest = name.partition(".")
    if head == "wheels" or (head in OPEN_MAPS and rest):
        return name
    leaves = axis_leaves()
    if any(leaf.axis == name for leaf in leaves):
        return name
    exact = [leaf for leaf in leaves if name in (leaf.path, *leaf.stated_at)]
    ending = exact or [leaf for leaf in leaves if leaf.path.rpartition(".")[2] == name]
    axes = sorted({leaf.axis for leaf in ending})
    if len(axes) == 1:
        alone = sum(leaf.axis == axes[0] for leaf in leaves) == 1
        return axes[0] if alone or len(ending) > 1 else ending[0].path
    if axes:
        raise NotFound(f"{name} is the end of {', '.join(axes)}; write one of them")
    hint = near(name, sorted({item for leaf in leaves for item in (leaf.axis, leaf.path)}))
    raise NotFound(f"there is no axis {name!r}; see: receipts axes{hint}")


@lru_cache(maxsize=1)
def _axis_table() -> Mapping[str, str]:
    return {leaf.path: leaf.axis for leaf in axis_leaves()}
