"""``receipts import``: records that others keep, turned into receipts, and what another store exported.

What the importers share comes first: where receipts go, what is printed of them, and the exit code. Then the
importers of another store's export, of published results (``mlperf``), of tracked runs (``mlflow``) and of tables.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from receipts.base import files
from receipts.base.errors import ConflictError, Problem, UsageError
from receipts.base.units import counted
from receipts.base.untrusted_text import short
from receipts.cli import output
from receipts.cli.session import Answer, Session, group, verb
from receipts.plugins.exchange.verbs import beside
from receipts.publish.page import Page, Section, lines_of, points_of, sections_of

if TYPE_CHECKING:
    from receipts.api.answer import Shown
    from receipts.plugins.exchange.notebook import ImportedTable
    from receipts.plugins.exchange.published import PublishedLog
    from receipts.plugins.exchange.store_import import ImportedStore
    from receipts.receipt import Document


_OPTIONS = (
    click.option("--submit", "submitting", is_flag=True, help="Store the receipts."),
    click.option(
        "--out", "-o", type=click.Path(path_type=Path, file_okay=False), metavar="DIR", help="Write receipts here."
    ),
)


class Destination(NamedTuple):
    """Where a call wants its receipts: in a folder, in the store."""

    out: Path | None
    submitting: bool


def to_receipts(command: Callable[..., Answer]) -> Callable[..., Answer]:
    """Give a command the options that say where receipts go; it takes them as one ``to``."""

    @wraps(command)
    def call(*given: Any, out: Path | None, submitting: bool, **options: Any) -> Answer:
        return command(*given, to=Destination(out, submitting), **options)

    for option in _OPTIONS:
        call = option(call)
    return call


def deliver(
    session: Session,
    documents: Sequence[Document],
    refused: Iterable[tuple[str, Sequence[Problem]]],
    to: Destination,
    data: Callable[[], Any],
    shown: Callable[[str], Shown],
    written: Mapping[str, bytes] | None = None,
) -> Answer:
    """Write receipts as ``written`` names their files, else by their ids, submit them, and give the answer.

    ``shown`` makes it of the words that say where they went. Records that are ``refused`` are named on standard error;
    the exit code is 2 if there are any, or if the store does not take all that it is given.
    """
    where, whole = "", True
    if to.out is not None:
        # By its id a file has the same name whenever it is written.
        named = {f"{item.id[:16]}.json": item.raw for item in documents} if written is None else written
        files.write_folder(to.out, named, over=True)
        where = f", written to {to.out}"
    if to.submitting:
        stored, known = _submit(session, documents)
        before = f" ({'all' if known == stored else f'{known:,}'} since before)" if known else ""
        where, whole = f"{where}, {stored} in the store{before}", stored == len(documents)
    rows = [(name, list(problems)) for name, problems in refused]
    # What is wrong with every record is wrong with how they are read.
    common = [problem for problem in rows[0][1] if all(problem in rest for _, rest in rows)] if len(rows) > 1 else []
    if common:
        output.note("\n  ".join([f"all {len(rows)} that were refused:", *map(str, common)]))
    for name, problems in rows:
        own = "; ".join(str(problem) for problem in problems if problem not in common)
        output.note(f"{name}: {own}") if own else None
    return Answer(data, lambda: shown(where), 0 if whole and not rows else 2)


def _submit(session: Session, documents: Sequence[Document]) -> tuple[int, int]:
    """Submit documents, print why any is refused, and seal what is new; gives how many the store holds, and held.

    Launches that are here with another receipt are said once: a table that was read otherwise before is here as such.
    """
    from receipts.workflows.submit import submit

    stored, known, other, store = 0, 0, 0, session.opened(create=True)
    for number, outcome in enumerate(submit(documents, store, session.rulebook), 1):
        session.progress.at(number, len(documents))
        stored += outcome.stored
        known += outcome.submitted is not None and not outcome.submitted.new
        again = isinstance(outcome.error, ConflictError)
        if outcome.error is not None and not (again and other):
            output.note(str(outcome.error))
        other += again
    if other > 1:
        output.note(f"so are {other - 1:,} more: their launches are here with other receipts")
    if stored - known > 1:
        store.seal()
    return stored, known


MAX_SHOWN = 20  # notes of another store
MAX_LINES = 12  # of one kind; --json has them all
UNREAD, DISAGREEMENT = 80, 200  # signs of a text


@verb("store")
@click.argument("place", type=click.Path(path_type=Path), metavar="DIR|FILE")
def store(session: Session, place: Path) -> Answer:
    """Copy what `receipts export` wrote into this store: documents, verdicts, supersessions, claims, decisions.

    Every document is hashed and checked again. Rows that this store already holds are skipped; nothing in it changes.
    Kept files of evidence in PLACE.evidence are kept here too. The seals of the other store are a file beside this one.

    Examples:
      receipts import store lab-export
      receipts import store lab.jsonl
      receipts --store merged.sqlite import store lab-export --json

    One transaction copies everything or nothing, and other writers wait for it. Where the two stores contradict each
    other (a launch that has another receipt here, a pin that points elsewhere) or the export is damaged, each conflict
    is printed with what to do, and nothing is imported. What counts as one: docs/export.md. Exit codes: 0 all is here,
    2 there is a conflict or the export cannot be read, 4 the store failed.
    """
    from receipts.plugins.exchange.source import source
    from receipts.plugins.exchange.store_import import import_store
    from receipts.store.evidence import copy_all, files_beside, kept_files

    origin = source(place)
    opened = session.opened(create=True)
    done = import_store(origin, opened, session.rulebook, session.progress.at)
    copy_all(files_beside(place.absolute()), kept_files(opened.database.address))
    rest = len(done.notes) - MAX_SHOWN
    more = (f"and {rest} more such; see them all with --json",) if rest > 0 else ()
    return Answer(lambda: vars(done), lambda: store_page(done), notes=(*done.notes[:MAX_SHOWN], *more))


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
    from receipts.plugins.exchange.published import find_logs, import_logs
    from receipts.receipt import Document

    logs = list(import_logs(find_logs(folder, submitter, system, benchmark, round_), jobs))
    written = {}
    for item in logs:
        if item.raw is not None:
            name = item.place.name if folder.is_dir() else item.place.path.name
            name = name.replace("/results/", "/").replace("/", "__").rpartition(".")[0]
            written[f"{name}.json"] = item.raw
    documents = [Document(item.raw, item.place.name) for item in logs if item.raw is not None and not item.copy_of]
    refused = [(item.place.name, item.problems) for item in logs if item.raw is None]
    data = [
        {
            "log": item.place.name,
            "context": item.place.context,
            "launch": item.launch,
            "copy_of": item.copy_of or None,
            "receipt": item.raw is not None,
            "problems": [problem._asdict() for problem in item.problems],
            "contradictions": [asdict(difference) for difference in item.contradictions],
        }
        for item in logs
    ]
    return deliver(session, documents, refused, to, lambda: data, lambda where: logs_page(logs, where), written)


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

    from receipts.plugins.exchange.mlflow import import_runs, tracked_runs

    lanes = session.rulebook.lanes
    chosen = (run for run in tracked_runs(place) if fnmatchcase(run.experiment.lower(), experiment.lower()))
    runs = list(import_runs(chosen, lane, [lanes.get(name) for name in lanes.names()]))
    return _deliver_each(session, "run", runs, to)


def _deliver_each(
    session: Session, noun: str, items: Sequence[tuple[str, bytes | None, Sequence[Problem]]], to: Destination
) -> Answer:
    """Deliver what is one receipt each, by name, bytes, and why there are none."""
    from receipts.receipt import Document

    documents = [Document(raw, name) for name, raw, _ in items if raw is not None]
    refused = [(name, problems) for name, raw, problems in items if raw is None]
    data = {
        "receipts": [{noun: item.source, "id": item.id} for item in documents],
        "refused": [name for name, _ in refused],
    }
    counts = f"{counted(len(documents), 'receipt')} of {counted(len(items), noun)}"
    return deliver(session, documents, refused, to, lambda: data, lambda where: f"{counts}{where}")


@verb("bench")
@click.argument("places", nargs=-1, required=True, type=click.Path(path_type=Path), metavar="FILE|DIR…")
@click.option("--lane", metavar="NAME", default="unlisted", show_default=True, help="The lane of the benchmarks.")
@to_receipts
def bench(session: Session, places: tuple[Path, ...], lane: str, to: Destination) -> Answer:
    """Read JSON of pytest-benchmark, Google Benchmark or NVBench: one receipt for each benchmark of each file.

    A file is a launch, and parameters, axes and arguments are features. Run the harness several times, and import all
    files, for an effect with an interval.

    Examples:
      receipts import bench run-*.json --submit
      receipts import bench .benchmarks -o receipts/
      receipts import bench nvbench.json --lane nvidia-torch --submit

    Without -o or --submit nothing is written. What is read: docs/benchmarks.md. Exit codes: 0 every benchmark became a
    receipt, 2 some did not, 4 the store failed.
    """
    from receipts.plugins.exchange.harness import ImportedBenchmark, files_of, import_benchmarks

    name = session.rulebook.lanes.get(lane).name
    items: list[ImportedBenchmark] = []
    for file in files_of(places):
        try:
            items += import_benchmarks(file, name)
        except UsageError as error:  # one of many files, such as a folder holds beside those of a harness
            problem = Problem("$", str(error).removeprefix(f"{file}: "))
            items.append(ImportedBenchmark(str(file), None, (problem,)))
    return _deliver_each(session, "benchmark", items, to)


@group("import")
def import_() -> None:
    """Import tables that people keep, or another store's export. Importing invents no values.

    Examples:
      receipts import notebook runs.json --mapping mapping.toml
      receipts import table performance-summary.md --mapping megatron-bridge
      receipts import mlperf training_results_v5.0 --submit
      receipts import mlflow mlruns --submit
      receipts import bench .benchmarks --submit
      receipts import store lab-export
    """


import_.add_command(store)
import_.add_command(mlperf)
import_.add_command(mlflow)
import_.add_command(bench)


@verb("table", of=import_)
@click.argument("file", type=click.Path(path_type=Path), metavar="FILE")
@click.option(
    "--mapping", required=True, metavar="NAME|FILE", help="A mapping that ships with receipts, or a TOML file."
)
@to_receipts
def table(session: Session, file: Path, mapping: str, to: Destination) -> Answer:
    """Read a JSON list, JSON lines, CSV or the tables of a Markdown page by a mapping.

    Values that the table does not state stay unstated. Unreadable values are printed, and kept under notes. Figures of
    a page that others published are quoted: they are imported as printed, and those that disagree with the formulas of
    the mapping are printed.

    Examples:
      receipts import notebook runs.json --mapping mapping.toml
      receipts import notebook notes.md --mapping mapping.toml --submit
      receipts import table performance-summary.md --mapping megatron-bridge -o receipts/
      receipts import table README.md --mapping mine.toml --submit

    Mappings that ship: dgxc-benchmarking, gpu-recipes, llm-foundry, maxtext-tiering, megatron-bridge, torchtitan,
    tpu-recipes. Their format: docs/import-notebook.md. Without -o or --submit nothing is written: the values that can
    and cannot be read are printed. Exit codes: 0 every row became a receipt, 2 some row or file did not, 4 the store
    failed.
    """
    from receipts.plugins.exchange.notebook import import_file, mapping_path
    from receipts.receipt import Document

    imported = import_file(file, mapping_path(mapping))
    documents = [Document(item.parsed.raw, item.row.where) for item in imported.receipts]
    refused = [(item.where, tuple(map(_as_mapped, item.problems))) for item in imported.refused]
    data = {
        "receipts": [
            {"row": item.row.where, "id": item.parsed.id, "label": item.parsed.receipt.run.label}
            for item in imported.receipts
        ],
        "refused": [
            {"row": item.where, "problems": [problem._asdict() for problem in item.problems]}
            for item in imported.refused
        ],
        "unread": [{"row": item.where, "field": item.to, "text": item.text} for item in imported.unread],
        "unnamed": dict(imported.unnamed),
        "disagreements": [
            {"row": item.where, "says": item.says, "stated": item.found, "expected": item.expected}
            for item in imported.disagreements
        ],
    }
    return deliver(session, documents, refused, to, lambda: data, lambda where: table_page(imported, where))


import_.add_command(table, "notebook")


def _as_mapped(problem: Problem) -> Problem:
    """A leaf that no receipt is without, as the entry of the mapping that states it."""
    if "required and not stated" not in problem.what or problem.do.startswith("["):
        return problem
    return problem._replace(do=f'add to the mapping: [[field]] to = "{problem.at}" with from = "…" or value = "…"')


def table_page(item: ImportedTable, where: str) -> Page:
    """A table of runs; ``where`` says where its receipts went."""
    unread = Counter((one.to, one.text) for one in item.unread)
    texts = [(to, f"{short(text, UNREAD)}{_times(count, 'rows')}") for (to, text), count in unread.items()]
    points = points_of(texts[:MAX_LINES]) + lines_of(_cut(name for name, _ in texts)[MAX_LINES:])
    unnamed = ", ".join(_cut(f"{short(path, UNREAD)} ({count})" for path, count in item.unnamed.items()))
    unnamed = f"columns that no entry names, with their rows: {unnamed}" if unnamed else ""
    sections = (
        Section("disagree", "Does not agree", points=lines_of(_cut(map(str, item.disagreements)))),
        Section("unread", f"Not read, kept under notes.unread: {len(item.unread)}", points=points),
        Section("unnamed", "", points=lines_of(filter(None, [unnamed]))),
    )
    answer = f"{counted(len(item.receipts), 'receipt')}, {counted(len(item.refused), 'row')} refused{where}"
    return _page(answer, sections)


def logs_page(items: Sequence[PublishedLog], where: str) -> Page:
    """Published logs: receipts by submission, copies of a launch, and what a description says otherwise than a log."""
    receipts = [item for item in items if item.raw is not None]
    copies = (f"{item.place.name} holds the records of {item.copy_of}: one launch" for item in items if item.copy_of)
    # One for each leaf of a submission on which a log and a description differ, the accelerator first.
    whats: dict[tuple[str, str], list[str]] = {}
    for item in items:
        for difference in item.contradictions:
            whats.setdefault((item.place.context, difference.path), []).append(difference.what)
    differing = [
        (f"{context} {path}", f"{short(texts[0], DISAGREEMENT)}{_times(len(texts), 'logs')}")
        for (context, path), texts in sorted(whats.items(), key=lambda entry: entry[0][1] != "hardware.accelerator")
    ]
    sections = (
        Section("disagree", "Does not agree", points=points_of(differing)),
        Section("copies", "Copies", points=lines_of(_cut(copies))),
    )
    submissions, launches = {item.place.context for item in receipts}, {item.launch for item in receipts}
    answer = (
        f"{counted(len(receipts), 'receipt')} of {counted(len(items), 'log')} in "
        f"{counted(len(submissions), 'submission')}, {counted(len(launches), 'launch', 'launches')}{where}"
    )
    return _page(answer, sections)


def store_page(done: ImportedStore) -> Page:
    """What came in from another store, and what did not."""
    new, known = done.new["receipts"], done.known["receipts"]
    lines = (
        (beside(done.new), f"with {beside(done.new)}"),
        (done.purged, f"{done.purged:,} were purged here before and do not come back"),
        (
            done.columns_read_otherwise,
            f"of {done.columns_read_otherwise:,} some column reads otherwise by this version and its lanes than it did "
            "there; the document's reading is kept",
        ),
        (done.left_out, f"{done.left_out:,} rows speak of receipts that are not here, or were settled here"),
        (done.seals, f"its seals are kept beside this store: {done.seals}"),
    )
    answer = f"{new:,} receipts came in from store {done.store[:8]}, {known:,} were here"
    return Page("Import", (answer,), lead=tuple(text for holds, text in lines if holds))


def _page(answer: str, sections: Sequence[Section]) -> Page:
    return Page("Import", (answer,), sections=sections_of(*sections))


def _times(count: int, what: str) -> str:
    return f" ({count} {what})" if count > 1 else ""


def _cut(texts: Iterable[str]) -> list[str]:
    every = list(texts)
    left = len(every) - MAX_LINES
    return [*every[:MAX_LINES], f"and {left} more; see them all with --json"] if left > 0 else every
