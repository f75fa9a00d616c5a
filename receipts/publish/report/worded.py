"""A report of another interval than a week: the same sections, with the word that is true of it.

Only what the program itself says is put in other words. Cells hold what receipts and people said, and stay.
"""

from __future__ import annotations

import re
from dataclasses import replace

from receipts.publish.report.page import Page, Section, Table

_WEEK = re.compile(r"\bweek\b")


def worded(page: Page, word: str) -> Page:
    """The page with another word for its week."""
    if word == "week":
        return page
    lead = tuple(_said(text, word) for text in page.lead)
    return replace(page, lead=lead, sections=tuple(_section(item, word) for item in page.sections))


def _section(item: Section, word: str) -> Section:
    return replace(
        item,
        title=_said(item.title, word),
        sentences=tuple(_said(text, word) for text in item.sentences),
        tables=tuple(_table(table, word) for table in item.tables),
        sections=tuple(_section(inner, word) for inner in item.sections),
    )


def _table(item: Table, word: str) -> Table:
    columns = tuple(replace(column, name=_said(column.name, word)) for column in item.columns)
    return replace(item, caption=_said(item.caption, word), columns=columns)


def _said(text: str, word: str) -> str:
    return _WEEK.sub(word, text)
