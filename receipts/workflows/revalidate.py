"""Revalidation: the present rule set over what is stored, with what flipped and why. Earlier verdicts stay.

What was judged under the present rule set already is passed by, so that one that was interrupted goes on. What no seal
holds, or contradicts the verdict before it, is judged again even so (`receipts.store.stale`): the database may
hold verdicts that nobody judged. At the end everything is sealed.
"""

from __future__ import annotations

import fnmatch
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, Literal

from receipts.base.errors import ReceiptsError, RuleError, StoreError
from receipts.judging.judge import VERSION
from receipts.judging.rulebook import Rulebook
from receipts.judging.verdict import Comparison, verdict_to_json
from receipts.questions.comparisons import Comparisons
from receipts.receipt import Document, Parsed, parse_again
from receipts.workflows.submit import judge_new

if TYPE_CHECKING:
    from receipts.store import Store
    from receipts.store.stale import LastVerdict, Stale

Kind = Literal["receipt", "comparison", "claim"]
GOOD = ("valid", "accepted", "supported")


@dataclass(frozen=True, slots=True)
class FindingChange:
    """A finding that appeared or vanished: the rule, the place, and what it said."""

    code: str
    at: str
    level: str
    found: str
    appeared: bool


@dataclass(frozen=True, slots=True)
class Rejudged:
    """One verdict given again. `before` and `after` are statuses; `after` is None where it cannot be judged now.

    `changes` are the findings that make the difference, `why` the reason where there is no verdict.
    """

    kind: Kind
    names: tuple[str, ...]
    label: str
    before: str
    after: str | None
    changes: tuple[FindingChange, ...] = ()
    why: str = ""

    @property
    def flipped(self) -> bool:
        """Whether the status is another one."""
        return self.before != self.after

    @property
    def fell(self) -> bool:
        """Whether what was valid, accepted or supported no longer is."""
        return self.before in GOOD and self.after not in GOOD


@dataclass
class Tally:
    """How many verdicts were given again, by kind; how many say the same; which flipped."""

    judged: dict[str, int] = field(default_factory=dict)
    same: int = 0
    reworded: int = 0
    flipped: list[Rejudged] = field(default_factory=list)

    def add(self, item: Rejudged) -> None:
        """Count one."""
        self.judged[item.kind] = self.judged.get(item.kind, 0) + 1
        if item.flipped:
            self.flipped.append(item)
        elif item.changes:
            self.reworded += 1
        else:
            self.same += 1

    @property
    def exit_code(self) -> int:
        """1 where something valid, accepted or supported no longer is, else 0."""
        return 1 if any(item.fell for item in self.flipped) else 0


@dataclass(frozen=True)
class Revalidation:
    """A store to be judged again, or with ``dry_run`` only looked at; ``lane`` is a pattern."""

    store: Store
    rulebook: Rulebook
    since: datetime | None = None
    lanes: Sequence[str] = ()
    dry_run: bool = False

    @cached_property
    def _stale(self) -> Stale:
        from receipts.store.stale import Scope, Stale

        return Stale(self.store, Scope(self.rulebook.rules.digest, VERSION, self.since))

    def count(self) -> int:
        """How many receipts there are to look at; what was judged under the present rules is among them."""
        return self._stale.count()

    def run(self) -> Iterator[Rejudged]:
        """Judge receipts, then comparisons, then claims; what is given is in the store.

        Raises StoreError, and RuleError where a rule cannot be run.
        """
        try:
            yield from self._receipts()
            yield from self._comparisons()
            yield from self._claims()
        finally:
            if not self.dry_run:
                self.store.seal()

    def _wanted(self, names: Iterable[str]) -> bool:
        bare = [name.partition("@")[0] for name in names]
        return not self.lanes or any(fnmatch.fnmatchcase(name, lane) for name in bare for lane in self.lanes)

    # Receipts

    def _receipts(self) -> Iterator[Rejudged]:
        for batch in self._stale.receipts():
            judged, failed = _read([item for item in batch if self._wanted([item.lane])])
            again = judge_new([parsed for _, parsed in judged], self.store, self.rulebook)
            changes, new = [], []
            for (item, _), (_, verdict) in zip(judged, again, strict=True):
                label = verdict.label or item.id[:12]
                changes.append(_changed("receipt", (item.id,), label, item.document, verdict_to_json(verdict)))
                if self._is_new(changes[-1], item.document):
                    new.append((verdict, item.number))
            if new and not self.dry_run:
                self._stale.record(new)
            yield from (*failed, *changes)

    def _is_new(self, change: Rejudged, before: Mapping[str, Any]) -> bool:
        """Whether a verdict says anything that the last one does not: it is another, or of other rules."""
        of_now = (before["rules"], before["judge"]) == (self.rulebook.rules.digest, VERSION)
        return not of_now or change.flipped or bool(change.changes)

    # Comparisons

    def _comparisons(self) -> Iterator[Rejudged]:
        comparisons = Comparisons(self.store, self.rulebook)
        for item in self._stale.comparisons():
            if not self._wanted(item.document["lanes"]):
                continue
            verdict = item.document
            names = (*verdict["a"], *verdict["b"])
            label = f"{verdict['label_a']} → {verdict['label_b']} on {verdict['metric']}"
            try:
                document = self._compare(verdict, comparisons)
            except (RuleError, StoreError):
                raise
            except ReceiptsError as error:
                # Sides that no longer are of one configuration, a waiver that the lane no longer grants.
                yield Rejudged("comparison", names, label, verdict["status"], None, (), str(error))
                continue
            change = _changed("comparison", names, label, verdict, verdict_to_json(document))
            if not self.dry_run and self._is_new(change, verdict):
                self.store.record(document)
            yield change

    def _compare(self, verdict: Mapping[str, Any], comparisons: Comparisons) -> Comparison:
        """Anew, of the launches that the sides had then, those among them that did not count."""
        gone = [(one["side"], one["receipt"]) for one in verdict.get("lost", ())]
        named = verdict.get("named") if gone or "named" in verdict else None
        a, b = (
            [self.store.parsed(name) for name in (*verdict[side], *(one for of, one in gone if of == side))]
            for side in ("a", "b")
        )
        asked = comparisons.asked(a, b, "only")._replace(pooled=verdict.get("pooled", False))
        sides = comparisons.sides(asked, verdict["metric"], named)
        return comparisons.verdict(sides, waivers=dict(verdict["waivers"]), study=verdict["study"])

    # Claims

    def _claims(self) -> Iterator[Rejudged]:
        from receipts.questions.claims.judgment import stored, verdict_on

        stale = set(self._stale.claims())
        if not stale:
            return
        for claim in (item for item in stored(self.store).claims if item.id in stale):
            last = self.store.published.last_claim_verdict(claim.id)
            if last is None or not self._wanted(last.document.get("lanes") or ()):
                continue
            verdict = verdict_on(claim, self.rulebook, self.store)
            names = tuple(receipt for _, receipt in last.receipts)
            change = _changed("claim", names, claim.id, last.document, verdict_to_json(verdict))
            if not self.dry_run and self._is_new(change, last.document):
                self.store.published.record_claims([verdict])
            yield change


def _read(batch: Sequence[LastVerdict]) -> tuple[list[tuple[LastVerdict, Parsed]], list[Rejudged]]:
    """The receipts of verdicts, and those that cannot be read any more."""
    receipts, failed = [], []
    for item in batch:
        document = Document(item.raw, item.id[:12])
        try:
            if document.id != item.id:
                raise StoreError("its bytes were changed in the store; see: receipts audit")
            receipts.append((item, parse_again(document)))
        except ReceiptsError as error:
            label, before = item.document.get("label") or item.id[:12], item.document["status"]
            failed.append(Rejudged("receipt", (item.id,), label, before, None, (), str(error)))
    return receipts, failed


def _changed(
    kind: Kind, names: tuple[str, ...], label: str, before: Mapping[str, Any], after: Mapping[str, Any]
) -> Rejudged:
    """What became of a verdict. The documents are verdicts as JSON values, one stored and one just given.

    Its changes are findings of one that the other does not have: by rule, place and level, however they are worded.
    """
    old, new = _findings(before), _findings(after)
    vanished = [FindingChange(*key, effects, False) for key, effects in old.items() if key not in new]
    appeared = [FindingChange(*key, effects, True) for key, effects in new.items() if key not in old]
    old_text = before.get("effect"), after.get("effect")
    if old_text[0] != old_text[1] and before.get("comparable") is not None:
        appeared.append(
            FindingChange("effect", str(after.get("metric")), "", f"{old_text[0]} became {old_text[1]}", True)
        )
    return Rejudged(kind, names, label, before["status"], after["status"], (*vanished, *appeared))


def _findings(document: Mapping[str, Any]) -> dict[tuple[str, str, str], str]:
    every = [*document.get("findings", ()), *document.get("about", ())]
    comparison = document.get("comparison")
    if comparison:
        every += comparison.get("findings", ())
    return {(item["code"], item["at"], str(item["level"])): str(item["found"]) for item in every}
