"""The ladder on a recorder's receipt: a flag that is stated with its source is no changed flag."""

from __future__ import annotations

from types import SimpleNamespace
from typing import cast

import rule_cases
from receipts.plugins.run.command import CommandWords
from receipts.plugins.run.walk import RunTools, _asking
from receipts.questions.plan import parse_plan, write_plan
from receipts.questions.preflight import PreflightAnswer
from receipts.receipt import Document

FLAGS = {"OMP_NUM_THREADS": {"value": "2", "before_runtime": True}, "XLA_FLAGS.--xla_dump": {"value": True}}
TAKEN = PreflightAnswer("unknown", "asked", "plan", "")


def test_a_rung_of_a_recorders_receipt_changes_only_what_it_changes() -> None:
    tree = rule_cases.base()
    tree["flags"] = FLAGS
    plan = rule_cases.parsed(tree)
    micro = plan.stated["batch.micro_batch"]
    other = parse_plan(Document(write_plan(plan, {"batch.micro_batch": micro // 2}), "rung"))
    tools = cast("RunTools", SimpleNamespace(ask=lambda _: TAKEN))
    words = CommandWords(["train", "{batch.micro_batch}", "{batch.accumulation}"])
    assert _asking(plan, words, tools)(other) is TAKEN
    without = _asking(plan, CommandWords(["train", "{batch.accumulation}"]), tools)(other)
    assert without.why == "the command takes no {batch.micro_batch}"
