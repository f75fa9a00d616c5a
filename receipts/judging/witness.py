"""Witness launches: what a profiled twin saw of the path is lent to the measured launch that it names.

Profiled runs are slow on purpose, so that a launch is measured once and witnessed by a second one (`run.witness_for`),
which must have run the same configuration. Nothing is lent on trust: an axis that differs, or that cannot be told,
keeps a witness from lending (R308), and what a launch witnesses itself is never replaced.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any, NamedTuple

from receipts.axes import Change, Member, Unknown, axis_leaves, difference_under, effective
from receipts.axes.inputs import PREFIX
from receipts.axes.lane import Lane
from receipts.receipt import Parsed
from receipts.receipt.configuration import Path, Witnessed
from receipts.receipt.leaf import Section
from receipts.receipt.leaves import lost_entries
from receipts.receipt.names import ANYTHING, HOST_READ, WITNESSED, dtypes, parts
from receipts.receipt.parse import intact

# What is seen of a path, and so can be lent.
RECOMPUTE = "numerics.recompute_applied"
LENDABLE = (*(f"{WITNESSED}.{name}" for name in Witnessed.model_fields), RECOMPUTE)
LEVELS = ("none", "intent", "backend", "kernels")
# MaxText's profiler, by its configuration: slow on purpose, and no axis of the launch that it witnesses.
_PROFILER = tuple(
    f"flags.{name}" for name in ("profiler", "enable_profiler", "skip_first_n_steps_for_profiler", "profiler_steps")
)
# A profiler reads the host by itself: how often says nothing about the launch that it witnesses.
_DISTURBED = f"{WITNESSED}.host_transfers_per_step"
_FALLBACKS = f"{WITNESSED}.fallbacks"
_SHOWN = 3


class Side(NamedTuple):
    """What the launches of a side share beside their configuration."""

    lane: str
    label: str | None
    context: str | None


class WitnessDifference(NamedTuple):
    """How a witness differs from the launch that it names, in what was asked for; neither means: not at all.

    ``complete``: each states every axis that the other states, so that no change can come of what was left out.
    """

    changed: tuple[Change, ...]
    unknown: tuple[Unknown, ...]
    complete: bool


class RefusedWitness(NamedTuple):
    """A witness that lends nothing, and why."""

    witness: Parsed
    why: str


class WitnessContradiction(NamedTuple):
    """A leaf that a launch and its witness saw differently. ``sure``: the witness ran the same configuration."""

    path: str
    own: Any
    seen: Any
    witness: str
    sure: bool


@dataclass(frozen=True, slots=True)
class BorrowedLeaves:
    """A launch with what its witnesses lend: ``parsed`` states it all, ``by`` names the witness of each leaf lent.

    ``lenders`` are the ids of the witnesses that hold, whether or not a leaf was missing, and ``strangers`` those of
    them that another actor submitted.
    """

    parsed: Parsed
    by: Mapping[str, str]
    lenders: tuple[str, ...] = ()
    refused: tuple[RefusedWitness, ...] = ()
    contradictions: tuple[WitnessContradiction, ...] = ()
    strangers: tuple[Parsed, ...] = ()

    @property
    def any(self) -> bool:
        """Whether a witness says anything of the launch."""
        return bool(self.by or self.contradictions)

    def witness_of(self, path: str) -> str | None:
        """The id of the witness that saw the value at a path, or above it; None if the launch says it itself."""
        return next((name for leaf, name in self.by.items() if path == leaf or path.startswith(f"{leaf}.")), None)


def names(witness: Parsed, other: Parsed) -> bool:
    """Whether a receipt says that it witnesses another, of another launch."""
    named = witness.receipt.run.witness_for
    run = other.receipt.run
    return named is not None and witness.receipt.run.launch != run.launch and named in (other.id, run.launch)


def side_of(parsed: Parsed) -> Side:
    """Lane, label and context: what the launches of a side share, and what is judged for one is seen for all."""
    run = parsed.receipt.run
    return Side(run.lane, run.label, run.context)


def witness_difference(
    witness: Parsed, witnessed: Parsed, lane: Lane, varied: Mapping[str, frozenset[str]]
) -> WitnessDifference:
    """Axes in which a witness differs from the launch that it names, under that launch's lane.

    Both as they were asked for: what was seen of the path is what the witness is for. Regimes and work are not axes.
    Their context does not hold what launches under it were seen to state with two values (``varied``, by context).
    """
    one, other = as_requested(witness), as_requested(witnessed)
    known = varied.get(one.receipt.run.context or "", frozenset())
    difference_of_requests = difference_under(lane, one, other, known)
    beside = (*_PROFILER, *difference_of_requests.length)
    changed = [
        item
        for item in difference_of_requests.changed
        if item.axis not in beside
        and not (item.axis.startswith(PREFIX) and lane.books.of_witness(item.axis.removeprefix(PREFIX)))
    ]
    lanes = (witness.receipt.run.lane, witnessed.receipt.run.lane)
    if lanes[0] != lanes[1]:
        changed.insert(0, Change("run.lane", (Member("run.lane", *lanes),)))
    unknown = tuple(item for item in difference_of_requests.unknown if item.axis not in _PROFILER)
    # A switch without the leaf that turns it off counts as typed, and so as changed, under the axis of both.
    left, right = effective(one), effective(other)
    one_sided = any((leaf.path in left) != (leaf.path in right) for leaf in axis_leaves())
    return WitnessDifference(tuple(changed), unknown, complete=not unknown and not one_sided)


def lend(
    measured: Parsed,
    witnesses: Iterable[Parsed],
    lane: Lane,
    varied: Mapping[str, frozenset[str]] = MappingProxyType({}),
    strangers: Collection[str] = (),
    sides: Mapping[str, Collection[Side]] = MappingProxyType({}),
) -> BorrowedLeaves:
    """What the witnesses of a launch lend to it, the first before the others; what it saw itself wins.

    A launch that is itself a witness shows its own path, and takes nothing. A witness of another context or actor (its
    id is among ``strangers``) may lend what the launch did not see, and never contradicts what it saw; what readers
    read for another actor raises no grade. Where an attention was asked for by name, a witness of another launch of its
    side (``sides``, by the id of the witness) lends as well; where it may not, it says nothing of this launch.
    """
    # One attention: of `auto`, two launches may have been given two.
    asked = parts(measured.stated.get("path.intended.attention") or "")
    own_side = side_of(measured) if asked and not asked & ANYTHING else None
    shared = (item for item in witnesses if own_side in sides.get(item.id, ()) or names(item, measured))
    named = list(shared) if measured.receipt.run.witness_for is None else []
    if not named:
        return BorrowedLeaves(measured, {})
    lenders: list[Parsed] = []
    sure: list[Parsed] = []
    doubtful: list[Parsed] = []
    refused: list[RefusedWitness] = []
    for item in named:
        apart = witness_difference(item, measured, lane, varied)
        why = _why_not(item, apart, lane)
        contexts = item.receipt.run.context, measured.receipt.run.context
        stranger = item.id in strangers or (None not in contexts and contexts[0] != contexts[1])
        if not why:
            lenders.append(item)
            if not stranger:
                sure.append(item)
            continue
        if not names(item, measured):
            continue
        refused.append(RefusedWitness(item, why))
        # A stranger says nothing of this launch. Whether one is a stranger must not hang on what it leaves unsaid.
        if not stranger and (not apart.changed or not apart.complete):
            doubtful.append(item)
    parsed, by = _merged(measured, lenders, strangers) if lenders else (measured, {})
    contradictions = (
        *_contradictions(parsed, by, sure, lane, sure=True),
        *_contradictions(parsed, by, doubtful, lane, sure=False),
    )
    ids = tuple(item.id for item in lenders)
    others = tuple(item for item in lenders if item.id in strangers)
    return BorrowedLeaves(parsed, by, ids, tuple(refused), contradictions, others)


def shown(change: Change) -> str:
    """A changed axis with the values of the witness and of the launch that it names."""
    member = change.members[0]
    return f"{member.path} is {member.a} there and {member.b} here"


def level(parsed: Parsed) -> str:
    """The highest level of evidence that has the digest of its file."""
    levels = [item.level for item in parsed.receipt.evidence or () if item.level and item.sha256]
    return max(levels, key=LEVELS.index, default="none")


def _why_not(witness: Parsed, apart: WitnessDifference, lane: Lane) -> str:
    """Why a witness lends nothing; empty if it does."""
    if apart.changed:
        return f"{'; '.join(map(shown, apart.changed[:_SHOWN]))}{_more(apart.changed)}"
    if apart.unknown:
        gaps = "; ".join(map(_gap, apart.unknown[:_SHOWN]))
        return f"it cannot be told whether it ran the same: {gaps}{_more(apart.unknown)}"
    if witness.receipt.run.provenance != "measured":
        return f"it is {witness.receipt.run.provenance}, and was not measured"
    if gone := next(lost_entries(witness.receipt), None):
        return f"{gone.path} has {gone}"
    if not any(_seen(witness, path) is not None for path in LENDABLE):
        return "it shows nothing of the path"
    if LEVELS.index(level(witness)) < LEVELS.index(lane.evidence):
        return f"its evidence is of level {level(witness)}, and lane {lane.name} wants {lane.evidence}"
    return ""


def _gap(unknown: Unknown) -> str:
    """The leaves of an axis that cannot be compared, and who leaves them unsaid."""
    leaves = ", ".join(member.path for member in unknown.members[:_SHOWN])
    who = {"a": "by the witness", "b": "by this launch", "both": "by either"}[unknown.missing]
    return f"{leaves} not stated {who}"


def _more(items: tuple[Any, ...]) -> str:
    return f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""


def as_requested(parsed: Parsed) -> Parsed:
    """The receipt without what was seen of its path."""
    return _stating(parsed, dict.fromkeys(LENDABLE))


def _merged(
    measured: Parsed, lenders: Iterable[Parsed], strangers: Collection[str]
) -> tuple[Parsed, Mapping[str, str]]:
    by: dict[str, str] = {}
    values: dict[str, Any] = {}
    evidence = list(measured.receipt.evidence or ())
    for item in lenders:
        # That a reader read a leaf counts if the program that says so wrote the witness for the same actor, and nobody
        # edited it since.
        unproven = {} if intact(item) and item.id not in strangers else {"read": None}
        evidence += [
            entry.model_copy(update=unproven) for entry in item.receipt.evidence or () if entry.level and entry.sha256
        ]
        for path in LENDABLE:
            value = _seen(item, path)
            has_place = path != RECOMPUTE or measured.receipt.numerics is not None
            if value is not None and path not in by and _seen(measured, path) is None and has_place:
                by[path], values[path] = item.id, value
    merged = _stating(measured, values)
    receipt = merged.receipt.model_copy(update={"evidence": tuple(evidence) or None})
    return replace(merged, receipt=receipt), by


def _seen(parsed: Parsed, path: str) -> Any:
    """What a receipt saw at a leaf, read from the model: an empty map or list is a statement."""
    receipt = parsed.receipt
    section: Any = receipt.numerics if path == RECOMPUTE else receipt.path and receipt.path.witnessed
    return getattr(section, path.rpartition(".")[2], None)


def _stating(parsed: Parsed, values: Mapping[str, Any]) -> Parsed:
    """The receipt with other values at leaves of `LENDABLE`; its id and bytes stay those of the document."""
    receipt = parsed.receipt
    changes: dict[str, Section] = {}
    seen = {path.rpartition(".")[2]: value for path, value in values.items() if path != RECOMPUTE}
    if receipt.path is not None or any(value is not None for value in seen.values()):
        path = receipt.path or Path()
        witnessed = (path.witnessed or Witnessed()).model_copy(update=seen)
        nothing = all(value is None for value in witnessed.__dict__.values())
        changes["path"] = path.model_copy(update={"witnessed": None if nothing else witnessed})
    if RECOMPUTE in values and receipt.numerics is not None:
        changes["numerics"] = receipt.numerics.model_copy(update={"recompute_applied": values[RECOMPUTE]})
    return replace(parsed, receipt=receipt.model_copy(update=changes))


def _contradictions(
    merged: Parsed, by: Mapping[str, str], witnesses: Iterable[Parsed], lane: Lane, *, sure: bool
) -> Iterator[WitnessContradiction]:
    for item in witnesses:
        for path in LENDABLE:
            own, seen = _seen(merged, path), _seen(item, path)
            if own is None or seen is None or by.get(path) == item.id:
                continue
            if _disagree(path, own, seen, lane):
                yield WitnessContradiction(path, own, seen, item.id, sure)


def _disagree(path: str, own: Any, seen: Any, lane: Lane) -> bool:
    if path == _DISTURBED:
        return False
    if path == _FALLBACKS:  # counts depend on the number of steps; which operators fell back does not
        wanted = "fallbacks" in lane.witness
        return wanted and bool(_fallen(seen) - _fallen(own))
    if isinstance(own, bool) or isinstance(seen, bool):
        return bool(own != seen)
    if isinstance(own, tuple) or isinstance(seen, tuple):
        return set(own) != set(seen)
    if path.endswith(".compute_dtype") and dtypes(own) and dtypes(seen):
        return dtypes(own) != dtypes(seen)
    return parts(own) != parts(seen)


def _fallen(fallbacks: Mapping[str, int]) -> set[str]:
    return {name for name, count in fallbacks.items() if count > 0 and name != HOST_READ}
