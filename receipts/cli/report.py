"""``receipts report``: pages that are computed from the store."""

from __future__ import annotations

from pathlib import Path

import click

from receipts.cli import output
from receipts.cli.session import Session, pass_session

EPILOG = """\b
Examples:
  receipts report weekly
  receipts report weekly --week 2026-W47 --out report
  receipts report weekly --lane nvidia-megatron --lane tpu-torch-xla
  receipts report weekly --week 2026-W47 --as-of 2026-11-23T09:00Z --json

Writes report.md, index.html and report.json; other files in the folder are left alone. The same store, --as-of and
rules give the same bytes. Templates: the key reports of a receipts.toml names folders that come before the built-in.
Exit codes: 0 written, 2 wrong call, 4 the store, a rule or a template failed."""


@click.group("report")
def command() -> None:
    """Write reports. They judge the store's receipts anew, under the rules in force."""


@command.command("weekly", epilog=EPILOG)
@click.option("--week", metavar="YYYY-Www", help="ISO week, in UTC; that of --as-of unless named.")
@click.option("--lane", "-l", "lanes", multiple=True, metavar="NAME", help="Only this lane; may be given again.")
@click.option(
    "--out",
    "-o",
    type=click.Path(path_type=Path),
    default=Path("report"),
    show_default=True,
    metavar="DIR",
    help="Folder to write to; made where it is missing.",
)
@click.option("--as-of", metavar="TIME", help="Look at what ran until then; now unless given.")
@click.option("--json", "as_json", is_flag=True, help="Print report.json as well.")
@pass_session
def weekly(
    session: Session, week: str | None, lanes: tuple[str, ...], out: Path, as_of: str | None, as_json: bool
) -> int:
    """Write the frontier report of a week.

    Frontier per lane, comparable and refused comparisons with their axes, failures, and the receipts behind every
    number.
    """
    from receipts.report import Week, collect, moment, render, write

    at = moment(as_of)
    wanted = Week.parse(week) if week else Week.of(at)
    with session.open_store() as store:
        data = collect(store, session.rulebook, wanted, at, tuple(dict.fromkeys(lanes)))
    files = render(data, session.config.reports)
    write(files, out)
    _remember(session, out / "report.md", [(item.receipt.id, item.receipt.name) for item in data.receipts])
    if as_json:
        output.line(files["report.json"].decode().rstrip("\n"))
        return 0
    counts = data.counts
    output.line(
        f"{data.week}: {counts.submitted} receipts ({counts.valid} valid, {counts.unwitnessed} unwitnessed, "
        f"{counts.invalid} invalid, {counts.superseded} superseded), {data.compared} pairs judged"
    )
    if not counts.submitted and data.last_week:
        output.note(f"no receipt ran in {data.week}; the newest ran in {data.last_week}: --week {data.last_week}")
    for name in sorted(files):
        output.line(f"  {out / name}")
    return 0


def _remember(session: Session, document: Path, quoted: list[tuple[str, str | None]]) -> None:
    """Write down which receipts a report quotes, for `receipts impact`. A store that may only be read is left alone."""
    from receipts.errors import StoreError

    try:
        with session.open_store() as store:
            store.quote(str(document.resolve()), quoted)
    except StoreError as error:
        output.note(f"the report is written; receipts impact will not know that it quotes them: {error}")
