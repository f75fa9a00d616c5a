"""Envelopes: DSSE's published vector, other people's tools both ways, and what is refused."""

from __future__ import annotations

import json
import random
import subprocess
from base64 import b64decode, b64encode
from pathlib import Path
from typing import Any

import pytest

from receipts.base.errors import InputError, UsageError
from receipts.signing.key import (
    RECEIPT,
    Envelope,
    PrivateKey,
    Signature,
    encoded,
    new_key,
    read_envelope,
    read_private,
    read_public,
    signed,
)
from thorough import unless_thorough

serialization = pytest.importorskip("cryptography.hazmat.primitives.serialization")
PKCS8 = (serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
PAYLOAD = b'{"schema_version": "1.0"}'


@pytest.fixture(params=["receipts", "ssh-keygen"])
def key(request: pytest.FixtureRequest, tmp_path: Path) -> PrivateKey:
    """The key in the file ``ana``, made by each of the two programs."""
    if request.param == "receipts":
        return new_key("ana", tmp_path / "ana")
    _run("ssh-keygen -q -t ed25519 -N  -f ana", tmp_path)
    return read_private(str(tmp_path / "ana"))


def _private(tmp_path: Path) -> Any:
    """The key of the file as cryptography reads it."""
    content = (tmp_path / "ana").read_bytes()
    load = serialization.load_ssh_private_key if b"OPENSSH" in content else serialization.load_pem_private_key
    return load(content, None)


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
    (tmp_path / "private").write_bytes(_private(tmp_path).private_bytes(*PKCS8))
    _run("openssl pkey -in private -pubout -out ana.pem", tmp_path)
    assert read_public((tmp_path / "ana.pem").read_text(), "ana.pem") == key.public
    verify = "openssl pkeyutl -verify -pubin -inkey ana.pem -rawin -in message -sigfile signature"
    assert "Verified Successfully" in _run(verify, tmp_path)
    _run("openssl pkeyutl -sign -inkey private -rawin -in message -out theirs", tmp_path)
    theirs = Envelope(RECEIPT, PAYLOAD, (Signature(key.public.fingerprint, (tmp_path / "theirs").read_bytes()),))
    assert theirs.signers({key.public.fingerprint: key.public}) == (key.public.fingerprint,)


def test_ssh_keygen_and_the_program_agree_on_a_key(key: PrivateKey, tmp_path: Path) -> None:
    assert read_public((tmp_path / "ana.pub").read_text(), "ana.pub") == key.public
    assert key.public.fingerprint in _run("ssh-keygen -lf ana.pub", tmp_path)


def test_what_is_signed_here_verifies_with_securesystemslib_and_the_other_way(key: PrivateKey, tmp_path: Path) -> None:
    dsse = pytest.importorskip("securesystemslib.dsse")
    from securesystemslib.signer import CryptoSigner, SSlibKey

    fingerprint = key.public.fingerprint
    value = {"keyval": {"public": key.public.raw.hex()}, "keytype": "ed25519", "scheme": "ed25519"}
    public = SSlibKey.from_dict(fingerprint, value)
    ours = dsse.Envelope.from_dict(json.loads(signed(RECEIPT, PAYLOAD, key).to_json()))
    assert set(ours.verify([public], 1)) == {fingerprint}
    theirs = dsse.Envelope(PAYLOAD, RECEIPT, {})
    theirs.sign(CryptoSigner(_private(tmp_path), public))
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
