"""# R408 impossible_memory

*Why.* A smaller peak is the most wanted number beside a faster step. What a chip holds has a floor: its share of the
weights is there in every step, and what is in use at some time was at its peak then.

*Rejected.* A model of 4.73 billion parameters in bf16 on eight chips whose highest peaks make 3 GB together: the
weights alone are 9.46 GB. As open: 62 GB in use on a chip whose highest live allocation was 31 GB.

*Accepted.* Peaks that hold the weights once over all chips, however they are sharded. Weights that may lie elsewhere
(offload), or in another type (adapters on a quantized base). What a monitor of the whole device saw in use. A launch
that says neither the parameters nor their type.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.base.units import GIB
from receipts.judging.rule import COMPARABLE, MEMORY, Case, E, I, Offense, rule, runs_model
from receipts.receipt.document import UNFAILED
from receipts.receipt.names import DTYPES, named

TOTAL, TYPE, ADAPTERS = "model.parameters_total", "numerics.parameter_dtype", "numerics.adapters.kind"
CHIPS = "memory.chips"
IN_STEPS = ("post_step0", "steady")
MIN_SHARE = 0.9  # of the weights: a rounded count, and a part of them in a smaller type
LESS = 0.95  # of what is in use: two counters of one allocator are read one after the other


@rule("R408", "impossible_memory", E, question=COMPARABLE, taints=(MEMORY,), applies=runs_model)
def impossible_memory(case: Case) -> Iterator[Offense]:
    """The peaks of all chips against the weights, and the peak of each against what it had in use."""
    rows = [(at, row) for at, row in enumerate(case.launch.account.rows) if row.phase in IN_STEPS]
    # A monitor of the device counts what every process holds, and no allocator of one does.
    monitored = any(item.kind == "nvidia-smi" for item in case.receipt.evidence or ())
    for at, row in rows:
        foreign = monitored or (row.pool is not None and (row.used or 0) > row.pool)
        if row.used and not foreign and row.peak is not None and row.peak < LESS * row.used:
            yield Offense(
                at=f"{CHIPS}[{at}].peak_bytes",
                found=f"{row.peak / GIB:.2f} GiB at the most on chip {row.chip}, and {row.used / GIB:.2f} GiB in use",
                expected="a peak of at least what is in use",
                do="read both of one allocator; where the peak was reset, read it before that",
                level=I,
            )
    peaks: dict[int, int] = {}
    for _, row in rows:
        peaks[row.chip] = max(peaks.get(row.chip, 0), row.peak or 0, row.pool or 0, row.used or 0)
    weights = _weights(case)
    whole = case.get("hardware.chips") == len(peaks) and all(peaks.values())
    small = weights and whole and case.receipt.run.outcome in UNFAILED and sum(peaks.values()) < MIN_SHARE * weights
    if small and not _offloads(case):
        yield Offense(
            at=CHIPS,
            found=f"{sum(peaks.values()) / GIB:.2f} GiB at the most over {len(peaks)} chips",
            expected=f"at least {weights / GIB:.2f} GiB, the weights in {case.get(TYPE)}",
            do="check the units, and that each row is of a whole chip",
        )


def _weights(case: Case) -> float:
    """Bytes of the weights; 0 where they are not known, or adapters lie on others."""
    total, types = case.get(TOTAL), named(case.get(TYPE) or "")
    if not total or not types or case.get(ADAPTERS) not in (None, "none"):
        return 0.0
    return float(total) * min(DTYPES[name].bytes for name in types)


def _offloads(case: Case) -> bool:
    """Whether weights may lie elsewhere; it walks every leaf, so that it is asked last."""
    stated = case.stated.items()
    return "offload" in case.lane.name or any("offload" in at and it not in (False, "none", "off") for at, it in stated)
