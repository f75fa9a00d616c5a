"""# C111 uneven_hosts

*Why.* Two hosts of one kind differ: driver, heat, neighbors. The same lane read 289 on one host and 250 on another.

*Rejected.* All launches of A on one host and all of B on another; or four of A's five launches on one host and four of
B's five on the other. Where the lane says that hosts differ this is an error, unless `run.host` is waived; there a host
that is not stated leaves the effect open, since it may be another host.

*Accepted.* The same hosts on both sides, or launches interleaved over them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

from receipts.judging.rule import EFFECT, E, I, Offense, PairCase, W, rule
from receipts.metrics import Launch


@rule("C111", "uneven_hosts", W, on="pair", question=EFFECT)
def uneven_hosts(pair: PairCase) -> Iterator[Offense]:
    """Hosts or sites that one side ran on more than the other, or that may be such."""
    for path in ("run.host", "run.site"):
        a, b = _places(pair.group_a, path), _places(pair.group_b, path)
        strict = pair.lane.hosts_differ and path not in pair.waived
        unstated = _unstated(pair, path, a, b)
        if strict and unstated:
            yield Offense(
                at=path,
                found=f"not stated on {unstated}",
                expected="both sides on the same hosts, or interleaved over them",
                do=f"state {path}: hosts differ in lane {pair.lane.name}",
                level=I,
            )
        elif a and b and not unstated and not _even(a, b):
            yield Offense(
                at=path,
                found=f"A on {_shown(a)}; B on {_shown(b)}",
                expected="both sides on the same hosts, or interleaved over them",
                do=f'repeat one side on the other\'s host, or waive it: --waive {path}="reason"',
                level=E if strict else W,
            )


def _places(group: Sequence[Launch], path: str) -> Counter[str]:
    """Launches by place; those that do not state it are left out."""
    return Counter(str(launch.stated[path]) for launch in group if path in launch.stated)


def _unstated(pair: PairCase, path: str, a: Counter[str], b: Counter[str]) -> str:
    """Sides with a launch that does not say where it ran; a site only where some launch names one."""
    sides = (("A", a, pair.group_a), ("B", b, pair.group_b))
    if not a and not b and path == "run.site":
        return ""
    return " and ".join(side for side, places, group in sides if places.total() < len(group))


def _even(a: Counter[str], b: Counter[str]) -> bool:
    """Whether each place has the same share of both sides, to within one launch of the smaller side."""
    one = 1 / min(a.total(), b.total())
    if set(a) != set(b):
        return False
    return all(abs(a[place] / a.total() - b[place] / b.total()) <= one + 1e-9 for place in a)


def _shown(places: Counter[str]) -> str:
    total = places.total()
    if len(places) == 1:
        return next(iter(places))
    return ", ".join(f"{place} ({count} of {total})" for place, count in sorted(places.items()))
