"""``receipts report outcomes``."""

from __future__ import annotations

from pathlib import Path

import click

from receipts.cli.session import Answer, Session, verb


@verb("outcomes", json=False)
@click.argument("out", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE")
def report(session: Session, out: Path) -> Answer:
    """Write how the launches of each lane ended, as Markdown.

    Examples:
      receipts report outcomes outcomes.md
    """
    from receipts.publish.markup import markdown
    from receipts_outcomes.question import outcomes

    out.write_text(f"{markdown(outcomes(session).page(), document=True)}\n")
    return Answer(None, f"wrote {out}")


REPORT = report
