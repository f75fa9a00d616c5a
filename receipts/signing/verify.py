"""Check a bundle of receipts: ``python verify.py BUNDLE.tar KEY.pub``, with the standard library and openssl alone.

What holds if it exits with 0: the key signed this verdict on exactly these receipts, and no byte of the bundle was
changed since. Take the key, and this file, from where you would trust them; a bundle carries neither.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

RECEIPT = "application/vnd.frontier-receipts.receipt+json"
STATEMENT = "application/vnd.in-toto+json"
BUNDLE = "application/vnd.frontier-receipts.bundle+json"
MANIFEST = "bundle.dsse.json"
VERDICT = "verdict.dsse.json"
_BLOB = b"\x00\x00\x00\x0bssh-ed25519\x00\x00\x00\x20"  # RFC 8709, section 4
_SPKI = bytes.fromhex("302a300506032b6570032100")  # RFC 8410, section 4


class Refused(Exception):
    """The bundle does not hold, and why."""


def sha256(content: bytes) -> str:
    """The SHA-256, in hex."""
    return hashlib.sha256(content).hexdigest()


def pack(files: dict[str, bytes]) -> bytes:
    """Files as a tar that has one spelling: in the order of their names, of nobody, and of no time."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name in sorted(files):
            member = tarfile.TarInfo(name)
            member.size = len(files[name])
            tar.addfile(member, io.BytesIO(files[name]))
    return packed.getvalue()


def unpack(raw: bytes) -> dict[str, bytes]:
    """The files of a bundle, which are never written anywhere."""
    files = {}
    try:
        with tarfile.open(fileobj=io.BytesIO(raw), mode="r:") as tar:
            for member in tar:
                content = tar.extractfile(member) if member.isreg() else None
                if content is None or member.name in files:
                    raise Refused(f"{member.name!r} is no plain file, or is there twice")
                files[member.name] = content.read()
        if pack(files) != raw:
            raise Refused("the tar has bytes that are of none of its files")
    except (tarfile.TarError, OSError, ValueError, EOFError, OverflowError) as error:
        raise Refused(f"this is no bundle: {error}") from None
    return files


class Key:
    """A public Ed25519 key, from OpenSSH's line or PEM."""

    def __init__(self, text: str) -> None:
        words = text.split()
        ssh = words[:1] == ["ssh-ed25519"] and len(words) > 1
        blob = words[1] if ssh else "".join(line for line in text.split("\n") if not line.startswith("-----"))
        head = _BLOB if ssh else _SPKI
        content = base64.b64decode("".join(blob.split()))
        if not content.startswith(head) or len(content) != len(head) + 32:
            raise Refused("the key is no public Ed25519 key")
        self.raw = content[len(head) :]
        digest = hashlib.sha256(_BLOB + self.raw).digest()
        self.fingerprint = f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}"

    def verifies(self, signature: bytes, message: bytes) -> bool:
        """Whether openssl says that the signature over the message is of this key."""
        pem = base64.b64encode(_SPKI + self.raw).decode()
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            (folder / "key").write_text(f"-----BEGIN PUBLIC KEY-----\n{pem}\n-----END PUBLIC KEY-----\n")
            (folder / "message").write_bytes(message)
            (folder / "signature").write_bytes(signature)
            words = "openssl pkeyutl -verify -pubin -inkey key -rawin -in message -sigfile signature"
            return subprocess.run(words.split(), cwd=folder, capture_output=True, check=False).returncode == 0


def opened(raw: bytes, kind: str, name: str) -> tuple[bytes, str, bytes]:
    """A DSSE envelope's payload, the fingerprint of its signer, and the signature; not yet verified."""
    try:
        values = json.loads(raw)
        row = values["signatures"][0]
        payload, signature = base64.b64decode(values["payload"]), base64.b64decode(row["sig"])
        rows = [{"keyid": row["keyid"], "sig": base64.b64encode(signature).decode()}, *values["signatures"][1:]]
        same = {"payload": base64.b64encode(payload).decode(), "payloadType": kind, "signatures": rows}
        if json.dumps(same, indent=1).encode() + b"\n" != raw:
            raise ValueError("it is of another type, or written otherwise")
        return payload, str(row["keyid"]), signature
    except (ValueError, KeyError, TypeError, IndexError, AttributeError, RecursionError) as error:
        raise Refused(f"{name}: this is no envelope: {error}") from None


def signed(raw: bytes, kind: str, name: str, key: Key) -> bytes:
    """The payload of an envelope that the key signed."""
    payload, signer, signature = opened(raw, kind, name)
    if signer != key.fingerprint:
        raise Refused(f"{name}: it is signed by {signer}, and not by {key.fingerprint}")
    if not key.verifies(signature, b"DSSEv1 %d %b %d %b" % (len(kind), kind.encode(), len(payload), payload)):
        raise Refused(f"{name}: the signature does not hold")
    return payload


def led(start: bytes, steps: list[dict[str, Any]]) -> str:
    """The Merkle root that a proof leads to from a leaf's content (RFC 6962), in hex."""
    digest = hashlib.sha256(b"\x00" + start).digest()
    for step in steps:
        other = bytes.fromhex(step["digest"])
        pair = other + digest if step["left"] else digest + other
        digest = hashlib.sha256(b"\x01" + pair).digest()
    return digest.hex()


def prove(proof: dict[str, Any], receipt: str) -> str:
    """Follow a receipt to the root of its seal, and the seal to the root of the log; what that shows in a line."""
    content = json.dumps(["receipts", receipt], separators=(",", ":")).encode()
    seal = json.loads(proof["seal"])
    if led(content, proof["receipt"]) != seal[6]:
        raise Refused(f"proofs: {receipt[:12]} is not in its seal")
    if led(proof["seal"].encode(), proof["log"]) != proof["root"]:
        raise Refused(f"proofs: the seal of {receipt[:12]} is not in the log")
    return f"{receipt[:12]} was sealed {seal[7]}, in the log {seal[1]} of {proof['size']} seals, root {proof['root']}"


def check(raw: bytes, keys: list[Key]) -> list[str]:
    """Check a bundle: the first key is that of its signer, the rest may have signed receipts. Gives what was shown.

    Raises Refused.
    """
    files = unpack(raw)
    if MANIFEST not in files or VERDICT not in files:
        raise Refused(f"there is no {MANIFEST} or no {VERDICT}")
    listed = json.loads(signed(files.pop(MANIFEST), BUNDLE, MANIFEST, keys[0]))
    if listed["files"] != {name: sha256(content) for name, content in files.items()}:
        raise Refused("the files are not those that were signed")
    statement = json.loads(signed(files[VERDICT], STATEMENT, VERDICT, keys[0]))
    receipts = [item["digest"]["sha256"] for item in statement["subject"]]
    for receipt in receipts:
        if sha256(files.get(f"receipts/{receipt}.json", b"")) != receipt:
            raise Refused(f"receipt {receipt[:12]} is not there")
    verdict = statement["predicate"]
    shown = [f"signed by {keys[0].fingerprint}", *numbers(verdict)]
    shown += [f"{len(receipts)} receipts, by the rules {verdict['rules'][:12]}", *listed["lacks"]]
    for receipt in receipts:
        if (envelope := files.get(f"receipts/{receipt}.dsse.json")) is not None:
            shown.append(submitter(envelope, receipt, keys))
        if (proof := files.get(f"proofs/{receipt}.json")) is not None:
            shown.append(prove(json.loads(proof), receipt))
    return shown


def numbers(predicate: dict[str, Any]) -> list[str]:
    """What the verdict says: its status, and each metric of a comparison with its 95 % interval and effect."""
    verdict = predicate["verdict"]
    shown = [f"{predicate['kind']}: {verdict['status']}", *([verdict["text"]] if "text" in verdict else [])]
    compared = verdict.get("comparison") or verdict
    for item in compared.get("results") or ():
        a, b, effect = item["a"]["text"], item["b"]["text"], item["effect"]
        interval = "" if effect["low"] is None else f", ratio {effect['low']:.4f} to {effect['high']:.4f}"
        shown.append(f"{item['metric']}: {a} to {b} {item['unit']}{interval}, {effect['kind']}")
    return shown


def submitter(raw: bytes, receipt: str, keys: list[Key]) -> str:
    """By whom a receipt was submitted, as far as the keys tell."""
    payload, signer, _ = opened(raw, RECEIPT, receipt[:12])
    if sha256(payload) != receipt:
        raise Refused(f"{receipt[:12]}: the envelope is of another receipt")
    for key in keys:
        if key.fingerprint == signer:
            signed(raw, RECEIPT, receipt[:12], key)
            return f"{receipt[:12]} was submitted by {signer}"
    return f"{receipt[:12]} has a signature of {signer}: not checked, its key was not given"


def main(words: list[str]) -> int:
    """Check the bundle that the command line names, with the keys that follow it."""
    if len(words) < 2:
        sys.stderr.write("python verify.py BUNDLE.tar KEY.pub [OTHER.pub ...]\n")
        return 2
    try:
        keys = [Key(Path(word).read_text()) for word in words[1:]]
        shown = check(Path(words[0]).read_bytes(), keys)
    except (Refused, OSError, ValueError) as error:
        sys.stderr.write(f"refused: {error}\n")
        return 1
    # What others wrote does nothing to a terminal.
    lines = ("".join(letter if letter.isprintable() else "?" for letter in line) for line in shown)
    sys.stdout.write("\n".join([*lines, "verified"]) + "\n")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
