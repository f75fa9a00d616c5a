"""``receipts report``: pages that are computed from the store."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import timedelta
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from receipts.api.questions.compare import compare
from receipts.api.session import documents
from receipts.base import plugins
from receipts.base.errors import StoreError, UsageError
from receipts.base.files import write_folder
from receipts.base.units import counted
from receipts.cli import output
from receipts.cli.asked import taking
from receipts.cli.session import Answer, Session, completing, group, verb

if TYPE_CHECKING:
    from receipts.questions.week.collect import Basis, WeekData
    from receipts.questions.week.data import Described

F = TypeVar("F", bound=Callable[..., Any])
_SEALED = timedelta(days=1)  # a store that is reported on is sealed this often at least


@group("report")
def command() -> None:
    """Write reports. They judge the store's receipts again under the current rules.

    A report is report.md, index.html and report.json; other files in its folder are left alone. The data of a week or
    a lane are written as Parquet as well, where pyarrow is installed: receipts.parquet and comparisons.parquet. The
    same store, --as-of and rules give the same bytes.

    The key reports of a receipts.toml names folders that are searched for templates before the built-in ones.
    Exit codes: 0 written, 2 wrong call, 4 the store, a rule or a template failed.

    Examples:
      receipts report weekly
      receipts report lane nvidia-megatron
      receipts report compare before.json after.json
    """


for added in plugins.services("report"):
    command.add_command(added.REPORT)


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


@verb("weekly", of=command)
@_interval("that of --as-of")
@click.option("--lane", "-l", "lanes", multiple=True, metavar="NAME", help="Only this lane; may be repeated.")
@_out("report")
@click.option(
    "--first-screen",
    "form",
    type=click.Choice(["markdown", "text"]),
    help="Print the first screen, to paste into a message; write nothing.",
)
def weekly(session: Session, /, lanes: tuple[str, ...], out: Path, form: str | None, **when: str | None) -> Answer:
    """Write the frontier report of a week, or of any interval.

    Frontier and ceilings per lane, accepted and rejected comparisons with their axes, gains that did not survive,
    claims, failures, and the receipts behind every number.

    Examples:
      receipts report weekly
      receipts report weekly --week 2026-W47 --out report
      receipts report weekly --lane nvidia-megatron --lane tpu-torch-xla
      receipts report weekly --since 2026-11-01 --until 2026-11-20
      receipts report weekly --week 2026-W47 --as-of 2026-11-23T09:00Z --json
      receipts report weekly --week 2026-W47 --first-screen markdown
    """
    from receipts.publish.report.render import render, render_first
    from receipts.questions.week.collect import collect_with_basis
    from receipts.questions.week.interval import asked, moment

    if form is not None and session.as_json:
        raise UsageError("--first-screen and --json both print; leave one out")
    session.progress.tick()
    at = moment(when.pop("as_of"))
    wanted = asked(**when, as_of=at)
    data, basis = collect_with_basis(session.store, session.rulebook, wanted, at, tuple(dict.fromkeys(lanes)))
    if form is not None:
        return Answer(None, render_first(data, session.rulebook.rules, form, session.config.reports).rstrip("\n"))
    files = {**render(data, session.rulebook.rules, session.config.reports), **_parquet(basis, data, out)}
    return _written(session, files, out, data.receipts, head=_counts(data))


@verb("lane", of=command)
@click.argument("name", metavar="NAME", shell_complete=completing("lane"))
@_interval("the last in which the lane ran")
@_out("report/lane")
def lane(session: Session, /, name: str, out: Path, **when: str | None) -> Answer:
    """Write the page of one lane: its frontier and ceilings, and the last week in which it ran.

    Examples:
      receipts report lane nvidia-megatron
      receipts report lane tpu-torch-xla --week 2026-W47 --out report/tpu
    """
    from receipts.publish.report.render import render
    from receipts.questions.week.collect import collect_with_basis
    from receipts.questions.week.interval import Week, asked, moment

    session.progress.tick()
    at = moment(when.pop("as_of"))
    wanted = asked(**when, as_of=at)
    data, basis = collect_with_basis(session.store, session.rulebook, wanted, at, (name,))
    if not (when["week"] or when["since"]) and not data.counts.submitted and data.last_week:
        data, basis = collect_with_basis(session.store, session.rulebook, Week.parse(data.last_week), at, (name,))
    files = {**render(data, session.rulebook.rules, session.config.reports, lane=name), **_parquet(basis, data, out)}
    return _written(session, files, out, data.receipts, head=_counts(data))


@verb("compare", of=command)
@taking(compare, "require", "standing", "record")
@_out("report/compare")
def compare_(session: Session, given: dict[str, Any], out: Path) -> Answer:
    """Write the page of one comparison, B against A: two receipts, or two groups of launches.

    A and B are files, ids or unique id prefixes, labels, label=GLOB, or @pins; ID,ID names several launches of
    a side. Two files need no store. The verdict does not change the exit code; receipts compare answers with its own.

    Examples:
      receipts report compare before.json after.json
      receipts report compare 'label=base*' 'label=cand*' --out report/buckets
      receipts report compare @golden 81aa --waive flags.NCCL_ALGO="pinned by the site"
      receipts report compare a.json b.json --also-a a2.json --also-b b2.json
      receipts report compare a.json b.json --witness a-profile.json --witness b-profile.json
    """
    from receipts.publish.report.render import files, pair_page
    from receipts.questions.week.documents import pair

    session.progress.tick()
    stored = not documents([*given["a"], *given["b"], *given["witnesses"]])
    compared = compare(session, **given)
    left, right, facts = compared.sides.a, compared.sides.b, compared.sides.facts
    ids = [item.id for item in (*left, *right)] if stored else []
    claims = list(dict.fromkeys(name for one in ids for name in session.store.published.claims_on(one)))
    data = pair(left, right, compared.verdict, session.rulebook, facts, compared.decided, claims)
    written = files(
        pair_page(data, session.rulebook.rules, session.config.reports), data, "compare", session.config.reports
    )
    return _written(session, written, out, data.receipts if stored else (), foot=compared.verdict.last_line())


@verb("claim", of=command)
@click.argument("claim_id", metavar="ID")
@_out("report/claim")
@click.option("--as-of", metavar="TIME", help="Only verdicts, decisions and documents up to then.  [default: now]")
def claim_(session: Session, claim_id: str, out: Path, as_of: str | None) -> Answer:
    """Write the page of one claim of the store: its verdict, comparison and history, and where it is quoted.

    The verdict does not change the exit code; receipts claim show answers with its own.

    Examples:
      receipts report claim mtp-off
      receipts report claim mtp-off --out report/mtp-off --as-of 2026-11-23
    """
    from receipts.publish.report.render import claim_page, files
    from receipts.questions.week.documents import claim
    from receipts.questions.week.interval import moment

    session.progress.tick()
    data = claim(session.store, claim_id, session.rulebook, moment(as_of))
    written = files(
        claim_page(data, session.rulebook.rules, session.config.reports), data, "claim", session.config.reports
    )
    return _written(session, written, out, data.receipts, foot=data.verdict.last_line())


def _parquet(basis: Basis, data: WeekData, out: Path) -> Mapping[str, bytes]:
    """The report's data as Parquet. Without pyarrow there are none, and a note says so; those of before go."""
    from receipts.base.environment import extra
    from receipts.publish.report.basis import FILES, parquet

    try:
        extra("pyarrow", "data", "Parquet")
    except UsageError as missing:
        output.note(f"written without {' and '.join(FILES)}: {missing}")
        for name in FILES:
            (out / name).unlink(missing_ok=True)
        return {}
    return parquet(basis, data)


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


def _written(
    session: Session,
    files: Mapping[str, bytes],
    out: Path,
    quoted: Sequence[Described],
    *,
    head: str = "",
    foot: str = "",
) -> Answer:
    """Write the files, and record which receipts they quote, for `receipts impact`; the answer names the files.

    The store is sealed once a day; one that may only be read is left alone.
    """
    write_folder(out, files, over=True)
    if quoted:
        ids = [(item.receipt.id, item.receipt.name) for item in quoted]
        try:
            session.store.published.quote(str((out / "report.md").resolve()), ids)
            session.store.seal(_SEALED)
        except StoreError as error:
            output.note(f"the report is written; receipts impact will not know that it quotes them: {error}")
    names = (f"  {out / name}" for name in sorted(files))
    return Answer(files["report.json"].decode().rstrip("\n"), "\n".join(filter(None, (head, *names, foot))))
