"""``receipts rules``, ``lanes``, ``axes`` and ``init``: the contracts in force, and a template that follows them.

The rules and lanes in force, every leaf of a receipt, and the skeleton of a receipt or plan for a lane.
"""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import asdict
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any

import click

from receipts.base import files
from receipts.base.errors import NotFound, near
from receipts.cli.session import Answer, Session, verb
from receipts.publish.page import Page, Table, table_of

if TYPE_CHECKING:
    from receipts.axes.lane import Lane
    from receipts.receipt.leaves import Leaf


@verb("rules")
@click.argument("code", required=False)
def rules(session: Session, code: str | None) -> Answer:
    """List the rules in force, or print the page of one (by code or name).

    Examples:
      receipts rules
      receipts rules C101
      receipts rules cold_start
    """
    rules = session.rulebook.rules
    chosen = [rules.get(code)] if code else list(rules.rules)
    keys = ("code", "name", "level", "subject", "question", "taints", "page")
    data = {"rules": rules.digest, "list": [{key: getattr(item, key) for key in keys} for item in chosen]}
    if code:
        item = chosen[0]
        taints = ", ".join(item.taints) or "nothing"
        about = f"level {item.level.value} · on a {item.subject} · speaks to {item.question.value} · taints {taints}"
        return Answer(data, f"{item.page}\n\n{about}")
    rows = (
        (item.code, item.name, item.level.value, item.subject, item.question.value, ", ".join(item.taints) or "-")
        for item in chosen
    )
    note = f"{len(chosen)} rules, digest {rules.digest[:12]}; receipts rules CODE prints a page"
    return Answer(data, table_of("", "code | name | level | on | question | taints", rows), notes=(note,))


@verb("lanes")
@click.argument("name", required=False)
def lanes(session: Session, name: str | None) -> Answer:
    """List the lanes, or show one in full.

    Examples:
      receipts lanes
      receipts lanes nvidia-megatron
      receipts lanes --json
    """
    lanes = session.rulebook.lanes
    chosen = [lanes.get(item) for item in ([name] if name else lanes.names())]
    rows = ((item.name, str(item.version), ", ".join(item.accelerators) or "any", item.title) for item in chosen)
    listed = table_of("", "lane | version | !accelerators ^1 | title…", rows)
    return Answer(lambda: list(map(asdict, chosen)), _lane_page(chosen[0]) if name else listed)


def _lane_page(lane: Lane) -> Page:
    headline = f"{lane.name}@{lane.version}  {lane.title}"
    stated = {key: value for key, value in asdict(lane).items() if value not in (None, (), {}, "", False)}
    named = (key for key in stated if key not in ("name", "version", "title"))
    return Page(lane.name, (headline,), facts=tuple((key.replace("_", " "), (_text(stated[key]),)) for key in named))


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{key} ({_text(item)})" for key, item in value.items() if item not in (None, ""))
    if isinstance(value, tuple | list):
        return ", ".join(_text(item) for item in value)
    return str(value)


@verb("axes")
@click.argument("prefix", required=False)
@click.option(
    "--role",
    type=click.Choice(["axis", "replicate", "block", "derived", "regime", "work", "observation", "outcome", "note"]),
    help="Only leaves of this role.",
)
def axes(session: Session, prefix: str | None, role: str | None) -> Answer:
    """List every leaf of a receipt: its meaning, and the axis it counts under; of one leaf also what it takes.

    Examples:
      receipts axes
      receipts axes --role axis
      receipts axes parallelism
      receipts axes batch.micro_batch
      receipts axes --json
    """
    from receipts.receipt.leaves import leaves

    matching = [
        leaf
        for leaf in leaves()
        if (role is None or leaf.role == role)
        and (prefix is None or leaf.path == prefix or leaf.path.startswith(f"{prefix}.") or leaf.axis == prefix)
    ]
    if not matching:
        of_role = f" of role {role}" if role else ""
        hint = near(prefix or "", [leaf.path for leaf in leaves()])
        raise NotFound(f"no leaf{of_role} starts with {prefix!r}; see: receipts axes{hint}")
    return Answer(lambda: [asdict(leaf) for leaf in matching], lambda: _shown(matching))


def _shown(matching: Sequence[Leaf]) -> Page | Table:
    """One leaf with what it takes, or several as a table."""
    if len(matching) == 1:
        from receipts.ingest.leaves import taken
        from receipts.publish.leaf import page

        return page(matching[0], taken(matching[0].path.replace("*", "NAME")))
    rows = []
    for leaf in matching:
        counts = (leaf.axis or "").replace("path.intended.", "path.")
        rows.append((leaf.path, leaf.role.value, "itself" if counts == leaf.path else counts or "-", leaf.description))
    return table_of("", "leaf | role | axis ^1 | what it is", rows)


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
