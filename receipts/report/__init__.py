"""Reports: what the questions answer about a stretch of time, gathered as values and rendered as pages.

`collect` reads the store and gives a `WeekData`; `render` makes files of it; `write` puts them in a folder.
"""

from __future__ import annotations

from receipts.report.collect import collect
from receipts.report.data import WeekData
from receipts.report.render import render, write
from receipts.report.week import Week, moment

__all__ = ["Week", "WeekData", "collect", "moment", "render", "write"]
