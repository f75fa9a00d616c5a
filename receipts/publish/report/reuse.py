"""Stored verdicts that a report may take as they are: those that judging anew would give again.

A verdict follows from the document, its lane, the rules, and what the store knew: witnesses and the launch witnessed,
shapes and earlier failures of the lane. Document, lane and rules are fixed by the receipt's id and the rule set's
digest. Rules that declare `asks_store` alone read shapes and failures; they are shown and weigh nothing, so that their
findings are left out of every verdict of a report. What is left are other launches, such as witnesses, and each leaves
a trace in the verdict that it decided: its id in `witnesses`, or a finding of a rule that declares `reads_others`.
Where the trace is not what the store shows now, or cannot tell, the receipt is judged anew.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import orjson

from receipts.axes.lane import Lane
from receipts.judging.judge import VERSION
from receipts.judging.rulebook import Rulebook, RuleSet
from receipts.judging.verdict import Finding, Level, Question, ReceiptVerdict
from receipts.metrics.registry import Taint

if TYPE_CHECKING:
    from receipts.store import Entry


class WitnessLinks(NamedTuple):
    """Receipts that name this one as what they witness, and those that it names; the newest first."""

    witnesses: tuple[Entry, ...] = ()
    witnessed: tuple[Entry, ...] = ()


ALONE: Final = WitnessLinks()


def may_reuse(rulebook: Rulebook) -> bool:
    """Whether no rule on receipts asks the store but those of which it is known what they ask."""
    return all(item.asks_store for item in rulebook.rules.on("receipt") if item.uses_facts)


def without_asking(verdict: ReceiptVerdict, rules: RuleSet) -> ReceiptVerdict:
    """The verdict without what shapes and earlier failures of its lane show, which changes from launch to launch."""
    kept = tuple(item for item in verdict.findings if not rules.get(item.code).asks_store)
    return verdict if len(kept) == len(verdict.findings) else replace(verdict, findings=kept)


def read(body: bytes, rules: RuleSet) -> ReceiptVerdict:
    """A stored verdict on one receipt, without the findings that are left out."""
    stored = orjson.loads(body)
    del stored["schema_version"]
    stored["tainted"] = tuple(map(Taint, stored["tainted"]))
    stored["findings"] = tuple(_finding(item) for item in stored["findings"] if not rules.get(item["code"]).asks_store)
    stored["witnesses"] = tuple(stored["witnesses"])
    return ReceiptVerdict(**stored)


def _finding(stored: dict[str, Any]) -> Finding:
    stored |= {"level": Level(stored["level"]), "question": Question(stored["question"])}
    # A report judges without proofs where nothing is stored, and says the same where something is.
    return Finding(**stored | {"taints": tuple(map(Taint, stored["taints"])), "proof": ()})


def holds(verdict: ReceiptVerdict, row: Entry, links: WitnessLinks, lane: Lane, rules: RuleSet) -> bool:
    """Whether a stored verdict under the present rule set is what judging anew would give."""
    if verdict.lane != f"{lane.name}@{lane.version}" or verdict.judge != VERSION:
        return False
    if verdict.grade in ("evidenced", "kept"):
        return False  # the files it rests on may have been kept or collected since
    if any(item.at.startswith(rules.get(item.code).reads_others) for item in verdict.findings):
        return False
    if row.witness_for is not None:
        return not verdict.witnesses and _knew(row, links.witnessed)
    # With two, which of them is asked first decides who is named, and that no verdict tells.
    return len(links.witnesses) <= 1 and verdict.witnesses == tuple(item.id for item in links.witnesses)


def _knew(row: Entry, witnessed: Sequence[Entry]) -> bool:
    """Whether the launch that a witness names is the one that it was judged beside.

    Had it been unknown then, a finding would say so; no earlier receipt of that launch can have stood in its place.
    """
    if len(witnessed) != 1:
        return False
    (other,) = witnessed
    return other.id != row.id and other.seq < row.seq and other.generation == 0
