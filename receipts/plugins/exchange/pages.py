"""The pages of imports: how many receipts were made and where they went, what could not be read, what disagrees.

Those of published results show the spread of each submission, the pairs one axis apart, and two submissions axis by
axis.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from receipts.base.units import counted
from receipts.base.untrusted_text import plain, short
from receipts.publish.page import Page, Section, lines_of, points_of, sections_of, table_of

if TYPE_CHECKING:
    from receipts.plugins.exchange.notebook import ImportedTable
    from receipts.plugins.exchange.published import PublishedLog, SubmissionPair, SubmissionSpread
    from receipts.plugins.exchange.store_import import ImportedStore

MAX_SHOWN = 12  # lines of one kind; --json has them all
UNREAD, DISAGREEMENT = 80, 200  # signs of a text
MAX_AXES = 6
MAX_PAIRS = 40
MAX_TEXT = 80


def table(item: ImportedTable, where: str) -> Page:
    """A table of runs; ``where`` says where its receipts went."""
    unread = Counter((one.to, one.text) for one in item.unread)
    texts = [(to, f"{short(text, UNREAD)}{_times(count, 'rows')}") for (to, text), count in unread.items()]
    points = points_of(texts[:MAX_SHOWN]) + lines_of(_cut(name for name, _ in texts)[MAX_SHOWN:])
    unnamed = ", ".join(_cut(f"{short(path, UNREAD)} ({count})" for path, count in item.unnamed.items()))
    unnamed = f"columns that no entry names, with their rows: {unnamed}" if unnamed else ""
    sections = (
        Section("disagree", "Does not agree", points=lines_of(_cut(map(str, item.disagreements)))),
        Section("unread", f"Not read, kept under notes.unread: {len(item.unread)}", points=points),
        Section("unnamed", "", points=lines_of(filter(None, [unnamed]))),
    )
    answer = f"{counted(len(item.receipts), 'receipt')}, {counted(len(item.refused), 'row')} refused{where}"
    return _page(answer, sections)


def logs(items: Sequence[PublishedLog], where: str) -> Page:
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
    """Rows of every dataset but the receipts, in words; empty if there is none."""
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
