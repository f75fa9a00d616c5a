"""``receipts import mlflow``: runs that MLflow tracks."""

from __future__ import annotations

from pathlib import Path

import click

from receipts.base.units import counted
from receipts.cli import output
from receipts.cli.importing import send, to_receipts
from receipts.cli.session import Session, pass_session

EPILOG = """\b
Examples:
  receipts import mlflow mlruns
  receipts import mlflow mlruns/312 --lane nvidia-torch -o receipts/
  receipts import mlflow http://127.0.0.1:5000 --experiment 'pretrain*' --submit

A folder is a file store, an experiment of it, or a run. A database is read through `mlflow server`; a token is that of
MLFLOW_TRACKING_TOKEN. Without -o or --submit nothing is written. Exit codes: 0 every run became a receipt, 2 some did
not, 4 the server or the store failed."""


@click.command("mlflow", short_help="Import runs of MLflow.", epilog=EPILOG)
@click.argument("place", metavar="URL|DIR")
@click.option("--experiment", default="*", metavar="PATTERN", help="Only experiments of these names.")
@click.option("--lane", metavar="NAME", help="The lane of the runs.  [default: the one that fits, else unlisted]")
@to_receipts
@pass_session
def mlflow(
    session: Session, place: str, experiment: str, lane: str | None, out: Path | None, submitting: bool, as_json: bool
) -> int:
    """Read runs with their metrics, parameters and tags: one receipt for each run that has ended.

    Metrics are read under the names that frameworks log to trackers, parameters under those of a framework's arguments
    or of the receipt's leaves. MLflow need not be installed.
    """
    from fnmatch import fnmatchcase

    from receipts.receipt import Document, parse
    from receipts.workflows.published.mlflow import import_runs
    from receipts.workflows.published.mlflow_runs import tracked_runs

    lanes = session.rulebook.lanes
    chosen = (run for run in tracked_runs(place) if fnmatchcase(run.experiment.lower(), experiment.lower()))
    runs = list(import_runs(chosen, lane, [lanes.get(name) for name in lanes.names()]))
    documents = [Document(item.raw, item.where) for item in runs if item.raw is not None]
    for item in runs:
        if item.raw is None:
            output.note(f"{item.where}: {output.clean('; '.join(map(str, item.problems)))}")
    went = send(session, {f"{parse(item).id[:16]}.json": item.raw for item in documents}, documents, out, submitting)
    if as_json:
        rows = [{"run": item.source, "id": parse(item).id} for item in documents]
        output.as_json({"receipts": rows, "refused": [item.where for item in runs if item.raw is None]})
    else:
        output.line(f"{counted(len(documents), 'receipt')} of {counted(len(runs), 'run')}{went.where}")
    return 2 if len(documents) < len(runs) or not went.whole else 0
