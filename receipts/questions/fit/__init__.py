"""What a launch would hold on its fullest chip, whether that fits, what shrinks it, and how far it lies from measured.

`receipts.estimate` does the arithmetic on plain values; here it meets receipts, lanes, accelerators and the store.
"""

from __future__ import annotations

from receipts.questions.fit.calibrate import Calibration, Point, calibrate
from receipts.questions.fit.estimate import (
    Budget,
    Estimate,
    Growth,
    Measured,
    budget,
    calibration_of,
    calibrations,
    compared,
    estimate,
    growth,
    measured,
    point,
    point_of,
    predicted,
    setup_of,
)

__all__ = [
    "Budget",
    "Calibration",
    "Estimate",
    "Growth",
    "Measured",
    "Point",
    "budget",
    "calibrate",
    "calibration_of",
    "calibrations",
    "compared",
    "estimate",
    "growth",
    "measured",
    "point",
    "point_of",
    "predicted",
    "setup_of",
]
