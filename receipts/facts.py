"""Facts: what a rule may know beside the receipts that it judges, fetched by the caller before the rules run."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import field, replace
from datetime import datetime
from typing import NamedTuple

from receipts.receipt import Parsed
from receipts.value import dataclass
from receipts.witness import names


class EarlierFailure(NamedTuple):
    """A launch that failed before the judged one started, and that has its signature. Times are in UTC."""

    id: str
    outcome: str
    phase: str | None
    class_: str | None
    started: datetime


class Shape(NamedTuple):
    """A shape of a lane that launches reached, for the envelope; days and hosts are None where nobody counted them."""

    chips: int | None
    sequence_length: int | None
    micro_batch: int | None
    depth: int | None
    launches: int
    days: int | None = None
    hosts: int | None = None


@dataclass(frozen=True, slots=True)
class Facts:
    """What the caller fetched for the rules: values from a store, never a handle to one.

    ``superseded`` maps a receipt's id to its successor (empty when retracted) and the reason. ``shapes`` are those
    that launches of the receipt's lane sustained. ``failures`` are earlier failures of the same signature.
    ``witnesses`` are receipts that stand and name one of the judged launches in ``run.witness_for``, ``witnessed``
    those that one of the judged names there. ``exact_memory`` names the memory metrics on which the store's equal
    launches always agree, and ``chip_spread`` is how far one chip's live peak lies apart in two of them, as a share.
    """

    superseded: Mapping[str, tuple[str, str]] = field(default_factory=dict)
    shapes: tuple[Shape, ...] = ()
    failures: tuple[EarlierFailure, ...] = ()
    witnesses: tuple[Parsed, ...] = ()
    witnessed: tuple[Parsed, ...] = ()
    sigma: float | None = None
    sigma_df: float | None = None
    sigma_of: str = ""  # which launches, in words
    largest_spread: float | None = None
    exact_memory: frozenset[str] = frozenset()
    chip_spread: float | None = None

    @classmethod
    def among(cls, receipts: Iterable[Parsed]) -> Facts:
        """What documents say of each other without a store: one may supersede another of its launch, or witness it."""
        every = tuple(receipts)
        superseded: dict[str, tuple[str, str]] = {}
        for item in every:
            said = item.receipt.run.supersedes
            for other in every if said else ():
                own = other.id != item.id and other.receipt.run.launch == item.receipt.run.launch
                if said and own and said.target in (other.id, other.receipt.run.launch):
                    superseded[other.id] = (item.id, said.reason)
        return cls(superseded=superseded).beside(every)

    def beside(self, receipts: Iterable[Parsed]) -> Facts:
        """These facts, and which of some receipts witness one another; one that is superseded witnesses nothing."""
        every = tuple(receipts)
        naming = [one for one in every if one.receipt.run.witness_for is not None]
        if not naming:
            return self
        links = [(one, other) for one in naming for other in every if names(one, other)]
        witnesses = {one.id: one for one, _ in links if one.id not in self.superseded}
        witnessed = {other.id: other for _, other in links}
        return replace(
            self,
            witnesses=tuple({item.id: item for item in (*self.witnesses, *witnesses.values())}.values()),
            witnessed=tuple({item.id: item for item in (*self.witnessed, *witnessed.values())}.values()),
        )
