"""Writing a plan: one that is ready to be launched, with leaves changed and nothing that contradicts them."""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any, Final

from receipts.base.errors import InputError, Problem, near
from receipts.questions.plan.follow import CHIPS, DEGREES, MAPS, follow, put
from receipts.questions.plan.read import parse_plan, plan_of
from receipts.receipt import VERSION, Document, Parsed, Role
from receipts.receipt.leaves import Leaf, find_leaf, leaves
from receipts.receipt.problems import capped

if TYPE_CHECKING:
    from receipts.axes.lane import Lane

_OF_THE_RUN: Final = ("lane", "kind", "context", "tags")
# What goes with a changed leaf where nobody states it anew: it followed from the old value, or names it.
_GOES: Final[Mapping[str, tuple[str, ...]]] = {
    "model.": ("model.parameters_total", "model.parameters_active"),
    "model.pattern": ("model.family",),
    "model.experts": ("model.family",),
    "data.dataset": ("data.kind",),
    CHIPS: ("hardware.hosts", "hardware.physical", "hardware.interconnect"),
}
_NAMES_THE_DEGREES: Final = ("parallelism.mesh_axes", "parallelism.stage_layout", "path.intended.sharding")


def file_name(label: str) -> str:
    """What a plan of some label is called as a file, without an ending."""
    return re.sub(r"[^A-Za-z0-9._]+", "-", label).strip("-.")[:60] or "run"


def write_plan(parsed: Parsed, changes: Mapping[str, Any], lane: Lane | None = None) -> bytes:
    """A plan like this one with some leaves changed, as the bytes of a document that `read_plan` reads.

    ``changes`` maps leaf paths (``batch.micro_batch``, ``flags.NAME``, ``path.attention`` for what is intended) to
    values; None takes a leaf out. What only a run knows is left out. What follows from a changed leaf is made anew
    (accumulation, the data degree, a shard degree that was the whole of it) or left out; ``lane`` says how degrees
    multiply to chips, and without it what fits every way that the old ones fit is taken. Raises InputError with every
    change that is none, and with batches and chips that can no longer be divided.
    """
    tree = before_run(parsed)
    wanted = {_leaf(path): value for path, value in changes.items()}
    wrong = list(_strange(wanted))
    if not wrong:
        for path in _gone(wanted):
            put(tree, path, None)
        for path, value in wanted.items():
            put(tree, path, value)
        plan_of(tree, "plan")  # before anything is counted with the new values
        wrong = list(follow(tree, parsed.stated, wanted, lane.convention if lane is not None else "none"))
    if wrong:
        raise InputError("plan", capped(wrong))
    raw = (json.dumps(tree, indent=2, ensure_ascii=False) + "\n").encode()
    parse_plan(Document(raw, "plan"))
    return raw


def is_decided(leaf: Leaf) -> bool:
    """Whether a leaf is decided before the run: axes, what follows from them, and seeds."""
    return leaf.role in (Role.AXIS, Role.DERIVED) or (leaf.role is Role.REPLICATE and leaf.path[:4] != "run.")


def before_run(parsed: Parsed) -> dict[str, Any]:
    """What of a receipt was decided before its run, as a document: axes, and what follows from them."""
    whole = parsed.receipt.model_dump(mode="json", by_alias=True, exclude_none=True)
    tree: dict[str, Any] = {"schema_version": VERSION}
    tree["run"] = {key: whole["run"][key] for key in _OF_THE_RUN if key in whole["run"]}
    decided = {leaf.path for leaf in leaves() if is_decided(leaf)} | {"code.repository"}
    decided |= {"model.name"}
    for section, content in whole.items():
        if section in MAPS:
            tree[section] = {key: _plain(section, value) for key, value in content.items()}
        elif section not in ("run", "schema_version") and isinstance(content, dict):
            kept = _kept(content, f"{section}.", decided)
            if kept:
                tree[section] = kept
    return tree


def _plain(section: str, value: Any) -> Any:
    """An entry of an open map without what was seen of it."""
    if not isinstance(value, dict):
        return copy.copy(value)
    return value["value"] if section == "flags" else {key: value[key] for key in ("version", "digest") if key in value}


def _kept(content: Mapping[str, Any], prefix: str, decided: set[str]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for key, value in content.items():
        path = prefix + key
        if path in decided:
            kept[key] = value
        elif isinstance(value, dict) and (inner := _kept(value, f"{path}.", decided)):
            kept[key] = inner
    return kept


def _leaf(path: str) -> str:
    """The leaf's own place; an axis of the path is named without its side."""
    if path.startswith("path.") and not path.startswith(("path.intended.", "path.witnessed.")):
        return path.replace("path.", "path.intended.", 1)
    return path


def _strange(wanted: Mapping[str, Any]) -> Iterator[Problem]:
    known = [leaf.path for leaf in leaves() if is_decided(leaf)]
    for path in wanted:
        entry = find_leaf(path)
        if path.removeprefix("run.") in (*_OF_THE_RUN, "label"):
            continue
        if entry is None:
            hint = near(path, known).removeprefix("; ")
            yield Problem(path, "there is no such leaf", hint or "see: receipts axes")
        elif not is_decided(entry):
            yield Problem(path, "only a run knows it", "change what is decided before the launch; see: receipts axes")


def _gone(wanted: Mapping[str, Any]) -> Iterator[str]:
    for begin, paths in _GOES.items():
        if any(path == begin or (begin.endswith(".") and path.startswith(begin)) for path in wanted):
            yield from (path for path in paths if path not in wanted)
    if any(path in wanted for path in (CHIPS, *DEGREES)):
        yield from (path for path in _NAMES_THE_DEGREES if path not in wanted)
