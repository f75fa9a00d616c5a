"""# C111 uneven_hosts

*Why.* Two hosts of one kind differ: driver, heat, neighbours. The same lane read 289 on one host and 250 on another.

*Rejected.* All launches of A on one host and all of B on another. It is an error where the lane says that hosts
differ, unless `run.host` is waived.

*Accepted.* The same hosts on both sides, or launches interleaved over them.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from receipts.metrics import Launch
from receipts.rule import EFFECT, E, Offence, Pair, W, rule


@rule("C111", "uneven_hosts", W, on="pair", question=EFFECT)
def uneven_hosts(pair: Pair) -> Iterator[Offence]:
    """Hosts or sites that only one side ran on."""
    for path in ("run.host", "run.site"):
        a, b = _places(pair.group_a, path), _places(pair.group_b, path)
        if not a or not b or a == b:
            continue
        strict = pair.lane.hosts_differ and path not in pair.waived
        yield Offence(
            at=path,
            found=f"A on {', '.join(sorted(a))}; B on {', '.join(sorted(b))}",
            expected="both sides on the same hosts, or interleaved over them",
            do=f'repeat one side on the other\'s host, or waive it: --waive {path}="reason"',
            level=E if strict else W,
        )


def _places(group: Sequence[Launch], path: str) -> set[str]:
    return {str(launch.stated[path]) for launch in group if path in launch.stated}
