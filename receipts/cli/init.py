"""``receipts init``: the skeleton of a receipt or plan for a lane."""

from __future__ import annotations

import json
import uuid
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from receipts.base import files
from receipts.cli.session import Answer, Session, verb

if TYPE_CHECKING:
    from receipts.axes.lane import Lane


@verb("init", json=False)
@click.argument("lane")
@click.option(
    "--output",
    "-o",
    "path",
    type=click.Path(dir_okay=False),
    help="Write here; an existing file is not overwritten.",
)
def init(session: Session, lane: str, path: str | None) -> Answer:
    """Write a receipt template for LANE: required keys are filled, every other axis of the lane is null.

    A null means *not stated*. Fill in what is known and leave the rest.

    Examples:
      receipts init nvidia-megatron > run.json
      receipts init cpu-torch -o run.json
    """
    text = json.dumps(skeleton(session.rulebook.lanes.get(lane)), indent=2) + "\n"
    if path is None:
        return Answer(None, text.rstrip())
    files.write(path, text)
    return Answer(None, notes=(f"wrote {path}; fill it in, then: receipts check {path}",))


def skeleton(lane: Lane) -> dict[str, Any]:
    """The document as data: required keys, then every axis that exists for the lane, unstated."""
    from receipts.ingest.leaves import put
    from receipts.receipt import VERSION
    from receipts.receipt.leaf import Role
    from receipts.receipt.leaves import leaves

    document: dict[str, Any] = {
        "schema_version": VERSION,
        "run": {
            "launch": str(uuid.uuid4()),
            "lane": lane.name,
            "kind": "training",
            "outcome": "ok",
            "provenance": "measured",
            "started": datetime.now(UTC).isoformat(timespec="seconds"),
            "finished": None,
            "context": None,
            "host": None,
        },
    }
    wanted = {Role.AXIS, Role.REPLICATE, Role.DERIVED, Role.WORK, Role.REGIME}
    for leaf in leaves():
        shown = leaf.path.replace("path.intended.", "path.")
        if "[]" in leaf.path or (leaf.role not in wanted and not leaf.path.startswith("path.witnessed.")):
            continue
        if leaf.path.startswith("run.") or not lane.applies(shown):
            continue
        if leaf.path.endswith(".*"):
            document.setdefault(leaf.path[:-2], {})
        else:
            put(document, leaf.path, None)
    document.setdefault("measurement", {})["step_durations_seconds"] = None
    document.setdefault("memory", {})["chips"] = None
    return document
