"""``receipts import mlperf``, ``golden`` and ``mlflow``: results that others published, and runs that they track."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from receipts.base.units import counted
from receipts.cli.importing import Destination, deliver, to_receipts
from receipts.cli.session import Session
from receipts.cli.verb import Answer, verb

if TYPE_CHECKING:
    from receipts.workflows.published.mlperf import PublishedLog


@verb("mlperf")
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--submitter", default="*", metavar="PATTERN", help="Only these submitters.")
@click.option("--system", default="*", metavar="PATTERN", help="Only these systems.")
@click.option("--benchmark", default="*", metavar="PATTERN", help="Only these benchmarks.")
@click.option("--round", "round_", default="", metavar="NAME", help="The round, where no folder's name says it.")
@click.option("--jobs", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes that read.")
@to_receipts
def mlperf(
    session: Session, folder: Path, submitter: str, system: str, benchmark: str, round_: str, jobs: int, to: Destination
) -> Answer:
    """Read a results repository, or any folder of it: one receipt for each log.

    Means over intervals are kept as such and never as steps. Contradictions between a log and the description of its
    system are printed, and kept in the receipt.

    Examples:
      receipts import mlperf training_results_v5.0
      receipts import mlperf training_results_v5.0 --benchmark 'llama2*' --jobs 2 --submit
      receipts import mlperf training_results_v5.0/NVIDIA/results/h200_nemo -o receipts/
      receipts import mlperf results/ --round v5.1 --json

    Patterns are those of a shell, ignoring case. A log that was submitted twice is one launch: every copy gets a
    receipt of that launch with -o, and --submit stores the first. Without -o or --submit nothing is written. What is
    read: docs/import-mlperf.md. Exit codes: 0 every log became a receipt, 2 some did not, 4 the store failed.
    """
    from receipts.publish.imported import logs as page
    from receipts.receipt import Document
    from receipts.workflows.published.mlperf import import_logs
    from receipts.workflows.published.places import find_logs

    logs = list(import_logs(find_logs(folder, submitter, system, benchmark, round_), jobs))
    written = {_file_name(item, folder): item.raw for item in logs if item.raw is not None}
    documents = [Document(item.raw, item.place.name) for item in logs if item.raw is not None and not item.copy_of]
    refused = [(item.place.name, item.problems) for item in logs if item.raw is None]
    data = [_document(item) for item in logs]
    return deliver(session, documents, refused, to, lambda: data, lambda where: page(logs, where), written)


def _file_name(item: PublishedLog, folder: Path) -> str:
    name = item.place.name if folder.is_dir() else item.place.path.name
    return name.replace("/results/", "/").replace("/", "__").rpartition(".")[0] + ".json"


def _document(item: PublishedLog) -> dict[str, object]:
    return {
        "log": item.place.name,
        "context": item.place.context,
        "launch": item.launch,
        "copy_of": item.copy_of or None,
        "receipt": item.raw is not None,
        "problems": [problem._asdict() for problem in item.problems],
        "contradictions": [asdict(difference) for difference in item.contradictions],
    }


@verb("golden")
@click.argument("paths", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE…")
@click.option("--history", is_flag=True, required=True, help="The files are JSON lines, one for each commit.")
@to_receipts
def golden(session: Session, paths: tuple[Path, ...], history: bool, to: Destination) -> Answer:
    """Read Megatron-LM's golden values through their commits: one receipt for each change of the values.

    A commit's date is given as the launch's, which it can only follow.

    Examples:
      receipts import golden tests/golden_values_dev_dgx_h100.jsonl --history
      receipts import golden histories/*.jsonl --history --submit
      receipts history LABEL --metric step_seconds

    Each line of a history holds one commit's golden values, with `commit` and `date`. A commit that repeats the values
    before it measured nothing and gets no receipt. Without -o or --submit nothing is written. One golden file without a
    history: `receipts ingest`. Exit codes: 0 every line was read, 2 some line was not, 4 the store failed.
    """
    from receipts.receipt import Document
    from receipts.workflows.published.golden import import_history

    entries = list(import_history(paths))
    documents = [Document(item.raw, item.where) for item in entries if item.raw is not None]
    refused = [(item.where, item.problems) for item in entries if item.problems]
    repeated = sum(item.repeated for item in entries)
    data = {"receipts": [item.id for item in documents], "repeated": repeated, "refused": len(refused)}
    counts = f"{counted(len(documents), 'receipt')} of {counted(len(entries), 'commit')}"
    counts += f", {repeated} repeat the values before them, {counted(len(refused), 'line')} refused"
    return deliver(session, documents, refused, to, lambda: data, lambda where: f"{counts}{where}")


@verb("mlflow")
@click.argument("place", metavar="URL|DIR")
@click.option("--experiment", default="*", metavar="PATTERN", help="Only experiments of these names.")
@click.option("--lane", metavar="NAME", help="The lane of the runs.  [default: the one that fits, else unlisted]")
@to_receipts
def mlflow(session: Session, place: str, experiment: str, lane: str | None, to: Destination) -> Answer:
    """Read runs with their metrics, parameters and tags: one receipt for each run that has ended.

    Metrics are read under the names that frameworks log to trackers, parameters under those of a framework's arguments
    or of the receipt's leaves. MLflow need not be installed.

    Examples:
      receipts import mlflow mlruns
      receipts import mlflow mlruns/312 --lane nvidia-torch -o receipts/
      receipts import mlflow http://127.0.0.1:5000 --experiment 'pretrain*' --submit

    A folder is a file store, an experiment of it, or a run. A database is read through `mlflow server`; a token is that
    of MLFLOW_TRACKING_TOKEN. Without -o or --submit nothing is written. Exit codes: 0 every run became a receipt, 2
    some did not, 4 the server or the store failed.
    """
    from fnmatch import fnmatchcase

    from receipts.receipt import Document
    from receipts.workflows.published.mlflow import import_runs
    from receipts.workflows.published.mlflow_runs import tracked_runs

    lanes = session.rulebook.lanes
    chosen = (run for run in tracked_runs(place) if fnmatchcase(run.experiment.lower(), experiment.lower()))
    runs = list(import_runs(chosen, lane, [lanes.get(name) for name in lanes.names()]))
    documents = [Document(item.raw, item.where) for item in runs if item.raw is not None]
    refused = [(item.where, item.problems) for item in runs if item.raw is None]
    data = {
        "receipts": [{"run": item.source, "id": item.id} for item in documents],
        "refused": [name for name, _ in refused],
    }
    counts = f"{counted(len(documents), 'receipt')} of {counted(len(runs), 'run')}"
    return deliver(session, documents, refused, to, lambda: data, lambda where: f"{counts}{where}")
