"""Rule cases as data: reads ``tests/cases/<CODE>.toml``, lays a case over its clean base, and judges it.

A case states ``set`` (dotted path → value, over the base) and ``drop`` (paths that are taken out). ``steps`` makes a
list of durations, so that no case has to spell out three hundred of them. ``facts.witnesses`` and ``facts.witnessed``
are receipts in the same words, over the case's base; so is ``facts.replaced``, earlier ones of the launch.
"""

from __future__ import annotations

import copy
import json
import random
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any
from zlib import crc32

from receipts.judging.claim import claim_from_json
from receipts.judging.comparison import Request, compare
from receipts.judging.facts import EarlierFailure, Facts, ReachedShape
from receipts.judging.judge import judge_case
from receipts.judging.judge import judge_claim as judge_prose
from receipts.judging.rule import Case, Rule, StatementCase
from receipts.judging.rulebook import Rulebook, RuleSet, builtin
from receipts.judging.verdict import ClaimVerdict, Finding, LeftOut, Level, Lost
from receipts.metrics import Launch
from receipts.questions.claims.judgment import ClaimEvidence, judge
from receipts.receipt import Document, Parsed, parse
from receipts.stats.log_ratio import Sigma

FOLDER = Path(__file__).resolve().parents[1] / "cases"
BASES = {"cpu": "base.json", "megatron": "base-megatron.json", "tpu": "base-tpu.json"}
OPEN_MAPS = ("wheels", "flags", "patches", "features", "notes")
KINDS = ("rejected", "accepted", "unjudged")
_KEYS = {
    *("says", "base", "lane", "set", "drop", "steps", "at", "level", "side", "facts", "a", "b", "metric", "study"),
    *("waive", "launches_a", "launches_b", "interleaved", "claim", "missing", "earlier", "lost", "statement"),
    *("left_out", "not_asked", "do"),
}
_PART = re.compile(r"([^.\[\]]+)|\[(\d+)\]")
_RATES = ("tokens_per_second", "tokens_per_second_per_chip", "step_seconds", "tflops_per_second_per_chip", "mfu")


@dataclass(frozen=True)
class RuleCase:
    """One case of one rule, as its table states it."""

    code: str
    kind: str
    says: str
    table: Mapping[str, Any] = field(repr=False, compare=False)

    def __str__(self) -> str:
        return f"{self.code} {self.kind}: {self.says}"

    @property
    def at(self) -> str | None:
        """Path of the finding that is expected."""
        return self.table.get("at")

    def level(self, rule: Rule) -> Level:
        """Level that is expected: the case's, else the rule's."""
        return Level(self.table["level"]) if "level" in self.table else rule.level


@cache
def rulebook() -> Rulebook:
    """The shipped rulebook, loaded once."""
    return builtin()


@cache
def read_cases(code: str) -> tuple[RuleCase, ...]:
    """The cases of a rule; none where it has no file. Raises where a table has a key that does not exist."""
    path = FOLDER / f"{code}.toml"
    if not path.is_file():
        return ()
    with path.open("rb") as stream:
        tables = tomllib.load(stream)
    strange = set(tables) - set(KINDS)
    assert not strange, f"{path.name}: no such table: {strange}"
    found = []
    for kind in KINDS:
        for table in tables.get(kind, []):
            unknown = set(table) - _KEYS
            assert not unknown, f"{path.name}: no such key: {unknown}"
            assert table.get("says"), f"{path.name}: a case of {kind} says nothing"
            found.append(RuleCase(code, kind, table["says"], table))
    return tuple(found)


@cache
def _base_text(name: str) -> str:
    return (FOLDER / BASES[name]).read_text(encoding="utf-8")


def base(name: str = "cpu") -> dict[str, Any]:
    """A clean receipt, as a tree of its own."""
    tree: dict[str, Any] = json.loads(_base_text(name))
    return tree


def _parts(path: str) -> list[str | int]:
    head, _, rest = path.partition(".")
    if head in OPEN_MAPS and rest:
        return [head, rest]
    return [int(index) if index else name for name, index in _PART.findall(path)]


def put(tree: dict[str, Any], path: str, value: Any) -> None:
    """State a value at a dotted path; ``rows[0].x`` names a row of a list, the row after the last adds one."""
    parts = _parts(path)
    node: Any = tree
    for part, following in pairwise(parts):
        empty: Any = [] if isinstance(following, int) else {}
        if isinstance(part, int):
            if part == len(node):
                node.append(empty)
            node = node[part]
        else:
            node = node.setdefault(part, empty)
    last = parts[-1]
    if isinstance(last, int) and last == len(node):
        node.append(value)
    else:
        node[last] = value


def take(tree: dict[str, Any], path: str) -> bool:
    """Take out what stands at a dotted path, and sections that become empty; False where nothing stands there."""
    parts = _parts(path)
    trail: list[tuple[Any, str | int]] = []
    node: Any = tree
    for part in parts:
        inside = part < len(node) if isinstance(part, int) else isinstance(node, dict) and part in node
        if not inside:
            return False
        trail.append((node, part))
        node = node[part]
    holder, key = trail.pop()
    del holder[key]
    for holder, key in reversed(trail):
        if holder[key] in ({}, []):
            del holder[key]
    return True


def durations(table: Mapping[str, Any]) -> list[float]:
    """Step durations from ``count``, ``seconds``, ``cv``, ``seed``, ``drift`` (share over the run), ``first``.

    ``stalls`` are every how many steps one is longer, and by how many seconds.
    """
    count, seconds = table.get("count", 300), table.get("seconds", 0.8)
    source = random.Random(table.get("seed", 7))
    steps = [
        seconds * (1 + source.gauss(0, table.get("cv", 0.004)) + table.get("drift", 0.0) * index / count)
        for index in range(count)
    ]
    if "stalls" in table:
        every, longer = table["stalls"]
        steps[::every] = [step + longer for step in steps[::every]]
    steps[: len(table.get("first", []))] = table.get("first", [])
    return [round(step, 6) for step in steps]


def walls(table: Mapping[str, Any], steps: list[float]) -> list[float]:
    """Wall time of the steps: `gap` seconds before each."""
    return [round(step + table["gap"], 6) for step in steps]


def _without_rates(tree: dict[str, Any]) -> None:
    """Other durations make the base's stated rates wrong: they go, unless the case states them anew."""
    for name in _RATES:
        take(tree, f"measurement.stated.{name}")
        take(tree, f"measurement.stated.{name}_stated")


def build(table: Mapping[str, Any], base_name: str = "cpu", lane: str | None = None) -> dict[str, Any]:
    """The tree of a case: the base, then ``steps``, ``drop`` and ``set`` in that order."""
    tree = base(table.get("base", base_name))
    if "steps" in table:
        _without_rates(tree)
        put(tree, "measurement.step_durations_seconds", steps := durations(table["steps"]))
        if "gap" in table["steps"]:
            put(tree, "measurement.step_wall_seconds", walls(table["steps"], steps))
        take(tree, "measurement.steps")
    for path in table.get("drop", []):
        assert take(tree, path), f"drop: {path} is not in the base"
    lane = table.get("lane", lane)
    if lane is not None:
        put(tree, "run.lane", lane)
    for path, value in table.get("set", {}).items():
        put(tree, path, copy.deepcopy(value))
    return tree


def parsed(tree: Mapping[str, Any], source: str = "case.json") -> Parsed:
    """The receipt of a tree."""
    return parse(Document(json.dumps(tree).encode(), source))


def facts_of(
    table: Mapping[str, Any] | None, ids: Mapping[str, str] | None = None, base_name: str = "cpu", own_id: str = ""
) -> Facts | None:
    """Facts from a table; ``superseded`` may name ``a`` and ``b`` for the ids of the two sides."""
    if table is None:
        return None
    values = dict(table)
    kin = {
        name: tuple(parsed(build(item, base_name), f"{name}.json") for item in values.pop(name, []))
        for name in ("witnesses", "witnessed")
    }
    earlier = tuple(parsed(build(item, base_name), "earlier.json") for item in values.pop("replaced", []))
    shapes = tuple(
        ReachedShape(**{name: row.get(name) for name in ReachedShape._fields}) for row in values.pop("shapes", [])
    )
    named = ids or {}
    superseded = {named.get(key, key): tuple(why) for key, why in values.pop("superseded", {}).items()}
    failures = tuple(EarlierFailure(**{"phase": None, "class_": None, **row}) for row in values.pop("failures", []))
    if "day" in values:
        values["day"] = Sigma(*values["day"])
    own = {"replaced": {own_id: earlier}} if earlier else {}
    return Facts(superseded=superseded, shapes=shapes, failures=failures, **kin, **own, **values)


def judge_tree(
    tree: Mapping[str, Any], rules: RuleSet, facts: Facts | None = None, book: Rulebook | None = None
) -> tuple[Finding, ...]:
    """Findings of rules on the receipt of a tree."""
    receipt = parsed(tree)
    lane = (book or rulebook()).lanes.of(receipt.receipt.run.lane)
    return judge_case(Case(Launch(receipt, lane), lane, facts), rules)


def only(rule: Rule) -> RuleSet:
    """A rule set of one rule."""
    return RuleSet((rule,), "")


def findings(case: RuleCase, rule: Rule) -> tuple[Finding, ...]:
    """What the rule of a case finds on it: on one receipt by that rule alone, on a pair by a whole comparison."""
    if rule.subject == "statement":
        table = {
            key: tuple(value) if isinstance(value, list) else value for key, value in case.table["statement"].items()
        }
        return judge_prose(StatementCase(**table), only(rule))
    if rule.subject == "claim":
        return tuple(item for item in judge_claim(case.table).findings if item.code == rule.code)
    if rule.subject == "receipt":
        tree = build(case.table)
        facts = facts_of(case.table.get("facts"), base_name=case.table.get("base", "cpu"), own_id=parsed(tree).id)
        return judge_tree(tree, only(rule), facts)
    found = _compare(case.table)
    return tuple(item for item in found if item.code == rule.code and item.subject in ("a", "b", "pair"))


# What a claim of a case says unless the case says otherwise. `a` and `b` are the case's two sides.
CLAIM = {
    "id": "case",
    "text": "B is faster than A",
    "kind": "speedup",
    "baseline": ["a"],
    "candidate": ["b"],
    "effect": "at least 1.10",
}


def judge_claim(table: Mapping[str, Any]) -> ClaimVerdict:
    """The verdict on the claim of a case: ``claim`` over the clean claim, its sides built as those of a pair are."""
    said = {**CLAIM, **table.get("claim", {})}
    if said["kind"] in ("ceiling", "does-not-fit") and "effect" not in table["claim"]:
        del said["effect"]
    claim = claim_from_json(json.dumps(said), "case")
    name, lane = table.get("base", "cpu"), table.get("lane")
    sides: dict[str, list[Parsed]] = {}
    for letter, words in (("a", claim.baseline), ("b", claim.candidate)):
        tree = build(table.get(letter, {}), name, lane)
        launches = table.get(f"launches_{letter}", 1)
        sides[letter] = group(tree, letter, launches, bool(table.get("interleaved"))) if words else []
    ids = {letter: made[0].id for letter, made in sides.items() if made}
    lost = tuple((ids.get(item[0], item[0]), item[1], item[2]) for item in table.get("lost", []))
    missing = tuple((side, why) for side, why in table.get("missing", []))
    evidence = ClaimEvidence(
        baseline=tuple(sides["a"]),
        candidate=tuple(sides["b"]),
        facts=facts_of(table.get("facts"), ids, name),
        missing=missing,
        earlier=table.get("earlier"),
        lost=lost,
    )
    return judge(claim, evidence, rulebook())


def pair(table: Mapping[str, Any]) -> tuple[list[Parsed], list[Parsed], Request]:
    """Both sides of a case, and what is asked of them."""
    name, lane = table.get("base", "cpu"), table.get("lane")
    interleaved = bool(table.get("interleaved"))
    a = group(build(table.get("a", {}), name, lane), "a", table.get("launches_a", 1), interleaved)
    b = group(build(table.get("b", {}), name, lane), "b", table.get("launches_b", 1), interleaved)
    request = Request(
        **{"metric": table["metric"]} if "metric" in table else {},
        waivers=table.get("waive", {}),
        study=table.get("study"),
        facts=facts_of(table.get("facts"), {"a": a[0].id, "b": b[0].id}, name),
        left_out=tuple(LeftOut(**item) for item in table.get("not_asked", ())),
        lost=tuple(Lost(item["side"], "0" * 64, tuple(item["why"])) for item in table.get("left_out", ())),
    )
    return a, b, request


def _compare(table: Mapping[str, Any]) -> tuple[Finding, ...]:
    a, b, request = pair(table)
    return compare(a, b, rulebook(), replace(request, prove=False)).findings


def group(tree: dict[str, Any], side: str, launches: int, interleaved: bool = False) -> list[Parsed]:
    """Launches of one configuration: fresh ids and starts, and a spread of 0.1 % between their step times.

    Starts are A, A, A, B, B, B an hour apart, or A, B, B, A, A, B where ``interleaved``. A first launch that states
    a start and an id of its own keeps them.
    """
    made = []
    for index in range(launches):
        one = copy.deepcopy(tree)
        same_start = one["run"]["started"] == base_started()
        if index or same_start:
            order = index + (0 if side == "a" else launches)
            if interleaved:
                order = 2 * index + ((index % 2) ^ (side == "b"))
            # No two launches start on a host at one instant (R112).
            apart = 0 if side in ("a", "b") else crc32(side.encode()) % 3600
            shift = timedelta(hours=order, seconds=apart)
            for key in ("started", "finished"):
                if key in one["run"]:
                    one["run"][key] = (datetime.fromisoformat(one["run"][key]) + shift).isoformat()
        if index or launches > 1 or one["run"]["launch"] == base_launch():
            one["run"]["launch"] = f"launch-{side}-{index}"
        if index:
            _without_rates(one)
            scale = 1 + 0.001 * (-1) ** index * ((index + 1) // 2)
            for name in ("step_durations_seconds", "step_wall_seconds"):
                steps = one.get("measurement", {}).get(name)
                if steps:
                    put(one, f"measurement.{name}", [round(step * scale, 6) for step in steps])
        made.append(parsed(one, f"{side}{index}.json"))
    return made


def base_started() -> str:
    """When the bases started; a case that moves it keeps its own."""
    started: str = base()["run"]["started"]
    return started


def base_launch() -> str:
    """The launch of the bases."""
    launch: str = base()["run"]["launch"]
    return launch
