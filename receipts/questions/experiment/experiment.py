"""An experiment: arms to launch, what is asked of them, and when to look. A folder holds it, with its plans."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from pydantic import TypeAdapter

from receipts.base.errors import InputError, Problem
from receipts.base.files import read_small
from receipts.base.untrusted_text import parse_json
from receipts.stats.sequential import Looks

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
