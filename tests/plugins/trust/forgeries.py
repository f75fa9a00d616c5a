"""Random changes of what was signed: of a bundle's bytes, of its parts, of an envelope and of a proof."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from receipts.plugins.trust import verify

Forger = Callable[[bytes, random.Random], Iterator[bytes]]


def mutated(raw: bytes, rng: random.Random) -> bytes:
    """The bytes with one changed, removed or inserted, cut off at one, or with two runs of them exchanged."""
    at, to, byte = rng.randrange(len(raw)), rng.randrange(len(raw)), rng.randrange(1, 256)
    first, second = sorted((at, to))
    changes = (
        raw[:at] + bytes([raw[at] ^ byte]) + raw[at + 1 :],
        raw[:at] + raw[at + 1 :],
        raw[:at] + bytes([byte]) + raw[at:],
        raw[:at],
        raw[second:] + raw[first:second] + raw[:first],
    )
    return rng.choice([item for item in changes if item != raw])


def bundles(raw: bytes, rng: random.Random) -> Iterator[bytes]:
    """Bundles whose bytes were changed."""
    while True:
        yield mutated(raw, rng)


def repacked(raw: bytes, rng: random.Random) -> Iterator[bytes]:
    """Well-formed bundles in which one part was changed, removed, added, or replaced by another."""
    files = verify.unpack(raw)
    names = sorted(files)
    while True:
        name, other = rng.choice(names), rng.choice(names)
        yield verify.pack(
            rng.choice(
                (
                    {**files, name: mutated(files[name], rng)},
                    {item: content for item, content in files.items() if item != name},
                    {**files, f"{name}.": files[name]},
                    {**files, name: files[other] if files[other] != files[name] else b""},
                )
            )
        )


def verified_bundles(raw: bytes, key: verify.Key, count: int, of: Forger, seed: int = 26) -> int:
    """How many of so many changed bundles verify."""
    changed = of(raw, random.Random(seed))
    return sum(_passes(lambda: verify.check(next(changed), [key])) for _ in range(count))


def verified_envelopes(raw: bytes, key: verify.Key, count: int, seed: int = 26) -> int:
    """How many of so many changed envelopes of the bundle verify as of the key."""
    files, rng = verify.unpack(raw), random.Random(seed)
    kinds = {verify.MANIFEST: verify.BUNDLE, verify.VERDICT: verify.STATEMENT}
    kinds |= {name: verify.RECEIPT for name in files if name.startswith("receipts/") and name.endswith(".dsse.json")}

    def one() -> None:
        name = rng.choice(sorted(kinds))
        verify.signed(mutated(files[name], rng), kinds[name], name, key)

    return sum(_passes(one) for _ in range(count))


def verified_proofs(raw: bytes, key: verify.Key, count: int, seed: int = 26) -> int:
    """How many of so many changed proofs, without the signature over the bundle, show anything that is not so."""
    files, rng = verify.unpack(raw), random.Random(seed)
    receipts = [name[9:-5] for name in files if name.startswith("receipts/") and not name.endswith(".dsse.json")]
    shown = verify.logged(files, receipts, [key])
    names = [name for name in files if name == verify.LOG or name.startswith("proofs/")]

    def one() -> None:
        name = rng.choice(sorted(names))
        lines = verify.logged({**files, name: mutated(files[name], rng)}, receipts, [key])
        # White space and the case of a digit change nothing that a proof says.
        if lines == shown or any(verify.NOT_GIVEN in line for line in lines):
            raise verify.Refused

    return sum(_passes(one) for _ in range(count))


def _passes(check: Callable[[], object]) -> bool:
    try:
        check()
    except verify.REFUSALS:
        return False
    return True
