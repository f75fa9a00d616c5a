"""What somebody who holds two roots checks: the other half of `receipts.store.integrity.merkle.consistency`."""

from __future__ import annotations

from collections.abc import Sequence

from receipts.store.integrity.merkle import node


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
