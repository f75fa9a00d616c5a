"""Every rule has a page and cases, and every case comes out as it says."""

from __future__ import annotations

import pytest

import rule_cases
from receipts.judging.rule import Rule
from receipts.judging.verdict import Level
from rule_cases import RuleCase, rulebook

RULES = rulebook().rules.rules
JUDGED = list(RULES)
CASES = [case for rule in JUDGED for case in rule_cases.read_cases(rule.code)]
BASES = sorted(rule_cases.BASES)


def _of(kind: str) -> list[RuleCase]:
    return [case for case in CASES if case.kind == kind]


@pytest.mark.parametrize("rule", RULES, ids=lambda rule: rule.code)
def test_a_rule_has_a_page_with_why_rejected_and_accepted(rule: Rule) -> None:
    assert rule.page.startswith(f"# {rule.code} {rule.name}\n")
    for part in ("*Why.*", "*Rejected.*", "*Accepted.*"):
        assert part in rule.page, f"{rule.code}: its page lacks {part}"


@pytest.mark.parametrize("rule", JUDGED, ids=lambda rule: rule.code)
def test_a_rule_has_rejected_and_accepted_cases(rule: Rule) -> None:
    kinds = {case.kind for case in rule_cases.read_cases(rule.code)}
    assert {"rejected", "accepted"} <= kinds, f"write tests/cases/{rule.code}.toml; it has {sorted(kinds)}"


@pytest.mark.parametrize("rule", JUDGED, ids=lambda rule: rule.code)
def test_an_error_that_needs_facts_has_an_unjudged_case(rule: Rule) -> None:
    if rule.level is not Level.ERROR or not rule.needs:
        return
    kinds = {case.kind for case in rule_cases.read_cases(rule.code)}
    assert "unjudged" in kinds, f"{rule.code} needs facts: show one that is missing in tests/cases/{rule.code}.toml"


def test_no_cases_stand_without_a_rule() -> None:
    codes = {rule.code for rule in RULES}
    strangers = {path.stem for path in rule_cases.FOLDER.glob("[A-Z][0-9]*.toml")} - codes
    assert not strangers


@pytest.mark.parametrize("case", _of("rejected"), ids=str)
def test_a_rejected_case_is_found_at_its_path(case: RuleCase) -> None:
    rule = rulebook().rules.get(case.code)
    found = rule_cases.findings(case, rule)
    assert case.at, "state `at`, the path of the finding"
    wanted = [item for item in found if item.at == case.at and item.level is case.level(rule) and not item.unjudged]
    if "side" in case.table:
        wanted = [item for item in wanted if item.subject == case.table["side"]]
    assert wanted, f"found {[(str(item.level), item.at, item.found) for item in found]}"
    for item in wanted:
        assert item.found
        assert item.expected
        assert case.table.get("do", "") in item.do != ""


@pytest.mark.parametrize("case", _of("accepted"), ids=str)
def test_an_accepted_case_is_left_alone(case: RuleCase) -> None:
    found = rule_cases.findings(case, rulebook().rules.get(case.code))
    assert not found, f"found {[(str(item.level), item.at, item.found) for item in found]}"


@pytest.mark.parametrize("case", _of("unjudged"), ids=str)
def test_a_missing_fact_leaves_the_question_open(case: RuleCase) -> None:
    rule = rulebook().rules.get(case.code)
    found = rule_cases.findings(case, rule)
    assert case.at, "state `at`, the path of the fact that is missing"
    wanted = [item for item in found if item.at == case.at and item.level is Level.OPEN]
    if rule.subject == "receipt":
        wanted = [item for item in wanted if item.unjudged]
    assert wanted, f"found {[(str(item.level), item.at, item.found) for item in found]}"


@pytest.mark.parametrize("name", BASES)
@pytest.mark.parametrize("rule", [rule for rule in JUDGED if rule.subject == "receipt"], ids=lambda rule: rule.code)
def test_the_clean_bases_have_no_error_and_no_open_question(rule: Rule, name: str) -> None:
    found = rule_cases.judge_tree(rule_cases.base(name), rule_cases.only(rule))
    heavy = [item for item in found if item.level is not Level.SHOWN]
    assert not heavy, [(item.code, str(item.level), item.at, item.found) for item in heavy]
