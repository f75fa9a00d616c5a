"""A depth that no model has is not laid out: the estimate then names it as what is missing."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from receipts.estimate.resolve import resolve
from receipts.receipt.load import Document
from receipts.receipt.parse import parse

PLAN = Path(__file__).parents[2] / "examples" / "fit" / "dense-none-16k.json"


@pytest.mark.parametrize("leaf", ["depth", "mtp_depth"])
def test_an_absurd_depth_is_missing_and_not_counted(leaf: str) -> None:
    tree = json.loads(PLAN.read_bytes())
    tree["model"][leaf] = 10**9
    result = resolve(parse(Document(json.dumps(tree).encode(), "plan.json")).stated)
    assert [path.partition(" ")[0] for path in result.missing] == [f"model.{leaf}"]
