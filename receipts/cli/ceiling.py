"""``receipts ceiling``: the largest shapes that a lane sustained, and the nearest that ran out of memory."""

from __future__ import annotations

import click

from receipts.base.errors import NotFound
from receipts.base.units import moment
from receipts.cli.session import Session
from receipts.cli.verb import Answer, verb


@verb("ceiling")
@click.option("--lane", "-l", required=True, metavar="LANE", help="The lane's name.")
@click.option("--since", metavar="DATE", help="Only launches that started on this day or later.")
def command(session: Session, lane: str, since: str | None) -> Answer:
    """Show the largest shapes that a lane sustained, the nearest that ran out of memory, and the gap between.

    A shape is sequence length, micro batch and depth. Each model (by its axes, not its name), accelerator, layout,
    recompute policy, precision, optimizer and number of chips has its own shapes. Only measured training launches that
    were neither superseded nor retracted count.

    Examples:
      receipts ceiling --lane tpu-torch-xla
      receipts ceiling --lane nvidia-megatron --since 2026-03-01
      receipts ceiling --lane nvidia-megatron --json

    validated: three launches on two days or two hosts; repeated: two launches; peak: one.
    Exit codes: 0 a shape was sustained repeatedly, 2 no such lane, 3 none was.
    """
    from receipts.base.errors import near
    from receipts.publish.report.sections.ceilings import ceilings
    from receipts.publish.report.template import page
    from receipts.questions.ceiling import as_data

    begin = moment("--since", since) if since is not None else None
    known = ceilings(session.store, lane, since=begin)
    groups, shapeless = known.reached
    lanes = session.rulebook.lanes.names()
    if not groups and not shapeless and lane not in lanes:
        hint = near(lane, lanes)
        raise NotFound(f"no launch of a lane {lane!r}, and no such lane is declared; see: receipts lanes{hint}")
    return Answer(
        lambda: as_data(lane, known.reached, known.described, known.pressures),
        lambda: page("weekly/ceilings.j2", {"lane": session.rulebook.lanes.of(lane), "ceilings": known}),
        0 if any(item.grade != "peak" for group in groups for item in group.ceilings) else 3,
    )
