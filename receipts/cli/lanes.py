"""``receipts lanes``: the contracts that a launch may be held to."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Any

import click

from receipts.cli import output
from receipts.cli.session import Session, pass_session
from receipts.publish.page import Column

if TYPE_CHECKING:
    from receipts.axes.lane import Lane

EPILOG = """\b
Examples:
  receipts lanes
  receipts lanes nvidia-megatron
  receipts lanes --json"""


@click.command("lanes", epilog=EPILOG)
@click.argument("name", required=False)
@click.option("--json", "as_json", is_flag=True, help="Print the lanes as JSON.")
@pass_session
def command(session: Session, name: str | None, as_json: bool) -> int:
    """List the lanes, or show one in full."""
    lanes = session.rulebook.lanes
    if as_json:
        output.as_json([asdict(lanes.get(item)) for item in ([name] if name else lanes.names())])
    elif name:
        _show(lanes.get(name))
    else:
        shipped = [lanes.get(item) for item in lanes.names()]
        rows = [(item.name, str(item.version), ", ".join(item.accelerators) or "any", item.title) for item in shipped]
        columns = ("lane", "version", Column("accelerators", rank=1, whole=True), Column("title", cut=True))
        output.show(output.listed(columns, rows))
    return 0


def _show(lane: Lane) -> None:
    output.line(output.paint(f"{lane.name}@{lane.version}  {lane.title}", "head"))
    for key, value in asdict(lane).items():
        if key in ("name", "version", "title") or value in (None, (), {}, "", False):
            continue
        output.wrapped(f"{key.replace('_', ' ')}: {_text(value)}", 2, 6)


def _text(value: Any) -> str:
    if isinstance(value, dict):
        return "; ".join(f"{key} ({_text(item)})" for key, item in value.items() if item not in (None, ""))
    if isinstance(value, tuple | list):
        return ", ".join(_text(item) for item in value)
    return str(value)
