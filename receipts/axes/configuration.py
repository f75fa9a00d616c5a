"""What one receipt ran, as parts that can be added and taken away: one for each counted axis, with a digest of 8 bytes.

This is the one identity of a configuration: stores, replicates, noise floors, reports and bridges tell configurations
apart by it. Its digest is the sum of its parts' digests modulo 2^64, so that leaving one axis out, or taking it from
another receipt, is one subtraction or addition. Equal sums are candidates, and `receipts.axes.difference` decides.

Inputs are parts too, one for each that counts. An option that states its default, or what a stated leaf states
already, adds nothing: two launches of one configuration have one digest, however their lines were typed.

Other ideas have keys of their own: the shape (what frontiers and ceilings compare) and the signature (whether a launch
fits, asked before it runs) in `receipts.axes.shape`, and `configuration_key` of `receipts.axes.replicates` (what
receipts *state* alike, which is more: a switch that does nothing is stated, and has no part in a configuration).
"""

from __future__ import annotations

import hashlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from receipts.axes.catalogue import LENGTH, TOPOLOGY, AxisCatalogue, catalogue_of, compact_json, eight_bytes
from receipts.axes.difference import CODE, PROGRAM
from receipts.axes.effective import OFF, OPEN_MAPS, UNSET, axis_of, decided, effective, later_leaves
from receipts.axes.inputs import PREFIX, VARIABLE, handed_on, inputs_of, named_leaves
from receipts.emit.launch_line import launcher_role
from receipts.emit.launch_values import normal, text_of
from receipts.emit.secrets import BLANK
from receipts.receipt import Parsed
from receipts.receipt.document import COMPLETE

if TYPE_CHECKING:
    from receipts.axes.lane import Lane


PROGRAM_PART: Final = f"{PREFIX}*"  # what the program makes of its inputs: it follows each of them


class InputParts(NamedTuple):
    """Axis and value of each input that counts. ``anchor`` fills what is unstated; empty if inputs hold nothing."""

    parts: tuple[tuple[str, str], ...] = ()
    anchor: str = ""


def inputs_beside(parsed: Parsed, lane: Lane, stated: StatedAxes) -> InputParts:
    """The parts of a receipt's inputs, beside those of its leaves."""
    if parsed.receipt.inputs is None:
        return InputParts()  # a command alone is compared launch by launch, and need not be read for this
    inputs = inputs_of(parsed)
    if inputs is None or not inputs.recorded:
        return InputParts()
    books, parts = lane.books, dict[str, str]()
    for key in inputs.options:
        item, default = inputs.value(key), inputs.defaults.get(key)
        if item is None or BLANK in item.text or item.output or books.role(key, item.text) not in ("", LENGTH):
            continue
        if default is not None and normal(default) == item.form:
            continue
        # A leaf that the option states may be stated with its value.
        values = (parsed.stated.get(leaf) for leaf in named_leaves(key))
        if not any(value is not None and normal(text_of(value)) == item.form for value in values):
            parts[key] = item.form
    flags = {key.partition(".")[0] for key in parsed.receipt.flags or ()}
    counted = parsed.stated.get("hardware.chips") is not None
    for name, item in (inputs.environment or {}).items():
        role, default = books.variable(name, item.text), inputs.defaults.get(f"{VARIABLE}{name}")
        if default is not None and normal(default) == item.form:
            continue
        if name not in flags and BLANK not in item.text and (not role or (role == TOPOLOGY and not counted)):
            parts[f"{VARIABLE}{name}"] = item.form
    for key, text in inputs.launcher.items():
        role = launcher_role(key)
        if any(handed_on(key, option) and normal(text) == item.form for option, item in inputs.options.items()):
            continue
        if "." in key and (role == "setting" or (role == TOPOLOGY and not counted)):
            parts[f"launcher.{key}"] = normal(text)
    anchor = ""
    host = parsed.receipt.run.host
    if inputs.whole and inputs.program is not None:
        # Something is unstated, or was read unseen, that the host decides.
        on_host = bool(stated.unstated & _OF_MACHINE or inputs.unread)
        if not on_host or host is not None:
            anchor = f"inputs {inputs.program}{f' on {host}' if on_host else ''}"
            parts["*"] = inputs.program
    return InputParts(tuple((PREFIX + key, value) for key, value in sorted(parts.items())), anchor)


def typed_options(parsed: Parsed, lane: Lane) -> frozenset[tuple[str, str]]:
    """The options that count of a launch that has no inputs but its command; empty of any other."""
    inputs = inputs_of(parsed)
    known = inputs.options.items() if inputs is not None and not inputs.recorded else ()
    return frozenset((key, item.form) for key, item in known if lane.books.role(key, item.text) in ("", LENGTH))


def input_value(parsed: Parsed, path: str) -> str | None:
    """An input of a launch by its path, ``inputs.lr``, as it was typed, resolved, or by default."""
    inputs, key = inputs_of(parsed), path.removeprefix(PREFIX)
    if inputs is None:
        return None
    if key.startswith(VARIABLE):
        item = inputs.variable(key.removeprefix(VARIABLE))
    elif key.startswith("launcher."):
        return inputs.launcher.get(key.removeprefix("launcher."))
    else:
        item = inputs.value(key)
    return None if item is None else item.text


_MODULUS: Final = 2**64
NO_INPUTS: Final = InputParts()
# Axes of which equal inputs hold nothing unstated but on one host, and those of which they hold nothing.
_OF_MACHINE: Final = frozenset({"topology", "hardware.accelerator", "platform"})
_OF_LAUNCH: Final = frozenset({"code", "wheels", "flags.*"})


class AxisPart(NamedTuple):
    """What a receipt states of one axis: its leaves' effective values as JSON, and 8 bytes of SHA-256 over both."""

    axis: str
    value: str
    digest: int


# What changes from week to week while the experiment stays: code, wheels, container image, driver.
LINEAGE: Final = frozenset({"code", "wheels", "platform"})


@dataclass(frozen=True)
class Configuration:
    """The parts of one receipt by their axes, under one lane and one catalogue of axes.

    ``anchor`` replaces what is unstated of the axes ``unstated``: the program of inputs that hold it, else the context,
    else the receipt's own id (``own``), which no other receipt has. It is None if nothing is unstated. All digests
    are signed integers of 64 bits. ``plain`` is the same by its leaves alone, as receipts without inputs have it: by it
    a history goes on across the version that began to record them.
    """

    lane: str
    catalogue: int
    parts: Mapping[str, AxisPart]
    unstated: frozenset[str]
    anchor: str | None
    own: bool
    follow: Mapping[str, frozenset[str]]
    plain: Configuration | None = None

    @cached_property
    def digest(self) -> int:
        """The sum over all that it has."""
        return _signed(self._sum)

    @cached_property
    def _sum(self) -> int:
        base = eight_bytes(f"lane\0{self.lane}\0{self.catalogue}")
        return base + sum(part.digest for part in self.parts.values()) + self._anchored

    @cached_property
    def _anchored(self) -> int:
        return eight_bytes(f"anchor\0{self.anchor}") if self.anchor is not None else 0

    @cached_property
    def whole(self) -> bytes:
        """16 bytes of SHA-256 over all that it has: what is compared where two digests are equal."""
        parts = [self.lane, str(self.catalogue), self.anchor or "", *(item.axis + item.value for item in self.ordered)]
        return hashlib.sha256("\0".join(parts).encode("utf-8", "surrogatepass")).digest()[:16]

    @cached_property
    def ordered(self) -> tuple[AxisPart, ...]:
        """The parts in the order of their axes."""
        return tuple(self.parts[axis] for axis in sorted(self.parts))

    def followers(self, axis: str) -> frozenset[str]:
        """Axes that may differ only because this one does, by its nature or by the lane's couplings."""
        known = self.follow.get(axis)
        if known is None and axis.startswith(PREFIX):  # an input that another launch alone has
            known = self.follow.get(PROGRAM_PART)
        return known or frozenset()

    def without(self, axis: str) -> int | None:
        """The digest without an axis and its followers; None if what else is unstated is this receipt's alone.

        An axis that it does not have can be left out too: then other configurations may have it.
        """
        return self._left({axis, *self.followers(axis)})

    def _left(self, left_out: Collection[str]) -> int | None:
        total = self._sum - sum(self.parts[name].digest for name in left_out if name in self.parts)
        if self.unstated <= set(left_out):
            total -= self._anchored
        elif self.own:
            return None
        return _signed(total)

    @property
    def line(self) -> int | None:
        """The digest without its lineage: equal for what is run again with other code, wheels, image and driver.

        None if what else is unstated is this receipt's alone.
        """
        return self._left(LINEAGE)

    def with_(self, axis: str, part: AxisPart | None) -> Configuration:
        """The same with another value of one axis, or without a value of it. What is unstated stays as it was."""
        others = {name: item for name, item in self.parts.items() if name != axis}
        return replace(self, parts=others if part is None else {**others, axis: part})

    def mixed(self, other: Configuration, axes: Collection[str]) -> Configuration:
        """The same with these axes as another configuration has them, unstated ones too; the anchor stays."""
        parts = {axis: part for axis, part in self.parts.items() if axis not in axes}
        parts |= {axis: part for axis, part in other.parts.items() if axis in axes}
        unstated = (self.unstated - set(axes)) | (other.unstated & set(axes))
        anchor, own = (self.anchor, self.own) if self.anchor is not None else (other.anchor, other.own)
        return replace(
            self, parts=parts, unstated=unstated, anchor=anchor if unstated else None, own=own and bool(unstated)
        )

    def mixture(self, other: Configuration, axes: frozenset[str]) -> int:
        """The digest of `mixed`, by addition alone."""
        mine, theirs = self.parts, other.parts
        moved = sum(theirs[axis].digest for axis in axes if axis in theirs)
        kept = self._sum - self._anchored - sum(mine[axis].digest for axis in axes if axis in mine)
        anchored = self._anchored if self.anchor is not None else other._anchored
        return _signed(kept + moved + (anchored if (self.unstated - axes) or (other.unstated & axes) else 0))

    def apart(self, other: Configuration) -> frozenset[str]:
        """Axes of which the two do not state the same, followers among them."""
        return frozenset(axis for axis in {*self.parts, *other.parts} if self.parts.get(axis) != other.parts.get(axis))


def configuration(parsed: Parsed, lane: Lane) -> Configuration:
    """What a receipt ran, under its lane. Blocks, derived values, regimes and work have no part in it.

    A key that a completely captured map does not have has no part either; that the map is complete has.
    """
    catalogue = catalogue_of(lane)
    stated = stated_axes(effective(parsed), decided(parsed).maps, catalogue)
    return configuration_of(parsed, catalogue, stated, inputs_beside(parsed, lane, stated))


def configuration_of(
    parsed: Parsed, catalogue: AxisCatalogue, stated: StatedAxes, inputs: InputParts = NO_INPUTS
) -> Configuration:
    """The same of axes and inputs that were read already."""
    run = parsed.receipt.run
    parts = {**stated.parts, **{axis: axis_part(axis, compact_json({axis: value})) for axis, value in inputs.parts}}
    held = bool(inputs.anchor) and not stated.unstated & _OF_LAUNCH
    anchor = inputs.anchor if held else run.context or parsed.id
    beside = inputs is not NO_INPUTS and bool(inputs.parts)
    follow = catalogue.follow
    if inputs.anchor:
        # The inputs were captured whole: from each may follow what their program decides.
        program = {axis for path, axis, _ in catalogue.leaves if path.partition(".")[0] in PROGRAM}
        every = frozenset(
            {*program, *(axis for axis in parts if axis.startswith("features.")), "features.*", PROGRAM_PART}
        )
        follow = {**follow, **{axis: every - {axis} for axis in parts if axis.startswith(PREFIX)}}
    return Configuration(
        plain=configuration_of(parsed, catalogue, stated) if beside else None,
        lane=run.lane,
        catalogue=catalogue.digest,
        parts=parts,
        unstated=stated.unstated,
        anchor=anchor if stated.unstated else None,
        own=bool(stated.unstated) and not held and run.context is None,
        follow=follow,
    )


class StatedAxes(NamedTuple):
    """What a receipt states of its axes, and of which it leaves something unstated."""

    parts: Mapping[str, AxisPart]
    unstated: frozenset[str]


def stated_axes(
    values: Mapping[str, Any], maps: Mapping[str, Mapping[str, Any]], catalogue: AxisCatalogue
) -> StatedAxes:
    """The axes that effective values and open maps state, as receipts of a lane are read."""
    complete = frozenset(name for name, entries in maps.items() if entries.get(COMPLETE) is True)
    by_axis: dict[str, dict[str, Any]] = {}
    unstated, later = set[str](), later_leaves()
    for path, axis, counts in catalogue.leaves:
        value = values.get(path)
        if path in later and value in (None, OFF):
            continue
        if value is not None:
            by_axis.setdefault(axis, {})[path] = value
        elif counts:
            unstated.add(axis)
    for path, value in values.items():
        head = path.partition(".")[0]
        # A key that says `unset` in a complete map says what its absence says.
        if head in OPEN_MAPS and not (head in complete and value == UNSET and not path.endswith(".digest")):
            by_axis.setdefault(axis_of(path), {})[path] = value
    # `code` as `difference` reads it: by the imported files; a commit alone shows no equality.
    digest, *of_commit = CODE
    if values.get(digest) is not None:
        by_axis["code"] = {digest: values[digest]}
    else:
        if members := {path: value for path in of_commit if (value := values.get(path))}:
            by_axis["code"] = members
        if "code" not in catalogue.not_applicable:
            unstated.add("code")
    for name in OPEN_MAPS:
        axis = "wheels" if name == "wheels" else f"{name}.*"
        if name in complete:
            by_axis.setdefault(axis, {})[f"{name}.complete"] = True
        elif axis not in catalogue.not_applicable and name not in catalogue.not_applicable:
            unstated.add(axis)
    return StatedAxes(
        {axis: axis_part(axis, compact_json(members)) for axis, members in by_axis.items()}, frozenset(unstated)
    )


@lru_cache(maxsize=8192)
def axis_part(axis: str, value: str) -> AxisPart:
    """The part of an axis with this value."""
    return AxisPart(axis, value, eight_bytes(f"{axis}\0{value}"))


def _signed(number: int) -> int:
    return (number + _MODULUS // 2) % _MODULUS - _MODULUS // 2
