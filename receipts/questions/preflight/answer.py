"""What a preflight answers: whether the plan is known to work or to fail, and which launch shows it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from typing import Any, Final, Literal, NamedTuple

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
