"""A pointer in git leads to a receipt in a folder, over HTTP and in a registry, and to nothing that was changed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from command_line import Shell, shell
from oci_registry import LOGIN, Registry, digest_of
from receipts.plugins.trust import pointer as pointers
from receipts.plugins.trust.pointer import Pointer, read_pointer

__all__ = ["shell"]


@pytest.fixture
def bundled(shell: Shell) -> Shell:
    """A shell with a bundle of two signed receipts in ``bundles``, and their ids."""
    pointers._held.cache_clear()
    shell("key", "new", "ana", "--out", "ana")
    shell("key", "trust", "ana", "ana.pub")
    for name in ("one", "two"):
        assert shell("submit", shell.write(name), "--sign", "ana").code == 0
    (shell.folder / "bundles").mkdir()
    (shell.folder / "bench").mkdir()
    made = shell("bundle", "one", "two", "--sign", "ana", "--output", "bundles/x.tar")
    assert made.code == 0, made.err
    return shell


def point(shell: Shell, place: str, *words: str) -> Path:
    """A pointer to the second receipt of the bundle."""
    file = shell.folder / "bench" / "two.receipt.toml"
    file.unlink(missing_ok=True)
    chosen = ("--receipt", shell.made["two"][:12], "--output", str(file), *words)
    said = shell("pointer", "bundles/x.tar", "--at", place, *chosen)
    assert said.code == 0, said.err
    return file


def test_a_pointer_is_a_receipt_wherever_a_file_is(bundled: Shell) -> None:
    file = point(bundled, "../bundles/x.tar", "--key", "ana.pub")
    assert read_pointer(str(file)).receipt == bundled.made["two"]
    shown = bundled("show", str(file), "--json")
    assert (shown.code, shown.json["id"]) == (0, bundled.made["two"])
    assert bundled("verify", str(file)).code in (0, 3)
    compared = bundled("compare", str(bundled.folder / "one.json"), str(file), "--json")
    assert compared.json["b"] == [bundled.made["two"]]


def test_evidence_of_the_bundle_is_read_by_verify(bundled: Shell) -> None:
    log = bundled.folder / "train.log"
    log.write_text("nothing that a reader knows\n")
    digest = digest_of(log.read_bytes()).removeprefix("sha256:")
    evidence = [{"kind": "log", "sha256": digest, "uri": "train.log"}]
    bundled.write("three", evidence=evidence)
    alone = json.loads((bundled.folder / "three.json").read_text())
    assert alone["evidence"] == evidence
    said = bundled("verify", str(bundled.folder / "three.json"), "--json")
    assert said.code == 3, said.out
    held = {f"receipts/{bundled.made['three']}.json": (bundled.folder / "three.json").read_bytes()}
    held |= {f"evidence/{digest}": log.read_bytes()}
    tar = pointers.verify.pack(held)
    (bundled.folder / "bundles" / "three.tar").write_bytes(tar)
    file = bundled.folder / "bench" / "three.receipt.toml"
    file.write_text(Pointer(bundled.made["three"], digest_of(tar), "../bundles/three.tar").text())
    said = bundled("verify", str(file), "--json")
    assert said.code == 0, said.out


def test_a_registry_is_asked_with_the_login_of_docker_and_hears_no_token_elsewhere(
    bundled: Shell, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCKER_CONFIG", str(bundled.folder))
    with Registry("team/bench", "gain", (bundled.folder / "bundles" / "x.tar").read_bytes()) as registry:
        file = point(bundled, f"oci://{registry.host}/team/bench:gain")
        said = bundled("show", str(file))
        assert (said.code, f"oras login {registry.host}" in said.err) == (2, True)
        (bundled.folder / "config.json").write_text(json.dumps({"auths": {registry.host: {"auth": LOGIN}}}))
        assert bundled("show", str(file), "--json").json["id"] == bundled.made["two"]
        assert [held for path, held in registry.seen if path.startswith("/storage/")] == [None]
        pointers._held.cache_clear()
        by_digest = point(bundled, f"oci://{registry.host}/team/bench@{registry.manifest}")
        assert bundled("show", str(by_digest)).code == 0
        for wrong, why in (("team/bench:other", "404"), ("team/Bench", "write oci://HOST/NAME:TAG")):
            said = bundled("show", str(point(bundled, f"oci://{registry.host}/{wrong}")))
            assert (said.code, why in said.err) == (2, True), said.err


def test_bytes_that_a_place_changed_are_refused(bundled: Shell) -> None:
    raw = (bundled.folder / "bundles" / "x.tar").read_bytes()
    with Registry("team/bench", "gain", raw) as registry:
        file = point(bundled, f"{registry.url}/storage/{digest_of(raw)}")
        assert bundled("show", str(file)).code == 0
        pointers._held.cache_clear()
        registry.blobs[digest_of(raw)] = raw.replace(b'"ok"', b'"no"')
        said = bundled("show", str(file))
        assert (said.code, "the bundle was changed" in said.err) == (2, True), said.err
    pointers._held.cache_clear()
    said = bundled("show", str(file))
    assert (said.code, "no answer" in said.err) == (4, True), said.err


def test_a_key_of_a_pointer_must_have_signed_the_bundle(bundled: Shell) -> None:
    bundled("key", "new", "eve", "--out", "eve")
    said = bundled(
        "pointer",
        "bundles/x.tar",
        "--at",
        "x",
        "--receipt",
        bundled.made["two"],
        "--key",
        "eve.pub",
        "-o",
        "e.receipt.toml",
    )
    assert (said.code, "signed by" in said.err) == (2, True), said.err
    file = point(bundled, "../bundles/x.tar", "--key", "ana.pub")
    eve = (bundled.folder / "eve.pub").read_text().split()[1]
    ana = (bundled.folder / "ana.pub").read_text().split()[1]
    file.write_text(file.read_text().replace(ana, eve))
    said = bundled("show", str(file))
    assert (said.code, "the bundle is refused" in said.err) == (2, True), said.err


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "receipt: it is missing"),
        ("nonsense", "receipts pointer BUNDLE"),
        (
            'schema_version = "1.0"\nreceipt = "../x"\ndigest = "sha256:0"\nbundle = "x"\n',
            "receipt: this is no SHA-256",
        ),
        ('schema_version = "1.0"\nplace = "x"\n', "place: there is no such key"),
    ],
)
def test_a_file_that_is_no_pointer_says_what_is_wrong(shell: Shell, text: str, why: str) -> None:
    (shell.folder / "x.receipt.toml").write_text(text)
    said = shell("show", str(shell.folder / "x.receipt.toml"))
    assert (said.code, why in said.err) == (2, True), said.err
    assert "there is no such file" in shell("show", str(shell.folder / "none.receipt.toml")).err


def test_a_bundle_of_several_asks_which_receipt(bundled: Shell) -> None:
    said = bundled("pointer", "bundles/x.tar", "--at", "x.tar", "--output", "x.receipt.toml")
    assert (said.code, "--receipt" in said.err) == (2, True)
    said = bundled("pointer", str(bundled.folder / "one.json"), "--at", "one.json", "--output", "one.receipt.toml")
    assert said.code == 0, said.err
    assert bundled("show", "./one.receipt.toml", "--json").json["id"] == bundled.made["one"]
