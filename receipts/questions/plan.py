"""A plan: a receipt of which only what is decided before a launch has to stand; how it is read, changed and written.

What ``receipts init`` writes is a plan, and so is every receipt: launch, start, outcome and provenance, which a run
alone knows, may be absent, and what was measured is not asked for. A written plan is ready to be launched: where leaves
are changed, what follows from them changes too (data degree, accumulation, a shard degree that was the whole), and
nothing contradicts them. `torn` says whether a plan can be laid out on its chips at all: by the rules on degrees,
heads, experts and patterns.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from pydantic import ValidationError

from receipts.axes.lane import Lane
from receipts.base.errors import InputError, Problem, near
from receipts.ingest.leaves import at, parts
from receipts.judging.judge import judge_case
from receipts.judging.rule import Case, Topic
from receipts.judging.rulebook import RuleSet
from receipts.judging.verdict import Level
from receipts.metrics import Launch
from receipts.receipt import VERSION, Document, Parsed, Receipt, Role, read
from receipts.receipt.leaves import Leaf, find_leaf, leaves
from receipts.receipt.load import parse_json
from receipts.receipt.parse import upcast
from receipts.receipt.problems import capped, problems

if TYPE_CHECKING:
    from receipts.store import Store


MAPS: Final = ("wheels", "flags", "patches", "features")
DEGREES: Final = tuple(f"parallelism.{name}" for name in ("tensor", "pipeline", "context", "expert"))
CHIPS: Final = "hardware.chips"
_EXPERT: Final = "parallelism.expert"
_DATA, _SHARD, _REPLICATE = "parallelism.data", "parallelism.shard", "parallelism.replicate"
_MICRO, _GLOBAL, _ACCUMULATION = "batch.micro_batch", "batch.global_batch", "batch.accumulation"


def follow(
    tree: dict[str, Any], old: Mapping[str, Any], wanted: Mapping[str, Any], convention: str = "none"
) -> Iterator[Problem]:
    """Derive again what follows from chips, degrees and batches; drop what cannot be derived, report contradictions."""
    if any(path in wanted for path in (CHIPS, *DEGREES)):
        yield from _data(tree, old, wanted, convention)
    if _ACCUMULATION in wanted or not any(path in wanted for path in (_MICRO, _GLOBAL, CHIPS, _DATA, *DEGREES)):
        return
    micro, whole = at(tree, _MICRO), at(tree, _GLOBAL)
    ranks = _ranks(tree, old)
    if micro is None or whole is None or ranks is None:
        put(tree, _ACCUMULATION, None)
        return
    if whole % (micro * ranks):
        yield Problem(
            _GLOBAL,
            f"{whole} is no multiple of micro batch {micro} over {ranks} data ranks",
            f"choose a micro batch that divides {whole} / {ranks}, or another global batch",
        )
    elif _ACCUMULATION in old:
        put(tree, _ACCUMULATION, whole // (micro * ranks))


def _data(
    tree: dict[str, Any], old: Mapping[str, Any], wanted: Mapping[str, Any], convention: str
) -> Iterator[Problem]:
    chips, data = at(tree, CHIPS), old.get(_DATA)
    if chips is None:
        return
    ways = _ways_left(tree, old, chips, convention)
    if not ways and _DATA not in wanted:
        degrees = ", ".join(f"{path.partition('.')[2]} {at(tree, path) or 1}" for path in DEGREES)
        yield Problem(CHIPS, f"{chips} chips cannot be divided by {degrees}", "choose degrees that divide the chips")
        return
    new = next(iter(ways)) if len(ways) == 1 else None
    if data is not None and _DATA not in wanted:
        put(tree, _DATA, new)
    if _SHARD in old and _SHARD not in wanted:
        replicate = at(tree, _REPLICATE) or 1
        whole_of = {old[_SHARD], old[_SHARD] * (old.get(_REPLICATE) or 1)}
        put(tree, _SHARD, new // replicate if new and data in whole_of and new % replicate == 0 else None)


def _ways_left(tree: Mapping[str, Any], old: Mapping[str, Any], chips: int, convention: str) -> set[int]:
    """Data degrees that the chips leave over, in each convention that may hold and that the old degrees keep."""
    # Whether expert groups, where they are cut from the ranks of a stage, do not divide these.
    expert = at(tree, _EXPERT) or 1
    inside = expert * (at(tree, "parallelism.expert_tensor") or at(tree, "parallelism.tensor") or 1)
    torn = expert > 1 and chips // (at(tree, "parallelism.pipeline") or 1) % inside != 0
    ways = set()
    for name in ("expert_in_data", "expert_in_world") if convention == "none" else (convention,):
        folded = name == "expert_in_data"
        counted = [path for path in DEGREES if not (folded and path == _EXPERT)]
        before = after = 1
        for path in counted:
            before *= old.get(path) or 1
            after *= at(tree, path) or 1
        kept = old.get(_DATA) is None or old.get(CHIPS) is None or before * old[_DATA] == old[CHIPS]
        if kept and chips % after == 0 and not (folded and torn):
            ways.add(chips // after)
    return ways


def _ranks(tree: Mapping[str, Any], old: Mapping[str, Any]) -> int | None:
    """Ranks that read sequences of their own, as the old batches say, at the new data degree; None where unknown."""
    data, was = at(tree, _DATA), old.get(_DATA)
    whole, micro, steps = (old.get(path) for path in (_GLOBAL, _MICRO, _ACCUMULATION))
    if whole and micro and steps and whole % (micro * steps) == 0:
        before = int(whole) // int(micro * steps)
        if data == was and all(at(tree, path) == old.get(path) for path in (CHIPS, *DEGREES)):
            return before
        return before * int(data) // int(was) if data and was and before * data % was == 0 else None
    accounted = data is not None and whole and micro and whole % (micro * (was or data)) == 0
    return int(data) if accounted else None


def put(tree: dict[str, Any], path: str, value: Any) -> None:
    """Set a leaf, or take it out where the value is None; keys of open maps may hold dots."""
    *sections, last = parts(path)
    node = tree
    for key in sections:
        if key not in node and value is None:
            return
        node = node.setdefault(key, {})
    if value is None:
        node.pop(last, None)
    else:
        node[last] = list(value) if isinstance(value, tuple) else value


# Placeholders for what only a run knows, so that the same model reads plans. They are never judged or stored.
_UNKNOWN: Final[Mapping[str, Any]] = {
    "kind": "training",
    "outcome": "ok",
    "provenance": "projected",
    "started": "1970-01-01T00:00:00Z",
}


def read_plan(source: str, store: Store | None = None) -> Parsed:
    """The plan in a file, or, where a store is given, the stored receipt of that id, label or pin.

    Raises InputError with every problem and its path, NotFound where there is neither.
    """
    if store is not None and not Path(source).exists() and not source.endswith(".json"):
        return store.get(source, repeated=True)
    return parse_plan(read(source))


def parse_plan(document: Document) -> Parsed:
    """The plan in a document. Raises InputError with every problem, each with its path.

    Its id is that of the bytes as they came, as a receipt's is; its launch is that id where it names none.
    """
    return _parsed(document, parse_json(document))


def plan_of(tree: Mapping[str, Any], source: str) -> Parsed:
    """The plan of an object that was read already, such as a line of a launcher's candidates."""
    return _parsed(Document(json.dumps(tree).encode(), source), dict(tree))


def _parsed(document: Document, tree: dict[str, Any]) -> Parsed:
    """The plan with placeholders where it may be silent. What is no object stays for the model to refuse."""
    filled = {**tree, "schema_version": tree.get("schema_version", VERSION)}
    run = filled.get("run", {})
    if isinstance(run, dict):
        unstated = {key: value for key, value in _UNKNOWN.items() if run.get(key) is None}
        filled["run"] = {**run, **unstated, "launch": run.get("launch") or f"plan-{document.id[:12]}"}
    current = upcast(filled, document.source)
    numerics = current.get("numerics")
    if isinstance(numerics, dict) and (not isinstance(run, dict) or run.get("outcome") is None):
        # What another launch applied would win over what a plan asks for.
        requested, applied = numerics.get("recompute"), numerics.get("recompute_applied")
        if requested is not None and applied not in (None, requested):
            conflict = f"a launch applied {applied!r}, and this plan asks for {requested!r}"
            do = "leave it out of a plan: only a launch shows what is applied"
            raise InputError(document.source, [Problem("numerics.recompute_applied", conflict, do)])
    try:
        receipt = Receipt.model_validate_json(json.dumps(current).encode())
    except ValidationError as error:
        raise InputError(document.source, problems(error, current)) from None
    return Parsed(document.id, document.raw, document.source, receipt)


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
    wanted = {}
    for path, value in changes.items():
        own = path.startswith("path.") and not path.startswith(("path.intended.", "path.witnessed."))
        # An axis of the path is named without its side.
        wanted[path.replace("path.", "path.intended.", 1) if own else path] = value
    wrong = list(_strange(wanted))
    if not wrong:
        gone = [
            path
            for begin, paths in _GOES.items()
            if any(name == begin or (begin.endswith(".") and name.startswith(begin)) for name in wanted)
            for path in paths
        ]
        gone += _NAMES_THE_DEGREES if any(path in wanted for path in (CHIPS, *DEGREES)) else ()
        for path in gone:
            if path not in wanted:
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


def layout_problems(plan: Parsed, lane: Lane, rules: RuleSet) -> list[Problem]:
    """Why no launch can have this layout, each with its place; empty where nothing that is stated forbids it."""
    findings = judge_case(Case(Launch(plan, lane), lane, None), rules)
    return [
        Problem(item.at, f"{item.code} {item.name}: {item.found}, expected {item.expected}", item.do)
        for item in findings
        if item.code in rules.about(Topic.LAYOUT) and item.level is Level.ERROR and not item.unjudged
    ]
