"""A campaign: an open series of trials, each judged at the level that those before it have left; and its page.

It is a view of what the store holds: the launches, and what the judge decided on them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from receipts.base.errors import InputError, NotFound, UsageError
from receipts.base.units import counted, signed_percent
from receipts.plugins.judge.boundary import ALONE, next_level
from receipts.plugins.judge.outcome import Outcome, outcome_of
from receipts.plugins.judge.trial import NO_CAMPAIGN, SIDES, Trial, decision, kept_before, trials
from receipts.publish.page import Cell, Code, Mark, Page, Section, State, sections_of, table_of

if TYPE_CHECKING:
    from receipts.judging.rulebook import Rulebook
    from receipts.store import Store

Standing = Literal["survives", "is gone", "missing", ""]


def level_of(store: Store, trial: Trial) -> float:
    """The level at which a trial is judged; a re-run spends nothing of its campaign, since it keeps nothing."""
    name = trial.name.rpartition("/")[0]
    if name == NO_CAMPAIGN or trial.rerun_of is not None:
        return ALONE
    return next_level(list(kept_before(store, name, trial.number)))


@dataclass(frozen=True)
class Tried:
    """One trial: what was decided, what its launches say now, and its re-runs."""

    trial: Trial
    level: float
    kept: bool
    decided: str | None
    outcome: Outcome | None
    fault: str = ""
    again: tuple[Outcome, ...] = ()

    @property
    def standing(self) -> Standing:
        """Whether a kept change survives: by every re-run that has an answer, and its own launches."""
        if not self.kept:
            return ""
        if self.outcome is None or self.outcome.answer != "keep":
            return "is gone"
        answers = [item.answer for item in self.again if item.answer != "again"]
        if not answers:
            return "missing"
        return "survives" if answers[-1] == "keep" else "is gone"

    def as_data(self) -> dict[str, Any]:
        """The trial as a row."""
        shown = self.outcome.as_data() if self.outcome is not None else {}
        names = ("target", "ratio", "low", "high", "turns", "base", "candidate", "seconds", "chip_hours")
        return {
            "trial": self.trial.name,
            "decided": {"ship": "keep", "drop": "discard"}.get(self.decided or "", "open"),
            **{name: shown.get(name) for name in names},
            "why": self.fault or shown.get("why"),
            "level": self.level,
            "standing": self.standing,
            "reruns": [item.as_data() for item in self.again],
        }


class Chain(NamedTuple):
    """What the kept changes add up to, in logs of *times better*: by their own trials, and measured end to end."""

    table: float
    measured: Outcome | None
    drift: float | None  # of the carried baseline between the trials, in logs: what the machine did


@dataclass(frozen=True)
class Campaign:
    """All trials of a campaign."""

    name: str
    tried: tuple[Tried, ...]
    chain: Chain | None
    next_level: float

    @property
    def kept(self) -> list[Tried]:
        """The kept trials."""
        return [item for item in self.tried if item.kept]

    @property
    def exit_code(self) -> int:
        """0 what was kept survives, 1 some does not, 3 some was not run again."""
        standings = {item.standing for item in self.kept}
        return 1 if "is gone" in standings else 3 if "missing" in standings else 0

    def as_data(self) -> dict[str, Any]:
        """The campaign as data."""
        chain = None
        if self.chain is not None:
            measured = self.chain.measured
            chain = {
                "table": math.exp(self.chain.table),
                "measured": measured.as_data() if measured is not None else None,
                "drift": None if self.chain.drift is None else math.exp(self.chain.drift),
            }
        return {
            "campaign": self.name,
            "tried": len(self.tried),
            "kept": len(self.kept),
            "survive": sum(item.standing == "survives" for item in self.kept),
            "next_level": self.next_level,
            "chain": chain,
            "trials": [item.as_data() for item in self.tried],
        }


def campaign_of(store: Store, rulebook: Rulebook, name: str) -> Campaign:
    """Read a campaign. Raises NotFound where the store holds no trial of it."""
    every = trials(store, name)
    if not every:
        raise NotFound(
            f"no trial of a campaign {name!r} is stored; begin one: receipts judge BASE --campaign {name} -- CMD"
        )
    reruns: dict[str, list[Outcome]] = {}
    for item in every:
        if item.rerun_of is not None:
            outcome, _ = _judged(item, rulebook, ALONE)
            reruns.setdefault(item.rerun_of, []).extend([outcome] if outcome is not None else [])
    tried: list[Tried] = []
    for item in every:
        if item.rerun_of is None:
            level, decided = next_level([one.kept for one in tried]), decision(item)
            outcome, fault = _judged(item, rulebook, level)
            again = tuple(reruns.get(item.number, ()))
            tried.append(Tried(item, level, decided == "ship", decided, outcome, fault, again))
    return Campaign(name, tuple(tried), _chain(tried, reruns), next_level([one.kept for one in tried]))


def _judged(item: Trial, rulebook: Rulebook, level: float) -> tuple[Outcome | None, str]:
    try:
        return outcome_of(item, rulebook, level), ""
    except (InputError, UsageError) as error:
        return None, str(error)


def _chain(tried: Sequence[Tried], reruns: dict[str, list[Outcome]]) -> Chain | None:
    """The kept changes from the first base to the last candidate; None where none was kept."""
    kept = [item.outcome for item in tried if item.kept and item.outcome is not None and item.outcome.at is not None]
    if not kept:
        return None
    first, last = kept[0].trial.asked.base, kept[-1].trial.asked.candidate
    every = [
        *(item.outcome for item in tried if item.outcome is not None),
        *(one for some in reruns.values() for one in some),
    ]
    # The trial by which the only change was kept is no second look at it.
    ends = [item for item in every if (item.trial.asked.base, item.trial.asked.candidate) == (first, last) and item.at]
    measured = ends[-1] if ends and ends[-1] is not kept[0] else None
    # How much each carried baseline was better or worse when it was launched again, as the base of the next trial.
    moved = [
        following.levels[0] - one.levels[1]
        for one, following in pairwise(kept)
        if one.trial.asked.candidate == following.trial.asked.base and one.levels and following.levels
    ]
    return Chain(math.fsum(item.at.ratio for item in kept if item.at), measured, math.fsum(moved) if moved else None)


_STATES: dict[str, State] = {"keep": "yes", "discard": "no", "again": "open"}


def trial_page(item: Outcome) -> Page:
    """The answer first; then what it rests on."""
    word = item.answer.upper() if item.answer != "again" else f"AGAIN {item.more}" if item.more else "UNDECIDED"
    errs = f"of a plan that errs in at most {100 * item.level:.3g} % of trials that gain nothing"
    looks = "none yet" if item.at is None else f"look {item.at.look}, {errs}"
    hours = item.trial.chip_hours
    chips = "" if hours is None else f", {hours:.3g} chip-hours"
    cost = f"{counted(len(item.trial.entries), 'launch', 'launches')}, {item.trial.seconds:,.0f} s{chips}"
    facts: list[tuple[str, Cell]] = [(item.quantity.title, (item.better,))]
    for held in item.held:
        facts.append(("held", (Mark(_HELD[held.status], held.status), f"  {held.words}; {held.allowed:.2%} allowed")))
    facts += [
        ("looks", (f"{counted(item.turns, 'turn')}, each side once; {looks}",)),
        ("changed", (", ".join(item.changed) or "no setting that a receipt states",)),
    ]
    for name in SIDES:
        stated = next((one.stated for one in item.trial.side(name)), {})
        commit = (stated.get("code.commit") or "unknown")[:12]
        changes = ", and changes" if stated.get("code.dirty") else ""
        facts.append((name, (f"{getattr(item.trial.asked, name)}, on commit {commit}{changes}",)))
    facts += [("cost", (cost,)), ("trial", (Code(item.trial.name),))]
    line = f"{item.quantity.title} {item.better}: {item.why}" if item.at is not None else item.why
    return Page(item.trial.name, headline=(Mark(_STATES[item.answer], word), f"  {line}"), facts=tuple(facts))


_HELD: dict[str, State] = {"holds": "yes", "lost": "no", "open": "open"}


def campaign_page(seen: Campaign) -> Page:
    """What was tried, and what is left of it."""
    survive = sum(item.standing == "survives" for item in seen.kept)
    state, word = _HEADS[seen.exit_code]
    head = f"{counted(len(seen.tried), 'trial')}, {len(seen.kept)} kept, {survive} shown again by a re-run"
    rows: list[tuple[str | Cell, ...]] = []
    for number, item in enumerate(seen.tried, 1):
        at = item.outcome.at if item.outcome is not None else None
        decided = {"ship": "keep", "drop": "discard"}.get(item.decided or "", "again")
        mark: Cell = (Mark(_STATES[decided], "open" if decided == "again" else decided),)
        better = f"{math.exp(at.ratio):.4f}" if at is not None else "–"
        interval = f"{math.exp(at.low):.4f} to {math.exp(at.high):.4f}" if at is not None else (item.fault or "–")
        turns, level = str(item.outcome.turns) if item.outcome is not None else "–", f"{100 * item.level:.2g} %"
        rows.append((f"{number} {item.trial.number}", mark, better, interval, turns, level, item.standing or "–"))
    header = "trial ^0 | decided ^0 | !times better ^0 | interval ^1 | !turns ^3 | !level ^2 | re-run ^0"
    table = table_of("Trials in their order", header, rows)
    return Page(
        seen.name,
        headline=(Mark(state, word), f"  {head}"),
        lead=tuple(_lead(seen)),
        sections=sections_of(Section("trials", "Trials", tables=(table,))),
    )


_HEADS: dict[int, tuple[State, str]] = {0: ("yes", "HOLDS"), 1: ("no", "DOES NOT HOLD"), 3: ("open", "NOT RUN AGAIN")}


def _lead(seen: Campaign) -> Iterator[str]:
    chain = seen.chain
    if chain is not None:
        first = f"The kept changes add up to {_times(chain.table)} by their own trials"
        if chain.measured is not None and chain.measured.at is not None:
            low, middle, high = (_times(getattr(chain.measured.at, end)) for end in ("low", "ratio", "high"))
            yield f"{first}; the first base against the last candidate shows {middle} ({low} to {high})."
        else:
            command = f"receipts judge FIRST_BASE --campaign {seen.name} --afresh -- CMD"
            yield f"{first}. Nobody launched the first base against the last candidate: {command}"
        if chain.drift is not None:
            yield f"Launched again as the bases of the next trials, the carried ones moved by {_times(chain.drift)}."
    level = f"{100 * seen.next_level:.2g} %"
    yield f"The next trial is judged at {level}: at most 5 % of what is kept is expected to be false."


def _times(log_ratio: float) -> str:
    return signed_percent(math.expm1(log_ratio))
