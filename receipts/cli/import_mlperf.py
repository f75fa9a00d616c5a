"""``receipts import mlperf``: the results that submitters published, log by log."""

from __future__ import annotations

from collections import Counter
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import click

from receipts.base.units import counted
from receipts.cli import output
from receipts.cli.importing import SHOWN, send, to_receipts
from receipts.cli.session import Session, pass_session

if TYPE_CHECKING:
    from receipts.workflows.published import PublishedLog

EPILOG = """\b
Examples:
  receipts import mlperf training_results_v5.0
  receipts import mlperf training_results_v5.0 --benchmark 'llama2*' --jobs 2 --submit
  receipts import mlperf training_results_v5.0/NVIDIA/results/h200_nemo -o receipts/
  receipts import mlperf results/ --round v5.1 --json

Patterns are those of a shell, ignoring case. A log that was submitted twice is one launch: every copy gets a receipt
of that launch with -o, and --submit stores the first. Without -o or --submit nothing is written.
What is read: docs/import-mlperf.md. Exit codes: 0 every log became a receipt, 2 some did not, 4 the store failed."""


@click.command("mlperf", short_help="Import logs of MLPerf Training.", epilog=EPILOG)
@click.argument("folder", type=click.Path(path_type=Path), metavar="DIR")
@click.option("--submitter", default="*", metavar="PATTERN", help="Only these submitters.")
@click.option("--system", default="*", metavar="PATTERN", help="Only these systems.")
@click.option("--benchmark", default="*", metavar="PATTERN", help="Only these benchmarks.")
@click.option("--round", "round_", default="", metavar="NAME", help="The round, where no folder's name says it.")
@click.option("--jobs", type=click.IntRange(1, 64), default=1, show_default=True, help="Processes that read.")
@to_receipts
@pass_session
def mlperf(
    session: Session,
    folder: Path,
    submitter: str,
    system: str,
    benchmark: str,
    round_: str,
    jobs: int,
    out: Path | None,
    submitting: bool,
    as_json: bool,
) -> int:
    """Read a results repository, or any folder of it: one receipt for each log.

    Means over intervals are kept as such and never as steps. Contradictions between a log and the description of its
    system are printed, and kept in the receipt.
    """
    from receipts.workflows.published import find_logs, import_logs

    logs = list(import_logs(find_logs(folder, submitter, system, benchmark, round_), jobs))
    from receipts.receipt import Document

    written = {_file_name(item, folder): item.raw for item in logs if item.raw is not None}
    documents = [Document(item.raw, item.place.name) for item in logs if item.raw is not None and not item.copy_of]
    went = send(session, written, documents, out, submitting)
    output.answer(as_json, lambda: [_document(item) for item in logs], lambda: _print(logs, went.where))
    return 2 if any(item.raw is None for item in logs) or not went.whole else 0


def _file_name(item: PublishedLog, folder: Path) -> str:
    name = item.place.name if folder.is_dir() else item.place.path.name
    return name.replace("/results/", "/").replace("/", "__").rpartition(".")[0] + ".json"


def _print(logs: list[PublishedLog], where: str) -> None:
    for item in logs:
        if item.raw is None:
            output.note(f"{item.place.name}: {'; '.join(map(str, item.problems))}")
    _print_contradictions(logs)
    copies = [item for item in logs if item.copy_of]
    for item in copies[:SHOWN]:
        output.line(f"copy: {item.place.name} holds the records of {item.copy_of}: one launch")
    if len(copies) > SHOWN:
        output.line(f"and {len(copies) - SHOWN} more copies; see them all with --json")
    receipts = [item for item in logs if item.raw is not None]
    groups = Counter(item.place.context for item in receipts)
    launches = len({item.launch for item in receipts})
    output.line(
        f"{counted(len(receipts), 'receipt')} of {counted(len(logs), 'log')} in {counted(len(groups), 'submission')}, "
        f"{counted(launches, 'launch', 'launches')}{where}"
    )


def _print_contradictions(logs: list[PublishedLog]) -> None:
    """One line for each leaf of a submission on which a log and a description differ."""
    seen: dict[tuple[str, str], list[str]] = {}
    for item in logs:
        for difference in item.contradictions:
            seen.setdefault((item.place.context, difference.path), []).append(difference.what)
    if seen:
        output.line("These do not agree:")
    for (context, path), whats in sorted(seen.items(), key=lambda entry: entry[0][1] != "hardware.accelerator"):
        times = f" ({len(whats)} logs)" if len(whats) > 1 else ""
        output.line(f"  {context} {path}: {output.clean(whats[0])[:200]}{times}")


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
