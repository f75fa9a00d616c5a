"""Every single drop from every rejected case: how many turn *invalid* into *valid*, or *rejected* into *accepted*.

``python -m benchmarks.drops`` prints the counts and each drop that does. What is exempt stands in `receipts.exempt`.
"""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

import rule_cases

from receipts.compare import compare
from receipts.exempt import exempt
from receipts.facts import Facts
from receipts.judge import judge_receipt
from receipts.verdict import Level

BOOK = rule_cases.rulebook()
RULES = BOOK.rules
MOST_ENTRIES = 3  # of a long list of numbers the first, the middle and the last stand for all
LONG = 40
Place = tuple[str | int, ...]


def places(tree: Any, above: Place = ()) -> Iterator[Place]:
    """Every key and entry of a tree: sections, leaves, rows, entries of lists, keys of maps."""
    if isinstance(tree, dict):
        keys: list[str | int] = list(tree)
    elif isinstance(tree, list):
        keys = list(range(len(tree)))
        if len(keys) > LONG:
            keys = [0, len(keys) // 2, len(keys) - 1]
    else:
        return
    for key in keys:
        yield (*above, key)
        yield from places(tree[key], (*above, key))


def named(place: Place) -> str:
    """A place as a dotted path."""
    return "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in place).lstrip(".")


def without(tree: dict[str, Any], place: Place) -> dict[str, Any]:
    """The tree without what stands at a place, and without what that leaves empty; the rest is shared."""
    top: dict[str, Any] = copy.copy(tree)
    node: Any = top
    trail = []
    for part in place[:-1]:
        node[part] = copy.copy(node[part])
        trail.append((node, part))
        node = node[part]
    del node[place[-1]]
    return top


def stated_only(tree: dict[str, Any], place: Place) -> bool:
    """Whether a place may be dropped and is not exempt: it holds no required key alone."""
    return not exempt(named(place), rule_cases.parsed(tree).stated)


def status(tree: dict[str, Any], facts: Facts | None) -> str:
    """Status of a receipt; ``refused`` where it is no receipt."""
    try:
        parsed = rule_cases.parsed(tree)
    except Exception:
        return "refused"
    return judge_receipt(parsed, BOOK.lanes.of(parsed.receipt.run.lane), RULES, facts).status


def receipt_cases() -> list[rule_cases.RuleCase]:
    """Cases of rules on one receipt that reject it."""
    return [
        case
        for rule in RULES.rules
        if rule.subject == "receipt"
        for case in rule_cases.read_cases(rule.code)
        if case.kind == "rejected" and case.level(rule) is Level.ERROR
    ]


if __name__ == "__main__":
    import time
    from collections import Counter
    t=time.time(); n=inv=0; bad=Counter(); codes={}
    for case in receipt_cases():
        tree = rule_cases.build(case.table)
        facts = rule_cases.facts_of(case.table.get("facts"), base_name=case.table.get("base", "cpu")) or Facts()
        if status(tree, facts)!="invalid": print("NOT INVALID", case, status(tree,facts)); continue
        inv+=1
        stated = rule_cases.parsed(tree).stated
        for place in places(tree):
            path=named(place)
            if exempt(path, stated): continue
            n+=1
            s=status(without(tree, place), facts)
            if s=="valid": bad[path]+=1; codes.setdefault(path,set()).add(str(case)[:60]); print(case.code, path, flush=True)
    print(inv,n,time.time()-t, sum(bad.values()))
    for p,c in bad.most_common(): print(c,p,codes[p])
