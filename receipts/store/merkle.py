"""Merkle trees as RFC 6962 (section 2.1) has them: leaves and nodes are hashed under prefixes of their own."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from hashlib import sha256
from typing import NamedTuple


def leaf(content: bytes) -> bytes:
    """The digest of a leaf, 32 bytes."""
    return sha256(b"\x00" + content).digest()


def node(left: bytes, right: bytes) -> bytes:
    """The digest over two digests."""
    return sha256(b"\x01" + left + right).digest()


def root(leaves: Iterable[bytes]) -> bytes:
    """The root over leaves' digests, in one pass that holds one digest a level. Of none it is SHA-256 of nothing."""
    whole: list[tuple[int, bytes]] = []  # full subtrees, the highest first
    for digest in leaves:
        height = 0
        while whole and whole[-1][0] == height:
            digest = node(whole.pop()[1], digest)
            height += 1
        whole.append((height, digest))
    if not whole:
        return sha256(b"").digest()
    _, top = whole.pop()
    while whole:
        top = node(whole.pop()[1], top)
    return top


class ProofStep(NamedTuple):
    """One digest of a proof, and whether it lies left of what is proven."""

    left: bool
    digest: bytes


def proof(leaves: Sequence[bytes], at: int) -> list[ProofStep]:
    """What it takes to get from the leaf at a place to the root, lowest first (RFC 6962, 2.1.1)."""
    if len(leaves) < 2:
        return []
    half = 1 << (len(leaves) - 1).bit_length() - 1
    if at < half:
        return [*proof(leaves[:half], at), ProofStep(False, root(leaves[half:]))]
    return [*proof(leaves[half:], at - half), ProofStep(True, root(leaves[:half]))]


def consistency(leaves: Sequence[bytes], size: int) -> list[bytes]:
    """What it takes to show that a tree continues the one of its first ``size`` leaves (RFC 9162, 2.1.4.1)."""
    if not 0 < size <= len(leaves):
        return []
    return _subproof(leaves, size, complete=True)


def _subproof(leaves: Sequence[bytes], size: int, *, complete: bool) -> list[bytes]:
    if size == len(leaves):
        return [] if complete else [root(leaves)]
    half = 1 << (len(leaves) - 1).bit_length() - 1
    if size <= half:
        return [*_subproof(leaves[:half], size, complete=complete), root(leaves[half:])]
    return [*_subproof(leaves[half:], size - half, complete=False), root(leaves[:half])]
