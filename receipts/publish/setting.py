"""Where and how a launch ran, in sentences: what a rank owns, expert load, lineage, target or substrate, regime."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING

from receipts.axes.lineage import ran_on
from receipts.axes.shape import substrate_of
from receipts.metrics.arithmetic import ARITHMETIC
from receipts.metrics.degrees import PIPELINE, batch_ways, owned
from receipts.publish.words import words
from receipts.questions.answers import measured

if TYPE_CHECKING:
    from receipts.axes.lane import Lane
    from receipts.questions.answers import StepWork
    from receipts.receipt import Parsed

say = words("receipt")


def setting(parsed: Parsed, lane: Lane) -> Iterator[str]:
    """The sentences of one receipt, those for which it states enough."""
    rank = owned(parsed.stated)
    if rank:
        yield say("owned", parts=rank)
    # The share of a step that pipeline stages wait, of the schedules that its formula is for.
    stated = parsed.stated
    stages, schedule = stated.get(PIPELINE) or 1, str(stated.get("parallelism.schedule") or "1f1b")
    micro, whole = stated.get("batch.micro_batch"), stated.get("batch.global_batch")
    counts = {stated["batch.accumulation"]} if stated.get("batch.accumulation") else set()
    if not counts and micro and whole:
        counts = {whole // (micro * ways) for ways in batch_ways(stated, lane) if whole % (micro * ways) == 0}
    plain = re.fullmatch(r"(?:non.)?interleaved|(?:(?:non.)?interleaved.?)?1f1b|gpipe", schedule, re.IGNORECASE)
    if stages > 1 and len(counts) == 1 and plain:
        (count,), virtual = counts, stated.get("parallelism.virtual_pipeline") or 1
        share = ARITHMETIC["pipeline-bubble"].value(stages=stages, micro_batches=count, virtual=virtual)
        yield say("bubble", share=share, stages=stages, micro_batches=count)
    # What the router did: how unevenly it loaded experts, and what it dropped.
    ratio, dropped, padded = (
        parsed.stated.get(f"measurement.routing.{name}")
        for name in ("load_ratio", "dropped_share", "padded_to_capacity")
    )
    parts = []
    if ratio is not None:
        parts.append(say("load", ratio=ratio))
    if dropped is not None:
        parts.append(say("dropped", share=dropped))
    if padded is not None:
        parts.append(say("padded") if padded else say("unpadded"))
    if parts:
        yield say("routing", parts=", ".join(parts))
    lineage = ran_on(parsed, lane)
    if lineage is not None:
        yield say("lineage", lineage=lineage)
    substrate = substrate_of(parsed, lane)
    if substrate is not None:
        yield say("substrate", name=substrate.name)


def regime(work: StepWork) -> str:
    """The regime that a launch ran in; what would tell it where it is not known."""
    return ", ".join(work.regimes) or say("no_regime", missing=" and ".join(work.missing))


def how_measured(parsed: Parsed) -> Iterator[str]:
    """Cache, window and timer, as stated."""
    names = say.named("measured_as")
    parts = [f"{names.get(path, path)} {value}" for path, value in measured(parsed.stated).items()]
    if parts:
        yield say("how", parts=", ".join(parts))
