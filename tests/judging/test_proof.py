"""The proof of an error: with it and the required keys alone the error stands, and without any of its leaves not."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import rule_cases
from receipts.judging.comparison import compare
from receipts.judging.facts import Facts
from receipts.judging.findings import Reducer, is_required, same_place
from receipts.judging.judge import judge_case, judge_receipt
from receipts.judging.rule import Case, Rule
from receipts.judging.verdict import Finding, Level, ProofLeaf, verdict_to_json
from receipts.metrics import Launch
from receipts.receipt import Parsed
from rule_cases import RuleCase, rulebook
from thorough import unless_thorough


def _errors_of(rule: Rule) -> list[RuleCase]:
    cases = rule_cases.read_cases(rule.code)
    return [case for case in cases if case.kind == "rejected" and case.level(rule) is Level.ERROR]


RULES = rulebook().rules
OF_A_RULE = unless_thorough(3, 100)
CASES = [case for rule in RULES.rules for case in _errors_of(rule)[:OF_A_RULE]]
ON_RECEIPTS = [case for case in CASES if RULES.get(case.code).subject == "receipt"]
ON_PAIRS = [case for case in CASES if RULES.get(case.code).subject == "pair"]
# Leaves of one proof that are left out one by one; what a witness lends takes some two hundred.
MAX_TRIED = unless_thorough(2, 12)

Stands = Callable[[Collection[ProofLeaf]], bool]


def errors(findings: tuple[Finding, ...], code: str) -> list[Finding]:
    return [item for item in findings if item.level is Level.ERROR and item.code == code]


def fewer(facts: Facts | None, leaves: Collection[ProofLeaf]) -> Facts | None:
    if facts is None:
        return None
    kin = {name: tuple(Reducer()(item, leaves) for item in getattr(facts, name)) for name in ("witnesses", "witnessed")}
    return replace(facts, **kin)


def on_receipt(parsed: Parsed, facts: Facts | None, rule: Rule, finding: Finding) -> Stands:
    lane = rulebook().lanes.of(parsed.receipt.run.lane)

    def stands(leaves: Collection[ProofLeaf]) -> bool:
        case = Case(Launch(Reducer()(parsed, leaves), lane), lane, fewer(facts, leaves))
        found = errors(judge_case(case, rule_cases.only(rule)), rule.code)
        return any(same_place(item.at, finding.at) for item in found)

    return stands


def hold_to_its_properties(finding: Finding, stands: Stands) -> None:
    proof = finding.proof
    assert stands(proof), f"{finding.code} {finding.at} does not stand on {proof}"
    for leaf in proof[:: max(1, len(proof) // MAX_TRIED)]:
        assert not stands([item for item in proof if item != leaf]), f"{finding.code} {finding.at} does not need {leaf}"


@pytest.mark.slow
@pytest.mark.parametrize("case", ON_RECEIPTS, ids=str)
def test_an_error_on_a_receipt_stands_on_its_proof_and_on_nothing_less(case: RuleCase) -> None:
    rule, table = RULES.get(case.code), case.table
    parsed = rule_cases.parsed(rule_cases.build(table))
    facts = rule_cases.facts_of(table.get("facts"), base_name=table.get("base", "cpu"))
    lane = rulebook().lanes.of(parsed.receipt.run.lane)
    found = errors(judge_receipt(parsed, lane, rule_cases.only(rule), facts, prove=True).findings, rule.code)
    assert found
    for item in found:
        hold_to_its_properties(item, on_receipt(parsed, facts, rule, item))


@pytest.mark.slow
@pytest.mark.parametrize("case", ON_PAIRS, ids=str)
def test_an_error_on_a_pair_stands_on_its_proof_and_on_nothing_less(case: RuleCase) -> None:
    a, b, request = rule_cases.pair(case.table)
    found = errors(compare(a, b, rulebook(), replace(request, prove=True)).findings, case.code)
    assert found
    for finding in found:

        def stands(leaves: Collection[ProofLeaf], finding: Finding = finding) -> bool:
            sides = ([Reducer()(item, leaves) for item in side] for side in (a, b))
            asked = replace(request, facts=fewer(request.facts, leaves), prove=False)
            items = errors(compare(*sides, rulebook(), asked).findings, finding.code)
            return any(same_place(item.at, finding.at) for item in items)

        hold_to_its_properties(finding, stands)


@pytest.mark.slow
@settings(max_examples=unless_thorough(3, 25), suppress_health_check=list(HealthCheck), derandomize=True)
@given(
    some=st.lists(st.sampled_from([case for case in ON_RECEIPTS if "facts" not in case.table]), min_size=2, max_size=3),
    name=st.sampled_from(sorted(rule_cases.BASES)),
)
def test_every_error_on_a_generated_receipt_stands_on_its_proof(some: list[RuleCase], name: str) -> None:
    """Several offenses at once, on whatever base: each has a proof of its own."""
    tree = rule_cases.base(name)
    for case in some:
        for path, value in case.table.get("set", {}).items():
            if not path.startswith(("run.kind", "run.outcome")):
                put(tree, path, value)
    parsed = rule_cases.parsed(tree)
    lane = rulebook().lanes.of(parsed.receipt.run.lane)
    for item in judge_receipt(parsed, lane, RULES, prove=True).findings:
        if item.level is Level.ERROR:
            hold_to_its_properties(item, on_receipt(parsed, None, RULES.get(item.code), item))


def put(tree: dict[str, Any], path: str, value: Any) -> None:
    try:
        rule_cases.put(tree, path, value)
    except (IndexError, KeyError, TypeError):
        return  # a row that this base does not have


def test_the_proof_of_a_verdict_names_leaves_that_their_receipts_state() -> None:
    tree = rule_cases.build({"base": "megatron", "set": {"path.witnessed.posture": "whole_graph"}})
    parsed = rule_cases.parsed(tree)
    lane = rulebook().lanes.of(parsed.receipt.run.lane)
    told = verdict_to_json(judge_receipt(parsed, lane, RULES, prove=True))
    proofs = {item["code"]: item["proof"] for item in told["findings"] if item["level"] == "E"}
    assert {leaf["path"] for leaf in proofs["R302"]} == {"compile.posture", "path.witnessed.posture"}
    assert all(leaf["receipt"] == parsed.id for leaf in proofs["R302"])
    assert all(not item["proof"] for item in told["findings"] if item["level"] != "E")


def test_a_receipt_that_is_reduced_states_what_is_kept_and_the_required_keys_alone() -> None:
    parsed = rule_cases.parsed(rule_cases.base("megatron"))
    kept = {
        ProofLeaf(parsed.id, path) for path in ("model.hidden", "wheels.torch.version", "memory.chips[3].peak_bytes")
    }
    kept = {leaf for leaf in kept if leaf.path in parsed.stated} | {ProofLeaf("another", "model.depth")}
    left = Reducer()(parsed, kept)
    assert left.id == parsed.id
    beside = {path for path in left.stated if not is_required(path) and not path.startswith("memory.chips[0].")}
    assert beside <= {leaf.path for leaf in kept}
    assert left.receipt.run.launch == parsed.receipt.run.launch
