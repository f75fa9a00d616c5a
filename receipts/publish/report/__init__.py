"""Reports: what the questions answer about a stretch of time, gathered as values and rendered as pages.

`collect` reads the store and gives a `WeekData`; `pair` and `claim` give the values of one comparison and one claim.
`render` and its like make files of them, `parquet` of what they were computed from.
"""

from __future__ import annotations

from receipts.publish.report.basis import Basis, parquet
from receipts.publish.report.claim import ClaimData, claim
from receipts.publish.report.collect import collect, collect_with_basis
from receipts.publish.report.data import WeekData
from receipts.publish.report.pair import PairData, pair
from receipts.publish.report.ref import Ref
from receipts.publish.report.render import render, render_claim, render_first, render_lane, render_pair
from receipts.publish.report.week import TimeRange, Week, asked, moment

__all__ = [
    "Basis",
    "ClaimData",
    "PairData",
    "Ref",
    "TimeRange",
    "Week",
    "WeekData",
    "asked",
    "claim",
    "collect",
    "collect_with_basis",
    "moment",
    "pair",
    "parquet",
    "render",
    "render_claim",
    "render_first",
    "render_lane",
    "render_pair",
]
