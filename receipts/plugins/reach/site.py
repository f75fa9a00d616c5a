"""``receipts site``: a store as files for any web server: the frontier, receipts, comparisons, and what was refused."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime, timedelta
from itertools import groupby
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

import click

from receipts.base import files
from receipts.base.errors import UsageError
from receipts.base.units import counted
from receipts.cli.session import Answer, Session, verb
from receipts.publish.page import RUN, Link, Page, Section, marked, table_of

if TYPE_CHECKING:
    from receipts.questions.week.data import JudgedPair
    from receipts.store import Entry

NAV: Final = (
    ("index.html", "Frontier"),
    ("receipts.html", "Receipts"),
    ("comparisons.html", "Comparisons"),
    ("refusals.html", "Refusals"),
)
MARKER: Final = "receipts-site.json"  # the files of the site, so that the next writing takes away what is no more
MAX_PAIRS: Final = 500  # of a lane and a status


@verb("site")
@click.argument("folder", metavar="DIR", type=click.Path(path_type=Path))
@click.option("--lane", "lanes", multiple=True, metavar="LANE", help="Only this lane; may be repeated.")
@click.option("--title", default="Receipts", show_default=True, metavar="TEXT", help="What the first page is called.")
@click.option("--no-documents", is_flag=True, help="Leave the documents of the receipts out.")
def site_command(session: Session, folder: Path, lanes: tuple[str, ...], title: str, no_documents: bool) -> Answer:
    """Write a store as a static site: the frontier, receipts, comparisons, and what was refused.

    Examples:
      receipts site public
      receipts site public --lane nvidia-megatron --title "Our receipts"
      python -m http.server -d public

    Any web server serves it: no script, no server of ours, nothing from elsewhere. Everything that a receipt states is
    public then: names of hosts, commits, notes. Retracted and superseded receipts are left out. Written again, it takes
    away what is no more. Exit codes: 0 written, 2 wrong call, 4 the store or the disk failed.
    """
    for lane in lanes:
        session.rulebook.lanes.get(lane)
    known = _known(folder)
    with session.store.one_state():
        pages = dict(_pages(session, lanes, title, documents=not no_documents))
    pages[MARKER] = json.dumps(sorted(pages), indent=0)
    (folder / "r").mkdir(parents=True, exist_ok=True)
    files.write_folder(folder, pages, over=True)
    for name in known - pages.keys():
        (folder / name).unlink(missing_ok=True)
    count = sum(name.startswith("r/") and name.endswith(".html") for name in pages)
    text = f"{folder}: {count} receipts, {len(pages) - 1} files; open {folder / 'index.html'}"
    return Answer({"folder": str(folder), "receipts": count, "files": len(pages) - 1}, text)


def _known(folder: Path) -> set[str]:
    """The files of an earlier writing. Raises UsageError for a folder that holds something else."""
    if not folder.exists() or not any(folder.iterdir()):
        return set()
    try:
        names = json.loads((folder / MARKER).read_text(encoding="utf-8"))
        return {name for name in names if name.count("/") < 2 and ".." not in name and not name.startswith("/")}
    except (OSError, ValueError, TypeError, AttributeError):
        raise UsageError(f"{folder} holds files that are no site of receipts; name a new folder") from None


def _pages(session: Session, lanes: Sequence[str], title: str, *, documents: bool) -> Iterator[tuple[str, str | bytes]]:
    """The files of the site by name."""
    from receipts.api.lists import frontier_and_courses, frontier_page
    from receipts.api.receipt import Receipt
    from receipts.publish.report.frontier import over_lanes
    from receipts.store import Filters

    store = session.store
    entries = [item for item in store.find(Filters()) if not lanes or item.lane in lanes]
    ids = {item.id for item in entries}
    rows, courses = frontier_and_courses(store, session.rulebook)
    shown = {item.lane for item in entries}
    front = frontier_page([row for row in rows if row["lane"] in shown], session.rulebook.rules)
    drawn = over_lanes("frontier-lanes", [item for item in courses if not lanes or item.lane in lanes])
    weeks = (Section("weeks", "Over the weeks", figures=(drawn,)),) if drawn is not None else ()
    headline = ("Fastest results: ", *front.headline)
    yield "index.html", _html(Page(title, headline, lead=front.lead, sections=(*weeks, *front.sections)), ids)
    yield "receipts.html", _html(_listed(entries), ids, "receipts.html")
    accepted, rejected = _compared(session, entries)
    yield "comparisons.html", _html(accepted, ids, "comparisons.html")
    reasons: list[tuple[Entry, str]] = []
    for entry in entries:
        parsed = store.parsed(entry.id)
        decided = store.published.decisions([entry.id])
        receipt = Receipt(parsed, session.rulebook, store.query.facts([parsed]), decided, store=store)
        errors = [f"{item.code} {item.name}: {item.found}" for item in receipt.verdict.findings if item.level == "E"]
        if errors or entry.outcome not in ("ok", None):
            reasons.append((entry, "; ".join(errors) or str(entry.outcome)))
        page, place = receipt.page(facts=True), f"r/{entry.id}"
        yield f"{place}.html", _html(page, ids, raw=f"{entry.id}.json" if documents else "", id=entry.id, root="../")
        if documents:
            yield f"{place}.json", receipt.raw
    yield "refusals.html", _html(_refusals(reasons, rejected), ids, "refusals.html")


def _html(page: Page, ids: set[str], here: str = "index.html", **values: Any) -> str:
    """A page whose links lead to files of the site; what it does not hold is text."""
    from receipts.publish.markup import anchors, environment

    known, given = set(anchors(page.sections)), {"root": "", "raw": "", "id": "", **values}

    def lead(anchor: str) -> str | None:
        receipt = anchor.removeprefix(RUN)
        if anchor.startswith(RUN) and receipt in ids:
            return f"{given['root']}r/{receipt}.html"
        return f"#{anchor}" if anchor in known else None

    template = environment().get_template("parts/static.html.j2")
    return template.render(page=page, lead=lead, nav=NAV, here="" if given["root"] else here, **given)


def _listed(entries: Sequence[Entry]) -> Page:
    """Every receipt, by lane, the newest first."""
    from receipts import metrics
    from receipts.publish.readings import number

    rate = metrics.get("tokens_per_second_per_chip")
    header = "receipt… | verdict | hardware ^2 | sequence ^3 | #tokens/s/chip | started, UTC ^1"
    sections = []
    for lane, held in groupby(sorted(entries, key=lambda item: item.lane), key=lambda item: item.lane):
        rows = (
            (
                Link(item.name[:60], f"{RUN}{item.id}"),
                marked(item.status),
                f"{item.chips or '?'} × {item.accelerator or '?'}",
                str(item.sequence_length or "~"),
                number(rate, value) if (value := item.tokens_per_second_per_chip) else "~",
                f"{item.started:%Y-%m-%d %H:%M}",
            )
            for item in held
        )
        sections.append(Section(f"lane-{lane}", lane, tables=(table_of("", header, rows),)))
    return Page("Receipts", (f"{len(entries):,} receipts in {len(sections)} lanes",), sections=tuple(sections))


def _compared(session: Session, entries: Sequence[Entry]) -> tuple[Page, list[Section]]:
    """The comparisons of all launches, as a report makes them: a page, and sections of those that were rejected."""
    from receipts.questions.week.collect import collect_with_basis
    from receipts.questions.week.interval import TimeRange

    begin = min((item.started for item in entries), default=datetime.now(UTC))
    span = TimeRange(begin - timedelta(days=1), datetime.now(UTC) + timedelta(days=1))
    lanes = sorted({item.lane for item in entries})
    _, basis = collect_with_basis(session.store, session.rulebook, span, datetime.now(UTC), lanes)
    kept: list[Section] = []
    rejected: list[Section] = []
    counts = {"accepted": 0, "inconclusive": 0, "rejected": 0}
    for lane, every in sorted(basis.compared.items()):
        for status in counts:
            pairs = [item for item in every if item.status == status]
            counts[status] += len(pairs)
            if pairs:
                word = "undecided" if status == "inconclusive" else status
                section = Section(f"{status}-{lane}", f"{lane}: {word}", tables=(_pairs(pairs[:MAX_PAIRS]),))
                (rejected if status == "rejected" else kept).append(section)
    ended = f"{counts['accepted']} accepted, {counts['inconclusive']} undecided, {counts['rejected']} rejected"
    return Page("Comparisons", (ended,), sections=tuple(kept)), rejected


def _pairs(pairs: Sequence[JudgedPair]) -> Any:
    from receipts.publish.readings import ends, signed

    numbers = [] if pairs[0].status == "rejected" else ["#change", "95 % interval ^1", "effect"]
    rows = (
        (
            *(Link(one.name[:60], f"{RUN}{one.id}") for one in (item.b[0], item.a[0])),
            item.metric,
            *((signed(item.ratio), ends(item.low, item.high), item.word) if numbers else ()),
            ", ".join(item.counted[:6]) or "~",
            "; ".join(f"{one.code} {one.found}" for one in item.reasons[:2]) or item.why,
        )
        for item in pairs
    )
    return table_of("", " | ".join(["B against…", "A…", "metric ^3", *numbers, "axes… ^3", "why… ^4"]), rows)


def _refusals(reasons: Sequence[tuple[Entry, str]], rejected: Sequence[Section]) -> Page:
    """Receipts that are invalid or failed, and comparisons that were rejected, each with the reason."""
    rows = ((Link(item.name[:60], f"{RUN}{item.id}"), item.lane, item.outcome or "~", why) for item, why in reasons)
    empty = "no receipt is invalid, and no launch failed"
    table = table_of("", "receipt… | lane | outcome | why…", rows, empty=empty)
    lanes = counted(len(rejected), "lane")
    headline = f"{counted(len(reasons), 'receipt')} invalid or failed; comparisons rejected in {lanes}"
    return Page("Refusals", (headline,), sections=(Section("receipts", "Receipts", tables=(table,)), *rejected))
