"""``receipts ceiling``: the largest shapes that a lane sustained, and the nearest that ran out of memory."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from receipts.base.errors import NotFound
from receipts.cli import output
from receipts.cli.moments import moment
from receipts.cli.session import Session, pass_session

if TYPE_CHECKING:
    from receipts.axes.shape import Description
    from receipts.questions.ceiling import Cause, Ceiling, Frontier, Size

EPILOG = """\b
Examples:
  receipts ceiling --lane tpu-torch-xla
  receipts ceiling --lane nvidia-megatron --since 2026-03-01
  receipts ceiling --lane nvidia-megatron --json

validated: three launches on two days or two hosts; repeated: two launches; peak: one.
Exit codes: 0 a shape was sustained repeatedly, 2 no such lane, 3 none was."""
STYLES = {"validated": "accepted", "repeated": "unknown", "peak": "dim"}


@click.command("ceiling", epilog=EPILOG)
@click.option("--lane", "-l", required=True, metavar="LANE", help="The lane's name.")
@click.option("--since", metavar="DATE", help="Only launches that started on this day or later.")
@click.option("--json", "as_json", is_flag=True, help="Print the frontiers as JSON.")
@pass_session
def command(session: Session, lane: str, since: str | None, as_json: bool) -> int:
    """Show the largest shapes that a lane sustained, the nearest that ran out of memory, and the gap between.

    A shape is sequence length, micro batch and depth. Each model (by its axes, not its name), accelerator, layout and
    number of chips has its own shapes. Only measured training launches that were neither superseded nor retracted
    count.
    """
    from receipts.axes.shape import described
    from receipts.questions.ceiling import as_data, frontiers

    begin = moment("--since", since) if since is not None else None
    with session.open_store() as store:
        rows = store.query.reached(lane, begin)
        lanes_ceilings = frontiers(rows)
        names = {item.receipt: described(store.parsed(item.receipt).stated) for item in lanes_ceilings.frontiers}
    if not rows and lane not in session.rulebook.lanes.names():
        from receipts.base.errors import near

        hint = near(lane, session.rulebook.lanes.names())
        raise NotFound(f"no launch of a lane {lane!r}, and no such lane is declared; see: receipts lanes{hint}")
    repeated = any(item.grade != "peak" for group in lanes_ceilings.frontiers for item in group.ceilings)
    if as_json:
        output.as_json(as_data(lane, lanes_ceilings, names))
        return 0 if repeated else 3
    for group in lanes_ceilings.frontiers:
        _print(group, names[group.receipt])
    if not lanes_ceilings.frontiers:
        output.line(f"no measured training launch of {lane} states a whole shape{f' since {since}' if since else ''}")
    if lanes_ceilings.shapeless:
        reason = "launches state no whole shape (chips, sequence length, micro batch, depth) and are left out"
        output.wrapped(f"{lanes_ceilings.shapeless:,} {reason}", 0)
    return 0 if repeated else 3


def _print(group: Frontier, known: Description) -> None:
    machine = group.accelerator or "accelerator not stated"
    family = " ".join(filter(None, (known.family, known.name))) or "family not stated"
    output.line(output.paint(output.clean(f"{family} on {group.chips} × {machine}"), "head"))
    words = " · ".join(filter(None, (known.model, known.layout)))
    if words:
        output.wrapped(output.clean(words), 2)
    for item in group.ceilings:
        _ceiling(item)
    for cause in group.elsewhere:
        output.wrapped(f"failed      {_size(cause.size)}", 2, 14)
        output.wrapped(f"{_cause(cause)}; beyond no shape that was sustained", 14)
    output.line()


def _ceiling(item: Ceiling) -> None:
    lead = output.paint(item.grade.ljust(10), STYLES[item.grade])
    output.line(f"  {lead}  {_size(item.size)}")
    days = f", {item.days} day{_s(item.days)}" + (f", {item.hosts} host{_s(item.hosts)}" if item.hosts else "")
    times = f"{item.launches:,} launch{'es' if item.launches != 1 else ''}"
    output.wrapped(f"{times}{days}; last {item.receipt[:12]}, {item.at:%Y-%m-%d}", 14)
    if item.failed_here:
        output.wrapped(f"and {item.failed_here:,} that ran out of memory at this very shape", 14)
    for cause in item.failures[:3]:
        output.wrapped(f"fails at    {_size(cause.size)} ({_gap(item.size, cause.size)})", 14, 26)
        output.wrapped(_cause(cause), 26)
    if not item.failures:
        output.wrapped("no failure beyond it is known: the gap is open", 14)


def _cause(cause: Cause) -> str:
    times = f"{cause.launches:,} launch{'es' if cause.launches != 1 else ''}"
    return f"{', '.join(cause.kinds)}; {times}, last {cause.receipt[:12]}, {cause.at:%Y-%m-%d}"


def _size(size: Size) -> str:
    length, micro, depth = size
    return f"{length:,} tokens × micro batch {micro:,}, depth {depth:,}"


def _gap(here: Size, there: Size) -> str:
    names = ("tokens", "micro batch", "depth")
    parts = [f"{name} ×{b / a:.3g}" for name, a, b in zip(names, here, there, strict=True) if a != b]
    return f"gap: {', '.join(parts)}"


def _s(count: int) -> str:
    return "s" if count != 1 else ""
