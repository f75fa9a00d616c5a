"""``receipts key``, and what ``submit`` and ``show`` make of signatures."""

from __future__ import annotations

import pytest

from command_line import Shell
from receipts.signing.key import RECEIPT, STATEMENT, read_envelope, read_private, signed


@pytest.fixture
def signing(shell: Shell) -> Shell:
    """A shell whose store trusts the key ``ana``."""
    shell("key", "new", "ana", "--out", "ana")
    assert shell("key", "trust", "ana", "ana.pub").code == 0
    return shell


def test_a_signed_receipt_shows_its_signer_and_gives_its_envelope(signing: Shell) -> None:
    assert signing("submit", signing.write("one"), "--sign", "ana").code == 0
    receipt = signing.made["one"]
    assert "signed by ana" in signing("show", receipt).out
    assert signing("show", receipt, "--json").json["signed"] == {"state": "signed", "name": "ana", "why": ""}
    envelope = read_envelope(signing("show", receipt, "--envelope").out.encode(), "shown")
    key = read_private(str(signing.folder / "ana")).public
    assert envelope.signers({key.fingerprint: key})
    assert envelope.payload == (signing.folder / "one.json").read_bytes()


def test_an_unsigned_receipt_says_so_where_the_store_trusts_keys(signing: Shell) -> None:
    assert "unsigned" in signing("show", signing.store("one")).out


def test_an_envelope_from_elsewhere_is_submitted_as_it_is(signing: Shell) -> None:
    signing.write("one")
    raw = (signing.folder / "one.json").read_bytes()
    one = signed(RECEIPT, raw, read_private(str(signing.folder / "ana")))
    (signing.folder / "one.dsse.json").write_text(one.to_json())
    assert signing("submit", "one.dsse.json", "--signed").code == 0
    assert "signed by ana" in signing("show", signing.made["one"]).out


def test_a_foreign_key_signs_nothing(signing: Shell) -> None:
    signing("key", "new", "eve", "--out", "eve")
    refused = signing("submit", signing.write("one"), "--sign", "eve")
    assert refused.code == 2
    assert "is trusted" in refused.err
    assert signing("list", "--json").json == []


def test_a_key_signs_only_receipts_of_its_lanes(shell: Shell) -> None:
    shell("key", "new", "ana", "--out", "ana")
    shell("key", "trust", "ana", "ana.pub", "--lane", "cpu-jax")
    refused = shell("submit", shell.write("one"), "--sign", "ana")
    assert refused.code == 2
    assert "may sign receipts of cpu-jax" in refused.err


def test_an_expired_key_signs_nothing(shell: Shell) -> None:
    shell("key", "new", "ana", "--out", "ana")
    shell("key", "trust", "ana", "ana.pub", "--until", "2020-01-01")
    refused = shell("submit", shell.write("one"), "--sign", "ana")
    assert refused.code == 2
    assert "ended 2020-01-01" in refused.err


def test_a_revoked_key_signs_nothing_more_and_keeps_what_it_signed(signing: Shell) -> None:
    signing("submit", signing.write("one"), "--sign", "ana")
    assert signing("key", "revoke", "ana", "--reason", "lost").code == 0
    refused = signing("submit", signing.write("two"), "--sign", "ana")
    assert refused.code == 2
    assert "revoked" in refused.err
    assert "signed by ana (revoked since: lost)" in signing("show", signing.made["one"]).out
    again = signing("key", "trust", "ana2", "ana.pub")
    assert again.code == 2
    assert "was revoked" in again.err


def test_the_signature_of_another_receipt_or_statement_is_refused(signing: Shell) -> None:
    key = read_private(str(signing.folder / "ana"))
    signing.write("one")
    signing.write("two")
    one, two = ((signing.folder / f"{name}.json").read_bytes() for name in ("one", "two"))
    replayed = signed(RECEIPT, one, key)._replace(payload=two)
    statement = signed(STATEMENT, two, key)
    for name, envelope in (
        ("replayed", replayed),
        ("statement", statement),
        ("renamed", statement._replace(kind=RECEIPT)),
    ):
        (signing.folder / f"{name}.dsse").write_text(envelope.to_json())
        refused = signing("submit", f"{name}.dsse", "--signed")
        assert (name, refused.code) == (name, 2)
        assert "the signature is refused" in refused.err


def test_a_lane_may_ask_for_a_signature(signing: Shell) -> None:
    lanes = signing.folder / "own" / "lanes"
    lanes.mkdir(parents=True)
    (lanes / "strict.toml").write_text('name = "strict"\nversion = 1\ntitle = "Signed"\nsigned = true\n')
    (signing.folder / "receipts.toml").write_text('validators = ["own"]\n')
    path = signing.write("one", run__lane="strict")
    refused = signing("--config", "receipts.toml", "submit", path)
    assert refused.code == 2
    assert "--sign KEY" in refused.err
    assert signing("--config", "receipts.toml", "submit", path, "--sign", "ana").code == 0
    assert signing("--config", "receipts.toml", "submit", path).code == 0


def test_keys_are_listed_with_their_state(signing: Shell) -> None:
    (row,) = signing("key", "list", "--json").json
    assert row["name"] == "ana"
    assert row["key"].startswith("ssh-ed25519 ")
    assert "ana" in signing("key", "list").out
