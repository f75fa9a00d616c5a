"""``receipts export`` and ``report mlperf``: the store in other formats, and published results side by side.

``export`` writes Parquet, JSON lines or CSV, or launches as runs of MLflow. ``report mlperf`` prints published results
of the store, with their spread and what tells them apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING

import click

from receipts.base.errors import UsageError
from receipts.base.files import write
from receipts.base.units import counted, moment
from receipts.base.untrusted_text import plain
from receipts.cli.session import Answer, Session, verb
from receipts.publish.page import Page, Section, table_of

if TYPE_CHECKING:
    from receipts.plugins.exchange.export import ExportOptions
    from receipts.plugins.exchange.published import SubmissionPair, SubmissionSpread


@verb("export")
@click.argument("place", type=click.Path(path_type=Path), metavar="DIR|FILE")
@click.option(
    "--format",
    "-f",
    "form",
    type=click.Choice(["parquet", "jsonl", "csv", "mlflow"]),
    help="[default: by the file's suffix]",
)
@click.option(
    "--where",
    multiple=True,
    metavar="NAME=VALUE",
    help="Only receipts that meet this condition, as for `list`; may be repeated.",
)
@click.option("--since", metavar="TIME", help="Only runs that finished (else: started) from then on.")
@click.option("--until", metavar="TIME", help="Only runs before then.")
@click.option("--force", is_flag=True, help="Replace an earlier export.")
@click.option("--raw", is_flag=True, help="Of csv: leave texts that begin with = + - @ without an apostrophe.")
def export(
    session: Session,
    place: Path,
    form: str | None,
    where: tuple[str, ...],
    since: str | None,
    until: str | None,
    force: bool,
    raw: bool,
) -> Answer:
    """Write the store to a folder of Parquet files, or to one file, completely or not at all.

    Verdicts, supersessions, pins, claims, decisions, tombstones and seals are written too. A condition that leaves out
    a receipt also leaves out everything about it. Without a condition, kept files of evidence are copied to
    PLACE.evidence, but for csv.

    Examples:
      receipts export lab-export --format parquet
      receipts export lab.jsonl
      receipts export h200.csv --where lane=nvidia-megatron --where 'chips>=8' --since 2026-03-01
      receipts export lab-export --format parquet --force
      receipts export mlruns --format mlflow

    parquet fills a folder, with receipts in lane=…/week=…, the ISO week in UTC in which a run finished
    (else: started). parquet and jsonl lose nothing; receipts import store reads them. csv has the
    columns only, for people. mlflow is a file store of MLflow; it leaves out superseded launches. Details:
    docs/export.md and docs/scale.md.
    Exit codes: 0 written completely, 2 the place or a condition is wrong, 4 the store failed.
    """
    from receipts.plugins.exchange.export import export
    from receipts.store.evidence import copy_all, files_beside, kept_files

    if str(place) == "-":
        raise UsageError("an export is a folder or a file, there whole or not at all; name one, such as lab.jsonl")
    by_suffix = {".jsonl": "jsonl", ".ndjson": "jsonl", ".csv": "csv", "": "parquet", ".parquet": "parquet"}
    written = form or by_suffix.get(place.suffix.lower())
    if written is None:
        raise UsageError(f"{place}: say what to write: --format parquet, jsonl or csv")
    if written == "mlflow":
        from receipts.plugins.exchange.mlflow import export_runs

        count = export_runs(session.store, place, _chosen(where, since, until), force=force)
        data = {"place": str(place), "format": written, "launches": count}
        return Answer(data, f"{place}: {counted(count, 'launch', 'launches')}")
    if raw and written != "csv":
        raise UsageError("--raw is for csv alone: parquet and jsonl keep every text as it is")
    chosen = replace(_chosen(where, since, until), raw=raw)
    store, advance = session.store, session.progress.at
    done = export(store, place, written, chosen, force=force, progress=advance)  # type: ignore[arg-type]  # one of the three
    if chosen.whole and written != "csv":
        copy_all(kept_files(store.database.address), files_beside(place.absolute()))
    data = {"place": done.place, "format": done.format, "rows": done.rows, "bytes": done.bytes}
    about = f"{done.place}: {done.rows['receipts']:,} receipts, {done.bytes:,} bytes"
    others = beside(done.rows)
    notes = []
    if done.format != "csv":
        notes.append(f"take it into another store: receipts import store {done.place}")
    if chosen.words() and not done.rows["receipts"]:
        notes.append("no receipt meets the conditions; try them with: receipts list")
    return Answer(data, Page("Export", (about,), lead=(f"with {others}",) if others else ()), notes=tuple(notes))


def _chosen(where: tuple[str, ...], since: str | None, until: str | None) -> ExportOptions:
    from receipts.plugins.exchange.export import ExportOptions
    from receipts.store import Filters, condition

    filters = Filters(tuple(condition(text) for text in where), superseded=True) if where else None
    begin, end = (
        None if text is None else moment(name, text) for name, text in (("--since", since), ("--until", until))
    )
    return ExportOptions(filters, begin, end)


def beside(rows: Mapping[str, int]) -> str:
    """Rows of every dataset but the receipts, in words; empty if there is none."""
    named = ((name.replace("_", " "), count) for name, count in rows.items() if count and name != "receipts")
    return ", ".join(f"{count:,} {name.removesuffix('s') if count == 1 else name}" for name, count in named)


MAX_AXES = 6
MAX_PAIRS = 40
MAX_TEXT = 80


@verb("mlperf", json=False)
@click.option("--benchmark", default="*", metavar="PATTERN", help="Only these benchmarks.")
@click.option("--accelerator", default="*", metavar="PATTERN", help="Only these accelerators.")
@click.option("--pair", nargs=2, metavar="A B", help="Two submissions, axis by axis.")
@click.option(
    "--out", "-o", type=click.Path(path_type=Path, dir_okay=False), metavar="FILE", help="Write Markdown here."
)
def mlperf(
    session: Session, benchmark: str, accelerator: str, pair: tuple[str, str] | None, out: Path | None
) -> Answer:
    """By benchmark and accelerator: the spread of each submission, and the pairs that differ in the fewest axes.

    Reads the receipts of lane mlperf-closed, which `receipts import mlperf` stores.

    Examples:
      receipts report mlperf
      receipts report mlperf --benchmark 'llama2*' --accelerator h200-sxm
      receipts report mlperf --pair 'NVIDIA/h200*' 'Lenovo/SR680a*' -o why.md

    A pattern of --pair is searched in the names of submissions (round/submitter/system/benchmark) and must fit one.
    Exit codes: 0 printed or written, 2 wrong call or nothing imported, 4 the store failed.
    """
    from receipts.plugins.exchange.published import LANE, pair_of, pairs, submissions
    from receipts.publish.markup import markdown
    from receipts.store import Condition, Filters

    lane = session.rulebook.lanes.get(LANE)
    store = session.store
    rows = store.find(Filters((Condition("lane", "=", LANE),), limit=100_000))
    listed = submissions((store.parsed(row.id) for row in rows), lane)
    kept = [
        item for item in listed if fnmatchcase(item.benchmark, benchmark) and fnmatchcase(item.accelerator, accelerator)
    ]
    if not kept:
        raise UsageError(f"no receipt of lane {LANE} fits; import some: receipts import mlperf DIR --submit")
    if pair:
        shown = pair_page(pair_of(_one_submission(kept, pair[0]), _one_submission(kept, pair[1]), lane))
    else:
        shown = spreads_page(kept, list(pairs(kept, lane)))
    text = markdown(shown, document=True)
    if out is None:
        return Answer(None, text)
    write(out, f"{text}\n", over=True)
    return Answer(None)


def _one_submission(listed: Sequence[SubmissionSpread], pattern: str) -> SubmissionSpread:
    fitting = [item for item in listed if fnmatchcase(item.context.lower(), f"*{pattern.lower()}*")]
    if len(fitting) != 1:
        names = ", ".join(item.context for item in fitting[:4]) or "none"
        raise UsageError(f"{pattern!r} fits {len(fitting)} submissions ({names}); name one")
    return fitting[0]


def spreads_page(listed: Sequence[SubmissionSpread], compared: Sequence[SubmissionPair]) -> Page:
    """All submissions, and the pairs that are nearest to each other."""
    intro = "Published, not yours. Step time is the median launch; the spread is that of launches."
    groups = groupby(listed, key=lambda item: (item.benchmark, item.accelerator))
    header = "submission | #chips | #launches | #global batch | step [s] | #spread"
    spreads = []
    for of, group in groups:
        cells = (
            (
                item.context,
                str(item.like.stated.get("hardware.chips", "~")),
                f"{len(item.seconds)} of {len(item.launches)}",
                str(item.like.stated.get("batch.global_batch", "~")),
                f"{item.location:.4g}" if item.location is not None else "~",
                f"{item.spread:.2%}" if item.spread is not None else "~",
            )
            for item in group
        )
        spreads.append(Section("", " on ".join(of), tables=(table_of("", header, cells),)))
    single = sum(pair.one_axis for pair in compared)
    about = (
        f"{single} of {len(compared)} pairs on one accelerator are one axis apart, by what both state.",
        "An axis that one side alone states may differ; what neither states is not counted.",
    )
    rows = (
        (pair.a.context, pair.b.context, _effect(pair), _differs(pair), str(len(pair.lopsided)))
        for pair in compared[:MAX_PAIRS]
    )
    table = table_of("", "A | B | B over A | differs | #may differ", rows)
    pairs = Section("", "What differs between two submissions", about, tables=(table,))
    return Page("Published results", lead=(intro,), sections=(*spreads, pairs))


def pair_page(pair: SubmissionPair) -> Page:
    """Two submissions, axis by axis."""
    members = (member for change in pair.apart.changed for member in change.members)
    table = table_of("", "axis | A | B", ((item.path, _cell(item.a), _cell(item.b)) for item in members))
    lead = f"against {pair.a.context}: {_effect(pair)}"
    sections = (Section("", "", tables=(table,)), Section("", "", tuple(_verdict(pair))))
    return Page(pair.b.context, lead=(lead,), sections=sections)


def _verdict(pair: SubmissionPair) -> Iterator[str]:
    if pair.lopsided:
        yield f"One side alone states: {', '.join(pair.lopsided)}."
    neither = sorted({item.axis for item in pair.apart.unknown} - set(pair.lopsided))
    if neither:
        yield f"Neither states: {', '.join(neither)}."
    count = len(pair.apart.changed)
    if pair.one_axis:
        axis = pair.apart.axes[0]
        yield f"One stated axis differs, {axis}: the effect is its, or that of an axis which neither states."
    elif not count and not pair.lopsided:
        yield "No stated axis differs: the effect is that of the machines, or of an axis which neither states."
    else:
        yield f"{count} axes differ and {len(pair.lopsided)} may: no axis alone explains the effect."


def _differs(pair: SubmissionPair) -> str:
    axes = pair.apart.axes
    more = f" and {len(axes) - MAX_AXES} more" if len(axes) > MAX_AXES else ""
    return ", ".join(axes[:MAX_AXES]) + more or "nothing that is stated"


def _effect(pair: SubmissionPair) -> str:
    effect = pair.effect
    if effect is None or effect.ratio is None or effect.low is None or effect.high is None:
        return "~ (fewer than three launches on a side)"
    return f"{effect.ratio:.3f} ({effect.low:.3f} to {effect.high:.3f})"


def _cell(value: object) -> str:
    return "not stated" if value is None else plain(value, MAX_TEXT)


REPORT = mlperf
