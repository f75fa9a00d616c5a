"""Check a bundle of receipts: ``python verify.py BUNDLE.tar KEY.pub``, with the standard library and openssl alone.

If it exits with 0: the key signed this verdict on exactly these receipts and these rules, the receipts are in the log
of the checkpoints, and no byte of the bundle was changed since. Take the key, and this file, from a place that you
trust; a bundle has neither.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import re
import subprocess
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

RECEIPT = "application/vnd.frontier-receipts.receipt+json"
STATEMENT = "application/vnd.in-toto+json"
BUNDLE = "application/vnd.frontier-receipts.bundle+json"
STATEMENT_TYPE = "https://in-toto.io/Statement/v1"
# What a statement says, as a name that no domain stands behind (RFC 8141): the UUID, version 5, of "verdict/v1" in
# 0de6e445-a03a-483f-8ac1-0ee7d3c6f844, which is this program's. Another meaning gets another name.
PREDICATE_TYPE = "urn:uuid:b39ee1dd-d99c-58e0-b102-299e3697da8b"
MANIFEST = "bundle.dsse.json"
VERDICT = "verdict.dsse.json"
LOG = "log.json"  # signed checkpoints: of the log that the receipts are proven in, then those that it continues
NOT_GIVEN = "a key that was not given"
_BLOB = b"\x00\x00\x00\x0bssh-ed25519\x00\x00\x00\x20"  # RFC 8709, section 4
_SPKI = bytes.fromhex("302a300506032b6570032100")  # RFC 8410, section 4


class Refused(Exception):
    """The bundle does not hold, and why."""


# What another shape of the data raises is a refusal as well.
REFUSALS = (Refused, OSError, ValueError, LookupError, TypeError, AttributeError, RecursionError)


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
                    raise Refused(f"{member.name!r} is not a plain file, or is there twice")
                files[member.name] = content.read()
        if pack(files) != raw:
            raise Refused("the tar has bytes that are of none of its files")
    except (tarfile.TarError, OSError, ValueError, EOFError, OverflowError) as error:
        raise Refused(f"this is not a bundle: {error}") from None
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
            raise Refused("the key is not a public Ed25519 key")
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
            answer = subprocess.run(words.split(), cwd=folder, capture_output=True, check=False)
            if answer.returncode and b"Verification Failure" not in answer.stdout + answer.stderr:
                raise Refused(f"openssl 1.1.1 or newer is needed: {answer.stderr.decode(errors='replace')[:200]}")
            return answer.returncode == 0


def opened(raw: bytes, kind: str, name: str, keys: list[Key], *, several: bool = False) -> tuple[bytes, str]:
    """A DSSE envelope's payload, and whose signature it has, as far as the keys tell. Raises Refused.

    Without ``several`` it has one signature: nothing says of a row beside it that it was there when that was made.
    """
    try:
        values = json.loads(raw)
        payload = base64.b64decode(values["payload"])
        rows = [(str(row["keyid"]), base64.b64decode(row["sig"])) for row in values["signatures"]]
        spelled = [{"keyid": signer, "sig": base64.b64encode(signature).decode()} for signer, signature in rows]
        same = {"payload": base64.b64encode(payload).decode(), "payloadType": kind, "signatures": spelled}
        if json.dumps(same, indent=1).encode() + b"\n" != raw:
            raise ValueError("it is of another type, or written otherwise")
        if len(rows) > (len(dict(rows)) if several else 1):
            raise ValueError("it has signatures beside the one that counts")
        signers = [(key, signature) for signer, signature in rows for key in keys if key.fingerprint == signer]
        first = rows[0][0]
    except REFUSALS as error:
        raise Refused(f"{name}: this is not an envelope: {error}") from None
    message = b"DSSEv1 %d %b %d %b" % (len(kind), kind.encode(), len(payload), payload)
    for key, signature in signers:
        if not key.verifies(signature, message):
            raise Refused(f"{name}: the signature does not hold")
    return payload, signers[0][0].fingerprint if signers else f"{NOT_GIVEN}, {first}"


def signed(raw: bytes, kind: str, name: str, key: Key) -> dict[str, Any]:
    """What the key signed."""
    payload, signer = opened(raw, kind, name, [key])
    if signer != key.fingerprint:
        raise Refused(f"{name}: it is signed by {signer}")
    return dict(json.loads(payload))


def led(start: bytes, steps: list[dict[str, Any]]) -> str:
    """The Merkle root that a proof leads to from a leaf's content (RFC 6962), in hex."""
    digest = hashlib.sha256(b"\x00" + start).digest()
    for step in steps:
        other = bytes.fromhex(step["digest"])
        digest = node(other, digest) if step["left"] else node(digest, other)
    return digest.hex()


def node(left: bytes, right: bytes) -> bytes:
    """The digest over two digests of a Merkle tree."""
    return hashlib.sha256(b"\x01" + left + right).digest()


class Checkpoint:
    """A signed note (https://c2sp.org/tlog-checkpoint): a log's name, how many seals it has, and their root."""

    def __init__(self, note: str) -> None:
        self._text, _, signatures = note.partition("\n\n")
        self.origin, size, root = self._text.split("\n")
        self.size, self.root = int(size), base64.b64decode(root)
        self._signatures = [line.split(" ") for line in signatures.splitlines()]

    def signer(self, keys: list[Key]) -> str:
        """Whose signature it has, as far as the keys tell. Raises Refused where one of theirs does not hold."""
        for _, name, value in self._signatures:
            start, signature = base64.b64decode(value)[:4], base64.b64decode(value)[4:]
            for key in keys:
                if start == hashlib.sha256(name.encode() + b"\n\x01" + key.raw).digest()[:4]:
                    if not key.verifies(signature, f"{self._text}\n".encode()):
                        raise Refused(f"checkpoint of {self.size} seals: the signature of {name} does not hold")
                    return key.fingerprint
        return NOT_GIVEN


def continues(log: Checkpoint, first: Checkpoint, proof: list[str]) -> bool:
    """Whether a log continues the one of a checkpoint (RFC 9162, 2.1.4)."""
    steps = [bytes.fromhex(item) for item in reversed(proof)]

    def roots(small: int, large: int, known: bytes | None) -> tuple[bytes, bytes]:
        """The roots over the first ``small`` and over all ``large`` leaves of a subtree; ``known`` is the first one."""
        if small == large:
            whole = steps.pop() if known is None else known
            return whole, whole
        half = 1 << (large - 1).bit_length() - 1
        if small <= half:
            old, new = roots(small, half, known)
            return old, node(new, steps.pop())
        old, new = roots(small - half, large - half, None)
        left = steps.pop()
        return node(left, old), node(left, new)

    if not 0 < first.size <= log.size:
        return False
    return roots(first.size, log.size, first.root) == (first.root, log.root) and not steps


def logged(files: dict[str, bytes], receipts: list[str], keys: list[Key]) -> list[str]:
    """What the log shows, in lines: when the receipts came into it, and which checkpoints it continues."""
    if LOG not in files:
        return []
    rows = [(Checkpoint(item["note"]), item["consistency"]) for item in json.loads(files[LOG])]
    log, shown = rows[0][0], []
    for item, proof in rows:
        if item.origin != log.origin or not continues(log, item, proof):
            raise Refused(f"the log does not continue the checkpoint of {item.size} seals")
        shown.append(f"the log has the root {item.root.hex()} over {item.size} seals, signed by {item.signer(keys)}")
    proofs = [(receipt, files.get(f"proofs/{receipt}.json")) for receipt in receipts]
    moments = [prove(json.loads(raw), receipt, log) for receipt, raw in proofs if raw is not None]
    return [f"receipts in {log.origin}: {len(moments)}, sealed {' and '.join(sorted(set(moments)))}", *shown]


def prove(proof: dict[str, Any], receipt: str, log: Checkpoint) -> str:
    """When a receipt was sealed, which the way to the root of its seal and from there to that of the log proves."""
    content = json.dumps(["receipts", receipt], separators=(",", ":")).encode()
    seal = json.loads(proof["seal"])
    if led(content, proof["receipt"]) != seal[6]:
        raise Refused(f"proofs: {receipt[:12]} is not in its seal")
    if led(proof["seal"].encode(), proof["log"]) != log.root.hex():
        raise Refused(f"proofs: the seal of {receipt[:12]} is not in the log")
    return str(seal[7])


def rules_digest(files: dict[str, bytes]) -> str:
    """The digest of the rules in a bundle: their code without its pages, then lanes, then studies."""
    digest = hashlib.sha256()
    page = re.compile(rb'\A\s*[rR]?"""(?:[^"\\]|\\.|"(?!""))*"""', re.DOTALL)
    names = (name for name in files if name.startswith("rules/"))
    for name in sorted(names, key=lambda name: name.removesuffix(".toml")):
        code = page.sub(b"", files[name], count=1) if name.startswith("rules/code/") else files[name]
        digest.update(f"{Path(name).name}\0".encode() + code + b"\0")
    return digest.hexdigest()


def check(bundle: bytes, keys: list[Key]) -> list[str]:
    """What a bundle shows, in lines. The first key is that of its signer, the rest may have signed receipts."""
    files = unpack(bundle)
    listed = signed(files.pop(MANIFEST, b""), BUNDLE, MANIFEST, keys[0])
    if listed["files"] != {name: sha256(content) for name, content in files.items()}:
        raise Refused("the files are not those that were signed")
    statement = signed(files.get(VERDICT, b""), STATEMENT, VERDICT, keys[0])
    if (statement["_type"], statement["predicateType"]) != (STATEMENT_TYPE, PREDICATE_TYPE):
        raise Refused("the statement is not a verdict on receipts")
    receipts = [item["digest"]["sha256"] for item in statement["subject"]]
    for receipt in receipts:
        if sha256(files.get(f"receipts/{receipt}.json", b"")) != receipt:
            raise Refused(f"receipt {receipt[:12]} is not there")
    verdict = statement["predicate"]
    if rules_digest(files) != verdict["rules"]:
        raise Refused("the rules are not those of the verdict")
    for name, digest in verdict["verdict"].get("files", {}).items():
        if sha256(files.get(f"report/{name}", b"")) != digest:
            raise Refused(f"report/{name} is not the one that was signed")
    shown = [f"signed by {keys[0].fingerprint}", *numbers(verdict)]
    shown += [f"receipts: {len(receipts)}, judged by the rules {verdict['rules'][:12]}", *evidence(files, receipts)]
    signers = []
    for receipt in receipts:
        if (raw := files.get(f"receipts/{receipt}.dsse.json")) is not None:
            payload, signer = opened(raw, RECEIPT, receipt[:12], keys, several=True)
            if sha256(payload) != receipt:
                raise Refused(f"{receipt[:12]}: the envelope is of another receipt")
            signers.append(signer)
    shown += [f"receipts submitted by {item}: {signers.count(item)}" for item in dict.fromkeys(signers)]
    return [*shown, *logged(files, receipts, keys), *listed["lacks"]]


def evidence(files: dict[str, bytes], receipts: list[str]) -> list[str]:
    """How many files of evidence there are that the receipts name by their SHA-256, in a line. Raises Refused."""
    stated = (json.loads(files[f"receipts/{item}.json"]).get("evidence") or () for item in receipts)
    wanted = {item.get("sha256") for items in stated for item in items}
    kept = [name.partition("/")[2] for name in files if name.startswith("evidence/")]
    for digest in kept:
        if digest not in wanted or sha256(files[f"evidence/{digest}"]) != digest:
            raise Refused(f"evidence/{digest[:12]} is not what a receipt names")
    return [f"files of evidence, as the receipts name them: {len(kept)}"] if kept else []


def numbers(predicate: dict[str, Any]) -> list[str]:
    """What the verdict says: its status, and each metric of a comparison, A to B, with the ratio and what it shows."""
    verdict = predicate["verdict"]
    shown = [f"{predicate['kind']}: {verdict['status']}", *([verdict["text"]] if "text" in verdict else [])]
    shown += [f"report/{name} is as it was signed" for name in verdict.get("files", {})]
    compared = verdict.get("comparison") or verdict
    for item in compared.get("results") or ():
        a, b, effect = item["a"], item["b"], item["effect"]
        interval = "" if effect["low"] is None else f", ratio {effect['low']:.4f} to {effect['high']:.4f} (95 %)"
        means = f"{a['value']:,.6g} to {b['value']:,.6g} {item['unit']}, {a['launches']} and {b['launches']} launches"
        kind = {"faster": "less", "slower": "more"}.get(effect["kind"]) if item["metric"] == "peak_bytes" else None
        shown.append(f"{item['metric']}: {means}{interval}, {kind or effect['kind']}")
    return shown


def main(words: list[str]) -> int:
    """Check the bundle that the command line names, with the keys that follow it."""
    if len(words) < 2:
        sys.stderr.write("python verify.py BUNDLE.tar KEY.pub [OTHER.pub ...]\n")
        return 2
    try:
        keys = [Key(Path(word).read_text()) for word in words[1:]]
        shown, stream, code = [*check(Path(words[0]).read_bytes(), keys), "verified"], sys.stdout, 0
    except REFUSALS as error:
        shown, stream, code = [f"refused: {error}"], sys.stderr, 1
    # What others wrote does nothing to a terminal.
    stream.writelines("".join(letter if letter.isprintable() else "?" for letter in line) + "\n" for line in shown)
    return code


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
