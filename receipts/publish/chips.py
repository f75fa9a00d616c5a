"""Memory by chip of one receipt: every phase in a sentence, and its chips as a table."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from receipts.publish.page import Section, Table, table_of
from receipts.publish.text import gib
from receipts.publish.words import words

if TYPE_CHECKING:
    from receipts.metrics.chips import Account, Chip
    from receipts.receipt import Parsed

say = words("receipt")

MOST_ROWS = 64  # of chips and phases, before a table shows one phase
FEW_ROWS = 16


def memory(parsed: Parsed, *, folded: bool) -> Section:
    """The section; empty for a receipt that states no memory. Of many chips it shows the fullest or the tightest."""
    from receipts.metrics.chips import account

    whole = account(parsed)
    chips = {item.chip for phase in whole.phases for item in phase.chips}
    several = any(len(phase.chips) > 1 for phase in whole.phases)
    shown = [item for phase in whole.phases for item in phase.chips]
    fullest = whole.worst("peak") or whole.worst("used")
    if len(shown) > MOST_ROWS and fullest is not None:
        shown = list(fullest.chips)
    sentences = list(_sentences(whole, several=several))
    if len(shown) > MOST_ROWS:
        sentences.append(say("tightest", few=FEW_ROWS, n=len(shown)))
        shown = sorted(shown, key=_by_headroom)[:FEW_ROWS]
    after = (say("every_chip", source=parsed.source),) if several else ()
    table = _table(shown, after)
    fold = say("memory_fold", n=len(chips)) if folded else ""
    return Section("memory", say("memory"), tuple(sentences), tables=(table,) if shown else (), fold=fold)


def _sentences(whole: Account, *, several: bool) -> Iterator[str]:
    from receipts.metrics.chips import words

    fullest = whole.worst("peak") or whole.worst("used")
    if several:
        yield from ((words.sentence if phase is fullest else words.brief)(phase) for phase in whole.phases)
    else:
        yield from (fault for phase in whole.phases for fault in words.faults(phase))
    if text := words.aggregate(whole):
        yield text


def _by_headroom(item: Chip) -> tuple[float, int, int]:
    return (item.left if item.left is not None else 1.0), -(item.peak or item.used or 0), item.chip


def _table(chips: Sequence[Chip], after: tuple[str, ...]) -> Table:
    header = (
        "#chip | phase | used [GiB] ^2 | limit [GiB] ^1 | live peak [GiB] | pool peak [GiB] ^3 | headroom [GiB]"
        " | #step ^4"
    )
    rows = (
        (
            str(item.chip),
            item.phase,
            *map(gib, (item.used, item.limit, item.peak, item.pool, item.headroom)),
            f"{item.step:,}" if item.step is not None else "~",
        )
        for item in chips
    )
    return table_of("Memory by chip", header, rows, after)
