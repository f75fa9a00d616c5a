"""Launches of one configuration: their settings, what follows from those alone, and whether two are two launches.

What follows from settings is worked out once for all launches of a configuration (`SettingsCache`). What a receipt
*states* of its configuration, as every launch of that configuration states it, has a key of its own
(`configuration_key`): rules that read nothing else give the same answer for all of them, and are asked once
(`receipts.judging.judge`). The identity of a configuration is another idea (`receipts.axes.configuration`): it is
made of effective values, and rules on a configuration read what was typed.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from heapq import nsmallest
from itertools import pairwise
from operator import mul
from typing import Any, Final, NamedTuple, TypeVar

import orjson

from receipts.axes.catalogue import catalogue_of
from receipts.axes.configuration import (
    Configuration,
    InputParts,
    StatedAxes,
    configuration_of,
    inputs_beside,
    stated_axes,
)
from receipts.axes.difference import difference_under
from receipts.axes.effective import DecidedLeaves, decided, effective_values
from receipts.axes.lane import Lane
from receipts.axes.shape import ShapeKey, Signature, key_of, name_of, parts_of, signature_of
from receipts.receipt import Parsed
from receipts.receipt.document import Receipt
from receipts.receipt.leaf import Section
from receipts.stats.distributions import median

K = TypeVar("K")
V = TypeVar("V")


class Bounded(dict[K, V]):
    """A dictionary that forgets everything before it would hold more than ``most`` keys."""

    def __init__(self, most: int) -> None:
        super().__init__()
        self._most = most

    def __setitem__(self, key: K, value: V) -> None:
        if len(self) >= self._most and key not in self:
            self.clear()
        super().__setitem__(key, value)


_WHOLE: Final = (
    *("hardware", "platform", "wheels", "flags", "patches", "features", "model", "parallelism", "batch"),
    *("numerics", "path"),
)
# What stays of the sections in which a launch says things of its own, too.
_PARTS: Final[Mapping[str, tuple[str, ...]]] = {
    "run": ("lane", "kind", "outcome", "provenance"),
    "code": ("commit", "dirty", "imported_digest"),
    "compile": (
        *("posture", "regions", "backend", "cuda_graph_implementation", "cuda_graph_scope", "warmup_policy"),
        "cache_state",
    ),
    "data": ("dataset", "tokenizer", "kind"),
    "failure": ("phase",),
}
_GONE: Final = tuple(name for name in Receipt.model_fields if name not in (*_WHOLE, *_PARTS, "schema_version"))


def stated_configuration(parsed: Parsed) -> Parsed:
    """The receipt without what its launch alone says: it has no id, and states nothing that was measured."""
    changes: dict[str, Section | None] = dict.fromkeys(_GONE)
    for name, stays in _PARTS.items():
        section = getattr(parsed.receipt, name)
        if section is not None:
            changes[name] = section.model_copy(update=dict.fromkeys(vars(section).keys() - set(stays)))
    return replace(parsed, id="", raw=b"", source="", receipt=parsed.receipt.model_copy(update=changes))


def configuration_key(parsed: Parsed) -> bytes:
    """All that `stated_configuration` leaves in a receipt, as one text: equal keys mean equal results."""
    sections = vars(parsed.receipt)
    parts = [sections[name] and [getattr(sections[name], field) for field in fields] for name, fields in _PARTS.items()]
    content: list[Any] = [[sections[name] for name in _WHOLE], parts]
    try:
        return orjson.dumps(content, default=vars)
    except TypeError:  # an integer of more than 64 bits, or half a surrogate pair
        return json.dumps(content, default=vars).encode()


# One launch recorded twice has the same steps: cut, told with other digits, or in another order.
COPIED_STEPS = 60
QUICKEST_STEPS, DISTINCT = 20, 10  # launches whose clock tells steps apart share no such tail
COPIED, ENOUGH = 0.9, 10  # correlation of noise: ten independent differences reach it once in 5,000 pairs
MAX_DEVIATIONS = 4.0  # times the median deviation: no difference weighs more
COMPARED_STEPS = 400  # of each of two launches, when their steps are correlated


def replicates(one: Parsed, other: Parsed, lane: Lane) -> bool:
    """Whether no axis of two receipts differs, and none is left open that could."""
    apart = difference_under(lane, one, other)
    return not apart.changed and not apart.unknown


def distinct_steps(parsed: Parsed) -> frozenset[tuple[float, ...]]:
    """Step times that no second launch can have: the first, and the quickest in whatever order.

    A clock too coarse to tell steps apart tells no launches apart.
    """
    steps = _steps(parsed)
    if not steps or min(steps) == max(steps):
        return frozenset()
    quickest = tuple(_rounded(step) for step in nsmallest(QUICKEST_STEPS, steps))
    first = tuple(map(_rounded, steps[:COPIED_STEPS]))
    return frozenset({first, quickest} if len(set(quickest)) >= DISTINCT else {first})


class Rhythm(NamedTuple):
    """How many steps a launch has, and the differences of their logarithms, centered and of length 1."""

    steps: int
    differences: tuple[float, ...]


def rhythm(parsed: Parsed) -> Rhythm | None:
    """The rhythm of a launch; None if its steps are too few, or all alike."""
    steps = _steps(parsed)
    # Differences, since warm-up and drift are alike in all launches; logarithms, so that no slow step decides.
    apart = [math.log(y / x) for x, y in pairwise(steps[2:COMPARED_STEPS]) if x > 0 and y > 0]
    if len(steps) < ENOUGH + 3 or len(apart) < ENOUGH or len(set(apart)) == 1:
        return None
    middle = median(apart)
    reach = MAX_DEVIATIONS * median([abs(item - middle) for item in apart])
    if reach:  # all launches fall alike from their warm-up, and rise alike at a checkpoint
        apart = [min(max(item, middle - reach), middle + reach) for item in apart]
    mean = math.fsum(apart) / len(apart)
    length = math.dist(apart, [mean] * len(apart))
    return Rhythm(len(steps), tuple((item - mean) / length for item in apart))


def rise_together(one: Rhythm | None, other: Rhythm | None) -> bool:
    """Whether the steps of two launches go up and down together, as a copy's do, with some noise or scaled."""
    if one is None or other is None or one.steps != other.steps or len(one.differences) != len(other.differences):
        return False
    correlation: float = sum(map(mul, one.differences, other.differences))
    return correlation > COPIED


def _steps(parsed: Parsed) -> Sequence[float]:
    measurement = parsed.receipt.measurement
    return (measurement.step_durations_seconds or measurement.interval_means_seconds or ()) if measurement else ()


def _rounded(step: float) -> float:
    return float(f"{step:.6g}")


MAX_SETTINGS: Final = 250  # settings that a session holds, some 40 kB each with all that follows from them


class LaunchSettings:
    """What a launch decides of its run, and what follows from that alone, each worked out on first use.

    Nothing here is a launch's own: `SettingsCache` gives one `LaunchSettings` to all launches that state the same.
    """

    def __init__(self, parsed: Parsed) -> None:
        self._decided: DecidedLeaves = decided(parsed)
        self._signatures: dict[tuple[str, ...], Signature] = {}
        self._axes: dict[int, StatedAxes] = {}
        self._configurations: dict[tuple[int, InputParts], Configuration] = {}

    def __repr__(self) -> str:
        return f"LaunchSettings({len(self._decided.leaves)} leaves)"

    @cached_property
    def effective(self) -> Mapping[str, Any]:
        """Effective values by path."""
        return effective_values(self._decided)

    @cached_property
    def shape(self) -> ShapeKey:
        """The key of the shape."""
        return key_of(self.effective)

    @cached_property
    def signature_name(self) -> str:
        """The SHA-256 of the signature, in hex."""
        return name_of(self._signed_parts)

    @cached_property
    def _signed_parts(self) -> Mapping[str, Any]:
        return parts_of(effective_values(self._decided.before))

    def signature(self, lane: Lane) -> Signature:
        """The signature under a lane."""
        names = tuple(lane.nonessential_features)
        if names not in self._signatures:
            self._signatures[names] = signature_of(self._signed_parts, names)
        return self._signatures[names]

    def configuration(self, parsed: Parsed, lane: Lane) -> Configuration:
        """What a launch with these settings and this context ran, under its lane."""
        catalogue = catalogue_of(lane)
        if catalogue.digest not in self._axes:
            self._axes[catalogue.digest] = stated_axes(self.effective, self._decided.maps, catalogue)
        stated = self._axes[catalogue.digest]
        key = catalogue.digest, inputs_beside(parsed, lane, stated)
        known = self._configurations.get(key)
        if known is None:
            known = configuration_of(parsed, catalogue, stated, key[1])
            if not known.own:  # one that has its own id in it belongs to no other launch
                self._configurations[key] = known
        return known


class SettingsCache:
    """What one command, or one process of a parallel submit, works out once: the last settings that it met."""

    def __init__(self) -> None:
        self._settings: Bounded[tuple[bytes, str | None], LaunchSettings] = Bounded(MAX_SETTINGS)

    def __repr__(self) -> str:
        return f"SettingsCache({len(self._settings)} settings)"

    def settings(self, parsed: Parsed) -> LaunchSettings:
        """The settings of a launch; those of one configuration and one context are the same object."""
        key = (configuration_key(parsed), parsed.receipt.run.context)
        known = self._settings.get(key)
        if known is None:
            known = self._settings[key] = LaunchSettings(parsed)
        return known
