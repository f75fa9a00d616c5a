"""Receipts as a report reads them: rows of the store first, stored verdicts where they hold, documents where needed.

A stored verdict holds where judging anew would give it again. A verdict follows from the document, its lane, the rules,
and what the store knew: witnesses and the launch witnessed, shapes and earlier failures of the lane. Document, lane and
rules are fixed by the receipt's id and the rule set's digest. Rules that declare `asks_store` alone read shapes and
failures; they are shown and weigh nothing, so that their findings are left out of every verdict of a report. What is
left are other launches, such as witnesses, and each leaves a trace in the verdict that it decided: its id in
`witnesses`, or a finding of a rule that declares `reads_others`. Where the trace is not what the store shows now, or
cannot tell, the receipt is judged anew.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property
from typing import TYPE_CHECKING, Final, NamedTuple

import orjson

from receipts.axes.lane import Lane
from receipts.axes.shape import ShapeKey
from receipts.judging.facts import Facts
from receipts.judging.grade import status_for, unspoilt
from receipts.judging.judge import VERSION, judge_case, judge_receipt
from receipts.judging.rule import Case
from receipts.judging.rulebook import Rulebook, RuleSet
from receipts.judging.side import JudgedLaunches
from receipts.judging.verdict import Finding, Level, Question, ReceiptVerdict, Status, undecided
from receipts.judging.witness import side_of
from receipts.metrics import Launch
from receipts.metrics.registry import Taint
from receipts.questions.comparisons import Comparisons
from receipts.questions.week.data import Ref, ref_of
from receipts.receipt import Parsed

if TYPE_CHECKING:
    from receipts.store import Entry, Store
    from receipts.store.query.reports import NumberedEntry, ReportScope, Rules


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


def read_stored(body: bytes, rules: RuleSet) -> ReceiptVerdict:
    """A stored verdict on one receipt, without the findings that are left out."""
    stored = orjson.loads(body)
    del stored["schema_version"]
    stored["tainted"] = tuple(map(Taint, stored["tainted"]))
    kept = (item for item in stored["findings"] if not rules.get(item["code"]).asks_store)
    stored["findings"] = tuple(
        # A report judges without proofs where nothing is stored, and says the same where something is.
        Finding(
            **item
            | {"level": Level(item["level"]), "question": Question(item["question"])}
            | {"taints": tuple(map(Taint, item["taints"])), "proof": ()}
        )
        for item in kept
    )
    stored["witnesses"] = tuple(stored["witnesses"])
    return ReceiptVerdict(**stored)


def holds(verdict: ReceiptVerdict, row: Entry, links: WitnessLinks, lane: Lane, rules: RuleSet) -> bool:
    """Whether a stored verdict under the present rule set is what judging anew would give."""
    if verdict.lane != f"{lane.name}@{lane.version}" or verdict.judge != VERSION:
        return False
    if verdict.grade in ("evidenced", "kept"):
        return False  # the files it rests on may have been kept or collected since
    if any(item.at.startswith(rules.get(item.code).reads_others) for item in verdict.findings):
        return False
    if row.witness_for is not None:
        # The launch that it names must be the one that it was judged beside: had it been unknown then, a finding would
        # say so, and no earlier receipt of that launch can have stood in its place.
        alone = len(links.witnessed) == 1 and not verdict.witnesses
        others = links.witnessed
        return alone and all(one.id != row.id and one.seq < row.seq and one.generation == 0 for one in others)
    # With two, which of them is asked first decides who is named, and that no verdict tells.
    return len(links.witnesses) <= 1 and verdict.witnesses == tuple(item.id for item in links.witnesses)


FAILED = ("oom", "crash", "nan", "hang")
MAX_HELD = 1000  # launches that are held parsed, some 50 kB each
MAX_WITNESSES = 20  # of one launch, as in the Facts of a store
AT_ONCE = 2000  # receipts whose stored verdicts are read together


@dataclass(frozen=True, eq=False)
class Item:
    """One receipt of the report with its verdict under the present rules; its document is read when it is asked for."""

    entry: Entry
    verdict: ReceiptVerdict
    reader: ReportReader = field(repr=False)

    @property
    def launch(self) -> Launch:
        """The receipt under its lane."""
        return self.reader.launch(self.entry)

    @property
    def parsed(self) -> Parsed:
        """The receipt."""
        return self.launch.parsed

    @property
    def lane(self) -> Lane:
        """The lane that it is judged under."""
        return self.reader.lane(self.entry.lane)

    @cached_property
    def facts(self) -> Facts:
        """What rules may know of its lane and its witnesses."""
        return self.reader.facts_of(self.entry)

    @property
    def ref(self) -> Ref:
        """What to call it."""
        return ref_of(self.entry)

    @property
    def may_lead(self) -> bool:
        """Whether it may be a result of a frontier, proven or stated."""
        return self.entry.id not in self.reader.left_out

    @property
    def kept_steps(self) -> bool:
        """Whether its rate follows from steps that it kept, as it was read when it was stored."""
        return self.entry.rate_source == "steps"

    @property
    def rate_status(self) -> Status:
        """The verdict's status as far as rates go."""
        verdict = self.verdict
        return status_for(Taint.RATE, verdict.path, verdict.tainted, undecided(verdict.findings))

    def spoilt(self, kind: Taint) -> bool:
        """Whether the launch is invalid for that kind of metric."""
        return not unspoilt(self.verdict.path, self.verdict.tainted, kind)


def ran(entry: Entry) -> datetime:
    """When a receipt counts: the end of its run, else its start."""
    return entry.finished or entry.started


def order(entry: Entry) -> tuple[datetime, datetime, int]:
    """Where a receipt is in time; the store's own order decides among those known to the day."""
    return ran(entry), entry.started, entry.seq


class ReportReader:
    """What ran from ``since`` (or ever) until ``as_of``, in the order in which it ran, and what is asked for of others.

    Rows of the interval are held, and of them alone: verdicts are small, and documents are read one by one.
    """

    def __init__(
        self,
        store: Store,
        rulebook: Rulebook,
        as_of: datetime,
        lanes: Sequence[str] = (),
        since: datetime | None = None,
    ) -> None:
        from receipts.store.query.reports import ReportQueries, ReportScope, Rules

        self.store = store
        self.rulebook = rulebook
        self.since = since
        self.scope: ReportScope = ReportScope(as_of, tuple(lanes))
        self.stored = ReportQueries(store.database)
        self.rules: Rules = Rules(rulebook.rules.digest, VERSION)
        self._items: dict[str, Item] = {}
        self._witness_links: dict[str, WitnessLinks] = {}
        self._facts: dict[tuple[str, ShapeKey], Facts] = {}
        self._lanes: dict[str, Lane] = {}
        self._launches: dict[str, Launch] = {}
        self._reuse = may_reuse(rulebook)
        self.judged = 0  # receipts that were judged anew

    @cached_property
    def placed(self) -> tuple[NumberedEntry, ...]:
        """Rows of the interval with their configurations."""
        return tuple(sorted(self.stored.since(self.since, self.scope), key=lambda item: order(item.entry)))

    @property
    def rows(self) -> tuple[Entry, ...]:
        """Rows of the interval."""
        return tuple(item.entry for item in self.placed)

    @cached_property
    def comparisons(self) -> Comparisons:
        """Comparisons by what had run, with verdicts that are known already."""
        return Comparisons(self.store, self.rulebook, until=self.scope.until, judged=self._known)

    def _known(self, group: Sequence[Parsed]) -> JudgedLaunches:
        """Facts, findings and launches of some receipts; of what is superseded nothing, as `facts` has it."""
        missing = [item.id for item in group if item.id not in self._items]
        self.items(self.stored.entries(missing) if missing else ())
        items = [self._items[one.id] for one in group]
        witnesses = {other.id: other for item in items for other in item.facts.witnesses}
        witnessed = {other.id: other for item in items for other in item.facts.witnessed}
        sides = {name: side for item in items for name, side in item.facts.sides.items()}
        facts = replace(
            self.facts(group[-1]),
            witnesses=tuple(witnesses.values()),
            witnessed=tuple(witnessed.values()),
            sides=sides,
        )
        known = {item.entry.id: self._beside(item, facts) for item in items}
        return JudgedLaunches(facts, known, {item.entry.id: item.launch for item in items})

    def _beside(self, item: Item, facts: Facts) -> tuple[Finding, ...]:
        """What rules find of a launch; anew where a witness of another launch of its side shows its path."""
        own = side_of(item.parsed)
        others = {name for name, sides in facts.sides.items() if own in sides} - {
            one.id for one in item.facts.witnesses
        }
        if not others or item.entry.witness_for is not None:
            return item.verdict.findings
        return judge_case(Case(item.launch, item.lane, facts), self.rulebook.rules)

    @cached_property
    def pins(self) -> tuple[Entry, ...]:
        """Receipts that are pinned now and had run, the newest first."""
        names = {item.receipt for item in self.store.pins().values() if item.receipt is not None}
        pinned = [row for row in self.stored.entries(sorted(names)) if self._had_run(row)] if names else []
        return tuple(sorted(pinned, key=order, reverse=True))

    @cached_property
    def left_out(self) -> set[str]:
        """Launches that lead no frontier: those of configurations that were decided ``drop``.

        What was decided on a launch itself counts before what was decided on another of its configuration.
        """
        decided = {item.receipt: item.decision for item in self.store.published.decisions()}
        dropped = [name for name, decision in decided.items() if decision == "drop"]
        numbers = set(self.stored.place(dropped).values()) if dropped else ()
        alike = (
            row for number in numbers for row in self.stored.launches(number, "training", self.scope.until, MAX_HELD)
        )
        return {*dropped, *(row.id for row in alike if row.id not in decided)}

    @property
    def looked_at(self) -> tuple[Item, ...]:
        """Every receipt that was judged or compared so far, in the order in which they ran."""
        return tuple(sorted(self._items.values(), key=lambda item: order(item.entry)))

    def lane(self, name: str) -> Lane:
        """The lane of that name, else ``unlisted``."""
        if name not in self._lanes:
            self._lanes[name] = self.rulebook.lanes.of(name)
        return self._lanes[name]

    def entry(self, receipt_id: str) -> Entry:
        """The row of a receipt, which is looked up unless it is at hand. Raises NotFound."""
        held = self._items.get(receipt_id)
        return held.entry if held is not None else self.store.entry(receipt_id)

    def item(self, row: Entry) -> Item:
        """A row's receipt, with its verdict."""
        return self.items([row])[0]

    def items(self, rows: Iterable[Entry]) -> list[Item]:
        """Rows' receipts, with their verdicts: as stored where that holds, else judged now."""
        wanted = list(rows)
        new = list({row.id: row for row in wanted if row.id not in self._items}.values())
        for at in range(0, len(new), AT_ONCE):
            several = new[at : at + AT_ONCE]
            self._relate(several)
            verdicts = self.stored.verdicts([row.seq for row in several], self.rules) if self._reuse else {}
            rules = self.rulebook.rules
            for row in several:
                body, links = verdicts.get(row.seq), self._witness_links.get(row.id, ALONE)
                verdict = read_stored(body, rules) if body is not None else None
                if verdict is None or not holds(verdict, row, links, self.lane(row.lane), rules):
                    verdict = self._judge(row)
                self._items[row.id] = Item(row, verdict, self)
        return [self._items[row.id] for row in wanted]

    def _judge(self, row: Entry) -> ReceiptVerdict:
        self.judged += 1
        launch = self.launch(row)
        known = self.store.query.facts([launch.parsed])
        facts = replace(self.facts_of(row), at_once=known.at_once, resumed=known.resumed, replaced=known.replaced)
        if self._reuse:
            verdict = judge_receipt(launch.parsed, launch.lane, self.rulebook.rules, facts, launch)
            return without_asking(verdict, self.rulebook.rules)
        facts = replace(facts, failures=tuple(self.store.query.failed_before(launch.parsed)))
        return judge_receipt(launch.parsed, launch.lane, self.rulebook.rules, facts, launch)

    def _relate(self, rows: Sequence[Entry]) -> None:
        """Look up who witnesses these receipts, and what they witness, as far as it had run."""
        measured = [row for row in rows if row.witness_for is None]
        witnesses = self.stored.witnesses(measured)
        for row in measured if witnesses else ():
            naming = {other.id: other for name in (row.id, row.launch) for other in witnesses.get(name, ())}
            own = [other for other in naming.values() if other.launch != row.launch and self._had_run(other)]
            if own:
                newest = sorted(own, key=lambda other: -other.seq)
                self._witness_links[row.id] = WitnessLinks(witnesses=tuple(newest[:MAX_WITNESSES]))
        named = {row.witness_for for row in rows if row.witness_for is not None}
        known = self.stored.named(named) if named else {}
        for row in rows:
            others = tuple(other for other in known.get(row.witness_for or "", ()) if self._had_run(other))
            if others:
                self._witness_links[row.id] = WitnessLinks(witnessed=others[:MAX_WITNESSES])

    def _had_run(self, row: Entry) -> bool:
        return ran(row) <= self.scope.until

    # Documents and facts

    def launch(self, row: Entry) -> Launch:
        """A row's receipt under its lane; as many as are read together are held."""
        launch_of = self._launches.get(row.id)
        if launch_of is None:
            if len(self._launches) >= MAX_HELD:
                del self._launches[next(iter(self._launches))]
            launch_of = self._launches[row.id] = self.rulebook.launch(self.store.parsed(row.id))
        return launch_of

    def facts_of(self, row: Entry) -> Facts:
        """What rules may know of a row's lane and witnesses."""
        links = self._witness_links.get(row.id, ALONE)
        return replace(
            self.facts(self.launch(row).parsed),
            taken_in={row.id: row.submitted_at},
            witnesses=tuple(self.store.parsed(other.id) for other in links.witnesses),
            witnessed=tuple(self.store.parsed(other.id) for other in links.witnessed),
            sides={other.id: frozenset({side_of(self.launch(row).parsed)}) for other in links.witnesses},
        )

    def facts(self, parsed: Parsed) -> Facts:
        """What rules may know of a lane, asked of the store once for each geometry and layout.

        Of what is superseded nothing: a report judges and compares what stands, with witnesses that stand.
        """
        kind = (parsed.receipt.run.lane, self.rulebook.session.settings(parsed).shape)
        if kind not in self._facts:
            known = self.store.query.facts([parsed])
            self._facts[kind] = Facts(shapes=known.shapes, now=known.now, asked=True)
        return self._facts[kind]
