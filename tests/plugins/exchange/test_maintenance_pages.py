"""Pages of audit, verify, revalidate, merge, recover and imports: the answer first, in a terminal and as HTML."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

import receipts.cli
from receipts.emit.merge import Merged
from receipts.plugins.exchange.import_verbs import store_page, table_page
from receipts.plugins.exchange.notebook import ImportedTable, Unread
from receipts.plugins.exchange.store_import import ImportedStore
from receipts.publish.ingested import merged, recovered
from receipts.publish.markup import html, markdown
from receipts.publish.page import Page
from receipts.publish.tables import audited, flipped, rejudged, verified
from receipts.publish.terminal import Terminal
from receipts.workflows.audit import Audit, Fault
from receipts.workflows.evidence import Checked, Verified
from receipts.workflows.revalidate import FindingChange, Rejudged, Tally

LONG = "a value that somebody wrote and that goes on for longer than any terminal is wide, " * 2
FAULT = Fault("column", "receipt 3f9c", f"label is {LONG}", "restore a backup: receipts restore FILE")
COUNTS = {"receipts": 2, "verdicts": 1}
WHOLE = Audit("lab.sqlite", COUNTS, 0, (), (), None)
BROKEN = Audit("lab.sqlite", COUNTS, 0, (FAULT,), (LONG,), None)
FLIP = Rejudged("receipt", ("3f9c" * 16,), "one", "valid", None, (FindingChange("R1", "run", "E", LONG, True),), LONG)
EDITED = Verified("3f9c" * 16, "one", (Checked("bytes", "other", LONG),))
RUN = {"run": {"launch": "a", "outcome": "ok"}, "measurement": {"step_durations_seconds": [1.0]}}
JOURNAL = {"written": "run.json", "rank": 1, "world": 8, "steps": 3, "outcome": "oom", "failure": {"message": LONG}}
UNREAD = ImportedTable((), (), tuple(Unread("row", f"leaf.{index}", LONG) for index in range(20)))


def pages() -> list[tuple[Page, str]]:
    """Each with how its first line begins."""
    return [
        (audited(WHOLE, (), None), "lab.sqlite: 2 receipts, 1 verdict"),
        (audited(BROKEN, (), "f" * 64), "lab.sqlite: 1 fault in 2 receipts"),
        (
            verified(Verified("3f9c" * 16, "one", (Checked("bytes", "other", LONG),)), opened=False),
            "3f9c3f9c3f9c  one: 1 o",
        ),
        (flipped(FLIP), "3f9c3f9c3f9c  one: valid → cannot be judged"),
        (rejudged(Tally({"receipt": 2}, same=2), dry_run=True), "would judge 2 receipts: 0 flipped"),
        (merged(Merged(RUN, (), ()), "run.json"), "wrote run.json: 1 step, ok"),
        (merged(Merged(RUN, (3,), (LONG,)), None), "nothing was written"),
        (recovered(JOURNAL), "wrote run.json: 3 steps, oom"),
        (table_page(UNREAD, ""), "0 receipts, 0 rows refused"),
        (store_page(ImportedStore("lab-export", "a" * 32, left_out=3)), "0 receipts came in"),
    ]


@pytest.mark.parametrize(("page", "first"), pages(), ids=lambda item: item.title if isinstance(item, Page) else "")
def test_the_answer_is_the_first_line_and_no_line_is_wider_than_the_terminal(page: Page, first: str) -> None:
    lines = list(Terminal(width=80, room=80).page(page))
    assert lines[0].startswith(first)
    assert max(map(len, lines)) <= 80 + len("root over all seals: ")  # a root stands on one line, to be copied


@pytest.mark.parametrize(("page", "first"), pages(), ids=lambda item: item.title if isinstance(item, Page) else "")
def test_the_same_page_is_markdown_and_html(page: Page, first: str) -> None:
    assert first.split()[0].rstrip(":") in markdown(page).replace("\\", "")
    assert first.split()[0].rstrip(":") in html(page)


def test_what_is_many_is_cut_and_counted() -> None:
    lines = list(Terminal(width=80).page(table_page(UNREAD, "")))
    assert lines[-1].strip() == "and 8 more; see them all with --json"


def _calls(path: Path, names: Sequence[str]) -> list[str]:
    text = path.read_text(encoding="utf-8")
    return [name for name in names if name in text]


def test_no_command_folds_colors_or_lays_out_text_itself() -> None:
    of_layout = ("textwrap", "\\x1b[3", ".wrapped(", ".paint(", ".ljust(", ".rjust(")
    files = [path for path in Path(receipts.cli.__file__).parent.glob("*.py") if path.name != "group.py"]
    assert {path.name: calls for path in files if (calls := _calls(path, of_layout))} == {}
