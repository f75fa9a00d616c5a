"""``receipts watch`` and ``incident``: incidents that open where a line became slower, and close where it recovered."""

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
    from receipts.base.moments import moment
    from receipts.publish.history import watched
    from receipts.publish.render.markdown import markdown
    from receipts.questions.history.watch import watch

    extra("ruptures", "history")
    if lane is not None:
        session.rulebook.lanes.get(lane)
    begin = moment("--since", since)
    with session.open_store() as store:
        seen = watch(store, session.rulebook, begin, metric=metric, lane=lane, owner=owner)
    groups = {"opened": seen.opened, "closed": seen.closed, "open": seen.still_open}
    data = {name: [item._asdict() for item in events] for name, events in groups.items()}  # type: ignore[attr-defined]
    shown = watched(seen)
    output.answer(
        as_json or form == "json",
        {"lines": seen.lines, **data},
        lambda: markdown(shown) if form == "markdown" else shown,
    )
    return 1 if seen.opened else 0


EPILOG = """\b
Examples:
  receipts incident list
  receipts incident list --all --json
  receipts incident close 4f2a --reason "expected: the new data mix"

An incident that is closed is not opened again for the same change point."""


@click.group("incident", epilog=EPILOG)
def incident() -> None:
    """List the incidents that watch opened, or close one."""


LIST_EPILOG = """\b
Examples:
  receipts incident list
  receipts incident list --all --json"""


@incident.command("list", epilog=LIST_EPILOG)
@click.option("--all", "every", is_flag=True, help="Closed ones too.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@pass_session
def list_(session: Session, every: bool, as_json: bool) -> int:
    """List incidents, open ones first."""
    from receipts.publish.history import incidents
    from receipts.questions.history.watch import most_recent

    with session.open_store() as store:
        shown = [item for item in most_recent(store.published.incidents()) if every or item.closed is None]
    output.answer(as_json, [item._asdict() for item in shown], incidents(shown))
    return 0


CLOSE_EPILOG = """\b
Examples:
  receipts incident close 4f2a --reason "expected: the new data mix"

The id may be shortened while it names one incident."""


@incident.command("close", epilog=CLOSE_EPILOG)
@click.argument("incident", metavar="ID")
@click.option("--reason", required=True, help="Why; it stays with the incident.")
@pass_session
def close(session: Session, incident: str, reason: str) -> int:
    """Close an incident, with the reason."""
    from receipts.questions.history import watch

    with session.open_store() as store:
        closed = watch.close(store, incident, reason)
    output.line(f"closed {closed.id}: {reason}")
    return 0
