"""# R129 thin_energy

*Why.* Power moves within a step by a factor of three: compute, a collective, a wait for data. A meter that was read a
few times says what a moment took, and a mean of moments is no energy. So is one that was read for a small part of the
steps that it is quoted for.

*Rejected.* Shown, and no joules are given: four readings; a hundred readings in 3 s of a window of a minute.

*Accepted.* Ten readings or more, over half of the measured steps or more. A receipt without a meter.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.judging.rule import NONE, Case, Offense, W, rule
from receipts.metrics.readings import MIN_COVERED, MIN_SAMPLES, window_seconds

ENERGY = "measurement.energy"


@rule("R129", "thin_energy", W, question=NONE)
def thin_energy(case: Case) -> Iterator[Offense]:
    """Readings of the meter, and the share of the window that they cover."""
    if case.get(f"{ENERGY}.watts_per_chip") is None:
        return
    samples, seconds = case.get(f"{ENERGY}.samples"), case.get(f"{ENERGY}.seconds")
    window = window_seconds(case.launch)
    if samples is None or samples < MIN_SAMPLES:
        yield Offense(
            at=f"{ENERGY}.samples",
            found=f"{samples} readings" if samples is not None else "no count of readings",
            expected=f"at least {MIN_SAMPLES} in the window",
            do="sample more often (RECEIPTS_NVML_SECONDS=0.1), or run longer; no joules are given",
        )
    elif seconds is None or seconds < MIN_COVERED * window:
        yield Offense(
            at=f"{ENERGY}.seconds",
            found=f"{seconds:.3g} s" if seconds is not None else "no time",
            expected=f"at least {MIN_COVERED:.0%} of the {window:.3g} s that were measured",
            do="sample all measured steps; no joules are given",
        )
