"""Memory by physical chip and phase: who leads, who peaks earlier, how far chips lie apart, what is left, what moved.

Values in, values out; bytes throughout.
"""

from receipts.metrics.chips.account import (
    LEAVES,
    METRICS,
    PHASES,
    TITLES,
    Account,
    Chip,
    Metric,
    Moment,
    Phase,
    Ranking,
    account,
    highest,
)
from receipts.metrics.chips.pressure import (
    Figure,
    Margin,
    Pressure,
    largest_difference,
    middle,
    pressure,
    pressure_json,
)

__all__ = [
    "LEAVES",
    "METRICS",
    "PHASES",
    "TITLES",
    "Account",
    "Chip",
    "Figure",
    "Margin",
    "Metric",
    "Moment",
    "Phase",
    "Pressure",
    "Ranking",
    "account",
    "highest",
    "largest_difference",
    "middle",
    "pressure",
    "pressure_json",
]
