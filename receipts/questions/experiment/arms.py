"""What is to be decided: the arms of a screen, or the two sides of each claim that is not decided yet."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from receipts.base.errors import InputError, NotFound, Problem
from receipts.base.files import read_small
from receipts.base.toml import parse_toml
from receipts.questions.experiment.experiment import Contrast

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


def read_screen(path: Path, store: Store) -> Wanted:
    """The arms of a file: a base and what differs from it, one axis an arm.

    ``base`` names a receipt or a plan file; ``[vary]`` maps leaves to values, each an arm of its own; ``[[arm]]`` has a
    ``name`` and ``set``, for leaves that change together. Raises InputError.
    """
    from receipts.questions.plan import read_plan

    tree = _tree(path)
    problems = [
        Problem(key, "it is no key of a screen", "known: base, vary, arm")
        for key in tree
        if key not in ("base", "vary", "arm")
    ]
    if not isinstance(tree.get("base"), str):
        problems.append(Problem("base", "it names no receipt", 'write base = "ID, @pin, label or plan file"'))
    arms = list(_arms(tree, problems))
    if not arms and not problems:
        problems.append(Problem("", "it has no arm", 'write [vary] with "flags.NAME" = [values], or [[arm]]'))
    if problems:
        raise InputError(str(path), problems)
    word = str(tree["base"])
    beside = path.parent / word
    base = read_plan(str(beside)) if beside.is_file() else read_plan(word, store)
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


def _tree(path: Path) -> dict[str, Any]:
    try:
        return parse_toml(read_small(path))
    except (OSError, ValueError) as error:
        raise InputError(str(path), [Problem("", str(error), "correct the file")]) from None


def _arms(tree: dict[str, Any], problems: list[Problem]) -> Iterator[tuple[str, dict[str, Any]]]:
    """Names of arms with their changed leaves."""
    seen = {"base"}
    vary = tree.get("vary", {})
    for leaf, values in vary.items() if isinstance(vary, dict) else ():
        if isinstance(values, dict):
            problems.append(Problem(f"vary.{leaf}", "a leaf with dots needs quotes", f'write "{leaf}.…" = [values]'))
            continue
        for value in values if isinstance(values, list) else [values]:
            yield from _arm(f"{leaf.rpartition('.')[2]}-{value}", {leaf: value}, f"vary.{leaf}", seen, problems)
    for index, arm in enumerate(tree.get("arm", ())):
        place = f"arm[{index}]"
        if not isinstance(arm, dict) or not isinstance(arm.get("set"), dict) or not arm.get("name"):
            problems.append(Problem(place, "an arm has a name and set", 'write name = "x" and set = {"leaf" = value}'))
        else:
            yield from _arm(str(arm["name"]), dict(arm["set"]), place, seen, problems)


def _arm(
    name: str, changes: dict[str, Any], place: str, seen: set[str], problems: list[Problem]
) -> Iterator[tuple[str, dict[str, Any]]]:
    short = re.sub(r"[^A-Za-z0-9._]+", "-", name).strip("-.")[:60]
    if short in seen:
        problems.append(Problem(place, f"{short} names two arms", "give it another name"))
    else:
        seen.add(short)
        yield short, changes
