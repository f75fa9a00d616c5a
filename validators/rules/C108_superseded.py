"""# C108 superseded

*Why.* Records that had been withdrawn continued to be quoted: 269.4 TFLOP/s stayed in articles after its gradients
were found to be silently corrupted.

*Rejected.* A side that a later receipt of its launch supersedes, or that was retracted; the successor and the reason
are named.

*Accepted.* Both sides stand. The receipt of another launch says that it replaces a side: a person decides that, and
retracts the side.
"""

from __future__ import annotations

from collections.abc import Iterator

from receipts.judging.rule import COMPARABLE, E, Offense, PairCase, rule


@rule("C108", "superseded", E, on="pair", question=COMPARABLE, facts=True)
def superseded(pair: PairCase) -> Iterator[Offense]:
    """Each side that was withdrawn."""
    known = pair.facts.superseded if pair.facts else {}
    for side, case in pair.sides:
        group = pair.group_a if side == "a" else pair.group_b
        for launch in group or (case.launch,):
            entry = known.get(launch.parsed.id)
            if entry is None:
                continue
            successor, reason = entry
            what = f"superseded by {successor[:12]}" if successor else "retracted"
            yield Offense(
                at="run.supersedes",
                found=f"{launch.parsed.name} was {what}: {reason}",
                expected="a receipt that stands",
                do=f"compare with {successor[:12]}" if successor else "compare with another receipt",
                side=side,
            )
