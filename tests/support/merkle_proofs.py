"""What somebody who holds roots checks: the other half of `receipts.store.seals`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from receipts.store.seals import ProofStep, node


def consistent(first: int, second: int, first_root: bytes, second_root: bytes, proof: Sequence[bytes]) -> bool:
    """Whether a tree of ``second`` leaves continues one of ``first``, by their roots (RFC 9162, 2.1.4.2)."""
    if first == second:
        return first_root == second_root and not proof
    if not 0 < first < second or not proof:
        return False
    way = [first_root, *proof] if first & (first - 1) == 0 else list(proof)
    low, high = first - 1, second - 1
    while low & 1:
        low, high = low >> 1, high >> 1
    old = new = way[0]
    for digest in way[1:]:
        if high == 0:
            return False
        if low & 1 or low == high:
            old, new = node(digest, old), node(digest, new)
            while not low & 1 and low != 0:
                low, high = low >> 1, high >> 1
        else:
            new = node(new, digest)
        low, high = low >> 1, high >> 1
    return high == 0 and old == first_root and new == second_root


def follow(start: bytes, steps: Iterable[ProofStep]) -> bytes:
    """The root that a proof leads to from a leaf."""
    for step in steps:
        start = node(step.digest, start) if step.left else node(start, step.digest)
    return start
