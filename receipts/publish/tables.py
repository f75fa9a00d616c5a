"""What a store holds, as tables and pages: receipts, neighbors, incidents, noise floors; and whether it is whole.

Of receipts: which columns, with which units, and which a narrow terminal drops. Of noise floors: one class of launches
a row, what is missing from each, and the self-check. Of audit, verify and revalidate: whether a store, its evidence and
its verdicts are what they were.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

from receipts import metrics
from receipts.base.units import counted
from receipts.base.untrusted_text import UNKNOWN
from receipts.publish.page import (
    Cell,
    Entry,
    Facts,
    Mark,
    Page,
    Section,
    Table,
    lines_of,
    marked,
    named_rows,
    sections_of,
    table_of,
)
from receipts.publish.readings import effect_word, ends, moved, number, signed, unit
from receipts.publish.text import words

if TYPE_CHECKING:
    from receipts.questions.neighbours import JudgedNeighbour, Neighbourhood
    from receipts.questions.noise import LaneNoise
    from receipts.stats.noise import GateCheck, SelfCheck
    from receipts.store import Entry as StoredReceipt
    from receipts.store.decisions import Incident
    from receipts.store.seals import ProofStep, Seal
    from receipts.workflows.audit import Audit
    from receipts.workflows.checkpoints import Continued
    from receipts.workflows.evidence import Verified
    from receipts.workflows.revalidate import Rejudged, Tally


NONE = "-"


def stored(entries: Sequence[StoredReceipt], *, who: bool = False) -> Table:
    """Stored receipts, one a row; with who submitted them where that is asked for."""
    rate, memory = metrics.get("tokens_per_second"), metrics.get("peak_bytes")
    header = (
        "id | status | outcome | lane ^5 | chips ^3 | #sequence ^6 | #micro ^7"
        f" | rate, [{unit(rate)}] ^1 | !what it is ^8 | peak, [{unit(memory)}] ^4"
        f"{' | submitted by' if who else ''} | label…"
    )
    rows = (
        (
            item.id[:12],
            item.status if item.stands else "superseded",
            item.outcome,
            item.lane,
            f"{item.chips or '?'} × {item.accelerator or '?'}",
            str(item.sequence_length or NONE),
            str(item.micro_batch or NONE),
            number(rate, item.tokens_per_second) if item.tokens_per_second else NONE,
            _basis(item),
            number(memory, item.peak_bytes) if item.peak_bytes else NONE,
            *([item.actor or "not recorded"] if who else []),
            item.label or "",
        )
        for item in entries
    )
    return table_of("Receipts", header, rows, empty="no receipt meets these conditions")


def listed(entries: Sequence[StoredReceipt], commands: Mapping[str, str], *, who: bool = False) -> Page | Table:
    """The same, as a page with the commands that would decide open receipts, by receipt, if there are any."""
    steps = tuple((command, f"What would decide {receipt[:12]}") for receipt, command in commands.items() if command)
    table = stored(entries, who=who)
    return Page("Receipts", next=steps, sections=(Section("receipts", "", tables=(table,)),)) if steps else table


def _basis(item: StoredReceipt) -> str:
    """What the rate of a receipt is."""
    if item.rate_of is None:
        return {"stated": "as stated", "derived": "derived from what is stated"}.get(item.rate_source or "", NONE)
    return f"{item.rate_of}, not steady" if item.rate_source == "unsteady" else item.rate_of


SHOWN_UNSTATED: Final = 12


def neighbours(near: Neighbourhood, axis: str | None = None) -> Page:
    """The whole neighbours, of one axis or of all."""
    answer = f"{counted(len(near.compared), 'configuration')} one axis away"
    best = next((item for item in near.compared if item.verdict.status == "accepted"), None)
    if best is not None and (result := best.verdict.headline) is not None:
        answer += f"; the best accepted: {best.axis} {_axis_moved(best)}, {signed(result.ratio)}, {effect_word(result)}"
    about = f"lane {near.of.receipt.run.lane} · metric {near.metric}"
    lead = () if near.compared else (_nothing(near, axis),)
    facts = (("", (f"{near.of.name}  {near.of.id[:12]}",)), ("", (about,)))
    # Along each axis, one configuration a row.
    header = "id | from → to ^1 | #change | 95 % interval ^3 | effect ^2 | verdict | #launches ^4 | label… ^5"
    sections = []
    for name, items in near.by_axis.items():
        remarks = [f"the newest of this axis; more with --axis {name} --limit N"] if name in near.more else []
        reasons = (item.reason for item in items if item.verdict.status == "inconclusive" and item.reason)
        remarks += (f"open: {reason}" for reason in dict.fromkeys(reasons))
        rows = (
            (
                *(item.entry.id[:12], _axis_moved(item)),
                signed(result.ratio) if (result := item.verdict.headline) else UNKNOWN,
                ends(result.effect.low, result.effect.high) if result else UNKNOWN,
                effect_word(result) if result else item.verdict.effect,
                *(item.verdict.status, str(len(item.verdict.b)), item.entry.label or ""),
            )
            for item in items
        )
        sections.append(Section(f"axis-{name}", name, tables=(table_of("", header, rows, tuple(remarks)),)))
    refused = lines_of(
        f"{item.axis} {_axis_moved(item)}: {item.entry.name} ({item.entry.id[:12]}): {item.reason}"
        for item in near.refused
    )
    sections.append(Section("refused", "Rejected", points=refused))
    return Page(f"Neighbors of {near.of.name}", (answer,), facts=facts, lead=lead, sections=sections_of(*sections))


def _axis_moved(item: JudgedNeighbour) -> str:
    """What the axis changed from and to, leaf by leaf."""
    change = next((change for change in item.verdict.difference.changed if change.axis == item.axis), None)
    return moved(change.members) if change is not None else "?"


def _nothing(near: Neighbourhood, axis: str | None) -> str:
    """Why there is none, and what to do next."""
    where = f"in {axis} alone" if axis is not None else "in one axis alone"
    if near.refused:
        return f"Every launch that differs {where} is rejected; receipts compare says what would settle it."
    if near.unstated:
        shown = ", ".join(near.unstated[:SHOWN_UNSTATED])
        rest = len(near.unstated) - SHOWN_UNSTATED
        return (
            f"No stored launch is known to differ {where}: the receipt leaves "
            f"{counted(len(near.unstated), 'axis', 'axes')} open and names no run.context that holds them "
            f"({shown}{f' and {rest} more' if rest > 0 else ''}). State them, or "
            "the context, in this receipt and in those that it is to be compared with."
        )
    return (
        f"No stored launch of lane {near.of.receipt.run.lane} differs {where}. The chain to one that is further away: "
        f"receipts bridge {near.of.id[:12]} ID"
    )


say_history = words("history")


def incidents_section(shown: Sequence[Incident]) -> tuple[Section, ...]:
    """The incidents as a table; none where none is open, since not every store is watched."""
    return (Section("regressions", "Open incidents", tables=(incidents(shown),)),) if shown else ()


def incidents(items: Sequence[Incident], empty: str | None = None) -> Table:
    """Incidents as a table."""
    header = "incident | lane ^5 | metric ^4 | #change | from launch… | suspects… ^1 | owner ^3 | state… ^2"
    rows = (
        (
            *(item.id, item.body["lane"], item.metric, signed(item.body["ratio"]), item.body["name"]),
            ", ".join(item.body["moved"]) or say_history("nothing"),
            item.owner or "~",
            f"closed {item.closed:%Y-%m-%d}: {item.closed_why}"
            if item.closed
            else f"open since {item.opened:%Y-%m-%d}",
        )
        for item in items
    )
    return table_of("", header, rows, empty=say_history("no_incidents") if empty is None else empty)


DELTA_SOURCES = {"lane": "set by the lane", "default": "default"}


def noise_floors(lanes: Sequence[LaneNoise], check: SelfCheck) -> Page:
    """The page of noise floors: each class of launches, what is missing from it, and the self-check."""
    lacks = tuple(f"{_noise_class(item)}: {why}" for item in lanes if (why := noise_missing(item)))
    checks = tuple(f"{_noise_class(item)}: {item.check.why}" for item in lanes if item.check.pairs)
    header = (
        "lane | accelerator ^3 | #chips ^2 | #sequence ^2 | #groups ^4 | #launches ^1 | #σ | #df ^5"
        " | #largest spread ^6 | δ"
    )
    table = table_of("", header, map(_noise_row, lanes), lacks, empty="no launch kept its steps")
    gates = tuple(
        f"{_noise_class(item)}: {_gate(item.gate)}" for item in lanes if item.gate is not None and item.gate.pairs
    )
    own = (Section("gate", "Your own gate", gates or ("no two equal launches ran one after the other",)),)
    asked = any(item.gate is not None for item in lanes)
    whole = f"not checked yet: {check.why}"
    if check.share is not None:
        state = "ALARM" if check.alarm else "no alarm"
        expected = "where 5 % are expected, as often faster as slower"
        whole = f"all together: {check.why}: {check.share:.1%}, {expected}; {state}"
    floors = Section("floors", "Noise floor", tables=(table,))
    sections = (floors, *(own if asked else ()), Section("check", "Self-check", (*checks, whole)))
    # How much identical launches vary, over all classes, and whether the statistics hold on them.
    sigmas = [item.floor.sigma for item in lanes if item.floor.sigma is not None]
    answer = "not known yet how much identical launches vary: no configuration ran twice with its steps kept"
    if sigmas:
        limits = dict.fromkeys(f"{sigma:.2%}" for sigma in (min(sigmas), max(sigmas)))
        alarm = "an ALARM" if check.alarm or any(item.check.alarm for item in lanes) else "no alarm"
        measured = f"identical launches vary by {' to '.join(limits)} in {counted(len(sigmas), 'class', 'classes')}"
        answer = f"step times of {measured}; the self-check raises {alarm}"
    return Page("Noise", (answer,), sections=sections)


def _gate(gate: GateCheck) -> str:
    """How often the gate would have failed, and what would not."""
    seen = f"{gate.failed} of {gate.pairs} pairs of equal launches"
    what = f"a gate of {gate.share:.2%} on {counted(gate.launches, 'launch', 'launches')} a side"
    if gate.expected is None or gate.quiet_share is None:
        return f"{what} fails {seen}"
    launches = counted(gate.quiet_launches or 1, "launch", "launches")
    quiet = f"one in a hundred: a gate of {gate.quiet_share:.2%}, or {launches} a side"
    return f"{what} fails {seen}, and {gate.expected:.1%} by σ; {quiet}"


def _noise_row(item: LaneNoise) -> tuple[str, ...]:
    shape, floor = item.shape, item.floor
    declared = "~" if item.declared is None else f"{item.declared:.3%} declared, not measured"
    return (
        shape.lane if shape.kind == "training" else f"{shape.lane} ({shape.kind})",
        *(shape.accelerator or "not stated", _count(shape.chips), _count(shape.sequence_length)),
        *(str(floor.groups), str(floor.launches), declared if floor.sigma is None else f"{floor.sigma:.3%}"),
        "~" if floor.df is None else f"{floor.df:g}",
        "~" if floor.largest_spread is None else f"{floor.largest_spread:.2%}",
        f"{item.delta:.2%} ({DELTA_SOURCES[item.delta_source]})",
    )


def _count(count: int | None) -> str:
    return "not stated" if count is None else str(count)


def _noise_class(item: LaneNoise) -> str:
    shape = item.shape
    chips = "1 chip" if shape.chips == 1 else f"{_count(shape.chips)} chips"
    parts = (shape.lane, shape.accelerator, chips, f"sequence {_count(shape.sequence_length)}")
    return " · ".join(filter(None, parts))


def noise_missing(item: LaneNoise) -> str | None:
    """What would give the number that is not there; None where it is."""
    if item.floor.sigma is not None:
        return None
    if item.floor.launches:
        return "equal launches agree to the last digit: a finer clock, or launches that are not copies, would show σ"
    launches = counted(item.stored, "launch", "launches")
    return f"{launches}, none of them repeated: run one configuration twice, with every axis stated, to show σ"


def audited(audit: Audit, seals: Sequence[Seal], head: str | None) -> Page:
    """What the store holds, every fault with what to do, and what was sealed now; ``head`` is the root to keep."""
    names = ("receipts", "verdicts", "seals", "purges")
    held = ", ".join(counted(audit.counts[name], name[:-1]) for name in names if name in audit.counts)
    faults = tuple(Entry("", (f"{item.where}: {item.found}",), (("→", (item.do,)),)) for item in audit.faults)
    sealed = (
        f"{one.what} {one.first:,} to {one.last:,}: {counted(one.held, 'row')}, root {one.root[:16]}" for one in seals
    )
    sections = sections_of(
        Section("faults", "Faults", entries=faults),
        Section("notes", "Notes", points=lines_of(audit.notes)),
        Section("sealed", "Sealed", points=lines_of(sealed)),
    )
    answer: Cell = (f"{audit.store}: ", held or "it cannot be read through")
    if faults:
        answer = (f"{audit.store}: ", Mark("no", counted(len(faults), "fault")), f" in {held}" if held else "")
    foot: Facts = () if faults else (("", (Mark("yes", "whole"),)),)
    foot += (("root over all seals", (head,)),) if head is not None else ()
    return Page("Audit", answer, sections=sections, foot=foot)


def proof(receipt: str, root: str, steps: Sequence[ProofStep]) -> Table:
    """The way from a receipt's id to the root of its seal."""
    way = (("left" if step.left else "right", step.digest.hex()) for step in steps)
    leaf = 'SHA-256 over a zero byte and ["receipts","ID"]'
    return named_rows([("id", receipt), ("leaf", leaf), *way, ("root", root)])


def continued(proof: Continued) -> Table:
    """That a log continues an earlier one."""
    first = (("first", counted(proof.first, "seal")), ("root", proof.first_root))
    second = (("second", counted(proof.second, "seal")), ("root", proof.second_root))
    return named_rows([*first, *(("", digest) for digest in proof.proof), *second])


def verified(done: Verified, *, opened: bool) -> Page:
    """One receipt: how much is the same, and what is not; ``opened`` shows also what is the same."""
    words = [item.word for item in done.checks]
    counts = " · ".join(f"{words.count(word)} {word}" for word in dict.fromkeys(words))
    shown = (item for item in done.checks if opened or item.word != "same")
    lines = tuple(f"{item.word} {item.what}{': ' if item.why else ''}{item.why}" for item in shown)
    return Page(done.name, (f"{done.receipt[:12]}  {done.name}: {counts}",), lead=lines)


def flipped(item: Rejudged) -> Page:
    """A verdict that is another now, with the findings that appeared or vanished."""
    name = item.label if item.kind != "receipt" else f"{item.names[0][:12]}  {item.label}"
    after = marked(item.after) if item.after is not None else Mark("open", "cannot be judged")
    lines = []
    for one in item.changes:
        rule = " ".join(filter(None, ("now" if one.appeared else "no longer", one.level, one.code)))
        lines.append(f"{rule} {one.at}: {one.found}")
    return Page(name, (f"{name}: ", marked(item.before), " → ", after), lead=(*lines, *filter(None, [item.why])))


def rejudged(tally: Tally, *, dry_run: bool) -> Page:
    """How many verdicts were given again, and how many flipped."""
    judged = ", ".join(counted(number, kind) for kind, number in tally.judged.items())
    if not judged:
        answer = "nothing to judge again: every last verdict is of the present rule set and sealed"
    else:
        fell = sum(item.fell for item in tally.flipped)
        answer = (
            f"{'would judge' if dry_run else 'judged'} {judged}: {len(tally.flipped):,} flipped ({fell:,} for the "
            f"worse), {tally.reworded:,} with other findings, {tally.same:,} as before"
        )
    return Page("Revalidation", (answer,))
