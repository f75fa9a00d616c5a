"""What the pages of a receipt and of a comparison show of time profiles, where there are any."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Final

from receipts.publish.page import Section, table_of
from receipts.publish.text import words

if TYPE_CHECKING:
    from receipts.api.comparison import Comparison
    from receipts.plugins.why.profile import Profile
    from receipts.receipt import Parsed
    from receipts.store import Store

say = words("why")
MAX_KERNELS: Final = 8
# Kinds of evidence that hold spans, as readers call them.
TRACES: Final = ("torch-profiler", "nsys", "jax-profiler", "jax-trace", "xplane")


def has_traces(receipt: Parsed) -> bool:
    """Whether a receipt lists a file that may hold spans."""
    return any(entry.kind in TRACES for entry in receipt.receipt.evidence or ())


def of_comparison(store: Store | None, comparison: Comparison) -> Section | None:
    """Where the difference went; None unless both sides have profiles and there is an effect."""
    sides = comparison.sides.a, comparison.sides.b
    if store is None or not all(any(has_traces(item) for item in side) for side in sides):
        return None
    from receipts.plugins.why.explanation import explain
    from receipts.plugins.why.page import explanation_page

    item = explain(comparison.verdict, sides, store)
    if item.nothing or not all(item.sides):
        return None
    own = {section.id: section for section in explanation_page(item).sections}
    if item.status == "refused":
        return replace(own["refused"], id="why", title=say("section"), fold=say("refused_fold"))
    return replace(own["table"], id="why", fold=say("fold"))


def of_receipt(store: Store | None, receipt: Parsed) -> Section | None:
    """Where the step of one launch goes; None without a profile of whole steps."""
    if store is None or not has_traces(receipt):
        return None
    from receipts.plugins.why.explanation import profiles_of

    profiles = [profile for profile in profiles_of(store, receipt) if profile.kept and profile.marks]
    sections = tuple(_section(profile) for profile in profiles)
    if len(sections) < 2:
        return sections[0] if sections else None
    return Section("profile", say("profiles"), sections=sections, fold=say("profiles_fold"))


def _section(profile: Profile) -> Section:
    """One device: its classes, what of communication and gaps, and the kernels that take most."""
    steps = profile.kept
    mean = Fraction(sum(step.length for step in steps), len(steps))
    rows = []
    for at, name in enumerate(profile.classes):
        time = Fraction(sum(step.times[at] for step in steps), len(steps))
        if time:
            rows.append((name, f"{float(time) / 1e6:,.3f}", f"{float(time / mean):.1%}".replace("%", " %")))
    rows.append((say("whole"), f"{float(mean) / 1e6:,.3f}", "100.0 %"))
    rank, world = profile.facts.get("rank"), profile.facts.get("world")
    where = "host" if profile.host else f"device {profile.device}"
    if isinstance(rank, int):
        where = f"rank {rank} of {world}" if isinstance(world, int) else f"rank {rank}"
    notes = [say("profile_of", kept=len(steps), all=len(profile.steps), where=where, producer=profile.producer)]
    if profile.communicated:
        notes.append(say("communicated", ms=profile.communicated / len(steps) / 1e6))
    working = sum(profile.told) or 1
    own, named, rest = (value / working for value in profile.told)
    notes.append(say("classed_one", op=own, name=named, other=rest).replace("%", " %"))
    kernels = [
        (
            row.name or say("others", of=row.of),
            row.of,
            f"{row.time / len(steps) / 1e6:,.3f}",
            f"{row.count / len(steps):g}",
        )
        for row in profile.rows[:MAX_KERNELS]
    ]
    tables = (
        table_of("", "class | #a step [ms] | #share", rows, tuple(notes)),
        table_of(say("largest"), "kernel or operator… | class ^1 | #a step [ms] | #times ^2", kernels),
    )
    return Section("profile", say("profile"), tables=tables, fold=say("profile_fold"))
