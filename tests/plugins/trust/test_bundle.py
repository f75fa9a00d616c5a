"""Bundles and statements: checked with openssl and the standard library alone, and no change of one verifies."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import uuid
from base64 import b64encode
from pathlib import Path

import pytest

import forgeries
from command_line import Shell
from receipts.plugins.trust import verify
from receipts.signing.key import read_envelope, read_public_file
from receipts.store import seals
from receipts.store.evidence import files_beside
from receipts.workflows.checkpoints import read_checkpoints
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
    namespace = uuid.UUID("0de6e445-a03a-483f-8ac1-0ee7d3c6f844")
    assert statement["predicateType"] == uuid.uuid5(namespace, "verdict/v1").urn
    verdict = signing("compare", "one", "two", "--json").json
    assert statement["predicate"]["rules"] == verdict["rules"]
    assert statement["predicate"]["verdict"]["status"] == verdict["status"]


def test_a_claim_its_page_and_a_receipt_are_attested_by_their_names(signing: Shell) -> None:
    (signing.folder / "claims.toml").write_text(CLAIM)
    assert signing("claim", "add", "claims.toml").code == 0
    assert signing("report", "claim", "faster", "--out", "page").code == 0
    for word, kind in (("faster", "claim"), ("one", "receipt"), ("page", "report")):
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
    for item in verdict["results"]:
        numbers = f"{item['metric']}: {item['a']['value']:,.6g} to {item['b']['value']:,.6g} {item['unit']}"
        assert numbers in answer.stdout
    key = read_public_file("ana.pub")
    assert f"receipts submitted by {key.fingerprint}: 2\n" in answer.stdout
    assert re.search(r"^receipts in frontier-receipts/\S+: 2, sealed", answer.stdout, re.MULTILINE)
    assert answer.stdout.endswith("verified\n")


def test_a_bundle_of_a_foreign_key_is_refused(signing: Shell, bundle: Path) -> None:
    signing("key", "new", "eve", "--out", "eve")
    with pytest.raises(verify.Refused, match="it is signed by"):
        verify.check(bundle.read_bytes(), [verify.Key((signing.folder / "eve.pub").read_text())])


def test_a_signed_statement_of_another_type_is_refused(signing: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("receipts.plugins.trust.bundle.PREDICATE_TYPE", "https://slsa.dev/provenance/v1")
    assert signing("bundle", "one", "two", "--sign", "ana", "--output", "x.tar").code == 0
    raw = (signing.folder / "x.tar").read_bytes()
    with pytest.raises(verify.Refused, match="the statement is not a verdict on receipts"):
        verify.check(raw, [verify.Key((signing.folder / "ana.pub").read_text())])


@pytest.fixture
def key(signing: Shell) -> verify.Key:
    return verify.Key((signing.folder / "ana.pub").read_text())


def test_an_openssl_that_cannot_check_is_named(
    bundle: Path, key: verify.Key, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "openssl"
    program.write_text("#!/bin/sh\necho 'unknown option -rawin' >&2\nexit 1\n")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path / 'bin'}:/bin:/usr/bin")
    with pytest.raises(verify.Refused, match=r"openssl 1\.1\.1 or newer is needed: unknown option"):
        verify.check(bundle.read_bytes(), [key])


def test_a_tar_without_a_manifest_is_no_bundle(key: verify.Key) -> None:
    with pytest.raises(verify.Refused, match=r"bundle\.dsse\.json: this is not an envelope"):
        verify.check(verify.pack({"a": b""}), [key])


def test_no_mutation_of_a_bundle_verifies(bundle: Path, key: verify.Key) -> None:
    raw = bundle.read_bytes()
    assert verify.check(raw, [key])
    assert forgeries.verified_bundles(raw, key, unless_thorough(20, 2_000), forgeries.bundles) == 0
    assert forgeries.verified_bundles(raw, key, unless_thorough(20, 2_000), forgeries.repacked) == 0


def test_no_mutation_of_an_envelope_or_a_proof_verifies(bundle: Path, key: verify.Key) -> None:
    raw = bundle.read_bytes()
    assert forgeries.verified_envelopes(raw, key, unless_thorough(20, 2_000)) == 0
    assert forgeries.verified_proofs(raw, key, unless_thorough(40, 2_000)) == 0


@pytest.mark.parametrize("name", [verify.MANIFEST, verify.VERDICT])
def test_nothing_is_beside_the_signature_that_counts(bundle: Path, key: verify.Key, name: str) -> None:
    files = verify.unpack(bundle.read_bytes())
    values = json.loads(files[name])
    (own,) = values["signatures"]
    for other in (own, {"keyid": "SHA256:other", "sig": "AAAA"}, {"keyid": "", "sig": ""}, {**own, "more": 1}, "x", {}):
        for rows in ([own, other], [other, own], [own, own, other]):
            raw = json.dumps({**values, "signatures": rows}, indent=1).encode() + b"\n"
            with pytest.raises(verify.Refused):
                verify.signed(raw, {verify.MANIFEST: verify.BUNDLE}.get(name, verify.STATEMENT), name, key)
            with pytest.raises(verify.Refused):
                verify.check(verify.pack({**files, name: raw}), [key])


def test_a_report_is_attested_and_bundled_by_its_folder(signing: Shell, key: verify.Key) -> None:
    assert signing("report", "compare", "one", "two", "--out", "page").code == 0
    assert signing("attest", "page", "--sign", "ana", "--output", "page.dsse.json").code == 0
    envelope = read_envelope((signing.folder / "page.dsse.json").read_bytes(), "page")
    digests = json.loads(envelope.payload)["predicate"]["verdict"]["files"]
    assert digests == {path.name: verify.sha256(path.read_bytes()) for path in (signing.folder / "page").iterdir()}
    assert signing("bundle", "page", "--sign", "ana", "--output", "page.tar").code == 0
    raw = (signing.folder / "page.tar").read_bytes()
    assert "report/index.html is as it was signed" in verify.check(raw, [key])
    assert verify.unpack(raw)["report/report.md"] == (signing.folder / "page" / "report.md").read_bytes()


def test_a_folder_without_a_report_or_with_one_by_other_rules_is_refused(signing: Shell) -> None:
    (signing.folder / "page").mkdir()
    empty = signing("attest", "page", "--sign", "ana")
    assert (empty.code, "it has no report" in empty.err) == (2, True)
    (signing.folder / "page" / "report.json").write_text('{"rules": "abc", "receipts": []}')
    other = signing("attest", "page", "--sign", "ana")
    assert (other.code, "by the rules abc" in other.err) == (2, True)


def test_a_bundle_proves_that_the_log_continues_its_checkpoints(signing: Shell, key: verify.Key) -> None:
    log = ("--publish", "log.txt", "--sign", "ana")
    assert signing("audit", "--seal", *log).code == 0
    first = read_checkpoints((signing.folder / "log.txt").read_text(), "log")[0]
    for name in ("three", "four"):
        signing.store(name)
        assert signing("audit", "--seal", *log).code == 0
    words = ("bundle", "one", "three", "--sign", "ana", "--checkpoints", "log.txt", "--output")
    assert signing(*words, "l.tar").code == 0
    shown = verify.check((signing.folder / "l.tar").read_bytes(), [key])
    line = f"the log has the root {first.root.hex()} over {first.size} seals, signed by {key.fingerprint}"
    assert line in shown
    assert sum(item.startswith("the log has the root") for item in shown) == 4
    (signing.folder / "store.sqlite").unlink()
    signing.store("three")
    assert signing("audit", "--seal").code == 0
    assert signing(*words, "m.tar").code == 2


def test_the_verifier_accepts_exactly_the_consistency_proofs_that_hold() -> None:
    leaves = [seals.leaf(bytes([number])) for number in range(20)]

    def checkpoint(size: int, leaves: list[bytes]) -> verify.Checkpoint:
        return verify.Checkpoint(f"log\n{size}\n{b64encode(seals.merkle_root(leaves[:size])).decode()}\n\n")

    for second in range(1, 20):
        log = checkpoint(second, leaves)
        for first in range(1, second + 1):
            proof = [item.hex() for item in seals.consistency(leaves[:second], first)]
            assert verify.continues(log, checkpoint(first, leaves), proof)
            assert not verify.continues(log, checkpoint(first, [*leaves[: first - 1], bytes(32)]), proof)
            assert not verify.continues(log, checkpoint(first, leaves), [*proof, bytes(32).hex()])


def test_a_bundle_has_the_lanes_and_studies_of_its_rules(signing: Shell, key: verify.Key) -> None:
    own = signing.folder / "own"
    (own / "lanes").mkdir(parents=True)
    (own / "lanes" / "mine.toml").write_text('name = "mine"\nversion = 1\ntitle = "Mine"\n')
    (own / "studies.toml").write_text(
        '[mine]\ntitle = "Mine"\naxes = ["batch.global_batch"]\nequal = []\nunchanged = []\n'
    )
    (signing.folder / "receipts.toml").write_text('validators = ["own"]\n')
    words = ("bundle", "one", "two", "--sign", "ana", "--output", "own.tar")
    assert signing("--config", "receipts.toml", *words).code == 0
    raw = (signing.folder / "own.tar").read_bytes()
    assert verify.check(raw, [key])
    files = verify.unpack(raw)
    assert files["rules/lanes/mine.toml"] == (own / "lanes" / "mine.toml").read_bytes()
    signed = json.loads(read_envelope(files[verify.VERDICT], "verdict").payload)["predicate"]["rules"]
    assert verify.rules_digest(files) == signed
    for name in ("rules/lanes/mine.toml", "rules/studies/01/studies.toml", "rules/studies/00/studies.toml"):
        assert verify.rules_digest({**files, name: files[name] + b"#"}) != signed


def test_a_bundle_has_the_evidence_that_the_store_keeps(signing: Shell, key: verify.Key) -> None:
    content = b"step 1 of 2\n"
    digest = verify.sha256(content)
    (signing.folder / "train.log").write_bytes(content)
    signing.store("three", evidence=[{"kind": "log", "sha256": digest, "uri": "train.log"}])
    assert files_beside(signing.folder / "store.sqlite").put(signing.folder / "train.log") == digest
    assert signing("bundle", "three", "--sign", "ana", "--output", "e.tar").code == 0
    raw = (signing.folder / "e.tar").read_bytes()
    assert verify.unpack(raw)[f"evidence/{digest}"] == content
    assert "files of evidence, as the receipts name them: 1" in verify.check(raw, [key])


def test_a_bundle_names_what_the_store_does_not_have(signing: Shell) -> None:
    signing.store("three", evidence=[{"kind": "log", "sha256": "ab" * 32, "uri": "train.log"}])
    assert signing("bundle", "three", "--sign", "ana", "--output", "y.tar").code == 0
    shown = verify.check(
        (signing.folder / "y.tar").read_bytes(), [verify.Key((signing.folder / "ana.pub").read_text())]
    )
    assert f"not sealed: {signing.made['three'][:12]}" in shown
    assert "evidence that is not in the bundle: abababababab" in shown


def test_a_bundle_replaces_no_file(signing: Shell, bundle: Path) -> None:
    assert signing("bundle", "one", "--sign", "ana", "--output", "x.tar").code == 2


def test_a_proof_leads_from_the_id_to_the_root(shell: Shell) -> None:
    ids = [shell.store(name) for name in ("one", "two", "three")]
    assert shell("audit", "--proof", ids[1]).code == 3
    shell("audit", "--seal")
    told = shell("audit", "--proof", ids[1], "--json").json
    content = json.dumps(told["content"], separators=(",", ":")).encode()
    assert verify.led(content, told["proof"]) == told["root"]
    assert shell("audit", "--proof", ids[1]).lines[-1].split()[-1] == told["root"]
