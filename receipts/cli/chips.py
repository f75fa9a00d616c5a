"""``receipts chips``: memory by physical chip, drawn over the topology."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from receipts.cli import output
from receipts.cli.session import Session, fetch, is_file
from receipts.cli.verb import verb

if TYPE_CHECKING:
    from receipts.metrics.chips import Metric
    from receipts.receipt import Parsed


@verb("chips")
@click.argument("a", metavar="ID|FILE")
@click.argument("b", metavar="[B]", required=False)
@click.option(
    "--phase",
    type=click.Choice(["post_init", "post_compile", "post_step0", "steady"]),
    help="The phase to draw. Default: the one in which the figure is worst.",
)
@click.option(
    "--metric",
    "-m",
    type=click.Choice(["used", "peak", "pool", "headroom"]),
    help="In use, live peak, pool peak, or headroom: the limit less the live peak. Default: the first stated of live "
    "peak, pool peak and in use.",
)
@click.option("--svg", "svg", metavar="FILE", help="Also write the picture to this file.")
def command(session: Session, a: str, b: str | None, phase: str | None, metric: Metric | None, svg: str | None) -> int:
    """Draw memory by physical chip: which uses most, which peaks earlier, what is left; or what B changed against A.

    Examples:
      receipts chips 3f9c
      receipts chips run.json --phase post_compile --metric pool
      receipts chips 3f9c --metric headroom --svg headroom.svg
      receipts chips before.json after.json
      receipts chips 3f9c 81aa --json

    Each cell is a physical chip: v6e and v5p slices by coordinates, other machines one row per host. Amounts are GiB
    (bytes in --json). Live peak, pool peak and memory in use are never mixed, and one figure for several chips counts
    for none of them. With B, cells show B less A, and the last line states whether pressure fell or moved. Exit codes:
    0 drawn, 2 wrong call or input, 3 no figure of a single chip is stated.
    """
    from receipts.base.errors import UsageError
    from receipts.publish.chip_map import changed, one

    sides = fetch(session, [a] if b is None else [a, b])
    lanes = session.rulebook.lanes
    if b is None and svg is not None and len(sides[0]) > 1:
        raise UsageError(f"{a} names {len(sides[0])} receipts, and --svg draws one; name one of them by its id")
    if b is not None:
        spread = None if all(map(is_file, (a, b))) else _spread(session, sides[0][0])
        maps = [changed(sides, phase, metric, spread)]
    else:
        maps = [one(parsed, lanes.of(parsed.receipt.run.lane), phase, metric) for parsed in sides[0]]
    for item in maps:
        if svg is not None and item.heat is not None:
            output.picture(svg, item.page.sections[0].figures[0].draw("chips"))
        output.answer(session.as_json, item.data, item.page)
    return 0 if all(item.known for item in maps) else 3


def _spread(session: Session, parsed: Parsed) -> float | None:
    """The largest difference of one chip's live peak between equal launches of the store."""
    from receipts.questions.noise import noise_floor

    return noise_floor(session.store, parsed, session.rulebook.lanes.of(parsed.receipt.run.lane)).chip_spread
