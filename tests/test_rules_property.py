"""Deny unless proven, on one receipt: an offence cannot be hidden by leaving out what it is seen by.

From every rejected case each stated leaf is taken out in turn, and random sets of them. What then remains is the
offence, an open question of the same rule, or a finding that the gap itself raises. Exempt are required keys, and
restatements: a stated rate, time or utilisation, and what other leaves determine (role *derived*); what a receipt does
not say twice it cannot contradict.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Iterable
from functools import cache
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rule_cases
from receipts.receipt.catalogue import find
from receipts.receipt.leaf import Role
from receipts.rule import Rule
from receipts.rulebook import RuleSet
from receipts.verdict import Finding, Level
from rule_cases import RuleCase, rulebook

RULES = rulebook().rules
OURS = tuple(rule for rule in RULES.rules if rule.subject == "receipt" and rule.code[:2] in ("R1", "R2"))
CASES = [
    case
    for rule in OURS
    for case in rule_cases.read_cases(rule.code)
    if case.kind == "rejected" and case.level(rule) is not Level.SHOWN
]
# Numbers that only repeat what steps and other numbers make, and the one that says which of them they are.
RESTATED = ("tokens_per_second", "tokens_per_second_per_chip", "step_seconds", "tflops_per_second_per_chip", "mfu")
_ROW = re.compile(r"\[[1-9]\d*\]")


def _exempt(path: str) -> bool:
    leaf = find(re.sub(r"\[\d+\]", "[]", path))
    restated = {f"measurement.stated.{name}" for name in (*RESTATED, "flops_per_token")}
    return leaf is None or leaf.required or leaf.role is Role.DERIVED or path in restated


@cache
def _leaves(case: RuleCase) -> tuple[str, ...]:
    """Leaves to take out; of a list's rows the first stands for all, for they are judged alike."""
    stated = rule_cases.parsed(rule_cases.build(case.table)).stated
    # Beside both, tokens a step repeat what the batch and its length make.
    repeated = {"batch.global_batch", "batch.sequence_length"} <= set(stated)
    again = {"measurement.tokens_per_step"} if repeated else set()
    if case.code == "R105":  # on given chips the sharded and the replicated degree are two names of one choice
        again |= {"parallelism.shard", "parallelism.replicate"}
    # Without its end a window holds every step to the last: nothing is left out that could be hidden.
    again.add("measurement.window.stop")
    return tuple(path for path in stated if not _ROW.search(path) and not _exempt(path) and path not in again)


def _heavy(tree: dict[str, Any], rules: RuleSet, case: RuleCase) -> list[Finding]:
    found = rule_cases.judge_tree(tree, rules, rule_cases.facts_of(case.table.get("facts")))
    return [item for item in found if item.level is not Level.SHOWN]


def _without(tree: dict[str, Any], paths: Iterable[str]) -> dict[str, Any]:
    left = copy.copy(tree)
    left = copy.deepcopy({key: value for key, value in left.items() if key != "measurement"}) | {
        "measurement": _measurement(tree)
    }
    for path in paths:
        rule_cases.take(left, path)
    return left


def _measurement(tree: dict[str, Any]) -> dict[str, Any]:
    """Copied without the three hundred durations, which nothing here changes in place."""
    steps = tree.get("measurement", {}).get("step_durations_seconds")
    rest = {key: value for key, value in tree.get("measurement", {}).items() if key != "step_durations_seconds"}
    made = copy.deepcopy(rest)
    return made if steps is None else {"step_durations_seconds": steps, **made}


def _hidden(case: RuleCase, rule: Rule, tree: dict[str, Any], paths: Iterable[str]) -> bool:
    """Whether the offence of a case is gone, and nothing says that a fact is missing."""
    left = _without(tree, paths)
    if _heavy(left, rule_cases.only(rule), case):
        return False
    others = RuleSet(tuple(item for item in OURS if item is not rule), "")
    before = {(item.code, item.at) for item in _heavy(tree, others, case)}
    # A launch without steps can carry no claim, whatever else is wrong with it.
    return not any((item.code, item.at) not in before or item.code == "R205" for item in _heavy(left, others, case))


@pytest.mark.parametrize("case", CASES, ids=str)
def test_no_leaf_left_out_hides_an_offence(case: RuleCase) -> None:
    rule, tree = RULES.get(case.code), rule_cases.build(case.table)
    assert _heavy(tree, rule_cases.only(rule), case)
    hiding = [path for path in _leaves(case) if _hidden(case, rule, tree, [path])]
    assert not hiding


@settings(max_examples=150, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(data=st.data())
def test_no_set_of_leaves_left_out_hides_an_offence(data: st.DataObject) -> None:
    case = data.draw(st.sampled_from(CASES))
    paths = data.draw(st.lists(st.sampled_from(_leaves(case)), min_size=2, max_size=12, unique=True))
    assert not _hidden(case, RULES.get(case.code), rule_cases.build(case.table), paths)


@settings(max_examples=100, deadline=None, suppress_health_check=list(HealthCheck), derandomize=True)
@given(data=st.data(), name=st.sampled_from(sorted(rule_cases.BASES)))
def test_what_is_left_of_a_clean_receipt_is_open_and_never_wrong(data: st.DataObject, name: str) -> None:
    tree = rule_cases.base(name)
    stated = [path for path in rule_cases.parsed(tree).stated if not _ROW.search(path)]
    optional = [path for path in stated if not _required(path)]
    paths = data.draw(st.lists(st.sampled_from(optional), min_size=1, max_size=40, unique=True))
    found = rule_cases.judge_tree(_without(tree, paths), RuleSet(OURS, ""))
    # R104 is the one rule here whose offence is that something is not said.
    wrong = [item for item in found if item.level is Level.ERROR and item.code != "R104"]
    assert not wrong, paths


def _required(path: str) -> bool:
    leaf = find(re.sub(r"\[\d+\]", "[]", path))
    return leaf is not None and leaf.required
