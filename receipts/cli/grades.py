"""The option that asks for a grade of evidence."""

from __future__ import annotations

import click

# As in `receipts.axes.lane`, which no --help may load.
GRADES = ("typed", "recorded", "evidenced", "kept")
GRADE = click.option(
    "--grade", type=click.Choice(GRADES), default=GRADES[0], help="Ask every receipt for at least this grade (R316)."
)
