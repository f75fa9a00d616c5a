"""Each leaf says how it meets itself, in words that the code knows; the published schema does not."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from receipts.emit.contract import contract
from receipts.emit.rank_join import JOINS
from receipts.ingest.resolve import WAYS
from receipts.receipt.leaf import AGREE, POLICIES
from receipts.receipt.leaves import leaves

SCHEMA = Path(__file__).resolve().parents[2] / "schema" / "receipt-1.schema.json"
# Of these another rank's word proves nothing of one that says otherwise: what was asked decides which of both counts.
TORN = ("path.witnessed.framework", "path.witnessed.cuda_graphs")


def test_every_way_in_which_ranks_meet_is_known() -> None:
    assert {leaf.ranks for leaf in leaves()} - {AGREE, "code"} == set(JOINS)


def test_every_way_in_which_files_meet_is_known() -> None:
    assert {leaf.files for leaf in leaves()} == set(WAYS)


def test_what_one_rank_witnessed_of_the_path_is_never_left_out() -> None:
    witnessed = [leaf for leaf in leaves() if leaf.path.startswith("path.witnessed.")]
    assert [leaf.path for leaf in witnessed if leaf.ranks == AGREE] == list(TORN)


def test_the_recorder_knows_every_declaration() -> None:
    assert contract().ranks == {leaf.path: leaf.ranks for leaf in leaves() if leaf.ranks != AGREE}
    assert contract().groups == {leaf.path: leaf.group for leaf in leaves() if leaf.group}


def test_the_published_schema_holds_no_policy() -> None:
    declared: list[set[str]] = []

    def seen(node: dict[str, Any]) -> dict[str, Any]:
        declared.append(set(node.get("x-receipts", {})))
        return node

    json.loads(SCHEMA.read_bytes(), object_hook=seen)
    assert {"role", "axis"} <= set().union(*declared)
    assert not [names for names in declared if names & set(POLICIES)]
