"""What differs between two receipts: changed, unknown, held and derived, axis by axis.

What varies counts whether or not anybody meant it to: keys of the open maps are walked as the catalogue's leaves are,
and inputs that differ are axes unless a leaf states the same change (`receipts.axes.inputs`). A value that one side
alone states is *unknown*, never equal, unless something holds it: equal inputs of one program, or a common context.

Equal inputs hold what a program decides for itself: with one input changed, whatever else it does is that change.
They do not decide what a launch runs on; that is held where host, driver and wheels are the same.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final, Literal

from receipts.axes.catalogue import BUILT_IN_BOOKKEEPING, Bookkeeping
from receipts.axes.effective import (
    OFF,
    OPEN_MAPS,
    UNSET,
    Change,
    Member,
    axis_leaves,
    axis_of,
    canonical,
    effective,
    is_complete,
    later_leaves,
    leaves_of,
    told_by,
)
from receipts.axes.inputs import InputChange, InputsApart, inputs_apart, join_inputs
from receipts.axes.switches import DECIDED, FOLLOWS, brought, with_wheel
from receipts.receipt import Parsed, Role

if TYPE_CHECKING:
    from receipts.axes.lane import Lane


HeldBy = Literal["inputs", "context"] | None
# Parts of a receipt that a program and its inputs decide.
PROGRAM: Final = ("model", "batch", "numerics", "parallelism", "compile", "features", "data", "path")
# Parts that the machine decides, which few launches leave unstated; flags come from wherever a launch was started.
_MACHINE: Final = ("hardware", "platform")


def same_context(a: Parsed, b: Parsed) -> bool:
    """Whether both receipts name one base configuration."""
    return a.receipt.run.context is not None and a.receipt.run.context == b.receipt.run.context


class Held:
    """What holds for two launches; ``left`` and ``right`` are their effective values.

    ``varied`` are leaves that the context does not hold: two values of them were seen under it.
    """

    def __init__(
        self,
        a: Parsed,
        b: Parsed,
        left: Mapping[str, Any],
        right: Mapping[str, Any],
        varied: frozenset[str],
        apart: InputsApart,
    ) -> None:
        self.context = same_context(a, b)
        self.varied = varied
        self.sides = a, b
        self.values = left, right
        self._apart = apart

    def __repr__(self) -> str:
        return f"Held(inputs={self._apart.held}, context={self.context})"

    def neither(self, path: str) -> HeldBy:
        """What holds a leaf that neither side states."""
        head = path.partition(".")[0]
        if self._apart.held and (
            head in PROGRAM
            or (head in _MACHINE and self._one_machine)
            or (head == "patches" and self._one_set_of_wheels)
        ):
            return "inputs"
        return "context" if self.context and path not in self.varied else None

    def one(self, path: str) -> bool:
        """Whether inputs hold a leaf that one side alone states: where at most one change can have moved it."""
        if not self._apart.held or path.partition(".")[0] not in PROGRAM or self._apart.many:
            return False
        if len(self._apart.counted) + self._other_code > 1:
            return False
        # What evidence shows on one side alone is the machine's answer, and no setting.
        witnessed = path.replace("path.", "path.witnessed.", 1)
        return self._one_machine or witnessed == path or not any(witnessed in side.stated for side in self.sides)

    @cached_property
    def _other_code(self) -> bool:
        digests = [values.get("code.imported_digest") for values in self.values]
        return digests[0] is None or digests[0] != digests[1]

    @cached_property
    def _one_machine(self) -> bool:
        a, b = self.sides
        host = a.receipt.run.host
        one_driver = self.values[0].get("platform.driver") == self.values[1].get("platform.driver")
        return host is not None and host == b.receipt.run.host and one_driver and self._one_set_of_wheels

    @cached_property
    def _one_set_of_wheels(self) -> bool:
        left, right = ({p: v for p, v in side.items() if p.startswith("wheels.")} for side in self.values)
        return left == right and all(is_complete(side, "wheels") for side in self.sides)


Side = Literal["a", "b", "both"]
CODE = ("code.imported_digest", "code.commit", "code.dirty")
ARCHITECTURE: Final = "model.architecture"
# What one digest of the parameters' names and shapes decides. Heads may differ: no shape shows them.
_OF_SHAPES: Final = frozenset(
    f"model.{name}" for name in ("pattern", "alphabet", "depth", "hidden", "ffn", "expert_ffn", "vocabulary", "experts")
)


@dataclass(frozen=True, slots=True)
class Unknown:
    """An axis that cannot be called equal: ``missing`` says which side does not state it.

    ``opaque``: a file differs, and its settings could not be read.
    """

    axis: str
    members: tuple[Member, ...]
    missing: Side
    opaque: bool = False


@dataclass(frozen=True, slots=True)
class Difference:
    """All that a comparison knows about two receipts' settings. Axes stand in the order of the catalogue, inputs last.

    ``held`` is unstated and held by a common context, ``held_by_inputs`` by equal inputs. Of the inputs ``left_out``
    are bookkeeping, and ``length`` are axes that move only what depends on how long a run is. ``without_input``
    are axes that changed although no input did. ``from_inputs``: an input or the code changed, of a launch that was
    captured whole, and so may have moved whatever the receipts do not state. ``one_program``: both captures are whole,
    of one program. ``unread`` is what the program may have
    read and could not be named.
    """

    changed: tuple[Change, ...]
    unknown: tuple[Unknown, ...]
    derived: tuple[Member, ...]
    blocks: tuple[Member, ...]
    regimes: tuple[Member, ...]
    work: tuple[Member, ...]
    equal: tuple[str, ...]
    held: tuple[str, ...]
    not_applicable: tuple[str, ...]
    held_by_inputs: tuple[str, ...] = ()
    left_out: tuple[InputChange, ...] = ()
    length: tuple[str, ...] = ()
    without_input: tuple[str, ...] = ()
    from_inputs: bool = False
    one_program: bool = False
    unread: str = ""

    @property
    def axes(self) -> tuple[str, ...]:
        """Names of the changed axes."""
        return tuple(change.axis for change in self.changed)


def difference(
    a: Parsed,
    b: Parsed,
    not_applicable: Collection[str] = (),
    varied: frozenset[str] = frozenset(),
    values: tuple[Mapping[str, Any], Mapping[str, Any]] | None = None,
    books: Bookkeeping = BUILT_IN_BOOKKEEPING,
) -> Difference:
    """Compare two receipts leaf by leaf on effective values.

    ``not_applicable`` are axes (or leaf paths) that the lane says do not exist for it; a value that is stated all
    the same still counts. A common context holds what neither states, but for the leaf paths ``varied``, of which two
    values were seen under it. ``values`` are the effective ones of both, where they are known, and ``books`` says
    which inputs are bookkeeping.
    """
    left, right = values or (effective(a), effective(b))
    apart = inputs_apart(a, b, books)
    tally = _tallied(not_applicable, Held(a, b, left, right, varied, apart))
    changes = [Change(axis, tuple(members)) for axis, members in tally.changed.items()]
    alone, without_input = join_inputs(apart, changes, a, b, other_code="code" in tally.changed)
    for item in (*alone, *apart.length):
        member = Member(item.axis, item.a, item.b)
        if item.opaque:
            tally.unknown(item.axis, member, "both")
        else:
            tally.change(item.axis, member)
    opaque = {item.axis for item in alone if item.opaque}
    return Difference(
        changed=tuple(Change(axis, tuple(members)) for axis, members in tally.changed.items()),
        # A changed axis is already counted: what else is unknown of it cannot add a second change.
        unknown=tuple(
            Unknown(
                axis,
                tuple(member for member, _ in gaps),
                gaps[0][1] if len({side for _, side in gaps}) == 1 else "both",
                axis in opaque,
            )
            for axis, gaps in tally.gaps.items()
            if axis not in tally.changed
        ),
        derived=(*tally.follows, *_differing(a, b, Role.DERIVED)),
        blocks=_differing(a, b, Role.BLOCK),
        regimes=(*_differing(a, b, Role.REGIME), *_telling(a, b)),
        work=_differing(a, b, Role.WORK),
        equal=tuple(tally.equal),
        held=tuple(tally.held),
        not_applicable=tuple(tally.not_applicable),
        held_by_inputs=tuple(tally.held_by_inputs),
        left_out=apart.left_out,
        length=tuple(item.axis for item in apart.length),
        without_input=without_input,
        from_inputs=apart.held and bool(apart.counted or "code" in tally.changed),
        one_program=apart.held,
        unread=apart.unread,
    )


def difference_under(
    lane: Lane,
    a: Parsed,
    b: Parsed,
    varied: frozenset[str] = frozenset(),
    values: tuple[Mapping[str, Any], Mapping[str, Any]] | None = None,
) -> Difference:
    """The same under a lane: without what does not exist there, and by its bookkeeping."""
    return difference(a, b, tuple(lane.not_applicable), varied, values, lane.books)


def _tallied(not_applicable: Collection[str], held: Held) -> _MemberTally:
    """What follows from settings alone and from what holds them."""
    (a, b), (left, right), tally = held.sides, held.values, _MemberTally()
    # A leaf that came with a later schema is asked for where one side states it, and not where another setting turned
    # it off: older receipts are no worse for it.
    unasked = {path for path in later_leaves() if left.get(path, OFF) == OFF == right.get(path, OFF)}
    fixed = {leaf.path: leaf.axis for leaf in axis_leaves() if leaf.path not in unasked}
    open_keys = sorted((left.keys() | right.keys()) - fixed.keys() - unasked)
    for path, axis in (*fixed.items(), *((path, axis_of(path)) for path in open_keys)):
        if axis == "code":
            continue
        va, vb = value_at(a, left, path), value_at(b, right, path)
        if va is None and vb is None:
            if axis in not_applicable or path in not_applicable:
                tally.not_applicable.append(path)
            else:
                tally.neither(axis, path, path, held.neither(path))
        elif brought(path, left, right, va, vb):
            tally.follows.append(Member(path, va, vb))
        elif held.context and path not in held.varied and (path in FOLLOWS and _typed(path, a, b) == (None, None)):
            tally.held.append(path)
        elif va is None or vb is None:
            if held.one(path):
                tally.held_by_inputs.append(path)
            else:
                tally.unknown(axis, Member(path, va, vb), "a" if va is None else "b")
        elif va == vb:
            tally.equal.append(path)
        elif _follows(path, a, b, va, vb) or with_wheel(path, left, right):
            tally.follows.append(Member(path, va, vb))
        else:
            tally.change(axis, Member(path, va, vb))
    _compare_architecture(a, b, tally)
    _compare_code(left, right, held.context and held.varied.isdisjoint(CODE), "code" in not_applicable, tally)
    _compare_completeness(a, b, held, not_applicable, tally)
    return tally


def _follows(path: str, a: Parsed, b: Parsed, va: Any, vb: Any) -> bool:
    """Whether a value typed alike on both sides acts in two ways, for what another leaf is there, or may be."""
    if path not in DECIDED and (path not in FOLLOWS or OFF not in (va, vb)):
        return False
    ta, tb = _typed(path, a, b)
    return ta is not None and ta == tb


def _typed(path: str, a: Parsed, b: Parsed) -> tuple[Any, Any]:
    typed = path.replace("path.", "path.intended.", 1) if path.startswith("path.") else path
    return a.stated.get(typed), b.stated.get(typed)


def value_at(parsed: Parsed, values: Mapping[str, Any], path: str) -> Any:
    """The effective value at a path; *unset* for what a map that was captured whole does not name."""
    value = values.get(path)
    if value is None:
        head = path.partition(".")[0]
        # A set that was captured whole says which wheels are absent, and not that the digest of one that is there is.
        if head in OPEN_MAPS and is_complete(parsed, head) and not path.endswith(".digest"):
            return UNSET
    return value


def _compare_architecture(a: Parsed, b: Parsed, tally: _MemberTally) -> None:
    """One digest is one model, whatever letters its pattern is written in; another digest is another model.

    It is not a second change if an axis of the model says the same.
    """
    one, other = (side.stated.get(ARCHITECTURE) for side in (a, b))
    if one is None or other is None:
        return
    if one == other:
        tally.equal.append(ARCHITECTURE)
        tally.settle(_OF_SHAPES)
    elif any(member.path.startswith("model.") for members in tally.changed.values() for member in members):
        tally.follows.append(Member(ARCHITECTURE, one, other))
    else:
        tally.change(ARCHITECTURE, Member(ARCHITECTURE, one, other))


def _compare_code(
    left: Mapping[str, Any], right: Mapping[str, Any], held: bool, ignored: bool, tally: _MemberTally
) -> None:
    """`code` is decided by the digests of the imported files; a commit alone can show a change, never equality."""
    digest, commit, dirty = CODE
    a, b = left.get(digest), right.get(digest)
    if a is not None and b is not None:
        if a == b:
            tally.equal.append("code")
        else:
            tally.change("code", Member(digest, a, b))
        return
    if a is not None or b is not None:
        tally.unknown("code", Member(digest, a, b), "a" if a is None else "b")
        return
    ca, cb = left.get(commit), right.get(commit)
    if ca is not None and cb is not None and ca != cb:
        tally.change("code", Member(commit, ca, cb))
    elif (ca is None) != (cb is None):
        tally.unknown("code", Member(commit, ca, cb), "a" if ca is None else "b")
    elif left.get(dirty) or right.get(dirty):
        tally.unknown("code", Member(dirty, left.get(dirty), right.get(dirty)), "both")
    elif held:
        tally.held.append("code")
    elif ignored:
        tally.not_applicable.append("code")
    else:
        tally.unknown("code", Member(digest, None, None), "both")


def _compare_completeness(
    a: Parsed, b: Parsed, held: Held, not_applicable: Collection[str], tally: _MemberTally
) -> None:
    """An open map that was not captured whole may hide a key: unknown, unless inputs or one context hold both."""
    for name in OPEN_MAPS:
        ca, cb = is_complete(a, name), is_complete(b, name)
        if ca and cb:
            continue
        axis = "wheels" if name == "wheels" else f"{name}.*"
        if ca != cb:
            if held.one(f"{name}.complete"):
                tally.held_by_inputs.append(axis)
            else:
                tally.unknown(axis, Member(f"{name}.complete", ca or None, cb or None), "b" if ca else "a")
        elif axis in not_applicable or name in not_applicable:
            tally.not_applicable.append(axis)
        else:
            tally.neither(axis, f"{name}.complete", axis, held.neither(f"{name}.complete"))


def _differing(a: Parsed, b: Parsed, role: Role) -> tuple[Member, ...]:
    left, right = a.flat.leaves, b.flat.leaves
    every = ((leaf.path, canonical(left.get(leaf.path)), canonical(right.get(leaf.path))) for leaf in leaves_of(role))
    return tuple(Member(path, va, vb) for path, va, vb in every if va != vb)


def _telling(a: Parsed, b: Parsed) -> Iterator[Member]:
    """Flags that make the program of one side alone tell more."""
    left, right = told_by(a), told_by(b)
    for path in sorted(left.keys() | right.keys()):
        if left.get(path) != right.get(path):
            yield Member(path, left.get(path), right.get(path))


class _MemberTally:
    """Collects members under their axes while the leaves are walked."""

    def __init__(self) -> None:
        self.changed: dict[str, list[Member]] = {}
        self.gaps: dict[str, list[tuple[Member, Side]]] = {}
        self.equal: list[str] = []
        self.follows: list[Member] = []
        self.held: list[str] = []
        self.held_by_inputs: list[str] = []
        self.not_applicable: list[str] = []

    def change(self, axis: str, member: Member) -> None:
        self.changed.setdefault(axis, []).append(member)

    def unknown(self, axis: str, member: Member, missing: Side) -> None:
        self.gaps.setdefault(axis, []).append((member, missing))

    def neither(self, axis: str, path: str, name: str, by: HeldBy) -> None:
        """Note what neither side states: by what it is held, or that it is unknown."""
        if by is None:
            self.unknown(axis, Member(path, None, None), "both")
        else:
            (self.held_by_inputs if by == "inputs" else self.held).append(name)

    def settle(self, paths: frozenset[str]) -> None:
        """These leaves are equal, whatever the sides state of them; two ways to write one are shown."""
        for axis, members in list(self.changed.items()):
            self.follows += [member for member in members if member.path in paths]
            if not (rest := [member for member in members if member.path not in paths]):
                del self.changed[axis]
            else:
                self.changed[axis] = rest
        for axis, gaps in list(self.gaps.items()):
            self.equal += [member.path for member, _ in gaps if member.path in paths]
            if not (left := [gap for gap in gaps if gap[0].path not in paths]):
                del self.gaps[axis]
            else:
                self.gaps[axis] = left
