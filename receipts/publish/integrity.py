"""The pages of audit, verify and revalidate: whether a store, its evidence and its verdicts are what they were."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from receipts.base.units import counted
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
)

if TYPE_CHECKING:
    from receipts.store.seals import ProofStep, Seal
    from receipts.workflows.audit import Audit
    from receipts.workflows.checkpoints import Continued
    from receipts.workflows.evidence import Verified
    from receipts.workflows.revalidate import Rejudged, Tally


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
