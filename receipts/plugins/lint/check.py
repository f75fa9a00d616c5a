"""Whether receipts bear a statement out: ids that resolve and are in force, a number within half its last digit."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Final, Literal

from receipts import metrics
from receipts.base.errors import NotFound
from receipts.judging.rule import StatementCase
from receipts.metrics import Metric
from receipts.metrics.registry import Taint
from receipts.plugins.lint.arithmetic import agrees, disagreeing, readings
from receipts.plugins.lint.statement import UNNAMED, PageRemark, Statement
from receipts.receipt import Parsed
from receipts.receipt.accelerators import ACCELERATORS
from receipts.stats.rounding import Interval

if TYPE_CHECKING:
    from receipts.axes.lane import Lane
    from receipts.judging.claim import ClaimFile
    from receipts.judging.rulebook import Rulebook
    from receipts.judging.verdict import ClaimVerdict, Comparison
    from receipts.questions.comparisons import Comparisons
    from receipts.store import Store

State = Literal["holds", "refuted", "unproven", "stale", "unreceipted", "ignored", "remark"]
_OF_CHIPS_OR_ALL: Final = ("tps", "wps")  # torchtitan prints that of one chip, and others that of all
_SHARE: Final = re.compile(r"(?:%|per\s?cent)\s?of\s", re.IGNORECASE)
_SHAPES: Final = ("batch.micro_batch", "batch.sequence_length", "batch.global_batch", "model.depth")


@dataclass(frozen=True, slots=True)
class LintResult:
    """What was found of one statement, or of a note to this command. ``code`` is a rule's, empty if all is well."""

    state: State
    found: str
    do: str = ""
    code: str = ""
    statement: Statement | None = None
    remark: PageRemark | None = None

    @property
    def place(self) -> tuple[str, int, int]:
        """File, line and column."""
        item = self.statement or self.remark
        assert item is not None
        return item.file, item.line, item.column

    @property
    def rule(self) -> str:
        """The rule's code, or a name for what has none."""
        return self.code or ("page-note" if self.state == "remark" else "unproven")

    @property
    def message(self) -> str:
        """What was found, and what to do."""
        words = f"“{self.statement.text}”: " if self.statement and self.state != "unreceipted" else ""
        return f"{words}{self.found}" + (f". To do: {self.do}" if self.do else "")


class Checker:
    """Checks statements, and keeps what it fetched: a page quotes the same receipts again and again.

    ``open_store`` is called once, at the first link; ``claims`` are those of claims files, looked at before the store.
    """

    def __init__(self, rulebook: Rulebook, open_store: Callable[[], Store], claims: tuple[ClaimFile, ...] = ()) -> None:
        self._rulebook = rulebook
        self._open = open_store
        self._claims = claims
        self._receipts: dict[str, Parsed] = {}
        self._compared_before: dict[tuple[str, str, str], Comparison] = {}
        self._judged: dict[str, LintResult] = {}

    @cached_property
    def _store(self) -> Store:
        return self._open()

    def check(self, items: Iterable[Statement | PageRemark]) -> list[LintResult]:
        """The results of a page's statements and remarks. Raises StoreError if links cannot be followed."""
        results: list[LintResult] = []
        orders: dict[str, list[int]] = {}
        for item in items:
            if isinstance(item, PageRemark):
                results.append(LintResult("remark", item.text, item.do, remark=item))
                continue
            if item.order:
                orders.setdefault(item.order, []).append(len(results))
            results.append(self._coded(self._answer(item), item))
        for places in orders.values():
            self._rank(results, places)
        # A sentence without a number is there for its ranking alone.
        unlinked = self._rulebook.rules.get("unreceipted").code
        return [one for one in results if one.statement is None or one.statement.values or one.code != unlinked]

    def _coded(self, answer: LintResult, item: Statement) -> LintResult:
        code = self._rulebook.rules.get(answer.code).code if answer.code else ""  # which may be a name
        return replace(answer, code=code, statement=item)

    def _answer(self, item: Statement) -> LintResult:
        link = item.link
        if item.contradiction and not item.ignored:
            return LintResult("refuted", item.contradiction, "write what the figures give", "overstated")
        if link is None and not item.ignored and (figure := disagreeing(item)) is not None:
            what = f"the recipe that it links to says {metrics.shown(metrics.get(item.metric), figure.value)}"
            do = "quote the recipe, or link to another"
            return LintResult("refuted", f"{what} ({figure.file})", do, "overstated")
        if link is None:
            return self._offense(item, "unreceipted", "W") or LintResult("ignored", item.ignored)
        if link.problem:
            return LintResult("refuted", f"{link.target} cannot be read", link.problem, "no_receipt")
        if link.claim:
            return self._claim(link.claim)
        try:
            for word in link.receipts:
                if word not in self._receipts:
                    self._receipts[word] = self._store.get(word)
            sides = [self._receipts[word] for word in link.receipts]
        except NotFound as error:
            return LintResult("refuted", str(error), "submit the receipt, or correct the id", "no_receipt")
        superseded = self._store.query.facts(sides).superseded
        for side in sides:
            if side.id in superseded:
                successor, reason = superseded[side.id]
                do = f"quote {successor[:12]} and its number" if successor else "take the statement out"
                return LintResult("stale", f"{side.id[:12]} is no longer in force: {reason}", do, "stale")
        if item.metric == UNNAMED:
            do = "name it beside the number: 13 % more tokens/s"
            return LintResult("unproven", "no metric that receipts have is named beside the number", do)
        if item.kind == "fit":
            return self._fit(item, sides[-1])
        if len(sides) == 2:
            return self._pair(item, sides[0], sides[1])
        if item.kind == "ratio" and _SHARE.search(item.text):
            do = "name both receipts if it compares two"
            return LintResult("unproven", "a share is stated, and no receipt carries it", do)
        if item.kind in ("ratio", "change"):
            do = "write receipt:BASELINE..CANDIDATE"
            return LintResult("refuted", "a difference is stated, and one receipt is named", do, "no_receipt")
        return self._reading(item, sides[0])

    def _rank(self, results: list[LintResult], places: list[int]) -> None:
        """Refuse one number of an order that ranks MFU of lanes: a sentence at its own, else the first other."""
        words: dict[str, frozenset[str]] = {}
        items = {at: item for at in places if (item := results[at].statement) is not None}
        sentence = next((at for at, item in items.items() if item.about and item.order.startswith("text")), None)
        for at, item in items.items():
            links = item.link.receipts if item.link else ()
            lanes = (self._receipts[word].receipt.run.lane for word in links if word in self._receipts)
            own = {lane: frozenset({lane}) for lane in lanes}
            if sentence is not None or not own:
                own |= self._lane_words.lanes(item.about)
            if sentence is None and self._lane_words.apart(own):
                continue  # one row that names two lanes
            words |= own
            if apart := self._lane_words.apart(words):
                at = at if sentence is None else sentence
                if answer := self._offense(items[at], "refuted", "E", tuple(sorted(apart))):
                    results[at] = self._coded(answer, items[at])
                return

    def _offense(self, item: Statement, state: State, level: str, lanes: tuple[str, ...] = ()) -> LintResult | None:
        """What a rule of that level finds of a statement that is ranked among ``lanes``; None if it finds nothing."""
        from receipts.judging.judge import judge_claim

        named = (item.link.receipts, item.link.claim) if item.link else ((), "")
        case = StatementCase(item.text, item.place, *named, item.ignored, item.metric, lanes)
        finding = next((one for one in judge_claim(case, self._rulebook.rules) if one.level == level), None)
        return LintResult(state, finding.found, finding.do, finding.code) if finding is not None else None

    def _reading(self, item: Statement, parsed: Parsed) -> LintResult:
        from receipts.judging.judge import judge_receipt

        launch, expected = self._rulebook.launch(parsed), readings(item)
        stated = Interval(min(one.low for one in expected), max(one.high for one in expected))
        metric, name = metrics.get(item.metric), parsed.id[:12]
        value = launch.read(metric).value
        if item.unit.lower() in _OF_CHIPS_OR_ALL and (value is None or not stated.contains(value)):
            metric = metrics.get("tokens_per_second_per_chip")
        reading = launch.read(metric)
        if reading.value is None:
            return LintResult("unproven", f"{name} states no {metric.title}", "link a receipt that carries it")
        shown = f"{name} reads {metrics.shown(metric, reading.value)}"
        if not stated.contains(reading.value):
            return LintResult("refuted", shown, "write what the receipt reads", "overstated")
        # It agrees: is it an offense, or a number that is merely quoted?
        lane, run = self._rulebook.lanes.of(parsed.receipt.run.lane), parsed.receipt.run
        verdict = judge_receipt(parsed, lane, self._rulebook.rules, self._store.query.facts(parsed))
        sparing = self._rulebook.rules.sparing(metric.name)
        for one in verdict.findings:
            if one.level == "E" and one.code not in sparing and one.spoils(metric.taint):
                return LintResult("refuted", f"{shown}, and is invalid: {one.code} {one.found}", one.do, one.code)
        if run.outcome != "ok" and metric.taint in (Taint.RATE, Taint.MFU):
            do = "quote a launch that ended well"
            if run.outcome in ("preempted", "unknown"):
                how = "was preempted" if run.outcome == "preempted" else "does not show how it ended"
                return LintResult("unproven", f"{shown}, and the launch {how}", do)
            return LintResult("refuted", f"{shown}, and the launch ended in {run.outcome}", do, "bad_receipt")
        if run.provenance != "measured":
            return LintResult("unproven", f"{shown}, and is {run.provenance}, not measured", "measure it")
        if reading.source in ("stated", "derived") and metric.summary in ("step", "rate", "memory"):
            return LintResult("unproven", f"{shown} as stated; what it was taken from was not kept", "keep the steps")
        return LintResult("holds", shown)

    def _fit(self, item: Statement, parsed: Parsed) -> LintResult:
        outcome, name, wanted = parsed.receipt.run.outcome, parsed.id[:12], "ok" if item.direction == "up" else "oom"
        if outcome == "unknown":
            return LintResult("unproven", f"{name} does not show how it ended", f"link a launch that ended {wanted}")
        if outcome != wanted:
            return LintResult("refuted", f"{name} ended {outcome}", f"link a launch that ended {wanted}", "overstated")
        shapes = {path.rpartition(".")[2]: parsed.stated.get(path) for path in _SHAPES}
        within = [value and abs(value - item.values[0]) <= item.halves[0] for value in shapes.values() if item.values]
        if item.values and not item.unit and not any(within):
            ran = ", ".join(f"{shape} {value}" for shape, value in shapes.items() if value is not None)
            return LintResult("refuted", f"{name} ran with {ran}", "link that shape", "overstated")
        metric = metrics.get("peak_bytes")
        peak = self._rulebook.launch(parsed).read(metric).value if item.unit and wanted == "ok" else None
        if peak is not None and peak > readings(item)[0].high:
            shown = f"{name} peaks at {metrics.shown(metric, peak)}"
            return LintResult("refuted", shown, "write what the receipt reads", "overstated")
        return LintResult("holds", f"{name} ended {outcome}")

    def _pair(self, item: Statement, a: Parsed, b: Parsed) -> LintResult:
        metric = metrics.get(item.metric)
        if item.kind == "reading" and item.unit != "×":
            return self._reading(item, b)
        verdict = self._compared(a, b, metric)
        result = verdict.headline
        if result is None or result.a.value is None or result.b.value is None:
            return LintResult("unproven", f"{metric.title} is not on both sides", "link receipts that carry it")
        mine, theirs = (self._rulebook.launch(one).read(metric).value for one in (a, b))
        same, reading = agrees(item, metric, result, mine, theirs)
        if not same:
            return LintResult("refuted", reading, "write what the comparison gives", "overstated")
        if verdict.status == "rejected":
            why = next((f"{one.code} {one.found}" for one in verdict.findings if one.level == "E"), verdict.last_line())
            reading = f"{reading}, and the comparison is rejected: {why}"
            return LintResult("refuted", reading, "see: receipts compare", "wrong_cause")
        if verdict.status != "accepted":
            reading = f"{reading}, and the comparison is open: {verdict.last_line()}"
            return LintResult("unproven", reading, "see: receipts compare")
        return LintResult("holds", reading)

    def _compared(self, a: Parsed, b: Parsed, metric: Metric) -> Comparison:
        """The comparison as `receipts compare` gives it."""
        key = (a.id, b.id, metric.name)
        if key not in self._compared_before:
            self._compared_before[key] = self._comparisons.compare([a], [b], metric.name)
        return self._compared_before[key]

    @cached_property
    def _lane_words(self) -> LaneWords:
        lanes = self._rulebook.lanes
        return LaneWords(lanes.get(name) for name in lanes.names())

    @cached_property
    def _comparisons(self) -> Comparisons:
        from receipts.questions.comparisons import Comparisons

        return Comparisons(self._store, self._rulebook)

    def _claim(self, name: str) -> LintResult:
        if name not in self._judged:
            verdict = self._verdict_on(name)
            if verdict is None:
                answer = LintResult("refuted", f"there is no claim {name!r}", "see: receipts claim list", "no_receipt")
            else:
                state: State = "holds" if verdict.status == "supported" else verdict.status
                first = next((one for one in verdict.findings if one.level != "W"), None)
                reading = f"claim {name} is {verdict.status}" + (f": {first.code} {first.found}" if first else "")
                code = first.code if first and state != "holds" else ""
                answer = LintResult(state, reading, first.do if first else "", code)
            self._judged[name] = answer
        return self._judged[name]

    def _verdict_on(self, name: str) -> ClaimVerdict | None:
        """The verdict on a claim, of claims files first, then of the store; None if no rule of that level does."""
        from receipts.questions.claims.judgment import is_file, stored, verdict_on

        for group in self._claims:
            for claim in (one for one in group.claims if one.id == name):
                from_files = all(map(is_file, (*claim.baseline, *claim.candidate)))
                return verdict_on(claim, self._rulebook, None if from_files else self._store, group.folder)
        claim_of = next((one for one in stored(self._store).claims if one.id == name), None)
        return verdict_on(claim_of, self._rulebook, self._store) if claim_of is not None else None


class LaneWords:
    """Words that name lanes in prose: `H200` all that run on one, `Megatron` its own."""

    def __init__(self, lanes: Iterable[Lane]) -> None:
        by_word: dict[str, set[str]] = {}
        known = [lane for lane in lanes if lane.accelerators and lane.accelerators != ("cpu",)]
        frameworks = {lane.name: lane.frameworks[0].removesuffix("-core") for lane in known if lane.frameworks}
        parts = {part for word in frameworks.values() if "-" in word for part in word.split("-")}
        for lane in known:
            chips = [chip for chip in ACCELERATORS if chip.key in lane.accelerators]
            words = {word for chip in chips for word in (*chip.names, chip.key.partition("-")[0], chip.vendor)}
            # `torch` is also a part of `torch-xla`, and names no lane.
            for word in (lane.name, *words, *({frameworks.get(lane.name, lane.name)} - parts)):
                by_word.setdefault(word.lower(), set()).add(lane.name)
        words_first = sorted(by_word, key=len, reverse=True)
        written = "|".join(re.escape(word).replace(r"\-", r"[-_ /]?").replace(r"\ ", r"[-_ ]?") for word in words_first)
        self._pattern = re.compile(rf"(?<![\w-])(?:{written})(?![a-z0-9])", re.IGNORECASE)
        self._lanes = {re.sub(r"[-_ /]", "", word): frozenset(names) for word, names in by_word.items()}

    def lanes(self, text: str) -> dict[str, frozenset[str]]:
        """The words of a text that name lanes, as written, with the lanes that each may mean."""
        matches = self._pattern.finditer(text)
        return {match[0]: self._lanes[re.sub(r"[-_ /]", "", match[0].lower())] for match in matches}

    @staticmethod
    def apart(words: dict[str, frozenset[str]]) -> tuple[str, ...]:
        """Two words that have no lane in common; empty if there are none."""
        return next((pair for pair in combinations(words, 2) if not words[pair[0]] & words[pair[1]]), ())
