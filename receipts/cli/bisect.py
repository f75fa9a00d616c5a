"""``receipts bisect``: which axes made a configuration worse."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from receipts.cli.session import Session, two
from receipts.cli.sides import METRIC
from receipts.cli.verb import Answer, verb

if TYPE_CHECKING:
    from receipts.questions.bisect.bisect import Bisected


@verb("bisect")
@click.argument("good", metavar="GOOD")
@click.argument("bad", metavar="BAD")
@METRIC
@click.option("--plan", "folder", metavar="DIR", help="Write the plan of the next step here, for receipts run.")
def command(session: Session, good: str, bad: str, metric: str, folder: str | None) -> Answer:
    """Find the smallest set of axes that explains why BAD differs from GOOD, or say what to launch next.

    GOOD and BAD are files, ids or unique id prefixes, labels, label=GLOB, or @pins; a label may name launches of one
    configuration.

    Examples:
      receipts bisect @golden 81aa --plan bisect
      receipts run --plan bisect/01-torch-2.9.0.json -- python train.py --plan {plan}
      receipts bisect @golden 81aa --plan bisect        (again, until it is explained)

    Each step is a configuration between the two sides, with some axes as the bad side has them; its outcome is the
    effect of its launches, never one number. More: docs/bisect.md. Exit codes: 0 explained, 1 nothing to explain, 2
    wrong call or input, 3 run the plan.
    """
    from receipts.publish.bisect import page
    from receipts.questions.bisect.bisect import bisect

    store = session.store
    seen = bisect(store, *two(store, good, bad), session.rulebook, metric)
    written = _write(Path(folder), seen) if folder is not None else None
    data = {
        "axes": seen.axes,
        "metric": seen.metric,
        "effect": asdict(seen.direct),
        "sets": seen.sets,
        "inseparable": seen.inseparable,
        "steps": [asdict(item) for item in seen.steps],
        "avoided": [{"configuration": name, "why": why} for name, why in seen.avoided],
        "launches": seen.launches,
        "plan": written,
    }
    notes = (f"plan: {written}",) if written is not None else ()
    return Answer(data, lambda: page(seen), seen.exit_code, notes)


def _write(folder: Path, seen: Bisected) -> str | None:
    """Write the plan of the next step; one that is there already is the same step, and stays."""
    from receipts.base import files
    from receipts.questions.plan import file_name, write_plan

    if seen.plan is None:
        return None
    label = seen.plan.receipt.run.label or "as-stored"
    path = folder / f"{len(seen.steps):02d}-{file_name(label)}.json"
    if not path.exists():
        files.write_folder(folder, {path.name: write_plan(seen.plan, {"run.label": label})})
    return str(path)
