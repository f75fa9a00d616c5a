"""The ladder on a recorder's receipt: a flag that is stated with its source is no changed flag."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import rule_cases
from receipts.plugins.run.command import CommandWords
from receipts.plugins.run.walk import Walk
from receipts.questions.plan import parse_plan, write_plan
from receipts.receipt import Document, Parsed

FLAGS = {"OMP_NUM_THREADS": {"value": "2", "before_runtime": True}, "XLA_FLAGS.--xla_dump": {"value": True}}


def walk(plan: Parsed, *words: str) -> Walk:
    """A walk of a plan whose command has these words; nothing of it is launched."""
    session: Any = SimpleNamespace(rulebook=rule_cases.rulebook())
    launcher: Any = SimpleNamespace(words=CommandWords(words))
    nothing: Any = None
    return Walk(session, nothing, plan, launcher, nothing, None, force=True)


def test_a_rung_of_a_recorders_receipt_changes_only_what_it_changes() -> None:
    tree = rule_cases.base()
    tree["flags"] = FLAGS
    plan = rule_cases.parsed(tree)
    micro = plan.stated["batch.micro_batch"]
    other = parse_plan(Document(write_plan(plan, {"batch.micro_batch": micro // 2}), "rung"))
    assert walk(plan, "train", "{batch.micro_batch}", "{batch.accumulation}").ask(other).why == "not asked: --force"
    without = walk(plan, "train", "{batch.accumulation}").ask(other)
    assert without.why == "the command takes no {batch.micro_batch}"
