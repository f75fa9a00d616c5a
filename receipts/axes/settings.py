"""The settings of launches, and what follows from them alone: worked out once for all launches of a configuration."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Final

from receipts.axes.catalogue import catalogue_of
from receipts.axes.configuration import Configuration, StatedAxes, configuration_of, inputs_beside, stated_axes
from receipts.axes.effective import DecidedLeaves, decided, effective_values
from receipts.axes.input_parts import InputParts
from receipts.axes.shape import ShapeKey, key_of
from receipts.axes.signature import Signature, name_of, parts_of, signature_of
from receipts.axes.stated_configuration import configuration_key
from receipts.base.bounded import Bounded
from receipts.receipt import Parsed

if TYPE_CHECKING:
    from receipts.axes.lane import Lane

MOST: Final = 250  # settings that a session holds, some 40 kB each with all that follows from them


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
            if not known.own:  # one that has its own id in it is no other launch's
                self._configurations[key] = known
        return known


class SettingsCache:
    """What one command, or one process of a parallel submit, works out once: the last settings that it met."""

    def __init__(self) -> None:
        self._settings: Bounded[tuple[bytes, str | None], LaunchSettings] = Bounded(MOST)

    def __repr__(self) -> str:
        return f"SettingsCache({len(self._settings)} settings)"

    def settings(self, parsed: Parsed) -> LaunchSettings:
        """The settings of a launch; those of one configuration and one context are the same object."""
        key = (configuration_key(parsed), parsed.receipt.run.context)
        known = self._settings.get(key)
        if known is None:
            known = self._settings[key] = LaunchSettings(parsed)
        return known
