"""Whether a plan can be laid out on its chips at all: by the rules on degrees, heads, experts and patterns."""

from __future__ import annotations

from receipts.axes.lane import Lane
from receipts.base.errors import Problem
from receipts.judging.judge import judge_case
from receipts.judging.rule import Case
from receipts.judging.rulebook import RuleSet
from receipts.judging.topic import Topic
from receipts.judging.verdict import Level
from receipts.metrics import Launch
from receipts.receipt import Parsed


def torn(plan: Parsed, lane: Lane, rules: RuleSet) -> list[Problem]:
    """Why no launch can have this layout, each with its place; empty where nothing that is stated forbids it."""
    findings = judge_case(Case(Launch(plan, lane), lane, None), rules)
    return [
        Problem(item.at, f"{item.code} {item.name}: {item.found}, expected {item.expected}", item.do)
        for item in findings
        if item.code in rules.about(Topic.LAYOUT) and item.level is Level.ERROR and not item.unjudged
    ]
