"""# R206 amortisation_unknown

*Why.* Where compiling takes minutes, a number says little until one knows whether the programs came from the cache and
how many were compiled. A cache that was written and never read looked healthy for a week.

*Rejected.* On an XLA lane (I): a rate without the cache state at start, or without a count of compiles; `warm` beside
no program found in the cache and three missed. On a lane where compiling is cheap the same is shown (W).

*Accepted.* `cache_state: warm`, with the number of programs compiled, found in the cache and missed. A failed launch.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.judging.rule import EFFECT, MFU, RATE, Case, I, Offense, W, ended_well, rule

STATE, COMPILES = "compile.cache_state", "compile.compiles"
HITS, MISSES = "compile.cache_hits", "compile.cache_misses"
COUNTS = (COMPILES, MISSES)


@rule(
    "R206",
    "amortisation_unknown",
    I,
    question=EFFECT,
    taints=(RATE, MFU),
    applies=ended_well,
    amortized="nobody says what it compiled",
)
def amortisation_unknown(case: Case) -> Iterator[Offense]:
    """Cache state and compile counts that are not stated, and a warm cache that gave nothing."""
    level = None if case.lane.compile_expensive else W
    if case.get(STATE) is None and case.lane.applies(STATE):
        yield Offense(STATE, "not stated", "cold, warm or off", "state the compile cache's state at the start", level)
    if all(case.get(path) is None for path in COUNTS) and any(case.lane.applies(path) for path in COUNTS):
        yield Offense(COMPILES, "not stated", "programs compiled, or cache misses", "count compiles", level)
    if case.get(STATE) == "warm" and case.get(HITS) == 0 and case.get(MISSES):
        yield Offense(
            STATE,
            f"warm, with 0 programs from the cache and {case.get(MISSES):,} missed",
            "programs from a cache that is warm",
            "state what the cache was at the start, and see why nothing is read from it",
            level,
        )
