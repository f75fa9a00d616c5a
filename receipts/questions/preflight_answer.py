"""What a preflight answers: whether the plan is known to work or to fail, and which launch shows it.

Also what goes with a signature (the lineage and other circumstances under which a launch worked or failed), and a
launcher's candidates in the order in which to try them: what worked first, what failed last, else as they came.
"""

from __future__ import annotations

import fnmatch
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

from receipts.axes import effective
from receipts.axes.effective import wheel_name
from receipts.axes.lane import Lane
from receipts.base.errors import InputError, Problem
from receipts.questions.plan import plan_of
from receipts.receipt import Document, Parsed
from receipts.receipt.load import parse_json

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
_MOST: Final = 8


def unlike(there: Parsed, here: Parsed, lane: Lane) -> tuple[Unlike, ...]:
    """Where two launches of one signature differ all the same, for what both state."""
    return tuple(_unlike(there, here, lane))


def _unlike(there: Parsed, here: Parsed, lane: Lane) -> Iterator[Unlike]:
    theirs, mine = effective(there), effective(here)
    for path, value in theirs.items():
        if path in mine and mine[path] != value and _counts(path, lane):
            yield Unlike(path, str(value), str(mine[path]))
    contexts = there.receipt.run.context, here.receipt.run.context
    if None not in contexts and contexts[0] != contexts[1]:
        yield Unlike("run.context", str(contexts[0]), str(contexts[1]))


def _counts(path: str, lane: Lane) -> bool:
    if path.startswith("flags."):
        name = path.removeprefix("flags.")
        return any(fnmatch.fnmatchcase(name, pattern) for pattern in lane.early_flags)
    return path.startswith(("wheels.", "platform.")) or path == "code.imported_digest"


def lineage(parsed: Parsed, lane: Lane) -> tuple[tuple[str, str], ...]:
    """The wheels of a launch that its lane's lineages name, else the frameworks' own, with their versions."""
    named = [name for item in (*lane.documented, *lane.validated) for name in item.wheels if "." not in name]
    values = effective(parsed)
    paths = {f"wheels.{wheel_name(name)}": name for name in reversed([*named, *_USUAL])}
    ancestors = [(name, str(values[path])) for path, name in reversed(paths.items()) if path in values]
    return tuple(ancestors[:_MOST])


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
