"""Preflight: what a plan is known to do before it is paid for, and what to try where it is known not to fit.

Launches of the plan's signature are looked up, then those of its base, and the estimator is asked where the store knows
neither. The answer names the launch that shows it, and what goes with a signature: the lineage and other circumstances
under which a launch worked or failed. A launcher's candidates are put in the order in which to try them: what worked
first, what failed last, else as they came.
"""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, Literal, NamedTuple

from receipts.axes import effective
from receipts.axes.effective import wheel_name
from receipts.axes.lane import Lane
from receipts.axes.shape import MICRO_BATCH, SEQUENCE_LENGTH, Signature, sign, unstated
from receipts.base.errors import InputError, Problem
from receipts.base.units import amount
from receipts.questions.ladder import Rung, next_rung
from receipts.questions.plan import plan_of
from receipts.receipt import Document, Parsed
from receipts.receipt.load import parse_json

if TYPE_CHECKING:
    from receipts.store import Entry, Store


Estimator = Callable[[Parsed, Lane], "Fit | None"]
LOOKED_BACK: Final = 12  # failures whose bytes are compared before a rung is chosen
LOOKED_INTO: Final = 4  # documents of launches that are read for one answer, of each kind


class PlanAnswer(NamedTuple):
    """What is known of a plan, and the next rung of its lane's ladder where it is not known or likely to work."""

    lane: str
    answer: PreflightAnswer
    rung: Rung | None

    def as_data(self) -> dict[str, Any]:
        """What ``receipts preflight --json`` prints."""
        return {**self.answer.as_data(), "lane": self.lane, "next": self.rung.as_data() if self.rung else None}


def answered(plan: Parsed, lane: Lane, store: Store | None) -> PlanAnswer:
    """The answer of `preflight` with what to try next."""
    answer = preflight(plan, lane, store)
    rung = None
    if answer.status not in ("worked", "likely") and not answer.missing:
        ran_out = store.query.ran_out(sign(plan, lane))[:LOOKED_BACK] if store is not None else []
        failures = [store.parsed(item.id) for item in ran_out] if store is not None else []
        rung = next_rung(plan, lane, lambda other: preflight(other, lane, store), answer, failures)
    return PlanAnswer(lane.name, answer, rung)


def preflight(plan: Parsed, lane: Lane, store: Store | None, estimator: Estimator | None = None) -> PreflightAnswer:
    """What is known of a plan. Without a store only the estimator can say something; None is the engine's own.

    Known to work or to fail: a measured launch of its signature, in circumstances that nothing contradicts; where they
    disagree, the newest. Likely or predicted: under other circumstances, by a launch that differs in pressure alone,
    or by an estimate that exceeds the budget by more than the lane's tolerance.
    """
    signature = sign(plan, lane)
    missing = unstated(plan)
    if missing:
        why = f"{', '.join(missing)} not stated: no launch can be the same"
        return PreflightAnswer("unknown", why, plan.name, signature.signature, missing=missing)
    answer = _of_signature(plan, lane, store, signature) if store is not None else None
    if answer is None and store is not None:
        answer = _of_base(plan, lane, store, signature)
    if answer is not None:
        return answer
    fit = (estimator or estimated)(plan, lane)
    if fit is None:
        why = "no launch of this signature, none that differs in pressure alone, and no estimate: receipts fit says why"
        return PreflightAnswer("unknown", why, plan.name, signature.signature)
    size = f"{amount(fit.total_bytes)} of {amount(fit.budget_bytes)} a chip"
    most = f", most of it {fit.surface}" if fit.surface else ""
    if fit.beyond > fit.tolerance:
        return PreflightAnswer("predicted", f"the estimate is {size}{most}", plan.name, signature.signature, fit=fit)
    how = "which fits" if fit.beyond <= 0 else f"within the estimator's {100 * fit.tolerance:.0f} %"
    why = f"no launch like it; the estimate is {size}, {how}"
    return PreflightAnswer("unknown", why, plan.name, signature.signature, fit=fit)


def _of_signature(plan: Parsed, lane: Lane, store: Store, signature: Signature) -> PreflightAnswer | None:
    worked, failed = store.query.same_signature(signature)
    seen = _read([*worked[:LOOKED_INTO], *failed[:LOOKED_INTO]], plan, lane, store)
    if not seen:
        return None
    measured = [item for item in seen if not item.unlike and item.provenance == "measured"]
    last = (measured or seen)[0]
    good = last.outcome == "ok"
    status: Status = ("worked" if good else "failed") if measured else ("likely" if good else "predicted")
    why = f"{last.event} with this signature"
    if status not in ("worked", "failed"):
        why += last.otherwise or "; that is quoted and not measured"
    return PreflightAnswer(status, why, plan.name, signature.signature, by=last, worked=len(worked), failed=len(failed))


def _of_base(plan: Parsed, lane: Lane, store: Store, signature: Signature) -> PreflightAnswer | None:
    worked, failed = store.query.dominating(signature)
    seen = _read([*worked[:LOOKED_INTO], *failed[:LOOKED_INTO]], plan, lane, store)
    if not seen:
        return None
    # The fewer circumstances differ, the more it says; of two that say as much, the newer.
    last = min(seen, key=lambda item: (bool(item.unlike), item.provenance != "measured"))
    good = last.outcome == "ok"
    pressures = ", ".join(f"{leaf.partition('.')[2]} {there}" for leaf, there, _ in last.pressures)
    why = f"{last.event} at {'larger' if good else 'smaller'} {pressures}{last.otherwise}"
    return PreflightAnswer("likely" if good else "predicted", why, plan.name, signature.signature, by=last)


def _read(known: Sequence[Entry], plan: Parsed, lane: Lane, store: Store) -> list[PreflightEvidence]:
    """What the launches show, the newest first."""
    ordered = sorted(known, key=lambda item: item.started, reverse=True)
    return [evidence(item, store.parsed(item.id), plan, lane) for item in ordered]


def evidence(known: Entry, there: Parsed, plan: Parsed, lane: Lane) -> PreflightEvidence:
    """What a stored launch shows of a plan."""
    failure, block = there.receipt.failure, None
    if failure is not None:
        from receipts.estimate.surface import attribution  # only a failure has something to attribute

        block = attribution(there.stated)
    paths = (MICRO_BATCH, SEQUENCE_LENGTH, *(f"features.{name}" for name in lane.nonessential_features))
    values = [(path, there.stated.get(path), plan.stated.get(path)) for path in paths]
    return PreflightEvidence(
        id=known.id,
        name=known.name,
        outcome=known.outcome,
        provenance=known.provenance,
        started=known.started,
        failure_type=None if known.outcome == "ok" else known.failure_type,
        phase=known.failure_phase,
        class_=known.failure_class,
        requested_bytes=failure.requested_bytes if failure else None,
        used_bytes=failure.used_bytes if failure else None,
        limit_bytes=failure.limit_bytes if failure else None,
        chip=failure.chip if failure else None,
        operator=failure.operator if failure else None,
        message=failure.message if failure else None,
        blocks=str(block) if block is not None else None,
        lineage=lineage(there, lane),
        pressures=tuple([(path, str(a), str(b)) for path, a, b in values if a != b]),
        unlike=tuple(unlike(there, plan, lane)),
    )


def estimated(plan: Parsed, lane: Lane) -> Fit | None:
    """What `receipts.questions.fit` estimates of a plan; None where it decides nothing."""
    from receipts.questions.fit import estimate  # a launch that the store knows needs no arithmetic

    estimate_ = estimate(plan, lane)
    if estimate_.total_bytes is None or estimate_.budget is None or estimate_.fits is None:
        return None
    surface = estimate_.dominant
    return Fit(
        total_bytes=estimate_.total_bytes,
        budget_bytes=estimate_.budget.bytes,
        surface=str(surface.name) if surface is not None else None,
        tolerance=lane.estimate_tolerance,
    )


Status = Literal["worked", "likely", "unknown", "predicted", "failed"]
# In the order in which a launcher tries candidates.
ORDER: Final[tuple[Status, ...]] = ("worked", "likely", "unknown", "predicted", "failed")
CODES: Final[Mapping[Status, int]] = {"worked": 0, "likely": 0, "unknown": 3, "predicted": 1, "failed": 1}


class Unlike(NamedTuple):
    """A circumstance outside the signature that both state and in which they differ: wheels, flags, imported code."""

    leaf: str
    there: str
    here: str

    def __str__(self) -> str:
        return f"{self.leaf} {self.there} there, {self.here} here"


@dataclass(frozen=True, slots=True)
class PreflightEvidence:
    """The launch that an answer rests on. Bytes are of one chip; ``lineage`` are the wheels that the lane looks at.

    ``smaller`` and ``larger`` say in which pressures it differs from the plan; ``unlike`` in which circumstances.
    """

    id: str
    name: str
    outcome: str
    provenance: str
    started: datetime
    failure_type: str | None = None
    phase: str | None = None
    class_: str | None = None
    requested_bytes: int | None = None
    used_bytes: int | None = None
    limit_bytes: int | None = None
    chip: int | None = None
    operator: str | None = None
    message: str | None = None
    blocks: str | None = None
    lineage: tuple[tuple[str, str], ...] = ()
    pressures: tuple[tuple[str, str, str], ...] = ()
    unlike: tuple[Unlike, ...] = ()

    @property
    def event(self) -> str:
        """What became of it, and when."""
        did = "worked" if self.outcome == "ok" else f"failed ({self.failure_type})"
        return f"{self.name} {did} on {self.started:%Y-%m-%d}"

    @property
    def otherwise(self) -> str:
        """Under which other circumstances it ran, as the rest of a sentence."""
        return f", under other circumstances: {'; '.join(map(str, self.unlike[:3]))}" if self.unlike else ""


@dataclass(frozen=True, slots=True)
class Fit:
    """What the estimator says of the fullest chip, in bytes. ``beyond`` is by how much of the budget it is exceeded."""

    total_bytes: float
    budget_bytes: int
    surface: str | None
    tolerance: float

    @property
    def beyond(self) -> float:
        """Share of the budget by which the estimate exceeds it; negative where it fits."""
        return self.total_bytes / self.budget_bytes - 1


@dataclass(frozen=True, slots=True)
class PreflightAnswer:
    """What is known of a plan. ``why`` is one sentence; ``missing`` is what has to be stated before anything is."""

    status: Status
    why: str
    plan: str
    signature: str
    by: PreflightEvidence | None = None
    worked: int = 0
    failed: int = 0
    missing: tuple[str, ...] = ()
    fit: Fit | None = None

    @property
    def code(self) -> int:
        """Exit code: 0 known or likely to work, 1 known or predicted to fail, 3 unknown."""
        return CODES[self.status]

    @property
    def failure_type(self) -> str | None:
        """The kind of failure that it is known or predicted to end with."""
        if self.status not in ("failed", "predicted"):
            return None
        return self.by.failure_type if self.by is not None else "estimated"

    def as_data(self) -> dict[str, Any]:
        """The answer as JSON."""
        data = asdict(self)
        if self.by is not None:
            by = data["by"]
            by["class"] = by.pop("class_")
            by["lineage"] = dict(self.by.lineage)
            by["pressures"] = [{"leaf": leaf, "there": there, "here": here} for leaf, there, here in self.by.pressures]
            by["unlike"] = [item._asdict() for item in self.by.unlike]
        return {**data, "failure_type": self.failure_type}


_USUAL: Final = ("torch", "torch_xla", "jax", "jaxlib", "libtpu", "transformer-engine", "megatron-core", "deepspeed")
_MAX_SHOWN: Final = 8


def unlike(there: Parsed, here: Parsed, lane: Lane) -> Iterator[Unlike]:
    """Where two launches of one signature differ all the same, for what both state."""
    theirs, mine = effective(there), effective(here)
    for path, value in theirs.items():
        counts = path.startswith(("wheels.", "platform.")) or path == "code.imported_digest"
        if path.startswith("flags."):
            counts = any(fnmatch.fnmatchcase(path.removeprefix("flags."), pattern) for pattern in lane.early_flags)
        if path in mine and mine[path] != value and counts:
            yield Unlike(path, str(value), str(mine[path]))
    contexts = there.receipt.run.context, here.receipt.run.context
    if None not in contexts and contexts[0] != contexts[1]:
        yield Unlike("run.context", str(contexts[0]), str(contexts[1]))


def lineage(parsed: Parsed, lane: Lane) -> tuple[tuple[str, str], ...]:
    """The wheels of a launch that its lane's lineages name, else the frameworks' own, with their versions."""
    named = [name for item in (*lane.documented, *lane.validated) for name in item.wheels if "." not in name]
    values = effective(parsed)
    paths = {f"wheels.{wheel_name(name)}": name for name in reversed([*named, *_USUAL])}
    ancestors = [(name, str(values[path])) for path, name in reversed(paths.items()) if path in values]
    return tuple(ancestors[:_MAX_SHOWN])


PLAN: Final = "plan"


class CandidatePlan(NamedTuple):
    """One line of a launcher's file: the object as written there, and the plan in it. Lines count from 1."""

    line: int
    given: dict[str, Any]
    plan: Parsed


class Ranked(NamedTuple):
    """A candidate with what is known of it."""

    candidate: CandidatePlan
    answer: PreflightAnswer

    def as_data(self) -> dict[str, Any]:
        """The candidate as JSON: its line, what is known, and the object itself."""
        answer = self.answer
        data = {"line": self.candidate.line, "status": answer.status, "failure_type": answer.failure_type}
        by = answer.by.id if answer.by is not None else None
        why = {"why": answer.why, "receipt": by, "signature": answer.signature}
        return {**data, **why, "candidate": self.candidate.given}


def candidates(raw: bytes, source: str) -> list[CandidatePlan]:
    """The candidates of a JSONL file: a line is a plan, or an object that holds one under ``plan``.

    Raises InputError with every line's every problem.
    """
    plans: list[CandidatePlan] = []
    wrong: list[Problem] = []
    for number, line in enumerate(raw.splitlines(), start=1):
        if not line.strip():
            continue
        try:
            given = parse_json(Document(line, source))
            inner = given.get(PLAN)
            plans.append(CandidatePlan(number, given, plan_of(inner if isinstance(inner, dict) else given, source)))
        except InputError as error:
            wrong += [problem._replace(at=f"line {number}, {problem.at}") for problem in error.problems]
    if not plans and not wrong:
        wrong = [Problem("$", "it has no candidate", "write a plan a line, as JSON")]
    if wrong:
        raise InputError(source, wrong)
    return plans


def ranked(given: Iterable[CandidatePlan], ask: Callable[[Parsed], PreflightAnswer]) -> list[Ranked]:
    """Worked, likely, unknown, predicted, failed; those of one status keep the launcher's order."""
    answers = [Ranked(item, ask(item.plan)) for item in given]
    return sorted(answers, key=lambda item: ORDER.index(item.answer.status))


def as_lines(ranked: Iterable[Ranked]) -> str:
    """The launcher's own objects, reordered, one a line."""
    return "".join(json.dumps(item.candidate.given, ensure_ascii=False) + "\n" for item in ranked)
