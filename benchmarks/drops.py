"""Every single drop from every rejected case: how many turn *invalid* into *valid*.

``python -m benchmarks.drops`` prints each of them, then the counts; six to eight minutes on one core. With ``--all``
those that `receipts.exempt` lists are tried as well, which shows what the list costs.
"""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).resolve().parent.parent / "tests"


def main() -> int:
    """The full scan; exit code 1 where a drop that is not exempt hides an offence."""
    sys.path.insert(0, str(TESTS))
    import drops
    import rule_cases

    tried, hidden, cases = 0, 0, drops.rejected_cases()
    for case in cases:
        tree, facts = rule_cases.build(case.table), drops.facts_of(case)
        for place in list(drops.places(tree)) if "--all" in sys.argv else drops.droppable(tree):
            tried += 1
            if drops.status(drops.without(tree, place), facts) == "valid":
                hidden += 1
                print(f"{case.code}: valid without {drops.named(place)}", flush=True)
    print(f"{len(cases)} invalid receipts, {tried:,} single drops, {hidden} valid")
    return 1 if hidden else 0


if __name__ == "__main__":
    raise SystemExit(main())
