"""Every single drop from every rejected case: how many turn *invalid* into *valid*, and *rejected* into *accepted*.

``python -m benchmarks.drops`` prints each of them, then the counts: drops from receipts, then from either side of a
pair and from both; half an hour on one core. ``receipts`` or ``pairs`` scans these alone, and ``3/12`` the third of
twelve equal shares of the cases, so that a scan can go on where it was ended. With ``--all`` what
`tests/support/exempt.py` lists is tried as well, which shows what the list costs.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

SUPPORT = Path(__file__).resolve().parents[1] / "tests" / "support"
EVERY = "--all"


def main(words: list[str]) -> int:
    """The full scans; exit code 1 where a drop that is not exempt hides an offense."""
    sys.path.insert(0, str(SUPPORT))
    shares = [word for word in words if re.fullmatch(r"\d+/\d+", word)]
    named = [word for word in words if word != EVERY and word not in shares]
    scans = [scan for name, scan in (("receipts", receipts), ("pairs", pairs)) if name in named or not named]
    part, parts = map(int, shares[0].split("/")) if shares else (1, 1)
    return 1 if sum(scan(every=EVERY in words, share=slice(part - 1, None, parts)) for scan in scans) else 0


WHOLE = slice(None)


def receipts(*, every: bool, share: slice = WHOLE) -> int:
    """Drops that make an invalid receipt valid."""
    import drops
    import rule_cases

    tried, hidden, cases = 0, 0, drops.rejected_cases()[share]
    for case in cases:
        tree, facts = drops.as_written(rule_cases.build(case.table)), drops.facts_of(case)
        for place in list(drops.places(tree)) if every else drops.droppable(tree):
            tried += 1
            if drops.status(drops.without(tree, place), facts) == "valid":
                hidden += 1
                print(f"{case.code}: valid without {drops.named(place)}", flush=True)
    print(f"{len(cases)} invalid receipts, {tried:,} single drops, {hidden} valid", flush=True)
    return hidden


def pairs(*, every: bool, share: slice = WHOLE) -> int:
    """Drops that make a rejected pair accepted."""
    import drops

    tried, hidden, cases = 0, 0, drops.rejected_pairs()[share]
    for case in cases:
        pair = drops.PairDrops(case)
        for place in pair.places(every=every):
            for side in drops.SIDES:
                tried += 1
                if pair.status(side, place) == "accepted":
                    hidden += 1
                    print(f"{case.code}: accepted without {drops.named(place)} on {side}", flush=True)
    print(f"{len(cases)} rejected pairs, {tried:,} single drops, {hidden} accepted", flush=True)
    return hidden


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
