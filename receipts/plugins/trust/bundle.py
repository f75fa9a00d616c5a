"""Verdicts that leave the store: signed as statements, and packed with all that a stranger checks them by.

A statement is in-toto's, v1 (https://in-toto.io/Statement/v1): a verdict as a predicate on receipts by their SHA-256. A
job signs one without a key: its OIDC token names its repository and workflow, Fulcio certifies a key for it for ten
minutes, and Rekor logs the signature. A bundle of sigstore has both proofs, and is verified offline against a trusted
root.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from receipts.axes.catalogue import bookkeeping_file
from receipts.base.environment import extra
from receipts.base.errors import ConflictError, InputError, NotFound, Problem, Unreachable, UsageError
from receipts.base.files import read_small
from receipts.base.units import counted
from receipts.judging.verdict import verdict_to_json
from receipts.plugins.trust.verify import LOG, MANIFEST, PREDICATE_TYPE, STATEMENT_TYPE, VERDICT, pack, sha256
from receipts.signing.key import BUNDLE, STATEMENT, signed
from receipts.store import seals
from receipts.store.evidence import kept_files
from receipts.workflows.checkpoints import Checkpoint, origin_of, signed_checkpoint, why_not_continued

if TYPE_CHECKING:
    from receipts.judging.rulebook import Rulebook
    from receipts.judging.verdict import ClaimVerdict, Comparison, ReceiptVerdict
    from receipts.receipt import Parsed
    from receipts.signing.key import PrivateKey
    from receipts.store import Store
    from receipts.store.evidence import KeptFiles


def statement(kind: str, subjects: Mapping[str, str], rules: str, verdict: Mapping[str, Any]) -> bytes:
    """The statement's bytes: the same verdict on the same subjects gives the same bytes.

    ``subjects`` are names by the SHA-256 of what they name, in hex; that of a receipt is its id.
    """
    values = {
        "_type": STATEMENT_TYPE,
        "subject": [{"name": name, "digest": {"sha256": digest}} for digest, name in sorted(subjects.items())],
        "predicateType": PREDICATE_TYPE,
        "predicate": {"kind": kind, "rules": rules, "verdict": dict(verdict)},
    }
    return json.dumps(values, sort_keys=True, separators=(",", ":"), ensure_ascii=False, default=str).encode()


REPORT: Final = "report.json"
MAX_EVIDENCE: Final = 64 * 1024 * 1024  # bytes of one file; a larger one is named and left out


class Answered(NamedTuple):
    """What is signed: its kind (``receipt``, ``comparison``, ``claim`` or ``report``), the digest of its rules, the
    verdict as data, the receipts that it is on, and the files of a report by name.
    """

    kind: str
    rules: str
    verdict: Mapping[str, Any]
    receipts: Sequence[Parsed]
    files: Mapping[str, bytes] = {}

    @classmethod
    def of(cls, kind: str, verdict: ReceiptVerdict | Comparison | ClaimVerdict, receipts: Sequence[Parsed]) -> Answered:
        """A verdict on receipts."""
        return cls(kind, verdict.rules, verdict_to_json(verdict), receipts)

    @property
    def status(self) -> str:
        """The verdict in a word."""
        return str(self.verdict["status"])


def report(folder: Path, store: Store, rules: str) -> Answered:
    """What ``receipts report`` wrote to a folder, on the receipts that it quotes. Raises UsageError where it is not of
    these rules, and NotFound where the store does not have a receipt of it.
    """
    names = (REPORT, "report.md", "index.html", "receipts.parquet", "comparisons.parquet")
    files = {name: (folder / name).read_bytes() for name in names if (folder / name).is_file()}
    try:
        data = json.loads(files[REPORT])
        # A claim's page has the rules in its verdict.
        judged = (data if "rules" in data else data["verdict"])["rules"]
        quoted = [item["receipt"]["id"] for item in data["receipts"]]
    except (ValueError, LookupError, TypeError):
        raise UsageError(f"{folder}: it has no report; write one with: receipts report weekly --out {folder}") from None
    if judged != rules:
        raise UsageError(f"{folder}: the report is by the rules {judged[:12]}, and not by {rules[:12]}; write it again")
    title = files.get("report.md", b"").decode(errors="replace").partition("\n")[0].removeprefix("# ")
    digests = {name: sha256(content) for name, content in files.items()}
    verdict = {"status": "written", "text": title, "files": digests}
    return Answered("report", rules, verdict, [store.parsed(item) for item in quoted], files)


def stated(answer: Answered) -> bytes:
    """The verdict as a statement on its receipts, to be signed. Raises UsageError where there are none."""
    if not answer.receipts:
        raise UsageError(f"the {answer.kind} is on no receipt, and a statement has receipts as its subjects")
    subjects = {item.id: item.receipt.run.label or item.id[:12] for item in answer.receipts}
    return statement(answer.kind, subjects, answer.rules, answer.verdict)


def bundle(
    answer: Answered, store: Store, rulebook: Rulebook, key: PrivateKey, checkpoints: Sequence[Checkpoint] = ()
) -> bytes:
    """A tar of the receipts with their signatures, evidence and Merkle proofs, of the verdict, and of the rules.

    ``checkpoints`` are published ones of the store, each with the proof that the log continues it; raises ConflictError
    where it does not. What is not in the store is named in the manifest's ``lacks``, which the signature covers.
    """
    files = {VERDICT: signed(STATEMENT, stated(answer), key).to_json().encode(), **_rules(rulebook)}
    files |= {f"report/{name}": content for name, content in answer.files.items()}
    every = {item.id: item for item in answer.receipts}
    for parsed in every.values():
        files[f"receipts/{parsed.id}.json"] = parsed.raw
        if (envelope := store.signing.envelope(parsed.id, parsed.raw)) is not None:
            files[f"receipts/{parsed.id}.dsse.json"] = envelope.to_json().encode()
    files |= (proofs := _proofs(store, list(every), key, checkpoints))
    kept = kept_files(store.database.address)
    named = [item for parsed in every.values() for item in parsed.receipt.evidence or () if item.kind != "receipt"]
    evidence = {item: _kept(kept, item) for item in sorted({item.sha256 for item in named if item.sha256 is not None})}
    files |= {f"evidence/{digest}": content for digest, content in evidence.items() if content is not None}
    absent = {
        "not sealed": [item[:12] for item in every if f"proofs/{item}.json" not in proofs],
        "evidence that is not in the bundle": [item[:12] for item, content in evidence.items() if content is None],
    }
    lacks = [f"{what}: {', '.join(items)}" for what, items in absent.items() if items]
    listed = {"files": {name: sha256(content) for name, content in files.items()}, "lacks": lacks}
    payload = json.dumps(listed, sort_keys=True, separators=(",", ":")).encode()
    return pack({**files, MANIFEST: signed(BUNDLE, payload, key).to_json().encode()})


def _proofs(
    store: Store, receipts: Iterable[str], key: PrivateKey, published: Sequence[Checkpoint]
) -> dict[str, bytes]:
    """The way of each sealed receipt to the root of the log, that root as a checkpoint, and what it continues."""
    with store.inspect() as inspection:
        sealed = inspection.sealed()
        proven = {item: proof for item in receipts if (proof := inspection.proof(item)) is not None}
    if not proven:
        return {}
    log, roots = [seals.leaf(item) for item in sealed], [json.loads(item)[6] for item in sealed]
    for item in published:
        if why := why_not_continued(log, item):
            raise ConflictError(f"the checkpoint of {counted(item.size, 'seal')}: {why}; see: receipts audit --against")
    files = {}
    for receipt, (seal, steps) in proven.items():
        at = roots.index(seal.root)
        values = {"receipt": _steps(steps), "seal": sealed[at].decode(), "log": _steps(seals.proof(log, at))}
        files[f"proofs/{receipt}.json"] = json.dumps(values).encode()
    notes = [signed_checkpoint(origin_of(store), len(log), seals.merkle_root(log), key), *published]
    rows = [
        {"note": item.note, "consistency": [step.hex() for step in seals.consistency(log, item.size)]} for item in notes
    ]
    return {**files, LOG: json.dumps(rows).encode()}


def _steps(steps: Iterable[seals.ProofStep]) -> list[dict[str, object]]:
    return [{"left": item.left, "digest": item.digest.hex()} for item in steps]


def _rules(rulebook: Rulebook) -> dict[str, bytes]:
    """What the digest of the rules is over, under names whose order is its order."""
    numbers = {place: f"{at:02}" for at, place in enumerate(rulebook.folders)}
    own = [item.path for item in rulebook.rules.rules if item.path is not None]
    places = {f"code/{numbers[path.parent.parent]}/{path.name}": path for path in own}
    places |= {f"lanes/{path.name}": path for path in rulebook.lanes.files()}
    places |= {f"studies/{numbers[path.parent]}/{path.name}": path for path in rulebook.study_files()}
    places["uncounted/bookkeeping.toml"] = bookkeeping_file()
    added = {"rules/uncounted/receipts.toml": rulebook.added} if rulebook.added else {}
    return {f"rules/{name}": path.read_bytes() for name, path in places.items()} | added


def _kept(kept: KeptFiles | None, digest: str) -> bytes | None:
    if kept is None:
        return None
    try:
        with kept.file(digest) as place:
            return place.read_bytes() if place.stat().st_size <= MAX_EVIDENCE else None
    except NotFound:
        return None


MAX_BUNDLE: Final = 16 << 20
EXTRA: Final = "keyless"
# What sigstore says of an address that did not answer, or that may answer later; all else is the job's own.
_LATER: Final = re.compile(r"timed out|code=(?:429|5\d\d)\b")
_PERMIT: Final = "on GitHub, give the job: permissions: id-token: write"


class Attested(NamedTuple):
    """What a statement says that verifies: its kind, status, rules, and the ids of its receipts by name."""

    kind: str
    status: str
    rules: str
    receipts: dict[str, str]
    identity: str
    issuer: str


def signed_by_job(statement: bytes) -> str:
    """A bundle of sigstore over a statement, signed by the identity of this job. Raises UsageError, Unreachable."""
    extra("sigstore.sign", EXTRA)
    from sigstore.dsse import Statement
    from sigstore.errors import Error
    from sigstore.models import ClientTrustConfig
    from sigstore.oidc import IdentityError, IdentityToken, detect_credential
    from sigstore.sign import SigningContext
    from urllib3.exceptions import HTTPError

    try:
        token = detect_credential()
    except (IdentityError, HTTPError) as error:
        what = f"--keyless: the job's token cannot be had: {str(error)[:300]}"
        if isinstance(error, HTTPError) or _LATER.search(what):
            raise Unreachable(f"{what}; try again later") from None
        raise UsageError(f"{what}; {_PERMIT}") from None
    if token is None:
        raise UsageError(f"--keyless: this is not a job with an identity; {_PERMIT}")
    try:
        with SigningContext.from_trust_config(ClientTrustConfig.production()).signer(IdentityToken(token)) as signer:
            bundle: str = signer.sign_dsse(Statement(statement)).to_json()
    except IdentityError as error:
        raise UsageError(f"--keyless: the job's token is refused: {error}; run the job again") from None
    except (Error, OSError, HTTPError) as error:
        raise Unreachable(f"--keyless: sigstore did not sign: {error}; try again later") from None
    return bundle


def verified(file: Path, identity: str, issuer: str, root: Path | None) -> Attested:
    """What the bundle in a file says, if this identity of this issuer signed it.

    ``root`` is a trusted root of sigstore in a file, which needs no network; without it that of sigstore's public
    instance. Raises InputError for a file that does not verify.
    """
    extra("sigstore.verify", EXTRA)
    from sigstore.errors import Error
    from sigstore.models import Bundle, ClientTrustConfig, TrustedRoot
    from sigstore.verify import Verifier, policy

    try:
        trusted = TrustedRoot.from_file(str(root)) if root is not None else ClientTrustConfig.production().trusted_root
    except (Error, OSError, ValueError) as error:
        if root is None:
            raise Unreachable(f"sigstore's root cannot be fetched: {error}; give it: --trusted-root FILE") from None
        raise UsageError(f"--trusted-root {root}: it is not a trusted root of sigstore: {error}") from None
    try:
        bundle = Bundle.from_json(read_small(file, MAX_BUNDLE))
        expected = policy.Identity(identity=identity, issuer=issuer)
        kind, payload = Verifier(trusted_root=trusted).verify_dsse(bundle, expected)
        stated: dict[str, Any] = json.loads(payload)
        if (kind, stated["_type"], stated["predicateType"]) != (STATEMENT, STATEMENT_TYPE, PREDICATE_TYPE):
            raise ValueError("it is no verdict on receipts")
        predicate = stated["predicate"]
        receipts = {str(item["digest"]["sha256"]): str(item["name"]) for item in stated["subject"]}
        status = str(predicate["verdict"]["status"])
        return Attested(str(predicate["kind"]), status, str(predicate["rules"]), receipts, identity, issuer)
    except (Error, OSError, ValueError, LookupError, TypeError) as error:
        what = f"it does not verify: {type(error).__name__}: {error}"
        raise InputError(str(file), [Problem("$", what, "ask for the bundle that the job wrote")]) from None
