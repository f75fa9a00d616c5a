"""Statements signed without a key: by the identity of a job, as sigstore binds it to a certificate of ten minutes.

A job's OIDC token names its repository and workflow. Fulcio certifies a key for it, and Rekor logs the signature. A
bundle of sigstore has both proofs, and is verified offline against a trusted root.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any, Final, NamedTuple

from receipts.base.environment import extra
from receipts.base.errors import InputError, Problem, Unreachable, UsageError
from receipts.base.files import read_small
from receipts.plugins.trust.verify import PREDICATE_TYPE, STATEMENT, STATEMENT_TYPE

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
