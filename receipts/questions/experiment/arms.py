"""What is to be decided: the arms of a screen, or the two sides of each claim that is not decided yet."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from receipts.base.errors import NotFound
from receipts.questions.experiment.experiment import Contrast
from receipts.receipt.problems import read_toml

if TYPE_CHECKING:
    from receipts.judging.rulebook import Rulebook
    from receipts.receipt import Parsed
    from receipts.store import Store


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
    from receipts.judging.claims import bound
    from receipts.questions.claims.gather import gather
    from receipts.questions.claims.judge import judge
    from receipts.questions.claims.load import read

    file = read(path)
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
