"""``receipts outcomes`` and ``receipts report outcomes``."""

from __future__ import annotations

from pathlib import Path

import click

from receipts.cli.session import Answer, Session, verb


@verb("outcomes")
def command(session: Session) -> Answer:
    """Count how the launches of each lane ended.

    Examples:
      receipts outcomes
      receipts outcomes --json

    Exit codes: 0 counted, 3 the store has no launch.
    """
    from receipts.api.store import Store
    from receipts_outcomes.question import outcomes

    answer = outcomes(Store(session.store, session.rulebook))
    return Answer(answer.to_dict(), answer.page(), answer.exit_code)


@verb("outcomes", json=False)
@click.argument("out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE")
def report(session: Session, out: Path) -> Answer:
    """Write how the launches of each lane ended, as Markdown.

    Examples:
      receipts report outcomes outcomes.md
    """
    from receipts.api.store import Store
    from receipts.publish.markdown import markdown
    from receipts_outcomes.question import outcomes

    out.write_text(f"{markdown(outcomes(Store(session.store, session.rulebook)).page(), document=True)}\n")
    return Answer(None, f"wrote {out}")


REPORT = report
