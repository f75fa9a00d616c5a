"""# R202 recompiling

*Why.* A shape or a Python number that changes compiles again and again; a capped median hides it, and the program that
was measured is not one program. Recompiles are counted from evidence, never guessed from slow steps.

*Rejected.* Three compiles after warm-up. A step flagged `recompile` inside the window. Two graph breaks where the graph
was to be whole.

*Accepted.* No compile after warm-up. A recompile during warm-up. Graph breaks are not asked of a posture that captures
no graph with torch.compile.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from receipts.base.units import counted
from receipts.judging.rule import EFFECT, MFU, RATE, Case, E, Offense, Topic, ended_well, rule

AFTER, BREAKS, POSTURE = "compile.compiles_after_warmup", "compile.graph_breaks", "compile.posture"
START, FLAGS = "measurement.window.start", "measurement.step_flags"
CAPTURING = ("whole_graph", "regional")
DO = "hold shapes and Python values fixed, or warm up each of them before the window"


def needs(case: Case) -> Iterable[str]:
    """Compiles after warm-up, the flagged steps and where the window starts, graph breaks where a graph is captured."""
    yield AFTER
    yield POSTURE
    if case.launch.series:
        yield FLAGS
        yield START
    if case.get(POSTURE) in CAPTURING:
        yield BREAKS


@rule(
    "R202",
    "recompiling",
    E,
    question=EFFECT,
    taints=(RATE, MFU),
    needs=needs,
    applies=ended_well,
    about=Topic.INCIDENT,
    amortized="it compiles after warm-up",
)
def recompiling(case: Case) -> Iterator[Offense]:
    """Counts after warm-up, then flagged steps in the window, then graph breaks."""
    start, stop = case.get(START), case.get("measurement.window.stop")
    if case.get(AFTER):
        yield Offense(AFTER, counted(case.get(AFTER), "compile") + " after warm-up", "none", DO)
    recompiles = case.launch.flagged.get("recompile", ()) if start is not None else ()
    late = [index for index in recompiles if index >= start and (stop is None or index < stop)]
    if late:
        shown = ", ".join(str(index) for index in late[:5])
        yield Offense(FLAGS, f"recompile at step {shown}, in a window from {start}", "none inside the window", DO)
    if case.get(POSTURE) in CAPTURING and case.get(BREAKS):
        yield Offense(BREAKS, f"{counted(case.get(BREAKS), 'graph break')} in posture {case.get(POSTURE)}", "none", DO)
