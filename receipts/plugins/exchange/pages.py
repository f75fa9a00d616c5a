"""The pages of imports: how many receipts were made and where they went, what could not be read, what disagrees."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from receipts.base.text import short
from receipts.base.units import counted
from receipts.publish.page import Page, Points, Section, lines_of, points_of, sections_of

if TYPE_CHECKING:
    from receipts.plugins.exchange.notebook import ImportedTable
    from receipts.plugins.exchange.published import PublishedLog
    from receipts.plugins.exchange.store_import import ImportedStore

MAX_SHOWN = 12  # lines of one kind; --json has them all
UNREAD, DISAGREEMENT = 80, 200  # signs of a text


def table(item: ImportedTable, where: str) -> Page:
    """A table of runs; ``where`` says where its receipts went."""
    unread = Counter((one.to, one.text) for one in item.unread)
    texts = ((to, f"{short(text, UNREAD)}{_times(count, 'rows')}") for (to, text), count in unread.items())
    unnamed = ", ".join(_cut(f"{short(path, UNREAD)} ({count})" for path, count in item.unnamed.items()))
    unnamed = f"columns that no entry names, with their rows: {unnamed}" if unnamed else ""
    sections = (
        Section("disagree", "Does not agree", points=lines_of(_cut(map(str, item.disagreements)))),
        Section("unread", f"Not read, kept under notes.unread: {len(item.unread)}", points=_cut_points(texts)),
        Section("unnamed", "", points=lines_of(filter(None, [unnamed]))),
    )
    answer = f"{counted(len(item.receipts), 'receipt')}, {counted(len(item.refused), 'row')} refused{where}"
    return _page(answer, sections)


def logs(items: Sequence[PublishedLog], where: str) -> Page:
    """Published logs: receipts by submission, copies of a launch, and what a description says otherwise than a log."""
    receipts = [item for item in items if item.raw is not None]
    copies = (f"{item.place.name} holds the records of {item.copy_of}: one launch" for item in items if item.copy_of)
    sections = (
        Section("disagree", "Does not agree", points=points_of(_disagreements(items))),
        Section("copies", "Copies", points=lines_of(_cut(copies))),
    )
    submissions, launches = {item.place.context for item in receipts}, {item.launch for item in receipts}
    answer = (
        f"{counted(len(receipts), 'receipt')} of {counted(len(items), 'log')} in "
        f"{counted(len(submissions), 'submission')}, {counted(len(launches), 'launch', 'launches')}{where}"
    )
    return _page(answer, sections)


def _disagreements(items: Sequence[PublishedLog]) -> Iterator[tuple[str, str]]:
    """One for each leaf of a submission on which a log and a description differ, the accelerator first."""
    seen: dict[tuple[str, str], list[str]] = {}
    for item in items:
        for difference in item.contradictions:
            seen.setdefault((item.place.context, difference.path), []).append(difference.what)
    for (context, path), whats in sorted(seen.items(), key=lambda entry: entry[0][1] != "hardware.accelerator"):
        yield f"{context} {path}", f"{short(whats[0], DISAGREEMENT)}{_times(len(whats), 'logs')}"


def store(done: ImportedStore) -> Page:
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


def beside(rows: Mapping[str, int]) -> str:
    """Rows of every dataset but the receipts, in words; empty where there are none."""
    named = ((name.replace("_", " "), count) for name, count in rows.items() if count and name != "receipts")
    return ", ".join(f"{count:,} {name.removesuffix('s') if count == 1 else name}" for name, count in named)


def _page(answer: str, sections: Sequence[Section]) -> Page:
    return Page("Import", (answer,), sections=sections_of(*sections))


def _times(count: int, what: str) -> str:
    return f" ({count} {what})" if count > 1 else ""


def _cut(texts: Iterable[str]) -> list[str]:
    every = list(texts)
    left = len(every) - MAX_SHOWN
    return [*every[:MAX_SHOWN], f"and {left} more; see them all with --json"] if left > 0 else every


def _cut_points(rows: Iterable[tuple[str, str]]) -> Points:
    every = list(rows)
    return points_of(every[:MAX_SHOWN]) + lines_of(_cut(name for name, _ in every)[MAX_SHOWN:])
