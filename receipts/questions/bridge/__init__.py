"""Bridges: chains of accepted receipts, each one axis from the next, between two that are several axes apart."""

from __future__ import annotations

from receipts.questions.bridge.bridge import Bridge, bridge
from receipts.questions.bridge.chain import Chain, Hop, Interaction, Range, by_axis
from receipts.questions.bridge.gain import Gain
from receipts.questions.bridge.missing import Leg, Route, Run
from receipts.questions.bridge.point import Point
from receipts.questions.bridge.search import MOST_HOPS

__all__ = [
    "MOST_HOPS",
    "Bridge",
    "Chain",
    "Gain",
    "Hop",
    "Interaction",
    "Leg",
    "Point",
    "Range",
    "Route",
    "Run",
    "bridge",
    "by_axis",
]
