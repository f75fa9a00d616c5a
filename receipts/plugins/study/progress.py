"""What an experiment says now: each question decided, to be run on, or not to be decided within its launches."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Literal

from receipts import metrics
from receipts.metrics import Launch
from receipts.plugins.study.experiment import Contrast, Experiment, within
from receipts.plugins.study.sequential import FUTILE, Looks, at_level
from receipts.publish.page import Code, Page, Section, lines_of, points_of, sections_of, table_of
from receipts.publish.readings import ends, signed
from receipts.publish.text import words
from receipts.questions.comparisons import Comparisons
from receipts.stats import distributions
from receipts.stats.log_ratio import RatioEstimate, Sigma, against_floor, pooled, welch

if TYPE_CHECKING:
    from receipts.judging.rulebook import Rulebook
    from receipts.store import Store

Answer = Literal["faster", "slower", "equivalent", "supported", "refuted", "run on", "cannot be decided", "rejected"]
UNLIKE = 0.01  # below it the launches do not vary as the plan's σ says
NOISIER = "the launches vary more than the plan assumed: judged by their own"
DECIDED: tuple[Answer, ...] = ("faster", "slower", "equivalent", "supported", "refuted")


@dataclass(frozen=True, slots=True)
class LookResult:
    """One question: the improvement of B over A, with the interval of its look; ``why`` names the look."""

    contrast: Contrast
    answer: Answer
    n_a: int
    n_b: int
    ratio: float | None
    low: float | None
    high: float | None
    why: str


@dataclass(frozen=True, slots=True)
class ExperimentProgress:
    """Every question answered, and the files to run next, in order, to the next look."""

    experiment: Experiment
    answers: tuple[LookResult, ...]
    next_runs: tuple[str, ...]

    @property
    def status(self) -> str:
        """*decided*, *run these*, or *cannot be decided within the budget*."""
        if self.next_runs:
            return "run these"
        decided = all(item.answer in DECIDED for item in self.answers)
        return "decided" if decided else "cannot be decided within the budget"

    @property
    def exit_code(self) -> int:
        """0 decided, 1 cannot be, 3 runs are missing."""
        return 3 if self.next_runs else 0 if self.status == "decided" else 1


def progress_of(store: Store, rulebook: Rulebook, experiment: Experiment) -> ExperimentProgress:
    """Read what came in, and answer each question at its look; Holm over the questions."""
    from receipts.store import Condition, Filters

    comparisons = Comparisons(store, rulebook)
    lane = rulebook.lanes.of(experiment.lane)
    metric = metrics.get(experiment.metric)
    logs: dict[str, list[float]] = {}
    for arm in experiment.arms:
        # Stored launches that stand: those that it began with, and those that carry its label.
        rows = store.find(Filters((Condition("label", "=", f"{experiment.id}/{arm.name}/*"),), limit=500))
        group = [store.parsed(name) for name in dict.fromkeys([*arm.receipts, *(row.id for row in rows)])]
        samples = comparisons.samples(group, experiment.metric) if group else ()
        values = [Launch(item, lane).read(metric).value for item in samples]
        logs[arm.name] = [math.log(value) for value in values if value is not None and value > 0.0]
    answers: dict[str, LookResult] = {}
    waiting = list(experiment.contrasts)
    while waiting:
        looks = experiment.looks
        if len(waiting) < len(experiment.contrasts):
            looks = at_level(looks, experiment.alpha / len(waiting))
        now = {item.name: answer_of(experiment, looks, item, logs, metric.better) for item in waiting}
        answers |= now
        done = [item for item in waiting if now[item.name].answer in DECIDED]
        if not done:
            break
        waiting = [item for item in waiting if item not in done]
    ordered = tuple(answers[item.name] for item in experiment.contrasts)
    return ExperimentProgress(
        experiment, ordered, _next(experiment, ordered, {name: len(values) for name, values in logs.items()})
    )


def answer_of(
    experiment: Experiment, looks: Looks, contrast: Contrast, logs: dict[str, list[float]], better: str
) -> LookResult:
    """One question by the launches of its two arms."""
    a, b = logs[contrast.a], logs[contrast.b]
    launches = min(len(a), len(b))
    number = looks.at(launches)
    place = within(looks, launches)
    if number is not None and experiment.looks.df is not None and not _fits(a, b, experiment.sigma):
        looks = at_level(replace(looks, df=None), looks.alpha)
        place += f"; {NOISIER}"
    if number is None:
        return LookResult(contrast, "run on", len(a), len(b), None, None, None, place)
    estimate = estimated(a, b, experiment, looks)
    if better == "lower":
        estimate = estimate._replace(log_ratio=-estimate.log_ratio)
    half = estimate.half_width(looks.confidences[number - 1])
    low, high = math.exp(estimate.log_ratio - half), math.exp(estimate.log_ratio + half)
    answer = decide(contrast, low, high, experiment.effect)
    if answer == "run on":
        last = number == len(looks.launches)
        if last or _power_left(contrast, estimate, looks, launches, experiment.effect) < FUTILE:
            answer = "cannot be decided"
            place += (
                "; the last look" if last else f"; less than {FUTILE:.0%} chance that more launches would decide it"
            )
    return LookResult(contrast, answer, len(a), len(b), math.exp(estimate.log_ratio), low, high, place)


def _fits(a: Sequence[float], b: Sequence[float], sigma: float) -> bool:
    """Whether the launches of the arms vary as the plan's σ says, each and both together: a χ² test at 1 %."""
    spreads = (pooled(groups) for groups in ((a, b), (a,), (b,)))
    return all(
        own is None or distributions.student_excess_tail((own.value / sigma) ** 2, own.df or 1.0) >= UNLIKE
        for own in spreads
    )


def estimated(a: Sequence[float], b: Sequence[float], experiment: Experiment, looks: Looks) -> RatioEstimate:
    """B − A in logs, by the spread that the looks are judged with."""
    if looks.df is not None:
        return against_floor(a, b, Sigma(experiment.sigma, experiment.sigma_df, "measured"))
    own, separate = pooled((a, b)), welch(a, b)
    equal = against_floor(a, b, own) if own is not None else separate
    return max(equal, separate, key=lambda item: item.error)


def decide(contrast: Contrast, low: float, high: float, effect: float) -> Answer:
    """The answer that an interval of the improvement gives. Equivalent is inside ±δ, and nothing else is."""
    if contrast.low is not None:
        upper = contrast.high if contrast.high is not None else math.inf
        if low >= contrast.low and high <= upper:
            return "supported"
        return "refuted" if high < contrast.low or low > upper else "run on"
    if -effect < math.log(low) and math.log(high) < effect:
        return "equivalent"
    if low > 1.0:
        return "faster"
    return "slower" if high < 1.0 else "run on"


def _power_left(contrast: Contrast, now: RatioEstimate, looks: Looks, launches: int, effect: float) -> float:
    """The chance that the last look decides, if the improvement is anywhere within one standard error of what it seems.

    At what it seems alone, a tenth of the plans for a true effect would end too soon.
    """
    if now.error == 0.0:
        return 1.0
    share = launches / looks.most
    half = now.half_width(looks.confidences[-1]) * math.sqrt(share)
    spread = now.error * math.sqrt(max(1e-12, 1.0 - share))
    bounds = [math.log(item) for item in (contrast.low, contrast.high) if item is not None] or [0.0]

    def chances(center: float) -> Iterator[float]:
        """Of an interval beyond or below each bound, or within ±δ."""

        def above(limit: float) -> float:
            return distributions.student_tail((limit - center) / spread, now.df)

        yield from (above(bound + half) + 1.0 - above(bound - half) for bound in bounds)
        if contrast.low is None:
            yield max(0.0, above(half - effect) - above(effect - half))

    return max(chance for shift in (-1.0, 0.0, 1.0) for chance in chances(now.log_ratio + shift * now.error))


def _next(experiment: Experiment, answers: Sequence[LookResult], counts: dict[str, int]) -> tuple[str, ...]:
    """The files that take the open questions to their next look; the controls of open arms run in the same wave."""
    open_arms = {name for item in answers if item.answer == "run on" for name in (item.contrast.a, item.contrast.b)}
    if not open_arms:
        return ()
    fewest = min(counts[name] for name in open_arms)
    target = next((count for count in experiment.looks.launches if count > fewest), experiment.looks.most)
    wanted = {name: max(0, target - counts[name]) for name in open_arms}
    came = {arm.name: counts[arm.name] - len(arm.receipts) for arm in experiment.arms}
    files = []
    for file, arm, wave in experiment.runs:
        if wanted.get(arm) and wave > came[arm]:
            wanted[arm] -= 1
            files.append(file)
    return tuple(files)


say = words("plan")


def experiment_page(experiment: Experiment, folder: str, hosts: Sequence[str] = ()) -> Page:
    """The plan of an experiment."""
    looks = experiment.looks
    hours = experiment.chip_hours
    cost = say("cost", hours=hours) if hours is not None else say("no_cost")
    df = say("df", df=experiment.sigma_df) if experiment.sigma_df is not None else ""
    count = len(experiment.contrasts)
    sentences = [
        say("power", effect=experiment.effect, power=looks.power, median=looks.median, fixed=looks.fixed),
        say("sigma", sigma=experiment.sigma, df=df, of=experiment.sigma_of),
        say(
            "looks",
            launches=", ".join(map(str, looks.launches)),
            confidences=", ".join(f"{100.0 * item:.2f}" for item in looks.confidences),
            alpha=experiment.alpha,
            holm=say("holm", n=count) if count > 1 else "",
        ),
        say("order", folder=folder),
    ]
    if hosts:
        sentences.append(say("hosts", hosts=", ".join(hosts)))
    rows = (
        (
            arm.name,
            str(len(arm.receipts)),
            str(sum(name == arm.name for _, name, _ in experiment.runs)),
            f"{arm.chip_hours:,.2f}" if arm.chip_hours is not None else "~",
            ", ".join(f"{path} {value}" for path, value in arm.changes.items()) or "as stored",
        )
        for arm in experiment.arms
    )
    table = table_of("", "arm | #stored | #to run | #chip-hours each ^2 | changes… ^1", rows)
    sections = sections_of(
        Section("arms", say("arms"), tuple(sentences), tables=(table,)),
        Section("left-out", say("left_out"), points=points_of(experiment.left_out)),
    )
    headline = say("headline", runs=len(experiment.runs), arms=len(experiment.arms), most=looks.most, cost=cost)
    return Page(say("title", id=experiment.id), headline=(headline,), sections=sections)


def progress_page(progress: ExperimentProgress, folder: str) -> Page:
    """What an experiment says now, and what to run next."""
    rows = (
        (
            item.contrast.name,
            item.answer,
            f"{item.n_a} + {item.n_b}",
            signed(item.ratio),
            ends(item.low, item.high),
            item.why,
        )
        for item in progress.answers
    )
    table = table_of("", "question | answer | #launches ^2 | #change | interval ^1 | look… ^3", rows)
    sections = sections_of(
        Section("answers", say("answers"), tables=(table,)),
        Section("runs", say("runs"), points=lines_of(Code(f"{folder}/{name}") for name in progress.next_runs)),
    )
    decided = sum(item.answer in DECIDED for item in progress.answers)
    headline = say("next_headline", status=progress.status, decided=decided, n=len(progress.answers))
    return Page(say("title", id=progress.experiment.id), headline=(headline,), sections=sections)
