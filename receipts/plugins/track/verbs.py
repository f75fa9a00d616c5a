"""``receipts history``, ``watch`` and ``incident``: a line over time, where its level changed, and incidents.

An incident opens where a line became slower, and closes where it recovered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

import click

from receipts.api.question import Metric
from receipts.cli.asked import as_option
from receipts.cli.asked import command as command_of
from receipts.cli.session import Answer, Session, group, verb
from receipts.plugins.track.questions import incidents

if TYPE_CHECKING:
    from receipts.plugins.track.watch import Notice


def outbox(session: Session) -> Callable[[Iterable[Notice]], None]:
    """What sends notices to the targets of the ``receipts.toml``, and what earlier calls kept for them."""
    from receipts.base.plugins import service

    config = session.config
    if not (config.webhooks or config.notify):
        return lambda _notices: None
    asked = service("notices", "webhooks and notify")
    box = asked.Outbox(asked.targets(config.webhooks, config.notify), session.target)

    def send(notices: Iterable[Notice]) -> None:
        box.retry()
        box.send(notices)

    return send


@verb("watch")
@click.option("--since", metavar="TIME", default="7d", show_default=True, help="Lines with a launch submitted since.")
@click.option("--lane", metavar="LANE", help="One lane only.")
@as_option("metric", Metric, "tokens_per_second")
@click.option("--owner", metavar="NAME", help="Who looks after incidents that open now.")
@click.option("--format", "form", type=click.Choice(["text", "markdown", "json"]), default="text", show_default=True)
def watch_command(session: Session, since: str, lane: str | None, metric: str, owner: str | None, form: str) -> Answer:
    """Look at every line with new launches; open an incident where one stepped for the worse.

    What opens, gets worse or closes is sent to the webhooks and notify targets of the receipts.toml.

    Examples:
      receipts watch
      receipts watch --since 1d --lane nvidia-megatron --owner perf-oncall
      receipts watch --since 7d --format markdown

    Run it after every submit, or from cron: one change point is one incident, however many runs see it. A step counts
    once a second launch confirms it. Exit codes: 0 nothing new, 1 a new incident, 2 wrong call, 4 the store failed.
    """
    from receipts.base.environment import extra
    from receipts.base.units import moment
    from receipts.plugins.track.pages import watched
    from receipts.plugins.track.watch import watch
    from receipts.publish.markup import markdown

    extra("ruptures", "history")
    send = outbox(session)
    if lane is not None:
        session.rulebook.lanes.get(lane)
    begin = moment("--since", since)
    seen = watch(session.store, session.rulebook, begin, metric=metric, lane=lane, owner=owner)
    send(seen.notices)
    groups = {"opened": seen.opened, "closed": seen.closed, "open": seen.still_open}
    data = {name: [item._asdict() for item in events] for name, events in groups.items()}  # type: ignore[attr-defined]
    shown = watched(seen)
    session.as_json |= form == "json"
    printed = markdown(shown) if form == "markdown" else shown
    return Answer({"lines": seen.lines, **data}, printed, 1 if seen.opened else 0)


@group("incident")
def incident() -> None:
    """List the incidents that watch opened, or close one.

    Examples:
      receipts incident list
      receipts incident list --all --json
      receipts incident close 4f2a --reason "expected: the new data mix"

    An incident that is closed is not opened again for the same change point.
    """


incident.add_command(command_of(incidents))


@verb("close", of=incident)
@click.argument("incident", metavar="ID")
@click.option("--reason", required=True, help="Why; it stays with the incident.")
def incident_close(session: Session, incident: str, reason: str) -> Answer:
    """Close an incident, with the reason.

    Examples:
      receipts incident close 4f2a --reason "expected: the new data mix"

    The id may be shortened while it names one incident.
    """
    from receipts.plugins.track import watch

    send = outbox(session)
    closed, notice = watch.close(session.store, incident, reason)
    send([notice])
    return Answer(closed._asdict(), f"closed {closed.id}: {reason}")
