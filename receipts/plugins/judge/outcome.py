"""What a trial aims at and holds, and what it says: keep, discard, or so many turns more.

A quantity is how many times worse the candidate is, launch against launch.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple, cast

from receipts import metrics
from receipts.base.errors import UsageError, near
from receipts.base.units import counted, signed_percent
from receipts.judging.grade import GRADES, SampleRank, sample_grade
from receipts.judging.rule import Topic
from receipts.judging.side import fewer_rows, first_norms, parted, rows_of_loss
from receipts.judging.verdict import Finding, Level, Question
from receipts.metrics import Launch
from receipts.plugins.judge.boundary import ALONE, MAX_TURNS, TurnInterval, interval, turns_missing
from receipts.plugins.judge.trees import DATA
from receipts.plugins.judge.trial import SIDES
from receipts.questions.comparisons import Comparisons
from receipts.questions.gate import share

if TYPE_CHECKING:
    from receipts.axes.lane import Lane
    from receipts.judging.rulebook import Rulebook
    from receipts.judging.verdict import Comparison
    from receipts.metrics import Launch
    from receipts.plugins.judge.trial import Trial
    from receipts.questions.comparisons import JudgedSides
    from receipts.receipt import Parsed

ALIASES: Final = {"throughput": "tokens_per_second", "memory": "peak_bytes", "time-to-loss": "training_seconds"}
LOSS, PARITY, REACHED = "loss", "parity", "time-to-loss="


class Quantity(NamedTuple):
    """``worse(base, candidate)`` is a log ratio, above 0 where the candidate is worse; None where a side has
    none, and infinite where the candidate never comes to it.

    ``metric`` is the metric by which both sides are compared; ``margin`` is the share that a held one may lose, None
    for the lane's δ.
    """

    name: str
    title: str
    metric: str
    worse: Callable[[Launch, Launch], float | None]
    higher: bool
    margin: float | None = None

    def allowed(self, lane: Lane) -> float:
        """The share by which it may get worse where it is held, or has to get better where it is the target."""
        usual = lane.loss_parity if self.name == PARITY else lane.smallest_effect(self.metric)
        from receipts.stats.equivalence import SMALLEST_EFFECT

        return next(item for item in (self.margin, usual, SMALLEST_EFFECT) if item is not None)


def quantity(text: str) -> Quantity:
    """Read ``throughput``, ``peak_bytes=2%``, ``loss``, ``time-to-loss=3.28``. Raises UsageError."""
    name, equals, stated = text.partition("=")
    if text.startswith(REACHED):
        try:
            target = float(stated)
        except ValueError:
            raise UsageError(f"{text}: write the loss to reach, such as time-to-loss=3.28") from None
        worse = _values(lambda one: reached(one, target), never=True)
        return Quantity(text, f"a loss of {target:g}", "tokens_per_second", worse, False)
    margin = share(stated) if equals else None
    if equals and margin is None:
        raise UsageError(f"{text}: write the share that it may lose, such as {name}=1%")
    if name in (LOSS, PARITY):

        def of_losses(base: Launch, candidate: Launch) -> float | None:
            a, b = losses(base), losses(candidate)
            pairs = [(a[step], b[step]) for step in sorted(a.keys() & b.keys())]
            logs = [math.log(two / one) if one > 0.0 and 0.0 < two < math.inf else math.inf for one, two in pairs]
            return (logs[-1] if name == LOSS else max(logs)) if logs else None

        title = "loss at equal steps" if name == LOSS else "largest loss against the base's at any step"
        return Quantity(name, title, "tokens_per_second", of_losses, False, margin)
    known = (*ALIASES, LOSS, PARITY, *metrics.METRICS)
    if name not in known:
        what = "write throughput, memory, time-to-loss=3.28, loss, parity or a metric of receipts compare -m"
        raise UsageError(f"{text}: {what}{near(name, known)}")
    metric = metrics.get(ALIASES.get(name, name))
    if metric.better == "neither":
        raise UsageError(f"{name} has no better side; see: receipts judge --help")
    higher = metric.better == "higher"
    worse = _values(lambda one: one.read(metric).value, higher=higher)
    return Quantity(metric.name, metric.title, metric.name, worse, higher, margin)


def _values(
    read: Callable[[Launch], float | None], *, higher: bool = False, never: bool = False
) -> Callable[[Launch, Launch], float | None]:
    def worse(base: Launch, candidate: Launch) -> float | None:
        a, b = read(base), read(candidate)
        if a and b is None and never:
            return math.inf
        return None if not a or not b or a < 0.0 or b < 0.0 else math.log(a / b if higher else b / a)

    return worse


def losses(launch: Launch) -> dict[int, float]:
    """Losses by step: the series, and the last one at the number of steps."""
    steps, values = (launch.stated.get(f"measurement.loss.{name}") or () for name in ("steps", "values"))
    last, count = launch.stated.get("measurement.loss.last"), launch.steps_trained
    return dict(zip(steps, values, strict=False)) | ({count - 1: last} if count and last is not None else {})


def reached(launch: Launch, target: float) -> float | None:
    """The seconds of the steps until the loss is at most ``target``; None where it never is, or no step is timed."""
    step = next((step for step, loss in sorted(losses(launch).items()) if loss <= target), None)
    durations = launch.durations
    return math.fsum(durations[: step + 1]) if step is not None and step < len(durations) else None


Word = Literal["keep", "discard", "again"]
EXIT: Final[dict[Word, int]] = {"keep": 0, "discard": 1, "again": 3}
# A change may move anything but what is computed: a smaller model, other data or fewer tokens are no faster program.
WORK: Final = (
    *("dimensions", "pattern", "routing", "adapters", "data", "model", "batch.sequence_length", "batch.global_batch"),
)
TOTAL: Final = "model.parameters_total"
AMOUNTS: Final = ("measurement.tokens_per_step", TOTAL, "model.parameters_active")
# How a model is named and built. Fused projections are other tensors of as many parameters.
NAMES: Final = ("model.name", "model.spec", "model.sparse_attention")
AGREED: Final = 0.005  # of first gradient norms, in logs: launches of one seed
LOADING: Final = frozenset(("workers", "worker", "loader", "prefetch", "parallel", "cache", "threads", "num", "pin"))
MAX_LOST: Final = 1 / 3
COUNTERS: Final = "measurement.path_counters"


@dataclass(frozen=True)
class Held:
    """What must not get worse: by how much it did (B over A in logs, above 0 is worse), and by how much it may."""

    quantity: Quantity
    allowed: float
    at: TurnInterval | None
    missing: bool = False  # a launch does not have it

    @property
    def status(self) -> Literal["holds", "lost", "open"]:
        """Whether it holds."""
        if self.at is None or self.missing:
            return "open"
        limit = math.log1p(self.allowed)
        return "holds" if self.at.high <= limit else "lost" if self.at.low > limit else "open"

    @property
    def words(self) -> str:
        """What happened to it."""
        if self.missing:
            return f"{self.quantity.title} is not known on both sides"
        if self.at is None:
            return f"{self.quantity.title}: no interval yet"
        worse, most = (math.expm1(value) for value in (self.at.ratio, self.at.high))
        return f"{self.quantity.title} is worse by {worse:.2%} (at most {most:.2%})"


@dataclass(frozen=True)
class Outcome:
    """The answer. ``at`` is how many times better the candidate is, in logs; ``more`` are the turns to run."""

    trial: Trial
    answer: Word
    why: str
    quantity: Quantity
    effect: float
    at: TurnInterval | None = None
    more: int = 0
    held: tuple[Held, ...] = ()
    changed: tuple[str, ...] = ()
    grade: str = ""
    level: float = ALONE
    turns: int = 0
    levels: tuple[float, float] | None = None  # of base and candidate, in logs where more is better
    notes: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        """0 keep, 1 discard, 3 again."""
        return EXIT[self.answer]

    @property
    def better(self) -> str:
        """The target's change with its interval, as a share of the base's value."""
        if self.at is None:
            return "no interval yet"
        sign = 1.0 if self.quantity.higher else -1.0
        middle, *ends = (
            math.expm1(sign * value)
            for value in (self.at.ratio, *sorted((self.at.low, self.at.high), reverse=sign < 0))
        )
        return f"{signed_percent(middle)} ({' to '.join(map(signed_percent, ends))})"

    def as_data(self) -> dict[str, Any]:
        """The answer as data."""
        asked = self.trial.asked
        return {
            "trial": self.trial.name,
            "answer": self.answer,
            "why": self.why,
            "target": self.quantity.name,
            "effect": self.effect,
            **_interval(self.at),
            "level": self.level,
            "turns": self.turns,
            "more": self.more if self.answer == "again" else 0,
            "held": [
                {"quantity": item.quantity.name, "status": item.status, "allowed": item.allowed, **_interval(item.at)}
                for item in self.held
            ],
            "changed": list(self.changed),
            "grade": self.grade,
            "base": asked.base,
            "candidate": asked.candidate,
            "launches": [item.id for item in self.trial.entries],
            "launched": {name: len(self.trial.side(name)) for name in SIDES},
            "seconds": round(self.trial.seconds, 3),
            "chip_hours": self.trial.chip_hours,
        }


def _interval(at: TurnInterval | None) -> dict[str, Any]:
    names = ("ratio", "low", "high")
    if at is None:
        return {**dict.fromkeys(names), "confidence": None}
    return {**{name: math.exp(getattr(at, name)) for name in names}, "confidence": at.confidence}


def outcome_of(trial: Trial, rulebook: Rulebook, level: float = ALONE) -> Outcome:
    """Judge the launches that a trial has so far. Raises InputError, UsageError where they are no trial's."""
    asked = trial.asked
    target, holds = quantity(asked.target), [quantity(item) for item in asked.holds]
    base, candidate = (trial.side(name) for name in ("base", "candidate"))
    lane = rulebook.lanes.of(trial.launches[0].receipt.run.lane)
    effect = target.allowed(lane) if asked.effect is None else asked.effect

    def end(answer: Word, why: str, **more: Any) -> Outcome:
        return Outcome(trial, answer, why, target, effect, level=level, **more)

    if trial.withdrawn:
        return end(
            "again", f"{counted(trial.withdrawn, 'launch', 'launches')} of it were withdrawn: open it anew, --afresh"
        )
    if not base or not candidate:
        return end("again", "one side has no launch yet", more=turns_missing(0))
    comparisons, sides = Comparisons(trial.store, rulebook), (base, candidate)
    judged = comparisons.sides(comparisons.asked(base, candidate, "only"), target.metric)
    metric = metrics.get(target.metric)
    sparing, cases = rulebook.rules.sparing(metric.name), (*judged.side_a.judged, *judged.side_b.judged)
    ranks = {item.submitted.id: sample_grade(item.case.launch, item.findings, metric, sparing).rank for item in cases}
    if (bad := _spoilt(judged, ranks)) is not None:
        return end(*bad)
    fit = [[item for item in side if ranks[item.id] < SampleRank.UNSTEADY] for side in sides]
    if not all(fit):
        side = SIDES[bool(fit[0])]
        return end(
            "again", f"no launch of the {side} gives {target.title}: receipts check says why", more=turns_missing(0)
        )
    verdict = comparisons.compare(fit[0], fit[1], target.metric, join="only")
    shown: dict[str, Any] = {"changed": verdict.difference.axes, "grade": verdict.grade}
    if (bad := _unfit(verdict, rulebook, fit[0], fit[1])) is not None:
        return end(*bad, **shown)
    # Only a turn of which both launches count is one.
    pairs = zip(base, candidate, strict=False)
    count = {*verdict.a, *verdict.b}
    turns = [(rulebook.launch(a), rulebook.launch(b)) for a, b in pairs if {a.id, b.id} <= count]
    if not holds and any(losses(one) for one, _ in turns):
        holds = [quantity(LOSS)]
    worse = [value for pair in turns if (value := target.worse(*pair)) is not None]
    better = [-value for value in worse if math.isfinite(value)]
    held = tuple(_held(item, item.allowed(lane), turns) for item in holds)
    at = interval(better, level)
    more = turns_missing(len(better))
    shown |= {"at": at, "held": held, "turns": len(better), "more": more, "levels": _levels(target, turns)}
    if len(worse) - len(better) > MAX_LOST * len(turns):
        return end("discard", f"the candidate does not come to {target.title}", **shown)
    if any(item.missing for item in held):
        why = "; record it in both, or name with --hold what both have"
        return end("again", f"{next(item.words for item in held if item.missing)}{why}", **{**shown, "more": 0})
    if trial.rerun_of is not None:
        shown["notes"] = ("a re-run beside the trial, whose first answer is the one that a campaign counts",)
    elif not held:
        shown["notes"] = ("nothing is held: the launches record no loss, and --hold names nothing",)
    return end(*_answer(target, effect, at, held, more, len(turns) - len(better)), **shown)


def _answer(
    target: Quantity, effect: float, at: TurnInterval | None, held: Sequence[Held], more: int, without: int
) -> tuple[Word, str]:
    if lost := [item for item in held if item.status == "lost"]:
        return "discard", f"{lost[0].words}, and may be by {lost[0].allowed:.2%}"
    if at is None:
        have = f"; {counted(without, 'turn')} without {target.title}" if without else ""
        return "again", f"the first look is after {counted(more, 'turn')} more{have}"
    if at.high < 0.0:
        return "discard", f"it is worse on {target.title}"
    if at.high < math.log1p(effect):
        return "discard", f"it gains less than {effect:.2%} on {target.title}"
    still = [item for item in held if item.status == "open"]
    if at.low > 0.0 and not still:
        return "keep", f"it is better on {target.title}{', and ' + held[0].quantity.title + ' holds' if held else ''}"
    if not more:
        what = f"that {still[0].quantity.title} holds" if at.low > 0.0 else f"a gain on {target.title}"
        return "discard", f"{MAX_TURNS} turns do not show {what}"
    waits = f"whether {still[0].quantity.title} holds" if at.low > 0.0 else "the gain"
    return "again", f"{waits} is not shown yet; {counted(more, 'turn')} more to the next look"


def _levels(target: Quantity, turns: Sequence[tuple[Launch, Launch]]) -> tuple[float, float] | None:
    """The levels of both sides on the metric that they are compared by, in logs where more is better."""
    metric = metrics.get(target.metric)
    sides = [[value for launch in side if (value := launch.read(metric).value)] for side in zip(*turns, strict=True)]
    if len(sides) < 2 or not all(sides):
        return None
    a, b = (math.fsum(map(math.log, side)) / len(side) * (1 if metric.better == "higher" else -1) for side in sides)
    return a, b


def _held(item: Quantity, allowed: float, turns: Sequence[tuple[Launch, Launch]]) -> Held:
    values = [item.worse(*pair) for pair in turns]
    known = [value for value in values if value is not None]
    if any(math.isinf(value) for value in known):
        return Held(item, allowed, TurnInterval(math.inf, math.inf, math.inf, len(known), 1, 1.0))
    return Held(item, allowed, interval(known, ALONE), missing=len(known) < len(values))


def _spoilt(judged: JudgedSides, ranks: Mapping[str, SampleRank]) -> tuple[Word, str] | None:
    """The answer where many launches of a side failed or are spoilt: one of many may be a node's fault."""
    sides = (judged.side_a.judged, judged.side_b.judged)
    bad = [[item for item in side if ranks[item.submitted.id] > SampleRank.UNSTEADY] for side in sides]
    shares = [len(some) / len(side) for some, side in zip(bad, sides, strict=True)]
    for at, answer in ((0, "again"), (1, "discard")):
        if shares[at] > MAX_LOST and (at == 0 or shares[1] > shares[0]):
            item = bad[at][0]
            errors = (_quoted(one) for one in item.findings if one.level is Level.ERROR)
            why = next(errors, f"it ended as {item.submitted.receipt.run.outcome}")
            count = f"{len(bad[at])} of {len(sides[at])} launches of the {SIDES[at]}"
            return cast("Word", answer), f"{count} do not count: {why}"
    return None


def _unfit(
    verdict: Comparison, rulebook: Rulebook, base: Sequence[Parsed], candidate: Sequence[Parsed]
) -> tuple[Word, str] | None:
    """Why the launches cannot show a gain, whatever their numbers: who is to blame decides the answer."""
    # Many settings may change, and what spoils one side C105 has quoted.
    allowed = rulebook.rules.about(Topic.AXES)
    errors = [
        item
        for item in verdict.findings
        if item.level is Level.ERROR
        and (item.code not in allowed if item.on_pair else item.question is Question.PATH and item.subject == "b")
    ]
    if mine := [item for item in errors if item.subject == "a"]:
        return "again", f"the base cannot be measured: {_quoted(mine[0])}"
    if errors:
        return "discard", _quoted(errors[0])
    # The recorder counted calls that are missing: work left out where no trace looks.
    counted_less = {item.subject: item for item in verdict.findings if item.at.startswith(COUNTERS)}
    if "b" in counted_less and "a" not in counted_less:
        return "discard", _quoted(counted_less["b"])
    if GRADES.index(verdict.grade) < GRADES.index("recorded"):
        return "again", "the numbers of some launch were typed or edited; launch it with: receipts judge"
    diff = verdict.difference
    totals = {item.stated.get(TOTAL) for item in (*base, *candidate)}
    same = {*NAMES, *(("model.architecture",) if len(totals) == 1 and None not in totals else ())}
    moved = [axis for axis in diff.axes if (axis.startswith(WORK) and axis not in same) or names_data(axis)]
    moved += [item.path for item in (*diff.work, *diff.derived) if item.path in AMOUNTS]
    if moved:
        return "discard", f"it computes something else: {', '.join(dict.fromkeys(moved))} changed"
    a, b = (first_norms(side) for side in (base, candidate))
    # Launches of a side that agree are of one seed, by which both sides then have to agree.
    seeded = all(len(norms) > 1 and max(norms) - min(norms) < AGREED for norms in (a, b))
    if (norms := parted(a, b, one_seed=seeded)) is not None:
        return "discard", f"its first gradients are others: a norm of {norms[1]:.3g} against {norms[0]:.3g}"
    rows = fewer_rows(rows_of_loss(base), rows_of_loss(candidate))
    if rows is not None and rows[1] < rows[0]:
        return "discard", f"its loss is over {rows[1]:.0%} of the tokens, and the base's over {rows[0]:.0%}"
    if not (diff.changed or diff.unknown or diff.left_out):
        return "discard", "both sides ran the same code and inputs; is the package installed from one of them?"
    return None


def names_data(axis: str) -> bool:
    """Whether an input that differs names data, as ``inputs.train_data`` does, and not how it is loaded."""
    words = set(re.split(r"[^a-z]+", axis.lower()))
    return axis.startswith("inputs.") and bool(words & DATA) and not words & LOADING


def _quoted(item: Finding) -> str:
    return f"{item.code} {item.name.replace('_', ' ')}: {item.found}"
