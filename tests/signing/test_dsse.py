"""Envelopes: DSSE's published vector, other people's tools both ways, and what is refused."""

from __future__ import annotations

import json
import random
import subprocess
from base64 import b64decode, b64encode
from pathlib import Path

import pytest

from receipts.base.errors import InputError, UsageError
from receipts.signing.envelope import RECEIPT, Envelope, Signature, encoded, read_envelope, signed
from receipts.signing.private import PrivateKey, new_key, read_private
from receipts.signing.public import read_public
from thorough import unless_thorough

PAYLOAD = b'{"schema_version": "1.0"}'


@pytest.fixture
def key(tmp_path: Path) -> PrivateKey:
    return new_key("ana", tmp_path / "ana")


def test_the_published_vector_of_dsse_holds() -> None:
    # protocol.md of the specification, v1.0.0: the encoding, and an ECDSA signature over it.
    ec = pytest.importorskip("cryptography.hazmat.primitives.asymmetric.ec")
    from cryptography.hazmat.primitives.asymmetric.utils import encode_dss_signature
    from cryptography.hazmat.primitives.hashes import SHA256

    raw = json.dumps(
        {
            "payload": "aGVsbG8gd29ybGQ=",
            "payloadType": "http://example.com/HelloWorld",
            "signatures": [
                {"sig": "A3JqsQGtVsJ2O2xqrI5IcnXip5GToJ3F+FnZ+O88SjtR6rDAajabZKciJTfUiHqJPcIAriEGAHTVeCUjW2JIZA=="}
            ],
        }
    )
    vector = read_envelope(raw.encode(), "vector")
    message = encoded(vector.kind, vector.payload)
    assert message == b"DSSEv1 29 http://example.com/HelloWorld 11 hello world"
    x = 46950820868899156662930047687818585632848591499744589407958293238635476079160
    y = 5640078356564379163099075877009565129882514886557779369047442380624545832820
    value = vector.signatures[0].value
    signature = encode_dss_signature(int.from_bytes(value[:32]), int.from_bytes(value[32:]))
    ec.EllipticCurvePublicNumbers(x, y, ec.SECP256R1()).public_key().verify(signature, message, ec.ECDSA(SHA256()))


def test_what_is_signed_here_verifies_with_openssl_and_the_other_way(key: PrivateKey, tmp_path: Path) -> None:
    one = signed(RECEIPT, PAYLOAD, key)
    (tmp_path / "message").write_bytes(encoded(one.kind, one.payload))
    (tmp_path / "signature").write_bytes(one.signatures[0].value)
    (tmp_path / "ana.pem").write_text(key.public.pem)
    verify = "openssl pkeyutl -verify -pubin -inkey ana.pem -rawin -in message -sigfile signature"
    assert "Verified Successfully" in _run(verify, tmp_path)
    _run("openssl pkeyutl -sign -inkey ana -rawin -in message -out theirs", tmp_path)
    theirs = Envelope(RECEIPT, PAYLOAD, (Signature(key.public.fingerprint, (tmp_path / "theirs").read_bytes()),))
    assert theirs.signers({key.public.fingerprint: key.public}) == (key.public.fingerprint,)
    assert read_public(_run("openssl pkey -in ana -pubout", tmp_path), "openssl") == key.public


def test_a_key_of_ssh_keygen_signs_under_its_own_fingerprint(tmp_path: Path) -> None:
    _run("ssh-keygen -q -t ed25519 -N  -f theirs", tmp_path)
    key, public = read_private(str(tmp_path / "theirs")), read_public((tmp_path / "theirs.pub").read_text(), "theirs")
    assert key.public == public
    assert public.fingerprint in _run("ssh-keygen -lf theirs.pub", tmp_path)
    one = signed(RECEIPT, PAYLOAD, key)
    assert one.signers({public.fingerprint: public})


def test_ssh_keygen_reads_the_public_key_of_ours(key: PrivateKey, tmp_path: Path) -> None:
    assert key.public.fingerprint in _run("ssh-keygen -lf ana.pub", tmp_path)


def test_what_is_signed_here_verifies_with_securesystemslib_and_the_other_way(key: PrivateKey, tmp_path: Path) -> None:
    dsse = pytest.importorskip("securesystemslib.dsse")
    from securesystemslib.signer import CryptoSigner, SSlibKey

    fingerprint = key.public.fingerprint
    value = {"keyval": {"public": key.public.pem}, "keytype": "ed25519", "scheme": "ed25519"}
    value["keyval"] = {"public": key.public.raw.hex()}
    public = SSlibKey.from_dict(fingerprint, value)
    ours = dsse.Envelope.from_dict(json.loads(signed(RECEIPT, PAYLOAD, key).to_json()))
    assert set(ours.verify([public], 1)) == {fingerprint}
    from cryptography.hazmat.primitives.serialization import load_pem_private_key

    theirs = dsse.Envelope(PAYLOAD, RECEIPT, {})
    theirs.sign(CryptoSigner(load_pem_private_key((tmp_path / "ana").read_bytes(), None), public))
    read = read_envelope(json.dumps(theirs.to_dict()).encode(), "theirs")
    assert read.signers({fingerprint: key.public}) == (fingerprint,)


def test_a_private_key_is_for_its_owner_alone(key: PrivateKey, tmp_path: Path) -> None:
    place = tmp_path / "ana"
    assert place.stat().st_mode & 0o777 == 0o600
    place.chmod(0o640)
    with pytest.raises(UsageError, match="chmod 600"):
        read_private(str(place))
    with pytest.raises(UsageError, match="exists"):
        new_key("ana", place)


@pytest.mark.parametrize(
    "change",
    [
        lambda item: item._replace(payload=item.payload + b" "),
        lambda item: item._replace(kind=item.kind + "x"),
        lambda item: item._replace(signatures=(item.signatures[0]._replace(value=bytes(64)),)),
        lambda item: item._replace(signatures=(item.signatures[0]._replace(key="SHA256:other"),)),
    ],
)
def test_an_envelope_that_was_changed_has_no_signer(change: object, key: PrivateKey) -> None:
    one = signed(RECEIPT, PAYLOAD, key)
    keys = {key.public.fingerprint: key.public}
    assert one.signers(keys)
    assert callable(change)
    assert not change(one).signers(keys)


def test_no_mutation_of_an_envelope_verifies_as_anything_else(key: PrivateKey) -> None:
    one, keys, rng = signed(RECEIPT, PAYLOAD, key), {key.public.fingerprint: key.public}, random.Random(1)
    raw = one.to_json().encode()
    for _ in range(unless_thorough(300, 10_000)):
        at, byte = rng.randrange(len(raw)), rng.randrange(1, 256)
        changed = raw[:at] + rng.choice([b"", bytes([byte]), bytes([byte]) + raw[at : at + 1]]) + raw[at + 1 :]
        try:
            other = read_envelope(changed, "changed")
        except InputError:
            continue
        # White space outside the base64 is another spelling of the same envelope.
        assert not other.signers(keys) or other == one


@pytest.mark.parametrize(
    "raw", [b"", b"[]", b"{}", b'{"payload":"e30","payloadType":"x","signatures":[{"sig":"e30="}]}']
)
def test_what_is_no_envelope_is_refused_with_a_reason(raw: bytes) -> None:
    with pytest.raises(InputError, match="no DSSE envelope"):
        read_envelope(raw, "file")


def test_base64_is_read_in_both_alphabets_and_in_one_spelling() -> None:
    raw = json.dumps({"payload": "-_8=", "payloadType": "x", "signatures": [{"sig": b64encode(bytes(64)).decode()}]})
    assert read_envelope(raw.encode(), "x").payload == b64decode("+/8=")
    with pytest.raises(InputError):
        read_envelope(raw.replace("-_8=", "-_9=").encode(), "x")


def _run(command: str, folder: Path) -> str:
    words = list(command.split(" "))
    result = subprocess.run(words, cwd=folder, capture_output=True, text=True, check=True)
    return result.stdout + result.stderr
