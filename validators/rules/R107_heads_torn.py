"""# R107 heads_torn

*Why.* A head lives on one tensor rank. A layout that tears heads either fails at start, or pads and replicates in
silence, and then measures another model.

*Rejected.* 28 query heads over tensor 8. Four kv heads over tensor 8 where the receipt does not say that they are
replicated. Where it says so this is shown (W), because the copies cost memory and gradient synchronisation.

*Accepted.* 28 heads and 4 kv heads over tensor 2. A pattern without attention has no heads to tear.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from receipts.patterns import ATTENDING, Pattern, read
from receipts.rule import ALL, COMPARABLE, Case, E, Offence, W, rule

TENSOR, HEADS, KV_HEADS = "parallelism.tensor", "model.heads", "model.kv_heads"
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
    found = read(text, case.get("model.alphabet")) if text else None
    return not isinstance(found, Pattern) or bool(found.kinds() & ATTENDING)


def applies(case: Case) -> bool:
    """A kernel on its own may be measured at any number of heads."""
    return bool(case.receipt.run.kind != "microbench")


@rule("R107", "heads_torn", E, question=COMPARABLE, taints=(ALL,), needs=needs, applies=applies, of_configuration=True)
def heads_torn(case: Case) -> Iterator[Offence]:
    """Heads, then kv heads, against the tensor degree."""
    tensor = case.get(TENSOR) or 1
    if not _attends(case):
        return
    for path, what in ((HEADS, "heads"), (KV_HEADS, "kv heads")):
        count = case.get(path)
        if count is None or count % tensor == 0:
            continue
        copied = path == KV_HEADS and tensor % count == 0 and _replicates(case)
        yield Offence(
            at=path,
            found=f"{count} {what} over tensor {tensor}" + (", replicated" if copied else ""),
            expected=f"a multiple of {tensor}",
            do="lower the tensor degree, or state the replication of kv heads under features"
            if path == KV_HEADS
            else "choose a tensor degree that divides the heads",
            level=W if copied else None,
        )


def _replicates(case: Case) -> bool:
    """Whether a switch for replicating kv heads is stated and on."""
    return any(
        path.startswith(REPLICATION) and "kv" in path.lower() and "repl" in path.lower() and value not in OFF
        for path, value in case.stated.items()
    )
