"""``receipts report``: pages that are computed from the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from receipts.base.files import write_folder
from receipts.base.units import counted
from receipts.cli import output
from receipts.cli.report_mlperf import mlperf
from receipts.cli.session import Session, pass_session
from receipts.cli.sides import ComparisonOptions, gather, of_two_sides

if TYPE_CHECKING:
    from receipts.publish.report.data import Described, WeekData

F = TypeVar("F", bound=Callable[..., Any])
WRITES = """Writes report.md, index.html and report.json; other files in the folder are left alone."""
BASIS = """Their data is written as Parquet: receipts.parquet and comparisons.parquet."""
_SEALED = timedelta(days=1)  # a store that is reported on is sealed this often at least
TEMPLATES = (
    "Templates: the key reports of a receipts.toml names folders that are searched before the built-in ones.\n"
    "Exit codes: 0 written, 2 wrong call, 4 the store, a rule or a template failed."
)
EPILOG = f"""\b
Examples:
  receipts report weekly
  receipts report weekly --week 2026-W47 --out report
  receipts report weekly --lane nvidia-megatron --lane tpu-torch-xla
  receipts report weekly --since 2026-11-01 --until 2026-11-20
  receipts report weekly --week 2026-W47 --as-of 2026-11-23T09:00Z --json
  receipts report weekly --week 2026-W47 --first-screen markdown

{WRITES}
{BASIS}
The same store, --as-of and rules give the same bytes. {TEMPLATES}"""


@click.group("report")
def command() -> None:
    """Write reports. They judge the store's receipts again under the current rules."""


command.add_command(mlperf)


def _out(place: str) -> Callable[[F], F]:
    return click.option(
        "--out",
        "-o",
        type=click.Path(path_type=Path),
        default=Path(place),
        show_default=True,
        metavar="DIR",
        help="Folder to write to; created if missing.",
    )


_AS_OF = click.option("--as-of", metavar="TIME", help="Only what ran up to then.  [default: now]")
_JSON = click.option("--json", "as_json", is_flag=True, help="Also print report.json.")


def _interval(default: str) -> Callable[[F], F]:
    """The options that say when, which a command takes as ``when``."""

    def give(command: F) -> F:
        for option in (
            _AS_OF,
            click.option("--until", metavar="TIME", help="Its end, that day included.  [default: --as-of]"),
            click.option("--since", metavar="TIME", help="Start of an interval other than a week; a day or a time."),
            click.option("--week", metavar="YYYY-Www", help=f"ISO week, in UTC.  [default: {default}]"),
        ):
            command = option(command)
        return command

    return give


@command.command("weekly", epilog=EPILOG)
@_interval("that of --as-of")
@click.option("--lane", "-l", "lanes", multiple=True, metavar="NAME", help="Only this lane; may be repeated.")
@_out("report")
@click.option(
    "--first-screen",
    "form",
    type=click.Choice(["markdown", "text"]),
    help="Print the first screen, to paste into a message; write nothing.",
)
@_JSON
@pass_session
def weekly(
    session: Session, /, lanes: tuple[str, ...], out: Path, form: str | None, as_json: bool, **when: str | None
) -> int:
    """Write the frontier report of a week, or of any interval.

    Frontier and ceilings per lane, accepted and rejected comparisons with their axes, gains that did not survive,
    claims, failures, and the receipts behind every number.
    """
    from receipts.base.errors import UsageError
    from receipts.publish.report.basis import parquet
    from receipts.publish.report.collect import collect_with_basis
    from receipts.publish.report.render import render, render_first
    from receipts.publish.report.week import asked, moment

    if form is not None and as_json:
        raise UsageError("--first-screen and --json both print; leave one out")
    at = moment(when.pop("as_of"))
    wanted = asked(**when, as_of=at)
    with session.open_store() as store:
        data, basis = collect_with_basis(store, session.rulebook, wanted, at, tuple(dict.fromkeys(lanes)))
    if form is not None:
        output.line(render_first(data, form, session.config.reports).rstrip("\n"))
        return 0
    files = {**render(data, session.rulebook.rules, session.config.reports), **parquet(basis, data)}
    return _finish(session, files, out, data.receipts, head=_counts(data), as_json=as_json)


LANE_EPILOG = f"""\b
Examples:
  receipts report lane nvidia-megatron
  receipts report lane tpu-torch-xla --week 2026-W47 --out report/tpu

{WRITES}
{BASIS}
{TEMPLATES}"""


@command.command("lane", epilog=LANE_EPILOG)
@click.argument("name", metavar="NAME")
@_interval("the last in which the lane ran")
@_out("report/lane")
@_JSON
@pass_session
def lane(session: Session, /, name: str, out: Path, as_json: bool, **when: str | None) -> int:
    """Write the page of one lane: its frontier and ceilings, and the last week in which it ran."""
    from receipts.publish.report.basis import parquet
    from receipts.publish.report.collect import collect_with_basis
    from receipts.publish.report.render import render
    from receipts.publish.report.week import Week, asked, moment

    at = moment(when.pop("as_of"))
    wanted = asked(**when, as_of=at)
    with session.open_store() as store:
        data, basis = collect_with_basis(store, session.rulebook, wanted, at, (name,))
        if not (when["week"] or when["since"]) and not data.counts.submitted and data.last_week:
            data, basis = collect_with_basis(store, session.rulebook, Week.parse(data.last_week), at, (name,))
    files = {**render(data, session.rulebook.rules, session.config.reports, lane=name), **parquet(basis, data)}
    return _finish(session, files, out, data.receipts, head=_counts(data), as_json=as_json)


COMPARE_EPILOG = f"""\b
Examples:
  receipts report compare before.json after.json
  receipts report compare 'label=base*' 'label=cand*' --out report/buckets
  receipts report compare @golden 81aa --waive flags.NCCL_ALGO="pinned by the site"
  receipts report compare a.json b.json --also-a a2.json --also-b b2.json
  receipts report compare a.json b.json --witness a-profile.json --witness b-profile.json

{WRITES} The verdict does not change the exit code; receipts compare answers with its own. {TEMPLATES}"""


@command.command("compare", epilog=COMPARE_EPILOG)
@of_two_sides
@_out("report/compare")
@_JSON
@pass_session
def compare_(session: Session, asked: ComparisonOptions, out: Path, as_json: bool) -> int:
    """Write the page of one comparison, B against A: two receipts, or two groups of launches.

    A and B are files, ids or unique id prefixes, labels, label=GLOB, or @pins; ID,ID names several launches of
    a side. Two files need no store.
    """
    from receipts.publish.report.pair import page, pair
    from receipts.publish.report.render import files

    stored = not asked.all_files
    compared = gather(session, asked, stored=stored)
    verdict, decided = compared.verdict, compared.decided
    left, right, facts = compared.sides.a, compared.sides.b, compared.sides.facts
    claims: list[str] = []
    if stored:
        with session.open_store() as store:
            claims = list(
                dict.fromkeys(name for item in (*left, *right) for name in store.published.claims_on(item.id))
            )
    data = pair(left, right, verdict, session.rulebook, facts, decided, claims)
    written = files(page(data, session.rulebook.rules), data, "compare", session.config.reports)
    quoted = data.receipts if stored else ()
    return _finish(session, written, out, quoted, foot=verdict.last_line(), as_json=as_json)


CLAIM_EPILOG = f"""\b
Examples:
  receipts report claim mtp-off
  receipts report claim mtp-off --out report/mtp-off --as-of 2026-11-23

{WRITES} The verdict does not change the exit code; receipts claim show answers with its own. {TEMPLATES}"""


@command.command("claim", epilog=CLAIM_EPILOG)
@click.argument("claim_id", metavar="ID")
@_out("report/claim")
@click.option("--as-of", metavar="TIME", help="Only verdicts, decisions and documents up to then.  [default: now]")
@_JSON
@pass_session
def claim_(session: Session, claim_id: str, out: Path, as_of: str | None, as_json: bool) -> int:
    """Write the page of one claim of the store: its verdict, comparison and history, and where it is quoted."""
    from receipts.publish.report.claim import claim, page
    from receipts.publish.report.render import files
    from receipts.publish.report.week import moment

    with session.open_store() as store:
        data = claim(store, claim_id, session.rulebook, moment(as_of))
    written = files(page(data, session.rulebook.rules), data, "claim", session.config.reports)
    return _finish(session, written, out, data.receipts, foot=data.verdict.last_line(), as_json=as_json)


def _counts(data: WeekData) -> str:
    counts = data.counts
    if not counts.submitted and data.last_week:
        output.note(f"no receipt ran in {data.week}; the newest ran in {data.last_week}: --week {data.last_week}")
    elif not counts.submitted:
        of = f" of {', '.join(data.only_lanes)}" if data.only_lanes else ""
        output.note(f"the store has no receipt{of} that ran until then; see: receipts list")
    return (
        f"{data.week}: {counted(counts.submitted, 'receipt')} ({counts.valid} valid, {counts.open} open, "
        f"{counts.invalid} invalid, {counts.superseded} superseded), {counted(data.compared, 'pair')} judged"
    )


def _finish(
    session: Session,
    files: Mapping[str, bytes],
    out: Path,
    quoted: Sequence[Described],
    *,
    head: str = "",
    foot: str = "",
    as_json: bool,
) -> int:
    """Write the files, and write down which receipts they quote, for `receipts impact`; print what was written."""
    write_folder(out, files, over=True)
    if quoted:
        _remember(session, out / "report.md", [(item.receipt.id, item.receipt.name) for item in quoted])
    if as_json:
        output.line(files["report.json"].decode().rstrip("\n"))
    else:
        written = (f"  {out / name}" for name in sorted(files))
        output.answer(False, None, "\n".join(filter(None, (head, *written, foot))))
    return 0


def _remember(session: Session, document: Path, quoted: Sequence[tuple[str, str | None]]) -> None:
    """Write down which receipts a report quotes, for `receipts impact`, and seal the store once a day.

    A store that may only be read is left alone.
    """
    from receipts.base.errors import StoreError

    try:
        with session.open_store() as store:
            store.published.quote(str(document.resolve()), quoted)
            store.seal(_SEALED)
    except StoreError as error:
        output.note(f"the report is written; receipts impact will not know that it quotes them: {error}")
