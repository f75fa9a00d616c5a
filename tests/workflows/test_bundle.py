"""Bundles and statements: checked with openssl and the standard library alone, and no change of one verifies."""

from __future__ import annotations

import json
import random
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from command_line import Shell
from receipts.signing import verify
from receipts.signing.envelope import read_envelope
from receipts.signing.public import read_public_file
from thorough import unless_thorough

pytestmark = pytest.mark.slow

CLAIM = """
schema_version = "1.0"

[[claim]]
id = "faster"
text = "Two is a third faster than one."
kind = "speedup"
baseline = "label=one"
candidate = "label=two"
axis = "numerics.learning_rate"
effect = "at least 1.30"
"""


@pytest.fixture
def signing(shell: Shell) -> Shell:
    """A shell whose store has two signed receipts, sealed."""
    shell("key", "new", "ana", "--out", "ana")
    shell("key", "trust", "ana", "ana.pub")
    for name in ("one", "two"):
        assert shell("submit", shell.write(name), "--sign", "ana").code == 0
    assert shell("audit", "--seal").code == 0
    return shell


@pytest.fixture
def bundle(signing: Shell) -> Path:
    answer = signing("bundle", "one", "two", "--sign", "ana", "--output", "x.tar")
    assert answer.code == 0, answer.err
    return signing.folder / "x.tar"


def test_a_statement_names_its_receipts_and_the_rules(signing: Shell) -> None:
    envelope = read_envelope(signing("attest", "one", "two", "--sign", "ana").out.encode(), "attest")
    key = read_public_file("ana.pub")
    assert envelope.signers({key.fingerprint: key})
    statement = json.loads(envelope.payload)
    assert {item["digest"]["sha256"] for item in statement["subject"]} == set(signing.made.values())
    assert statement["_type"] == "https://in-toto.io/Statement/v1"
    verdict = signing("compare", "one", "two", "--json").json
    assert statement["predicate"]["rules"] == verdict["rules"]
    assert statement["predicate"]["verdict"]["status"] == verdict["status"]


def test_a_claim_and_a_receipt_are_attested_by_their_names(signing: Shell) -> None:
    (signing.folder / "claims.toml").write_text(CLAIM)
    assert signing("claim", "add", "claims.toml").code == 0
    for word, kind in (("faster", "claim"), ("one", "receipt")):
        answer = signing("attest", word, "--sign", "ana", "--output", f"{kind}.dsse.json")
        assert answer.code == 0, answer.err
        envelope = read_envelope((signing.folder / f"{kind}.dsse.json").read_bytes(), kind)
        assert json.loads(envelope.payload)["predicate"]["kind"] == kind
    assert signing("bundle", "faster", "--sign", "ana", "--output", "c.tar", "--json").json["kind"] == "claim"
    key = verify.Key((signing.folder / "ana.pub").read_text())
    assert any(line.startswith("claim: ") for line in verify.check((signing.folder / "c.tar").read_bytes(), [key]))


def test_a_stranger_checks_a_bundle_with_nothing_of_ours(signing: Shell, bundle: Path) -> None:
    words = [sys.executable, "-I", "-S", verify.__file__, str(bundle), "ana.pub"]
    answer = subprocess.run(words, capture_output=True, text=True, check=False, cwd=signing.folder)
    assert answer.returncode == 0, answer.stderr
    verdict = signing("compare", "one", "two", "--json").json
    assert f"comparison: {verdict['status']}" in answer.stdout
    assert all(
        f"{item['metric']}: {item['a']['text']} to {item['b']['text']}" in answer.stdout for item in verdict["results"]
    )
    for receipt in signing.made.values():
        assert f"{receipt[:12]} was submitted by SHA256:" in answer.stdout
        assert f"{receipt[:12]} was sealed" in answer.stdout
    assert answer.stdout.endswith("verified\n")


def test_a_bundle_of_a_foreign_key_is_refused(signing: Shell, bundle: Path) -> None:
    signing("key", "new", "eve", "--out", "eve")
    with pytest.raises(verify.Refused, match="it is signed by"):
        verify.check(bundle.read_bytes(), [verify.Key((signing.folder / "eve.pub").read_text())])


def test_no_mutation_of_a_bundle_verifies(signing: Shell, bundle: Path) -> None:
    raw, key = bundle.read_bytes(), verify.Key((signing.folder / "ana.pub").read_text())
    rng = random.Random(26)
    for _ in range(unless_thorough(60, 5_000)):
        _refused(_mutated(raw, rng), key)


def test_no_mutation_of_a_part_verifies_when_it_is_packed_again(signing: Shell, bundle: Path) -> None:
    files, key = verify.unpack(bundle.read_bytes()), verify.Key((signing.folder / "ana.pub").read_text())
    rng = random.Random(27)
    names = [name for name in files if not name.startswith("rules/")]
    for _ in range(unless_thorough(80, 5_000)):
        name = rng.choice(names)
        _refused(verify.pack({**files, name: _mutated(files[name], rng)}), key)


def _refused(raw: bytes, key: verify.Key) -> None:
    with pytest.raises((verify.Refused, ValueError)):
        verify.check(raw, [key])


def _mutated(raw: bytes, rng: random.Random) -> bytes:
    at, byte = rng.randrange(len(raw)), rng.randrange(1, 256)
    changes: list[Callable[[], bytes]] = [
        lambda: raw[:at] + bytes([raw[at] ^ byte]) + raw[at + 1 :],
        lambda: raw[:at] + raw[at + 1 :],
        lambda: raw[:at] + bytes([byte]) + raw[at:],
        lambda: raw[:at],
    ]
    return rng.choice(changes)()


def test_a_bundle_names_what_the_store_does_not_have(signing: Shell) -> None:
    signing.store("three", evidence=[{"kind": "log", "sha256": "ab" * 32, "uri": "train.log"}])
    assert signing("bundle", "three", "--sign", "ana", "--output", "y.tar").code == 0
    shown = verify.check(
        (signing.folder / "y.tar").read_bytes(), [verify.Key((signing.folder / "ana.pub").read_text())]
    )
    assert f"{signing.made['three'][:12]} is not sealed" in shown
    assert "evidence abababababab is not in the bundle" in shown


def test_a_bundle_replaces_no_file(signing: Shell, bundle: Path) -> None:
    assert signing("bundle", "one", "--sign", "ana", "--output", "x.tar").code == 2
