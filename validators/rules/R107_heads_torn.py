"""# R107 heads_torn

*Why.* A head lives on one tensor rank. A layout that tears heads either fails at start, or pads and replicates in
silence, and then measures another model.

*Rejected.* 28 query heads over tensor 8. Four kv heads over tensor 8 where the receipt does not say that they are
replicated. Where it says so this is shown (W), because the copies cost memory and gradient synchronization.

Where a rank is left with a single head of some kind, what a rank owns is shown (W): 56 attention and 8 SSM heads at
tensor 8 are 7 and 1, and the one runs alone while the others wait.

*Accepted.* 28 heads and 4 kv heads over tensor 2. A pattern without attention has no heads to tear.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from receipts.judging.rule import Case, Offense, W, layout_rule
from receipts.receipt.patterns import ATTENDING, Pattern, read_pattern

TENSOR, HEADS, KV_HEADS, SSM_HEADS = "parallelism.tensor", "model.heads", "model.kv_heads", "model.ssm_heads"
REPLICATION = ("features.", "flags.", "patches.")
OFF = (False, 0, "0", "false", "none", "off")


def needs(case: Case) -> Iterable[str]:
    """The tensor degree, and the heads where it is above one and the model attends."""
    yield TENSOR
    if (case.get(TENSOR) or 1) > 1 and _attends(case):
        yield HEADS
        yield KV_HEADS


def _attends(case: Case) -> bool:
    text = case.get("model.pattern")
    pattern = read_pattern(text, case.get("model.alphabet")) if text else None
    return not isinstance(pattern, Pattern) or bool(pattern.kinds() & ATTENDING)


@layout_rule("R107", "heads_torn", needs)
def heads_torn(case: Case) -> Iterator[Offense]:
    """Heads, then kv heads, against the tensor degree."""
    tensor = case.get(TENSOR) or 1
    if not _attends(case):
        return
    yield from _lone(case, tensor)
    for path, what in ((HEADS, "heads"), (KV_HEADS, "kv heads")):
        count = case.get(path)
        if count is None or count % tensor == 0:
            continue
        copied = path == KV_HEADS and tensor % count == 0 and _replicates(case)
        yield Offense(
            at=path,
            found=f"{count} {what} over tensor {tensor}, {count / tensor:.3g} a rank"
            + (", replicated" if copied else ""),
            expected=f"a multiple of {tensor}",
            do="lower the tensor degree, or state the replication of kv heads under features"
            if path == KV_HEADS
            else "choose a tensor degree that divides the heads",
            level=W if copied else None,
        )


def _lone(case: Case, tensor: int) -> Iterator[Offense]:
    """What a rank owns, where that is one head of some kind; one kv head a rank is how grouped queries are meant."""
    kinds = (("attention", case.get(HEADS)), ("SSM", case.get(SSM_HEADS)))
    owned = [(kind, count // tensor) for kind, count in kinds if count and count % tensor == 0]
    if tensor > 1 and any(count == 1 for _, count in owned):
        shown = " and ".join(f"{count} {kind}" for kind, count in owned)
        at = HEADS if ("attention", 1) in owned else SSM_HEADS
        yield Offense(at, f"a rank owns {shown} heads", "more than one", "lower the tensor degree", level=W)


def _replicates(case: Case) -> bool:
    """Whether a switch for replicating kv heads is stated and on."""
    return any(
        path.startswith(REPLICATION) and "kv" in path.lower() and "repl" in path.lower() and value not in OFF
        for path, value in case.stated.items()
    )
