"""# R128 flags_unshown

*Why.* A flag takes a step out of the rate: an evaluation is no training. A job that flags its slow steps is as fast as
its others: 19,315 tokens/s were shown where 9,660 were trained.

*Rejected.* Shown, and the steps count in the rate: every other step three times as long, flagged as checkpoints, where
no checkpoint took a second; as profiled, without a trace of so many steps; as warm-up, long after it.

*Accepted.* Flagged steps that are as long as the others. Steps that hold an evaluation, a checkpoint or a wait, whose
seconds stand in the spans. Up to sixteen steps around a witness. Steps that a reader flagged by the lines of a log.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.judging.rule import NONE, Case, Offense, W, rule


@rule("R128", "flags_unshown", W, question=NONE)
def flags_unshown(case: Case) -> Iterator[Offense]:
    """Slow steps that a flag calls something else, with the share of the time that they are."""
    durations = case.launch.durations
    for flag, positions in case.launch.unshown.items():
        share = sum(durations[at] for at in positions) / sum(durations)
        yield Offense(
            at=f"measurement.step_flags.{flag}",
            found=f"{len(positions):,} slow steps, {share:.0%} of the time, and nothing else shows a {flag}",
            expected="a span, a trace or the warm-up that shows what they were",
            do=f"nothing: they count in the rate; time what they do (with rec.span: {flag}) to leave them out"
            if flag in ("checkpoint", "eval", "data")
            else "nothing: they count in the rate",
        )
