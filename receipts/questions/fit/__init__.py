"""What a launch would hold on its fullest chip, whether that fits, what shrinks it, and how far it lies from measured.

`receipts.estimate` does the arithmetic on plain values; here it meets receipts, lanes, accelerators and the store.
"""

from __future__ import annotations

from receipts.questions.fit.calibrate import Calibration, CalibrationPoint, calibrate
from receipts.questions.fit.estimate import (
    Budget,
    Growth,
    Measured,
    MemoryEstimate,
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
    with_shrinks,
)

__all__ = [
    "Budget",
    "Calibration",
    "CalibrationPoint",
    "Growth",
    "Measured",
    "MemoryEstimate",
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
    "with_shrinks",
]
