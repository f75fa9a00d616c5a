"""A sigstore of its own for tests: a certificate authority, a log of certificates, one of signatures, their root.

It makes what Fulcio and Rekor (version 1) make of a statement, so that a bundle is verified by the library as it is.
"""

from __future__ import annotations

import base64
import json
import struct
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from typing import Any

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.hashes import SHA256
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID, ObjectIdentifier

SCT_LIST = ObjectIdentifier("1.3.6.1.4.1.11129.2.4.2")
ISSUER = ObjectIdentifier("1.3.6.1.4.1.57264.1.1")
PAYLOAD = "application/vnd.in-toto+json"


def b64(content: bytes) -> str:
    return base64.b64encode(content).decode()


def spki(key: Any) -> bytes:
    """The public half of a key, as DER."""
    content: bytes = key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return content


def _entry(statement: bytes, signature: str, verifier: str) -> bytes:
    """What a log keeps of a signed statement."""
    digest = {"algorithm": "sha256", "value": sha256(statement).hexdigest()}
    spec = {"envelopeHash": digest, "payloadHash": digest}
    spec |= {"signatures": [{"signature": signature, "verifier": verifier}]}
    return json.dumps({"apiVersion": "0.0.1", "kind": "dsse", "spec": spec}, sort_keys=True).encode()


def _token(identity: str, issuer: str, now: int) -> str:
    """A token that says who a job is; who asks sigstore does not verify it."""
    claims = {"iss": issuer, "aud": "sigstore", "sub": identity, "iat": now - 5, "nbf": now - 5, "exp": now + 600}
    claims["job_workflow_ref"] = identity
    parts = [json.dumps(part).encode() for part in ({"alg": "RS256", "typ": "JWT"}, claims)] + [b"signature"]
    return ".".join(base64.urlsafe_b64encode(part).decode().rstrip("=") for part in parts)


class Sigstore:
    """Signs statements for whoever asks, and says what is trusted."""

    def __init__(self) -> None:
        self.now = datetime.now(UTC).replace(microsecond=0)
        self._ca, self._ct, self._rekor = (ec.generate_private_key(ec.SECP256R1()) for _ in range(3))
        name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "test authority")])
        unused = ("content_commitment", "key_encipherment", "data_encipherment", "key_agreement")
        usage = dict.fromkeys((*unused, "encipher_only", "decipher_only"), False)
        self._usage = usage
        begin = self.now - timedelta(days=1)
        root = x509.CertificateBuilder().subject_name(name).issuer_name(name).public_key(self._ca.public_key())
        root = root.serial_number(1).not_valid_before(begin).not_valid_after(begin + timedelta(days=365))
        root = root.add_extension(x509.BasicConstraints(ca=True, path_length=1), critical=True)
        signs = x509.KeyUsage(digital_signature=False, key_cert_sign=True, crl_sign=True, **usage)
        root = root.add_extension(signs, critical=True)
        root = root.add_extension(x509.SubjectKeyIdentifier.from_public_key(self._ca.public_key()), critical=False)
        self._root = root.sign(self._ca, SHA256())

    def trusted(self) -> str:
        """The trusted root, as a file has it."""
        since = (self.now - timedelta(days=2)).isoformat().replace("+00:00", "Z")

        def log(key: Any) -> dict[str, Any]:
            held = {"rawBytes": b64(spki(key)), "keyDetails": "PKIX_ECDSA_P256_SHA_256", "validFor": {"start": since}}
            place = {"baseUrl": "https://log.test", "hashAlgorithm": "SHA2_256", "publicKey": held}
            return {**place, "logId": {"keyId": b64(sha256(spki(key)).digest())}}

        chain = {"certificates": [{"rawBytes": b64(self._root.public_bytes(Encoding.DER))}]}
        subject = {"organization": "test", "commonName": "test authority"}
        authority = {"subject": subject, "uri": "https://ca.test", "certChain": chain, "validFor": {"start": since}}
        return json.dumps(
            {
                "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
                "tlogs": [log(self._rekor)],
                "certificateAuthorities": [authority],
                "ctlogs": [log(self._ct)],
                "timestampAuthorities": [],
            }
        )

    def sign(self, statement: bytes, identity: str, issuer: str) -> str:
        """The bundle of a statement that an identity signs."""
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._certified(key, identity, issuer)
        message = b"DSSEv1 %d %b %d %b" % (len(PAYLOAD), PAYLOAD.encode(), len(statement), statement)
        signature = key.sign(message, ec.ECDSA(SHA256()))
        material = {
            "certificate": {"rawBytes": b64(certificate.public_bytes(Encoding.DER))},
            "tlogEntries": [
                self._logged(_entry(statement, b64(signature), b64(certificate.public_bytes(Encoding.PEM))))
            ],
            "timestampVerificationData": None,
        }
        envelope = {"payload": b64(statement), "payloadType": PAYLOAD, "signatures": [{"sig": b64(signature)}]}
        return json.dumps(
            {
                "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
                "verificationMaterial": material,
                "dsseEnvelope": envelope,
            }
        )

    def answer(self, path: str, body: dict[str, Any], identity: str, issuer: str) -> dict[str, Any]:
        """What Fulcio answers to a request for a certificate, Rekor to an entry, GitHub to a job that asks for a token.

        As Fulcio takes it the identity would follow from the token; here the caller says it.
        """
        if path.startswith("/token"):
            return {"value": _token(identity, issuer, int(self.now.timestamp()))}
        if path.startswith("/api/v2/signingCert"):
            asked = x509.load_pem_x509_csr(base64.b64decode(body["certificateSigningRequest"]))
            own = self._certified(asked, identity, issuer)
            chain = [item.public_bytes(Encoding.PEM).decode() for item in (own, self._root)]
            return {"signedCertificateEmbeddedSct": {"chain": {"certificates": chain}}}
        proposed = body["spec"]["proposedContent"]
        envelope = json.loads(proposed["envelope"])
        raw = base64.b64decode(envelope["payload"])
        entry = self._logged(_entry(raw, envelope["signatures"][0]["sig"], proposed["verifiers"][0]))
        proof, log = entry["inclusionProof"], base64.b64decode(entry["logId"]["keyId"]).hex()
        inclusion = {"checkpoint": proof["checkpoint"]["envelope"], "hashes": [], "logIndex": 0, "treeSize": 1}
        inclusion["rootHash"] = base64.b64decode(proof["rootHash"]).hex()
        promise = entry["inclusionPromise"]["signedEntryTimestamp"]
        named = {"body": entry["canonicalizedBody"], "integratedTime": int(entry["integratedTime"]), "logID": log}
        return {
            "1": {
                **named,
                "logIndex": 0,
                "verification": {"inclusionProof": inclusion, "signedEntryTimestamp": promise},
            }
        }

    def config(self, url: str) -> str:
        """The configuration of a client that asks at an address."""
        since = (self.now - timedelta(days=2)).isoformat().replace("+00:00", "Z")
        service = [{"url": url, "majorApiVersion": 1, "validFor": {"start": since}, "operator": "test"}]
        signing = {"mediaType": "application/vnd.dev.sigstore.signingconfig.v0.2+json", "caUrls": service}
        signing |= {
            "rekorTlogUrls": service,
            "rekorTlogConfig": {"selector": "ANY"},
            "tsaUrls": [],
            "oidcUrls": service,
        }
        kind = "application/vnd.dev.sigstore.clienttrustconfig.v0.1+json"
        return json.dumps({"mediaType": kind, "trustedRoot": json.loads(self.trusted()), "signingConfig": signing})

    def _certified(self, key: Any, identity: str, issuer: str) -> x509.Certificate:
        """A certificate of ten minutes, with the promise of the log of certificates in it (RFC 6962, 3.2)."""
        names = x509.SubjectAlternativeName([x509.UniformResourceIdentifier(identity)])
        uses = x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING])
        signs = x509.KeyUsage(digital_signature=True, key_cert_sign=False, crl_sign=False, **self._usage)
        by = x509.AuthorityKeyIdentifier.from_issuer_public_key(self._ca.public_key())
        start = x509.CertificateBuilder().subject_name(x509.Name([])).issuer_name(self._root.subject)
        start = start.public_key(key.public_key()).serial_number(7)
        start = start.not_valid_before(self.now).not_valid_after(self.now + timedelta(minutes=10))
        for extension, critical in ((signs, True), (uses, False), (by, False), (names, True)):
            start = start.add_extension(extension, critical=critical)
        start = start.add_extension(x509.UnrecognizedExtension(ISSUER, issuer.encode()), critical=False)
        body = start.sign(self._ca, SHA256()).tbs_certificate_bytes
        at = int(self.now.timestamp() * 1000)
        entry = sha256(spki(self._ca)).digest() + len(body).to_bytes(3, "big") + body
        signature = self._ct.sign(struct.pack("!BBQH", 0, 0, at, 1) + entry + b"\0\0", ec.ECDSA(SHA256()))
        promise = b"\0" + sha256(spki(self._ct)).digest() + struct.pack("!Q", at) + b"\0\0\x04\x03"
        promise += len(signature).to_bytes(2, "big") + signature
        listed = len(promise).to_bytes(2, "big") + promise
        listed = len(listed).to_bytes(2, "big") + listed
        octets = b"\x04" + (bytes([len(listed)]) if len(listed) < 128 else bytes([0x81, len(listed)])) + listed
        return start.add_extension(x509.UnrecognizedExtension(SCT_LIST, octets), critical=False).sign(
            self._ca, SHA256()
        )

    def _logged(self, body: bytes) -> dict[str, Any]:
        """The entry of a log that holds it alone, with the log's promise and its checkpoint."""
        log = sha256(spki(self._rekor)).digest()
        at, root = int(self.now.timestamp()) + 1, sha256(b"\0" + body).digest()
        promised = {"body": b64(body), "integratedTime": at, "logID": log.hex(), "logIndex": 0}
        canonical = json.dumps(promised, sort_keys=True, separators=(",", ":")).encode()
        note = f"log.test\n1\n{b64(root)}\n"
        signed = log[:4] + self._rekor.sign(note.encode(), ec.ECDSA(SHA256()))
        return {
            "logIndex": "0",
            "logId": {"keyId": b64(log)},
            "kindVersion": {"kind": "dsse", "version": "0.0.1"},
            "integratedTime": str(at),
            "inclusionPromise": {"signedEntryTimestamp": b64(self._rekor.sign(canonical, ec.ECDSA(SHA256())))},
            "inclusionProof": {
                "logIndex": "0",
                "rootHash": b64(root),
                "treeSize": "1",
                "hashes": [],
                "checkpoint": {"envelope": f"{note}\n\u2014 log.test {b64(signed)}\n"},
            },
            "canonicalizedBody": b64(body),
        }
