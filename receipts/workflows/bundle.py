"""Verdicts that leave the store: signed as in-toto statements, and packed with all that a stranger checks them by."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

from receipts.base.errors import NotFound, UsageError
from receipts.judging.verdict_json import to_json
from receipts.signing.envelope import BUNDLE, STATEMENT, Envelope, signed
from receipts.signing.statement import Subject, statement
from receipts.signing.verify import MANIFEST, VERDICT, pack, sha256
from receipts.store.integrity import merkle

if TYPE_CHECKING:
    from receipts.judging.claim_verdict import ClaimVerdict
    from receipts.judging.rulebook import Rulebook
    from receipts.judging.verdict import Comparison, ReceiptVerdict
    from receipts.receipt import Parsed
    from receipts.signing.private import PrivateKey
    from receipts.store import Store
    from receipts.store.integrity.inspection import Inspection
    from receipts.store.kept import KeptFiles

MOST_EVIDENCE: Final = 64 * 1024 * 1024  # bytes of one file; a larger one is named and left out


class Answered(NamedTuple):
    """A verdict, what it is on (``receipt``, ``comparison`` or ``claim``), and the receipts that it is on."""

    kind: str
    verdict: ReceiptVerdict | Comparison | ClaimVerdict
    receipts: Sequence[Parsed]


def attested(answer: Answered, key: PrivateKey) -> Envelope:
    """The verdict as a signed statement on its receipts. Raises UsageError where there are none."""
    if not answer.receipts:
        raise UsageError("the verdict is on no receipt, and a statement has receipts as its subjects")
    subjects = [Subject(item.receipt.run.label or item.id[:12], item.id) for item in answer.receipts]
    return signed(STATEMENT, statement(answer.kind, subjects, answer.verdict.rules, to_json(answer.verdict)), key)


def bundle(answer: Answered, store: Store, kept: KeptFiles | None, rulebook: Rulebook, key: PrivateKey) -> bytes:
    """A tar of the receipts with their signatures, evidence and Merkle proofs, of the verdict, and of the rules.

    What is not in the store is named in the manifest's ``lacks``, which the signature covers.
    """
    files, lacks = {VERDICT: attested(answer, key).to_json().encode(), **_rules(rulebook)}, []
    every = {item.id: item for item in answer.receipts}
    with store.inspect() as inspection:
        for parsed in every.values():
            files[f"receipts/{parsed.id}.json"] = parsed.raw
            if (envelope := store.signing.envelope(parsed.id, parsed.raw)) is not None:
                files[f"receipts/{parsed.id}.dsse.json"] = envelope.to_json().encode()
            if (proof := _proof(inspection, parsed.id)) is not None:
                files[f"proofs/{parsed.id}.json"] = proof
            else:
                lacks.append(f"{parsed.id[:12]} is not sealed")
    named = [item for parsed in every.values() for item in parsed.receipt.evidence or () if item.kind != "receipt"]
    for digest in sorted({item.sha256 for item in named if item.sha256 is not None}):
        content = _kept(kept, digest)
        if content is None:
            lacks.append(f"evidence {digest[:12]} is not in the bundle")
        else:
            files[f"evidence/{digest}"] = content
    listed = {"files": {name: sha256(content) for name, content in files.items()}, "lacks": lacks}
    payload = json.dumps(listed, sort_keys=True, separators=(",", ":")).encode()
    return pack({**files, MANIFEST: signed(BUNDLE, payload, key).to_json().encode()})


def _proof(inspection: Inspection, receipt: str) -> bytes | None:
    proof, sealed = inspection.proof(receipt), inspection.sealed()
    if proof is None:
        return None
    one, steps = proof
    at = next(place for place, item in enumerate(sealed) if json.loads(item)[6] == one.root)
    log = [merkle.leaf(item) for item in sealed]
    values = {
        "receipt": _steps(steps),
        "seal": sealed[at].decode(),
        "log": _steps(merkle.proof(log, at)),
        "size": len(log),
        "root": merkle.root(log).hex(),
    }
    return json.dumps(values).encode()


def _steps(steps: Iterable[merkle.ProofStep]) -> list[dict[str, object]]:
    return [{"left": item.left, "digest": item.digest.hex()} for item in steps]


def _rules(rulebook: Rulebook) -> dict[str, bytes]:
    """What the digest of the rules is over: the code of rules, and lanes."""
    own = (item.path for item in rulebook.rules.rules)
    places = [*(place for place in own if place is not None), *rulebook.lanes.files()]
    return {f"rules/{place.parent.name}/{place.name}": place.read_bytes() for place in places}


def _kept(kept: KeptFiles | None, digest: str) -> bytes | None:
    if kept is None:
        return None
    try:
        with kept.file(digest) as place:
            return place.read_bytes() if place.stat().st_size <= MOST_EVIDENCE else None
    except NotFound:
        return None
