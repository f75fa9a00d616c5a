"""Bridges: chains of accepted receipts, each one axis from the next, between two that are several axes apart."""

from __future__ import annotations

from receipts.questions.bridge.bridge import Bridge, bridge
from receipts.questions.bridge.chain import Chain, Hop, Interaction, Range, by_axis
from receipts.questions.bridge.gain import HopGain
from receipts.questions.bridge.missing import Leg, MissingRun, Route
from receipts.questions.bridge.point import BridgePoint
from receipts.questions.bridge.search import MOST_HOPS

__all__ = [
    "MOST_HOPS",
    "Bridge",
    "BridgePoint",
    "Chain",
    "Hop",
    "HopGain",
    "Interaction",
    "Leg",
    "MissingRun",
    "Range",
    "Route",
    "bridge",
    "by_axis",
]
