"""The pages of a trial and of a campaign."""

from __future__ import annotations

import math
from collections.abc import Iterator

from receipts.base.units import counted, signed_percent
from receipts.plugins.judge.campaign import Campaign, Tried
from receipts.plugins.judge.outcome import Outcome
from receipts.plugins.judge.trial import SIDES
from receipts.publish.page import Cell, Code, Mark, Page, Section, State, sections_of, table_of

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
        *((name, (_side(item, name),)) for name in SIDES),
        ("cost", (cost,)),
        ("trial", (Code(item.trial.name),)),
    ]
    line = f"{item.quantity.title} {item.better}: {item.why}" if item.at is not None else item.why
    return Page(item.trial.name, headline=(Mark(_STATES[item.answer], word), f"  {line}"), facts=tuple(facts))


_HELD: dict[str, State] = {"holds": "yes", "lost": "no", "open": "open"}


def _side(item: Outcome, name: str) -> str:
    """The commit of a side, and the digest of its files and its command."""
    stated = next((one.stated for one in item.trial.side(name)), {})
    commit = stated.get("code.commit")
    changed = ", and changes" if stated.get("code.dirty") else ""
    return f"{getattr(item.trial.asked, name)}, on commit {commit[:12] if commit else 'unknown'}{changed}"


def campaign_page(seen: Campaign) -> Page:
    """What was tried, and what is left of it."""
    survive = sum(item.standing == "survives" for item in seen.kept)
    state, word = _HEADS[seen.exit_code]
    head = f"{counted(len(seen.tried), 'trial')}, {len(seen.kept)} kept, {survive} shown again by a re-run"
    table = table_of(
        "Trials in their order",
        "trial ^0 | decided ^0 | !times better ^0 | interval ^1 | !turns ^3 | !level ^2 | re-run ^0",
        (_row(number, item) for number, item in enumerate(seen.tried, 1)),
    )
    return Page(
        seen.name,
        headline=(Mark(state, word), f"  {head}"),
        lead=tuple(_lead(seen)),
        sections=sections_of(Section("trials", "Trials", tables=(table,))),
    )


_HEADS: dict[int, tuple[State, str]] = {0: ("yes", "HOLDS"), 1: ("no", "DOES NOT HOLD"), 3: ("open", "NOT RUN AGAIN")}


def _row(number: int, item: Tried) -> tuple[str | Cell, ...]:
    at = item.outcome.at if item.outcome is not None else None
    word = {"ship": "keep", "drop": "discard"}.get(item.decided or "", "again")
    interval = f"{math.exp(at.low):.4f} to {math.exp(at.high):.4f}" if at is not None else (item.fault or "–")
    better = f"{math.exp(at.ratio):.4f}" if at is not None else "–"
    turns = str(item.outcome.turns) if item.outcome is not None else "–"
    mark: Cell = (Mark(_STATES[word], "open" if word == "again" else word),)
    level = f"{100 * item.level:.2g} %"
    return f"{number} {item.trial.number}", mark, better, interval, turns, level, item.standing or "–"


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
