"""An experiment: arms to launch, what is asked of them, and when to look. A folder holds it, with its plans.

What is to be decided: the arms of a screen, or the two sides of each claim that is not decided yet. Launches of each
arm come in waves with the controls, within a budget.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, model_validator
from pydantic_core import PydanticCustomError

from receipts import metrics
from receipts.base.errors import InputError, NotFound, Problem
from receipts.base.files import read_small
from receipts.base.untrusted_text import parse_json
from receipts.metrics import Launch
from receipts.plugins.study.sequential import ALPHA, POWER, Looks, plan_looks
from receipts.questions.comparisons import Comparisons
from receipts.questions.plan import parse_plan, write_plan
from receipts.receipt import Document, Parsed
from receipts.receipt.problems import read_toml
from receipts.stats.equivalence import SMALLEST_EFFECT

if TYPE_CHECKING:
    from receipts.axes.lane import Lane
    from receipts.judging.rulebook import Rulebook
    from receipts.store import Store


FILE: Final = "experiment.json"
VERSION: Final = 1


@dataclass(frozen=True, slots=True)
class Arm:
    """A configuration of the experiment. ``receipts`` are stored launches that count from the start.

    ``chip_hours`` is the cost of one launch. ``changes`` are the leaves that differ from the base.
    """

    name: str
    receipts: tuple[str, ...]
    changes: Mapping[str, Any]
    chip_hours: float | None


@dataclass(frozen=True, slots=True)
class Contrast:
    """A question: B against A. The improvement that a claim states lies in ``low`` to ``high`` (ratios).

    Without bounds it asks whether B is faster, slower or equivalent.
    """

    name: str
    a: str
    b: str
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True, slots=True)
class Experiment:
    """What is planned. ``effect`` is the smallest that matters, ``sigma`` the noise floor, both in logs.

    ``looks`` are those of the first of ``contrasts`` questions (Holm: each that is decided leaves more to the others).
    ``power`` of the looks holds at ``effect``. ``left_out`` are arms that would fail, with the reason.
    """

    id: str
    lane: str
    metric: str
    effect: float
    sigma: float
    sigma_df: float | None
    sigma_of: str
    alpha: float
    looks: Looks
    arms: tuple[Arm, ...]
    contrasts: tuple[Contrast, ...]
    left_out: tuple[tuple[str, str], ...] = ()
    budget: float | None = None
    created: str = ""
    runs: tuple[tuple[str, str, int], ...] = field(default=())

    def arm(self, name: str) -> Arm:
        """The arm of a name."""
        return next(arm for arm in self.arms if arm.name == name)

    def label(self, arm: str, wave: int) -> str:
        """The label of one launch, by which it is recognized when it comes in."""
        return f"{self.id}/{arm}/{wave}"

    @property
    def chip_hours(self) -> float | None:
        """What all runs cost together; None if some cost is unknown."""
        costs = [self.arm(name).chip_hours for _, name, _ in self.runs]
        return math.fsum(cost for cost in costs if cost is not None) if None not in costs else None


def to_json(experiment: Experiment) -> bytes:
    """An experiment as the bytes of its file."""
    return (json.dumps({"version": VERSION, **asdict(experiment)}, indent=2, ensure_ascii=False) + "\n").encode()


def read_experiment(folder: Path) -> Experiment:
    """The experiment in a folder. Raises InputError."""
    place = folder / FILE
    try:
        tree = parse_json(read_small(place))
        if tree.pop("version") != VERSION:
            raise ValueError("another version")
        return TypeAdapter(Experiment).validate_python(tree)
    except FileNotFoundError:
        problem = Problem("", f"there is no {FILE} in this folder", "receipts plan … -o DIR writes one")
        raise InputError(str(folder), [problem]) from None
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        problem = Problem(
            "",
            f"it holds no plan that this version reads ({str(error).splitlines()[0]})",
            "write one: receipts plan … -o DIR",
        )
        raise InputError(str(place), [problem]) from None


@dataclass(frozen=True, slots=True)
class Candidate:
    """A configuration that may be launched: like a receipt, with some leaves changed."""

    name: str
    like: Parsed
    changes: dict[str, Any]


@dataclass(frozen=True, slots=True)
class Wanted:
    """Configurations, and the questions about them."""

    candidates: tuple[Candidate, ...]
    contrasts: tuple[Contrast, ...]


def _refused(what: str) -> PydanticCustomError:
    return PydanticCustomError("screen", "{what}", {"what": what})


def _values(values: Any) -> list[Any]:
    if isinstance(values, dict):
        raise _refused('a leaf with dots needs quotes; write "flags.NAME" = [values]')
    return values if isinstance(values, list) else [values]


class ScreenArm(BaseModel):
    """Leaves that change together."""

    model_config = ConfigDict(extra="forbid")

    name: Annotated[str, Field(min_length=1)]
    set: dict[str, Any]


class Screen(BaseModel):
    """A file of arms: a base, leaves of which each value is an arm of its own, and arms of several leaves."""

    model_config = ConfigDict(extra="forbid")

    base: str
    vary: dict[str, Annotated[Any, AfterValidator(_values)]] = {}
    arm: list[ScreenArm] = []

    @model_validator(mode="after")
    def _names_differ(self) -> Screen:
        names = ["base", *(name for name, _ in self.arms())]
        if len(names) == 1:
            raise _refused('there is no arm; write [vary] with "flags.NAME" = [values], or [[arm]]')
        if twice := [name for name in dict.fromkeys(names) if names.count(name) > 1]:
            raise _refused(f"{', '.join(twice)}: several arms have this name; give each its own")
        return self

    def arms(self) -> Iterator[tuple[str, dict[str, Any]]]:
        """Names of arms with their changed leaves."""
        for leaf, values in self.vary.items():
            for value in values:
                yield _short(f"{leaf.rpartition('.')[2]}-{value}"), {leaf: value}
        yield from ((_short(item.name), item.set) for item in self.arm)


def read_screen(path: Path, store: Store) -> Wanted:
    """The arms of a file: a base (a receipt or a plan file) and what differs from it. Raises InputError."""
    from receipts.questions.plan import read_plan

    screen = read_toml(path, Screen, "docs/plan.md")
    beside = path.parent / screen.base
    base = read_plan(str(beside)) if beside.is_file() else read_plan(screen.base, store)
    arms = list(screen.arms())
    candidates = [Candidate("base", base, {}), *(Candidate(name, base, changes) for name, changes in arms)]
    return Wanted(tuple(candidates), tuple(Contrast(name, "base", name) for name, _ in arms))


def read_claims(path: Path, store: Store, rulebook: Rulebook) -> Wanted:
    """The two sides of each claim of a file that more launches may decide: effects that are unproven now.

    Raises InputError, NotFound.
    """
    from receipts.judging import bound
    from receipts.judging.claim import read_claims_file
    from receipts.questions.claims.judgment import gather, judge

    file = read_claims_file(path)
    candidates: list[Candidate] = []
    contrasts: list[Contrast] = []
    for claim in file.claims:
        if claim.kind not in ("speedup", "equivalence"):
            continue
        evidence = gather(claim, rulebook, store, file.folder)
        if not evidence.baseline or not evidence.candidate:
            raise NotFound(f"claim {claim.id}: a side names no receipt; its plan needs one of each")
        if judge(claim, evidence, rulebook).status in ("supported", "refuted"):
            continue
        names = f"{claim.id}-baseline", f"{claim.id}-candidate"
        sides = evidence.baseline[0], evidence.candidate[0]
        candidates += [Candidate(name, parsed, {}) for name, parsed in zip(names, sides, strict=True)]
        limits = bound.read(claim.effect) if claim.effect is not None and claim.kind == "speedup" else None
        low, high = (limits.low, limits.high) if limits is not None else (None, None)
        contrasts.append(Contrast(claim.id, *names, low=low, high=high if high != float("inf") else None))
    return Wanted(tuple(candidates), tuple(contrasts))


def _short(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9._]+", "-", name).strip("-.")[:60]


_SEEDS: Final = ("numerics.seed", "data.order_seed")


@dataclass(frozen=True)
class Designed:
    """An experiment and the files of its folder; ``short`` says why the budget cannot decide it, empty if it can."""

    experiment: Experiment
    files: dict[str, bytes]
    short: str = ""


def design(
    store: Store,
    rulebook: Rulebook,
    wanted: Wanted,
    *,
    metric: str = metrics.DEFAULT,
    budget: float | None = None,
    effect: float | None = None,
    power: float = POWER,
    sigma: float | None = None,
) -> Designed:
    """Plan the launches that decide every question, at the lane's noise, or a stated ``sigma`` (in logs).

    ``budget`` is in chip-hours, ``effect`` the smallest ratio that matters, as a share; left out, the lane's δ. Raises
    NotFound where no noise is known, and where every arm would fail.
    """
    head = wanted.candidates[0].like
    lane = rulebook.lanes.of(head.receipt.run.lane)
    delta = lane.smallest_effect(metric) if effect is None else effect
    size = math.log1p(SMALLEST_EFFECT if delta is None else delta)
    value, df, source = _sigma(store, rulebook, head, lane, sigma)
    kept, left_out = _launchable(store, lane, wanted.candidates)
    names = {item.name for item in kept}
    contrasts = tuple(item for item in wanted.contrasts if {item.a, item.b} <= names)
    if not contrasts:
        raise NotFound("; ".join(f"{name}: {why}" for name, why in left_out) or "every claim is decided already")
    used = {name for item in contrasts for name in (item.a, item.b)}
    arms = tuple(_arm(store, rulebook, item, metric) for item in kept if item.name in used)
    looks = plan_looks(size, value, df, ALPHA / len(contrasts), power)
    created = datetime.now(UTC).isoformat(timespec="seconds")
    text = "\0".join([created, metric, *(arm.name for arm in arms), *(name for arm in arms for name in arm.receipts)])
    experiment = Experiment(
        id=f"experiment-{hashlib.sha256(text.encode()).hexdigest()[:8]}",
        lane=head.receipt.run.lane,
        metric=metric,
        effect=size,
        sigma=value,
        sigma_df=df,
        sigma_of=source,
        alpha=ALPHA,
        looks=looks,
        arms=arms,
        contrasts=contrasts,
        left_out=left_out,
        budget=budget,
        created=created,
    )
    return _written(experiment, {item.name: item for item in kept}, lane)


def _sigma(
    store: Store, rulebook: Rulebook, head: Parsed, lane: Lane, stated: float | None
) -> tuple[float, float | None, str]:
    """σ in logs, its degrees of freedom, and where it comes from."""
    if stated is not None:
        return stated, None, "as stated on the command line; the launches' own spread judges"
    floor = Comparisons(store, rulebook).floor(head)
    if floor.sigma is not None:
        return floor.sigma, floor.df, f"measured in this store, {floor.of}"
    if lane.sigma is not None:
        return lane.sigma, None, "declared by the lane, not measured; the launches' own spread judges"
    raise NotFound(
        "the store shows no noise of this lane and shape: run one configuration three times, or state --sigma 0.3%"
    )


def _launchable(
    store: Store, lane: Lane, candidates: Sequence[Candidate]
) -> tuple[list[Candidate], tuple[tuple[str, str], ...]]:
    """Arms that nothing is known against, and those that are left out with the reason."""
    from receipts.questions.preflight import preflight

    kept: list[Candidate] = []
    left: list[tuple[str, str]] = []
    for item in candidates:
        try:
            plan = parse_plan(Document(write_plan(item.like, item.changes, lane), item.name))
        except InputError as error:
            left.append((item.name, "; ".join(f"{problem.at}: {problem.what}" for problem in error.problems)))
            continue
        answer = preflight(plan, lane, store)
        if answer.status in ("failed", "predicted"):
            left.append((item.name, answer.why))
        else:
            kept.append(item)
    return kept, tuple(left)


def _arm(store: Store, rulebook: Rulebook, item: Candidate, metric: str) -> Arm:
    """The arm with the stored launches that count; they are not run again."""
    from receipts.axes.configuration import configuration

    lane = rulebook.lanes.of(item.like.receipt.run.lane)
    plan = parse_plan(Document(write_plan(item.like, item.changes, lane), item.name))
    head = None if item.changes else item.like
    if head is None or head.receipt.run.provenance != "measured":
        ids = store.query.replicate_candidates(plan, configuration(plan, lane))
        head = store.parsed(ids[0]) if ids else None
    comparisons = Comparisons(store, rulebook)
    pool = comparisons.samples(comparisons.pool([head], join="all"), metric) if head is not None else ()
    counted = tuple(one.id for one in pool if Launch(one, lane).read(metrics.get(metric)).value is not None)
    return Arm(item.name, counted, item.changes, _chip_hours(item.like, lane))


def _chip_hours(parsed: Parsed, lane: Lane) -> float | None:
    """The chip-hours of one launch: its wall time where it is stated, else its steps."""
    run, chips = parsed.receipt.run, parsed.stated.get("hardware.chips")
    if chips is None:
        return None
    if run.finished is not None and run.provenance == "measured":
        return float(chips) * (run.finished - run.started).total_seconds() / 3600.0
    launch = Launch(parsed, lane)
    return float(chips) * math.fsum(launch.durations) / 3600.0 if launch.durations else None


def _written(experiment: Experiment, candidates: dict[str, Candidate], lane: Lane) -> Designed:
    """The experiment with its runs in order and their files, cut to its budget."""
    most, short = experiment.looks.most, ""
    # Each wave has every arm that still needs launches, and every other wave runs backward.
    runs: list[tuple[str, int]] = []
    missing = {arm.name: max(0, most - len(arm.receipts)) for arm in experiment.arms}
    for wave in range(1, most + 1):
        names = [arm.name for arm in experiment.arms if missing[arm.name] >= wave]
        runs += [(name, wave) for name in (names if wave % 2 else names[::-1])]
    whole = replace(
        experiment, runs=tuple((f"{order:03d}-{arm}.json", arm, wave) for order, (arm, wave) in enumerate(runs, 1))
    )
    cost = whole.chip_hours
    if experiment.budget is not None and cost is None:
        short = "the cost of a launch is unknown: the base states no chips, or neither its wall time nor its steps"
    elif experiment.budget is not None and cost is not None and cost > experiment.budget:
        short = f"it takes up to {cost:,.1f} chip-hours, and the budget is {experiment.budget:,.1f}"
    files = {FILE: to_json(whole)}
    for file, arm, wave in whole.runs:
        item = candidates[arm]
        seeds = {path: int(item.like.stated[path]) + wave for path in _SEEDS if path in item.like.stated}
        changes: dict[str, Any] = {**item.changes, **seeds, "run.label": experiment.label(arm, wave)}
        files[file] = write_plan(item.like, changes, lane)
    return Designed(whole, files, short)


def within(looks: Looks, launches: int) -> str:
    """A look in words."""
    number = looks.at(launches)
    if number is None:
        return f"no look yet: the first is at {looks.launches[0]} launches a side"
    words = f"look {number} of {len(looks.launches)}, boundary {100.0 * looks.confidences[number - 1]:.2f} %"
    planned = looks.launches[number - 1]
    return words if launches == planned else f"{words}; an unplanned look at {launches} launches a side, not {planned}"
