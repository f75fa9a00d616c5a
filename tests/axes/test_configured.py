"""Rules on the configuration are asked once for all of its launches: what they find hangs on nothing else."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import rule_cases
from receipts.axes import effective
from receipts.axes.configuration import configuration
from receipts.axes.replicates import MAX_SETTINGS, SettingsCache, configuration_key, stated_configuration
from receipts.axes.shape import shape_key, sign
from receipts.base.errors import InputError
from receipts.judging.judge import judge_case
from receipts.judging.rule import Case, I, Offense, Rule, rule
from receipts.judging.rulebook import RuleSet
from receipts.judging.verdict import Finding
from receipts.metrics import Launch
from thorough import unless_thorough

RULES = rule_cases.rulebook().rules


@cache
def _launches() -> tuple[Launch, ...]:
    """The receipts of all rule cases, under their lanes."""
    rules = [item for item in RULES.rules if item.subject == "receipt"]
    trees = [rule_cases.build(case.table) for item in rules for case in rule_cases.read_cases(item.code)]
    receipts = [rule_cases.parsed(tree) for tree in trees]
    return tuple(Launch(item, rule_cases.rulebook().lanes.of(item.receipt.run.lane)) for item in receipts)


def _judged(tree: dict[str, Any], *rules: Rule) -> tuple[Finding, ...]:
    """Findings of a rule set of its own, for which nothing is kept yet."""
    return rule_cases.judge_tree(tree, RuleSet(rules, ""))


def _leaves(tree: dict[str, Any]) -> list[str]:
    stated = rule_cases.parsed(tree).stated
    return [path for path in stated if not path.startswith(("schema_version", "run.")) and "[" not in path]


@pytest.mark.slow
@pytest.mark.parametrize("item", RULES.of_configuration, ids=lambda item: item.code)
def test_a_rule_on_the_configuration_finds_in_all_of_a_receipt_what_it_finds_in_its_configuration(item: Rule) -> None:
    alone, whole = RuleSet((item,), ""), RuleSet((replace(item, of_configuration=False),), "")
    found = 0
    for launch in _launches():
        case = Case(launch, launch.lane)
        findings = judge_case(case, alone)
        assert findings == judge_case(case, whole)
        found += len(findings)
    assert found


@pytest.mark.slow
@settings(max_examples=unless_thorough(8, 30))
@given(seed=st.randoms(use_true_random=False), name=st.sampled_from(sorted(rule_cases.BASES)))
def test_what_was_judged_before_changes_no_verdict(seed: Any, name: str) -> None:
    trees = []
    for _ in range(6):
        tree = rule_cases.base(name)
        for path in seed.sample(_leaves(tree), seed.randint(0, 2)):
            tree = _changed(tree, path, drop=seed.random() < 0.5)
        trees.append(tree)
    together = RuleSet(RULES.rules, RULES.digest)
    for tree in seed.choices(trees, k=12):
        assert rule_cases.judge_tree(tree, together) == _judged(tree, *RULES.rules)


def _changed(tree: dict[str, Any], path: str, *, drop: bool) -> dict[str, Any]:
    """The tree without a leaf, or with another value of the same kind; as it is where that would be no receipt."""
    changed = copy.deepcopy(tree)
    if drop:
        rule_cases.take(changed, path)
    else:
        value = rule_cases.parsed(tree).stated[path]
        other = (not value) if isinstance(value, bool) else value * 2 if isinstance(value, int | float) else value
        rule_cases.put(changed, path, other)
    try:
        rule_cases.parsed(changed)
    except InputError:
        return tree
    return changed


@pytest.mark.parametrize("name", sorted(rule_cases.BASES))
def test_two_receipts_have_one_key_where_their_configurations_are_one(name: str) -> None:
    tree = rule_cases.base(name)
    whole = rule_cases.parsed(tree)
    kept = set(stated_configuration(whole).stated)
    assert {"model.depth", "parallelism.tensor", "path.intended.framework"} <= kept
    for path in _leaves(tree):
        left = rule_cases.base(name)
        if not rule_cases.take(left, path):
            continue  # a part of an entry of an open map
        assert (configuration_key(rule_cases.parsed(left)) != configuration_key(whole)) == (path in kept), path


@pytest.mark.parametrize(("one", "other"), [(1, True), (1, "1"), (1, 1.5), (0, False), ("true", True)])
def test_values_of_different_kinds_are_different_configurations(one: Any, other: Any) -> None:
    assert _key_with("features.switch", one) != _key_with("features.switch", other)


def test_what_fell_back_is_part_of_the_configuration() -> None:
    assert _key_with("path.witnessed.fallbacks", {}) != _key_with("path.witnessed.fallbacks", {"aten::median": 2})


def test_numbers_that_no_machine_word_holds_make_a_key() -> None:
    assert _key_with("features.switch", 2**70) != _key_with("features.switch", 2**70 + 1)


def _key_with(path: str, value: Any) -> bytes:
    tree = rule_cases.base()
    rule_cases.put(tree, path, value)
    return configuration_key(rule_cases.parsed(tree))


def test_a_rule_on_the_configuration_is_shown_nothing_that_was_measured() -> None:
    shown: list[Any] = []

    @rule("X900", "measures", I, of_configuration=True)
    def measures(case: Case) -> Iterator[Offense]:
        """Looks at everything."""
        shown.append((case.launch.durations, case.get("memory.chips[0].peak_bytes"), case.get("run.launch")))
        shown.append(case.get("model.depth"))
        yield from ()

    tree = rule_cases.base()
    _judged(tree, vars(measures)["__receipts_rule__"])
    assert shown == [((), None, None), tree["model"]["depth"]]


def test_a_rule_on_the_configuration_is_asked_once_for_all_launches_of_it() -> None:
    asked: list[str] = []

    @rule("X901", "counts", I, of_configuration=True)
    def counts(case: Case) -> Iterator[Offense]:
        """Counts how often it is asked."""
        asked.append(case.get("data.tokenizer"))
        yield Offense("data.tokenizer", "found", "expected", "do")

    rules = RuleSet((vars(counts)["__receipts_rule__"],), "")
    tree = rule_cases.base()
    ids = set()
    for number in range(3):
        tree["run"]["launch"] = f"launch-{number}"
        (found,) = rule_cases.judge_tree(tree, rules)
        assert found.receipt == rule_cases.parsed(tree).id
        ids.add(found.receipt)
    rule_cases.put(tree, "data.tokenizer", "another")
    rule_cases.judge_tree(tree, rules)
    assert len(ids) == 3
    assert asked == [rule_cases.base()["data"]["tokenizer"], "another"]


def test_what_a_session_and_a_rule_set_hold_is_bounded() -> None:
    session, rules = SettingsCache(), RuleSet(RULES.rules, RULES.digest)
    for number in range(MAX_SETTINGS + 2):
        tree = rule_cases.base()
        rule_cases.put(tree, "data.tokenizer", f"tokenizer {number}")
        session.settings(rule_cases.parsed(tree))
        rules.findings_of_configuration[str(number).encode()] = rule_cases.rulebook().lanes.of("cpu-torch"), ()
    assert repr(session) == "SettingsCache(2 settings)"
    assert len(rules.findings_of_configuration) == 2


def test_launches_of_one_configuration_share_what_follows_from_it() -> None:
    rulebook = rule_cases.rulebook()
    one, again, other = (rule_cases.base() for _ in range(3))
    rule_cases.put(again, "run.launch", "again")
    rule_cases.put(other, "numerics.learning_rate", 99)
    first, second, third = (rulebook.launch(rule_cases.parsed(tree)) for tree in (one, again, other))
    assert first.settings is second.settings
    assert first.settings is not third.settings
    assert first.parsed.id != second.parsed.id


@pytest.mark.slow
def test_what_is_shared_is_what_each_receipt_says_alone() -> None:
    session = SettingsCache()
    for launch in _launches() * 2:
        parsed, shared = launch.parsed, session.settings(launch.parsed)
        assert shared.effective == effective(parsed)
        assert shared.shape == shape_key(parsed)
        assert shared.signature(launch.lane) == sign(parsed, launch.lane)
        assert shared.signature_name == sign(parsed, launch.lane).signature
        assert shared.configuration(parsed, launch.lane) == configuration(parsed, launch.lane)
