"""A trial: the stored launches of a base and of its candidate that were made in turns to answer one question.

Its launches share a session, ``judge/CAMPAIGN/NUMBER``, and their tags say what is asked of them: the side, the target,
what is held, the smallest gain worth keeping, and the digests of both sides. The store alone therefore answers, over
HTTP too. The number is a digest of the question: asked again, it goes on where it was, and never begins anew.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

from receipts.base.errors import InputError, NotFound, Problem

if TYPE_CHECKING:
    from receipts.receipt import Parsed
    from receipts.store import Store
    from receipts.store.entry import Entry

SESSION: Final = "judge/"
NO_CAMPAIGN: Final = "alone"  # the campaign of a trial that is of none
SIDES: Final = ("base", "candidate")


class Asked(NamedTuple):
    """What is asked. ``effect`` is the smallest gain worth keeping, None the lane's; the sides are named by digests."""

    target: str
    holds: tuple[str, ...]
    effect: float | None
    base: str
    candidate: str

    def tags(self, side: str) -> tuple[str, ...]:
        """What a launch of a side carries."""
        effect = () if self.effect is None else (f"effect={self.effect:g}",)
        digests = f"base={self.base}", f"candidate={self.candidate}"
        return (f"side={side}", f"target={self.target}", *(f"hold={item}" for item in self.holds), *effect, *digests)

    @property
    def number(self) -> str:
        """The trial's number."""
        return hashlib.sha256(json.dumps(self).encode()).hexdigest()[:12]


def asked_of(tags: Sequence[str]) -> tuple[str, Asked]:
    """The side and the question of a launch. Raises ValueError, KeyError where the tags are no trial's."""
    pairs = [tag.partition("=")[::2] for tag in tags]
    one, holds = dict(pairs), tuple(value for name, value in pairs if name == "hold")
    effect = float(one["effect"]) if "effect" in one else None
    side = one["side"]
    if side not in SIDES:
        raise ValueError(side)
    return side, Asked(one["target"], holds, effect, one["base"], one["candidate"])


@dataclass(frozen=True)
class Trial:
    """The launches of a trial, in the order in which the store took them in."""

    session: str
    entries: tuple[Entry, ...]
    store: Store

    @property
    def name(self) -> str:
        """What people call it: ``CAMPAIGN/NUMBER``."""
        return self.session.removeprefix(SESSION)

    @property
    def number(self) -> str:
        """Its number; one that was opened anew has a dot and a count behind it."""
        return self.name.rpartition("/")[2]

    @property
    def rerun_of(self) -> str | None:
        """The number of the trial that it repeats."""
        number, dot, _ = self.number.partition(".")
        return number if dot else None

    @cached_property
    def launches(self) -> tuple[Parsed, ...]:
        """Every launch that stands."""
        return tuple(self.store.parsed(item.id) for item in self.entries if item.stands)

    @property
    def withdrawn(self) -> int:
        """Launches that somebody took back."""
        return sum(not item.stands for item in self.entries)

    @cached_property
    def asked(self) -> Asked:
        """What is asked of all of them. Raises InputError where they do not agree."""
        return self._read[0]

    def side(self, name: str) -> list[Parsed]:
        """The launches of a side, the earliest first."""
        of = self._read[1]
        mine = (item for item, side in zip(self.launches, of, strict=True) if side == name)
        return sorted(mine, key=lambda item: item.receipt.run.started)

    @cached_property
    def _read(self) -> tuple[Asked, list[str]]:
        try:
            read = [asked_of(item.receipt.run.tags or ()) for item in self.launches]
        except (ValueError, KeyError):
            read = []
        if len({asked for _, asked in read}) != 1:
            problem = Problem("run.tags", "they do not say one question", "launch a trial with: receipts judge")
            raise InputError(f"the launches of {self.name}", [problem])
        return read[0][1], [side for side, _ in read]

    @property
    def seconds(self) -> float:
        """Wall time of all launches, withdrawn ones too."""
        return sum((item.finished - item.started).total_seconds() for item in self.entries if item.finished is not None)

    @property
    def chip_hours(self) -> float | None:
        """The same in chip-hours; None where a launch does not state its chips."""
        spent = [
            item.chips * (item.finished - item.started).total_seconds() / 3600
            for item in self.entries
            if item.chips is not None and item.finished is not None
        ]
        return sum(spent) if len(spent) == len(self.entries) else None


def _by_session(store: Store, pattern: str) -> dict[str, Trial]:
    """Trials by their sessions, in the order in which the store took in their first launches."""
    from receipts.store import Condition, Filters

    entries: dict[str, list[Entry]] = {}
    rows = store.find(Filters((Condition("session", "=", f"{SESSION}{pattern}"),), superseded=True))
    for entry in sorted(rows, key=lambda item: (item.submitted_at, item.started)):
        entries.setdefault(str(entry.session), []).append(entry)
    return {session: Trial(session, tuple(mine), store) for session, mine in entries.items()}


def trials(store: Store, campaign: str) -> list[Trial]:
    """Every trial of a campaign, in the order in which it was begun."""
    return list(_by_session(store, f"{campaign}/*").values())


def trial(store: Store, name: str) -> Trial:
    """The trial that somebody named, by ``CAMPAIGN/NUMBER`` or the beginning of it. Raises NotFound."""
    known = _by_session(store, f"{name}*")
    exact = f"{SESSION}{name}"
    if exact not in known and len(known) != 1:
        what = f"{len(known)} trials begin with it" if known else "the store holds no launch of it"
        raise NotFound(f"trial {name}: {what}; a trial is CAMPAIGN/NUMBER, as receipts judge prints it")
    return known.get(exact) or next(iter(known.values()))


def kept_before(store: Store, campaign: str, number: str) -> Iterator[bool]:
    """Of the trials of a campaign that came before one, whether each was kept, by what was decided on its launches."""
    for item in trials(store, campaign):
        if item.number == number:
            return
        if item.rerun_of is None:
            yield decision(item) == "ship"


def decision(item: Trial) -> str | None:
    """What was decided on a trial first, since what a campaign has spent does not change; None while it is open."""
    rows = item.store.published.decisions([entry.id for entry in item.entries])
    return next((row.decision for row in rows if row.reason.startswith(WORD) and row.decision != "hold"), None)


WORD: Final = "receipts judge: "  # what a decision of the judge begins with
