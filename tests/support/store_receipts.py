"""Receipts for the tests of the store: the clean base of the rules' cases, as other launches, with some leaves set."""

from __future__ import annotations

import json
import uuid
from pathlib import Path
from typing import Any

from receipts.judging.rulebook import Rulebook
from receipts.judging.verdict import Assessment, ClaimStatus, ClaimVerdict, ReceiptVerdict
from receipts.metrics import Launch
from receipts.receipt import Document, Parsed, parse
from receipts.signing.key import PublicKey, Signature
from receipts.store import NewClaim, Store
from receipts.store.decisions import IncidentEvent

BASE = Path(__file__).parents[1] / "cases" / "base.json"
RULEBOOK = Rulebook()
MOMENTS: dict[Any, int] = {}  # microseconds by launch


def raw(**leaves: Any) -> bytes:
    """The base with leaves set by their paths, `__` for the dot; a fresh launch unless one is given; None drops."""
    tree = json.loads(BASE.read_bytes())
    leaves = {"run__launch": str(uuid.uuid4()), **leaves}
    # No two launches start on a host at one instant (R112); of one second, the later one is made later.
    moment = MOMENTS.setdefault(leaves["run__launch"], len(MOMENTS) + 1)
    leaves = {"run__started": tree["run"]["started"].replace("+", f".{moment:06d}+"), **leaves}
    for path, value in leaves.items():
        *sections, last = path.split("__")
        node = tree
        for name in sections:
            node = node.setdefault(name, {})
        if value is None:
            node.pop(last, None)
        else:
            node[last] = value
    return json.dumps(tree).encode()


def parsed(**leaves: Any) -> Parsed:
    """The same, parsed."""
    return parse(Document(raw(**leaves), "test"))


def judged(one: Parsed) -> tuple[Launch, ReceiptVerdict]:
    """What a store takes: the launch under its lane, and a verdict. The rules have tests of their own."""
    lane = RULEBOOK.lanes.of(one.receipt.run.lane)
    verdict = ReceiptVerdict(
        one.id, one.receipt.run.label, "valid", "witnessed", (), (), f"{lane.name}@{lane.version}", "0" * 64, "1"
    )
    return Launch(one, lane), verdict


def ready(**leaves: Any) -> tuple[Launch, ReceiptVerdict]:
    """`judged` of `parsed`."""
    return judged(parsed(**leaves))


def new_claim(name: str, receipt: str, supersedes: str | None = None) -> NewClaim:
    """A ceiling that one receipt is said to have reached, as a store takes it."""
    stated = {"id": name, "text": f"{name} is a ceiling", "kind": "ceiling", "candidate": [receipt]}
    reason = "a better one" if supersedes else None
    return NewClaim(name, "ceiling", json.dumps(stated), "claims.toml", supersedes, reason)


def claim_verdict(name: str, receipt: str, status: ClaimStatus = "supported") -> ClaimVerdict:
    """A verdict on such a claim. The judge has tests of its own."""
    return ClaimVerdict(
        claim=name,
        text=f"{name} is a ceiling",
        kind="ceiling",
        metric="tokens_per_second",
        effect=None,
        status=status,
        otherwise=status,
        assessment=Assessment("holds", "repeated", grade="repeated"),
        baseline=(),
        candidate=(receipt,),
        lanes=("cpu-torch@1",),
        target=None,
        at_target=None,
        findings=(),
        about=(),
        comparison=None,
        rules="0" * 64,
        judge="1",
    )


def sign(store: Store, receipt: str) -> None:
    """Put a row into each table of signatures; it does not hold."""
    store.signing.trust("ana", PublicKey(bytes(32)), (), None)
    store.signing.add({receipt: [Signature(PublicKey(bytes(32)).fingerprint, bytes(64))]})


def publish(store: Store, receipt: str) -> None:
    """Put a row into each table of what people published, decided."""
    store.published.add_claims([new_claim("first", receipt), new_claim("second", receipt, supersedes="first")])
    store.published.record_claims([claim_verdict("second", receipt)])
    store.published.decide(receipt, "hold", "the peak is too high")
    store.published.quote("README.md", [(receipt, "98k tok/s")])
    store.published.record_incidents([IncidentEvent("0" * 12, "opened", 1, "training", "mfu", {}, "slower")])
