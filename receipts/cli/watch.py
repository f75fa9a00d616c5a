"""``receipts watch``: incidents that open where a line became slower, and close where it recovered."""

from __future__ import annotations

import click

from receipts.cli import output
from receipts.cli.session import Session, pass_session
from receipts.cli.sides import METRIC

EPILOG = """\b
Examples:
  receipts watch
  receipts watch --since 1d --lane nvidia-megatron --owner perf-oncall
  receipts watch --since 7d --format markdown

Run it after every submit, or from cron: one change point is one incident, however many runs see it. A step counts once
a second launch confirms it. Exit codes: 0 nothing new, 1 a new incident, 2 wrong call, 4 the store failed."""


@click.command("watch", epilog=EPILOG)
@click.option("--since", metavar="TIME", default="7d", show_default=True, help="Lines with a launch submitted since.")
@click.option("--lane", metavar="LANE", help="One lane only.")
@METRIC
@click.option("--owner", metavar="NAME", help="Who looks after incidents that open now.")
@click.option("--format", "form", type=click.Choice(["text", "markdown", "json"]), default="text", show_default=True)
@click.option("--json", "as_json", is_flag=True, help="The same as --format json.")
@pass_session
def command(
    session: Session, since: str, lane: str | None, metric: str, owner: str | None, form: str, as_json: bool
) -> int:
    """Look at every line with new launches; open an incident where one stepped for the worse."""
    from receipts.base.extras import extra
    from receipts.cli.moments import moment
    from receipts.questions.history.watch import watch

    extra("ruptures", "history")
    if lane is not None:
        session.rulebook.lanes.get(lane)
    begin = moment("--since", since)
    with session.open_store() as store:
        seen = watch(store, session.rulebook, begin, metric=metric, lane=lane, owner=owner)
    if form == "json" or as_json:
        output.as_json(
            {
                "lines": seen.lines,
                "opened": [item._asdict() for item in seen.opened],
                "closed": [item._asdict() for item in seen.closed],
                "open": [item._asdict() for item in seen.still_open],
            }
        )
    else:
        from receipts.publish.history import watched

        shown = watched(seen)
        if form == "markdown":
            from receipts.publish.render.markdown import markdown

            output.line(markdown(shown))
        else:
            output.show(shown)
    return 1 if seen.opened else 0
