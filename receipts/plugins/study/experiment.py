"""An experiment: arms to launch, what is asked of them, and when to look. A folder holds it, with its plans.

What is to be decided: the arms of a screen, or the two sides of each claim that is not decided yet.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, TypeAdapter, model_validator
from pydantic_core import PydanticCustomError

from receipts.base.errors import InputError, NotFound, Problem
from receipts.base.files import read_small
from receipts.base.untrusted_text import parse_json
from receipts.receipt.problems import read_toml
from receipts.stats.sequential import Looks

if TYPE_CHECKING:
    from receipts.judging.rulebook import Rulebook
    from receipts.receipt import Parsed
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
        """What all runs cost together; None where some cost is unknown."""
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
