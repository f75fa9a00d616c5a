"""Whether receipts bear a statement out: ids that resolve and are in force, a number within half its last digit.

A statement whose line links to a recipe in the same tree is held against the recipe's own log. A link to
``github.com/OWNER/REPO/tree/REF/PATH`` names a file here where REPO lies beside the page, or beside a folder above it.
A relative link names the file itself. The log is read as `receipts ingest` reads it, prose and all.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import cache, cached_property
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Final, Literal, NamedTuple
from urllib.parse import unquote

from receipts import metrics
from receipts.base.errors import NotFound
from receipts.base.files import read_small
from receipts.judging.rule import StatementCase
from receipts.metrics import Metric
from receipts.metrics.registry import Taint
from receipts.plugins.lint.expect import agrees, readings
from receipts.plugins.lint.page import PageRemark
from receipts.plugins.lint.ranking import LaneWords
from receipts.plugins.lint.statement import UNREAD, Statement
from receipts.receipt import Parsed
from receipts.receipt.accelerators import find_accelerator
from receipts.stats.rounding import Interval

if TYPE_CHECKING:
    from receipts.judging.claim import ClaimFile
    from receipts.judging.rulebook import Rulebook
    from receipts.judging.verdict import ClaimVerdict, Comparison
    from receipts.questions.comparisons import Comparisons
    from receipts.store import Store


TOLERANCE: Final = 0.01  # a page rounds, and its figure may be of a neighboring step
_LINK: Final = re.compile(r"\]\(([^()\s]{1,400})\)")
_HOSTED: Final = re.compile(r"https?://(?:www\.)?github\.com/[\w.-]+/([\w.-]+)/(?:tree|blob)/[\w.-]+/([^#?]+)")
_LOGS: Final = ("README.md", "*.log", "*.txt")
_METRICS: Final = ("tokens_per_second_per_chip", "tflops_per_second_per_chip", "step_seconds")
MAX_LOG: Final = 4 << 20
MAX_ABOVE: Final = 6


class RecipeFigure(NamedTuple):
    """A metric's value in a recipe's log, in the registry's unit."""

    value: float
    file: str


def disagreeing(item: Statement) -> RecipeFigure | None:
    """What the linked recipe says of the statement's metric, where it says another number; else None."""
    if item.kind != "reading" or len(item.values) != 1:
        return None
    for path in _linked(item.file, item.line):
        figure = figures(path).get(item.metric)
        if figure is None:
            continue
        stated, half = item.values[0], item.halves[0] if item.halves else 0.0
        if item.unit == "%":
            stated, half = stated / 100, half / 100
        return None if abs(stated - figure.value) <= half + TOLERANCE * figure.value else figure
    return None


@cache
def figures(path: Path) -> dict[str, RecipeFigure]:
    """Figures of the steps that a recipe's log prints, by metric; MFU where the path names the chip."""
    from receipts.ingest.evidence import read

    known: dict[str, RecipeFigure] = {}
    for file in _logs(path):
        for reading in read(file).readings:
            for metric in _METRICS:
                values = [value for value in reading.steps.column(metric) if value is not None and value > 0]
                if values:
                    known.setdefault(metric, RecipeFigure(median(values), str(file)))
    machine = next((accelerator for part in reversed(path.parts) if (accelerator := find_accelerator(part))), None)
    peak = machine.peak("bf16") if machine is not None else None
    if peak and "tflops_per_second_per_chip" in known:
        each = known["tflops_per_second_per_chip"]
        known["mfu"] = RecipeFigure(each.value * 1e12 / peak, each.file)
    return known


def _linked(file: str, line: int) -> Iterator[Path]:
    """The files and folders of this tree that a line links to."""
    page = Path(file)
    for target in _LINK.findall(_lines(page)[line - 1] if 0 < line <= len(_lines(page)) else ""):
        hosted = _HOSTED.match(target)
        if hosted:
            above = list(page.absolute().parents)[:MAX_ABOVE]
            places = [folder / hosted[1] / unquote(hosted[2]) for folder in above]
        else:
            places = [] if "://" in target else [page.parent / unquote(target.partition("#")[0])]
        yield from (place for place in places if place.exists() and place != page)


@cache
def _lines(page: Path) -> tuple[str, ...]:
    try:
        return tuple(read_small(page, 64 << 20).decode("utf-8", "replace").splitlines())
    except OSError:
        return ()


def _logs(path: Path) -> list[Path]:
    files = [path] if path.is_file() else [file for pattern in _LOGS for file in sorted(path.glob(pattern))]
    return [file for file in files if file.is_file() and file.stat().st_size <= MAX_LOG]


State = Literal["holds", "refuted", "unproven", "stale", "unreceipted", "ignored", "remark"]
_OF_CHIPS_OR_ALL = ("tps", "wps")  # torchtitan prints that of one chip, and others that of all
_SHARE = re.compile(r"(?:%|per\s?cent)\s?of\s", re.IGNORECASE)
SHAPES = (
    ("batch", "batch.micro_batch"),
    ("mbs", "batch.micro_batch"),
    ("bs", "batch.micro_batch"),
    ("seq", "batch.sequence_length"),
    ("context", "batch.sequence_length"),
    ("gbs", "batch.global_batch"),
    ("depth", "model.depth"),
)


@dataclass(frozen=True, slots=True)
class LintResult:
    """What was found of one statement, or of a note to this command. ``code`` is a rule's, empty where all is well."""

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
        self._ranked: dict[tuple[str, str], set[str]] = {}

    @cached_property
    def _store(self) -> Store:
        return self._open()

    def check(self, item: Statement | PageRemark) -> LintResult:
        """The result for one statement or remark. Raises StoreError where links cannot be followed."""
        if isinstance(item, PageRemark):
            return LintResult("remark", item.text, item.do, remark=item)
        answer = self._answer(item)
        answer = self._across_lanes(item) or answer
        code = self._rulebook.rules.get(answer.code).code if answer.code else ""  # which may be a name
        return replace(answer, code=code, statement=item)

    def _answer(self, item: Statement) -> LintResult:
        link = item.link
        if link is None and not item.ignored and (figure := disagreeing(item)) is not None:
            what = f"the recipe that it links to says {metrics.shown(metrics.get(item.metric), figure.value)}"
            return LintResult(
                "refuted", f"{what} ({figure.file})", "quote the recipe, or link to another", "overstated"
            )
        if link is None:
            return self._offense(item, "unreceipted", "W") or LintResult("ignored", item.ignored)
        if link.problem:
            return LintResult("refuted", f"{link.target} cannot be read", link.problem, "no_receipt")
        if link.claim:
            return self._claim(link.claim)
        try:
            sides = [self._receipt(word) for word in link.receipts]
        except NotFound as error:
            return LintResult("refuted", str(error), "submit the receipt, or correct the id", "no_receipt")
        superseded = self._store.query.facts(sides).superseded
        for side in sides:
            if side.id in superseded:
                successor, reason = superseded[side.id]
                do = f"quote {successor[:12]} and its number" if successor else "take the statement out"
                return LintResult("stale", f"{side.id[:12]} is no longer in force: {reason}", do, "stale")
        if item.kind == "fit":
            return self._fit(item, sides[-1])
        return self._pair(item, sides[0], sides[1]) if len(sides) == 2 else self._single(item, sides[0])

    def _across_lanes(self, item: Statement) -> LintResult | None:
        """A refusal of a number that the page ranks beside one of another lane; None where it does not."""
        receipts = [self._receipts[word] for word in item.link.receipts if word in self._receipts] if item.link else []
        named = self._lane_words.apart(item.about) if item.about and not receipts else ()
        if not receipts and not named:
            return None
        lanes = [parsed.receipt.run.lane for parsed in receipts]
        ranked = self._ranked.setdefault((item.file, item.order), set()) if item.order else set()
        ranked.update(lanes[-1:] if item.kind == "reading" else lanes)
        return self._offense(item, "refuted", "E", named or tuple(sorted(ranked)))

    def _offense(self, item: Statement, state: State, level: str, lanes: tuple[str, ...] = ()) -> LintResult | None:
        """What a rule of that level finds of a statement that is ranked among ``lanes``; None where none does."""
        from receipts.judging.judge import judge_claim

        named = (item.link.receipts, item.link.claim) if item.link else ((), "")
        case = StatementCase(item.text, item.place, *named, item.ignored, item.metric, lanes)
        finding = next((one for one in judge_claim(case, self._rulebook.rules) if one.level == level), None)
        return LintResult(state, finding.found, finding.do, finding.code) if finding is not None else None

    def _receipt(self, word: str) -> Parsed:
        if word not in self._receipts:
            self._receipts[word] = self._store.get(word)
        return self._receipts[word]

    def _single(self, item: Statement, parsed: Parsed) -> LintResult:
        if (unread := self._unread(item)) is not None:
            return unread
        if item.kind == "ratio" and _SHARE.search(item.text):
            return LintResult(
                "unproven", "a share is stated, and no receipt carries it", "name both receipts if it compares two"
            )
        if item.kind in ("ratio", "change"):
            do = "write receipt:BASELINE..CANDIDATE"
            return LintResult("refuted", "a difference is stated, and one receipt is named", do, "no_receipt")
        return self._reading(item, parsed)

    def _unread(self, item: Statement) -> LintResult | None:
        if item.metric not in UNREAD:
            return None
        return LintResult("unproven", f"no receipt carries {item.metric.replace('_seconds', '')} to hold it against")

    def _reading(self, item: Statement, parsed: Parsed) -> LintResult:
        launch, expected = self._rulebook.launch(parsed), readings(item)
        stated = Interval(min(one.low for one in expected), max(one.high for one in expected))
        metric = metrics.get(item.metric)
        if item.unit.lower() in _OF_CHIPS_OR_ALL and not _contains(stated, launch.read(metric).value):
            metric = metrics.get("tokens_per_second_per_chip")
        reading, name = launch.read(metric), parsed.id[:12]
        if reading.value is None:
            return LintResult("unproven", f"{name} states no {metric.title}", "link a receipt that carries it")
        shown = metrics.shown(metric, reading.value)
        if not _contains(stated, reading.value):
            return LintResult("refuted", f"{name} reads {shown}", "write what the receipt reads", "overstated")
        return self._trusted(parsed, metric, reading.source, f"{name} reads {shown}")

    def _trusted(self, parsed: Parsed, metric: Metric, source: str, reading: str) -> LintResult:
        """A number that agrees, held against what may be believed: an offence, or a number that is merely quoted."""
        from receipts.judging.judge import judge_receipt

        lane = self._rulebook.lanes.of(parsed.receipt.run.lane)
        verdict = judge_receipt(parsed, lane, self._rulebook.rules, self._store.query.facts(parsed))
        sparing = self._rulebook.rules.sparing(metric.name)
        for finding in verdict.findings:
            if finding.level == "E" and finding.code not in sparing and finding.spoils(metric.taint):
                return LintResult(
                    "refuted", f"{reading}, and is invalid: {finding.code} {finding.found}", finding.do, finding.code
                )
        outcome = parsed.receipt.run.outcome
        if outcome != "ok" and metric.taint in (Taint.RATE, Taint.MFU):
            do = "quote a launch that ended well"
            if outcome in ("preempted", "unknown"):
                how = "was preempted" if outcome == "preempted" else "does not show how it ended"
                return LintResult("unproven", f"{reading}, and the launch {how}", do)
            return LintResult("refuted", f"{reading}, and the launch ended in {outcome}", do, "bad_receipt")
        if parsed.receipt.run.provenance != "measured":
            return LintResult(
                "unproven", f"{reading}, and is {parsed.receipt.run.provenance}, not measured", "measure it"
            )
        if source in ("stated", "derived") and metric.summary in ("step", "rate", "memory"):
            return LintResult("unproven", f"{reading} as stated; what it was taken from was not kept", "keep the steps")
        return LintResult("holds", reading)

    def _fit(self, item: Statement, parsed: Parsed) -> LintResult:
        if (unread := self._unread(item)) is not None:
            return unread
        outcome, name = parsed.receipt.run.outcome, parsed.id[:12]
        wanted = "ok" if item.direction == "up" else "oom"
        if outcome == "unknown":
            return LintResult("unproven", f"{name} does not show how it ended", f"link a launch that ended {wanted}")
        if outcome != wanted:
            return LintResult("refuted", f"{name} ended {outcome}", f"link a launch that ended {wanted}", "overstated")
        path = next(
            (path for word, path in SHAPES if item.unit.lower().replace("micro", "").strip(" -").startswith(word)), ""
        )
        stated = parsed.stated.get(path)
        if item.values and path and stated is not None and abs(stated - item.values[0]) > item.halves[0]:
            shape = f"{path.rpartition('.')[2]} {stated}"
            return LintResult("refuted", f"{name} ran with {shape}", "link that shape", "overstated")
        if item.metric == "peak_bytes" and wanted == "ok":
            limit = readings(item)[0].high
            reading = self._rulebook.launch(parsed).read(metrics.get("peak_bytes"))
            if reading.value is not None and reading.value > limit:
                shown = metrics.shown(metrics.get("peak_bytes"), reading.value)
                return LintResult("refuted", f"{name} peaks at {shown}", "write what the receipt reads", "overstated")
        return LintResult("holds", f"{name} ended {outcome}")

    def _pair(self, item: Statement, a: Parsed, b: Parsed) -> LintResult:
        if (unread := self._unread(item)) is not None:
            return unread
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
            return LintResult(
                "refuted", f"{reading}, and the comparison is rejected: {why}", "see: receipts compare", "wrong_cause"
            )
        if verdict.status != "accepted":
            return LintResult(
                "unproven", f"{reading}, and the comparison is open: {verdict.last_line()}", "see: receipts compare"
            )
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
                answer = LintResult(
                    state, reading, first.do if first else "", first.code if first and state != "holds" else ""
                )
            self._judged[name] = answer
        return self._judged[name]

    def _verdict_on(self, name: str) -> ClaimVerdict | None:
        """The verdict on a claim, of claims files first, then of the store; None where there is none."""
        from receipts.questions.claims.judgment import is_file, stored, verdict_on

        for group in self._claims:
            for claim in (one for one in group.claims if one.id == name):
                from_files = all(map(is_file, (*claim.baseline, *claim.candidate)))
                return verdict_on(claim, self._rulebook, None if from_files else self._store, group.folder)
        claim_of = next((one for one in stored(self._store).claims if one.id == name), None)
        return verdict_on(claim_of, self._rulebook, self._store) if claim_of is not None else None


def _contains(stated: Interval, value: float | None) -> bool:
    return value is not None and stated.contains(value)
