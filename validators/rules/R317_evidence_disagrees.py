"""# R317 evidence_disagrees

*Why.* Whoever relabels a run edits the leaf that is read and forgets the record beside it. A receipt whose evidence
saw one attention, and whose path names another, shows neither.

*Rejected.* Evidence with the operators of unfused attention, and a path that is witnessed as flash. A reader's record
of `attention.te_unfused`, and `path.witnessed.attention` is `te_fused`.

*Accepted.* Each name in `path.witnessed` is one that listed evidence saw, or evidence that names none of that kind.
Evidence may have seen more: the strongest of it is the path.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator

from receipts.judging.rule import ALL, PATH, Case, I, Offense, Topic, rule
from receipts.receipt.configuration import Witnessed
from receipts.receipt.names import WITNESSED, parts

# By name and kind, an operator is proof of its path. Leaves whose names a reader derives from several records are
# left out: a framework is shown by lines, arrays and operators by lists of their own.
_OPERATOR = re.compile(r"aten::_scaled_dot_product_(?:fused_)?(?P<kind>flash|efficient|cudnn|attention_math)\w*")
_NAMES = {"flash": "sdpa_flash", "efficient": "mem_efficient", "cudnn": "cudnn_sdpa", "attention_math": "sdpa_math"}
_DERIVED = frozenset({"framework", "frameworks", "replicated", "fallbacks", "cuda_graphs", "host_transfers_per_step"})
_LEAVES = frozenset(Witnessed.model_fields) - _DERIVED


@rule("R317", "evidence_disagrees", I, question=PATH, taints=(ALL,), about=Topic.EVIDENCE)
def evidence_disagrees(case: Case) -> Iterator[Offense]:
    """Names of the witnessed path that the listed evidence did not see, where it saw others of that kind."""
    for leaf, seen in _seen(case).items():
        stated = case.get(f"{WITNESSED}.{leaf}")
        if stated is not None and (strange := parts(stated) - seen):
            yield Offense(
                at=f"{WITNESSED}.{leaf}",
                found=f"{' and '.join(sorted(strange))}, which no listed evidence saw",
                expected=f"{' or '.join(sorted(seen))}, as the evidence observed",
                do="read the files again: receipts verify run.json --evidence DIR; then supersede the receipt",
            )


def _seen(case: Case) -> dict[str, set[str]]:
    """What listed evidence saw, by leaf: readers count ``leaf.name``, profilers operators."""
    seen: defaultdict[str, set[str]] = defaultdict(set)
    for entry in case.receipt.evidence or ():
        for name, count in (entry.observed or {}).items():
            leaf, dot, value = name.partition(".")
            if not count or isinstance(count, str):
                continue
            if dot and leaf in _LEAVES:
                seen[leaf] |= parts(value)
            elif match := _OPERATOR.fullmatch(name):
                seen["attention"] |= parts(_NAMES[match["kind"]])
    return dict(seen)
