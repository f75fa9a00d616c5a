"""Axes: the independent things that an experimenter can change, and how two receipts differ in them."""

from __future__ import annotations

from receipts.axes.difference import Difference, Unknown, difference, difference_under, same_context
from receipts.axes.effective import (
    OFF,
    UNSET,
    Change,
    Member,
    axis_leaves,
    axis_named,
    axis_of,
    effective,
    in_words,
    is_off,
    leaf_named,
)

__all__ = [
    "OFF",
    "UNSET",
    "Change",
    "Difference",
    "Member",
    "Unknown",
    "axis_leaves",
    "axis_named",
    "axis_of",
    "difference",
    "difference_under",
    "effective",
    "in_words",
    "is_off",
    "leaf_named",
    "same_context",
]
