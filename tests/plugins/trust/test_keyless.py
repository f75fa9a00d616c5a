"""A statement that a job's identity signed verifies offline, by sigstore's own library, against a root of the test."""

from __future__ import annotations

import base64
import json
import sys
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import pytest

from command_line import Said, Shell, shell
from receipts.plugins.trust.bundle import statement

__all__ = ["shell"]

IDENTITY = "https://github.com/team/bench/.github/workflows/perf.yml@refs/heads/main"
ISSUER = "https://token.actions.githubusercontent.com"
SAYS = statement("receipt", {"a" * 64: "golden"}, "b" * 64, {"status": "valid"})


def attested(shell: Shell, text: str, identity: str = IDENTITY, root: str = "root.json") -> Said:
    """What the command says of a bundle."""
    (shell.folder / "x.sigstore.json").write_text(text, encoding="utf-8")
    known = ("--identity", identity, "--issuer", ISSUER, "--trusted-root", root, "--json")
    return shell("attested", "x.sigstore.json", *known)


def test_only_the_identity_that_signed_and_only_what_it_signed_verifies(shell: Shell) -> None:
    pytest.importorskip("sigstore")
    from sigstore_root import Sigstore

    own, other = Sigstore(), Sigstore()
    (shell.folder / "root.json").write_text(own.trusted())
    (shell.folder / "other.json").write_text(other.trusted())
    text = own.sign(SAYS, IDENTITY, ISSUER)
    said = attested(shell, text)
    assert said.code == 0, said.err
    assert (said.json["kind"], said.json["status"], said.json["receipts"]) == ("receipt", "valid", {"a" * 64: "golden"})
    changed = json.loads(text)
    changed["dsseEnvelope"]["payload"] = base64.b64encode(SAYS.replace(b"valid", b"vAlid")).decode()
    stranger = own.sign(SAYS, IDENTITY.replace("team", "fork"), ISSUER)
    nothing = own.sign(b'{"_type": "x"}', IDENTITY, ISSUER)
    for refused in (json.dumps(changed), stranger, other.sign(SAYS, IDENTITY, ISSUER), nothing, "{}"):
        said = attested(shell, refused)
        assert (said.code, "it does not verify" in said.err) == (2, True), said.err
    assert attested(shell, text, root="other.json").code == 2
    assert "not a trusted root of sigstore" in attested(shell, text, root="none.json").err


def test_a_job_s_identity_signs_and_what_it_signed_verifies(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("sigstore")
    from sigstore.models import ClientTrustConfig

    from sigstore_root import Sigstore

    own = Sigstore()

    class Services(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = int(self.headers.get("Content-Length", "0"))
            raw = json.dumps(
                own.answer(self.path, json.loads(self.rfile.read(size) or b"{}"), IDENTITY, ISSUER)
            ).encode()
            self.send_response(201 if self.path.startswith("/api/") else 200)
            self.send_header("Content-Length", str(len(raw)))
            self.end_headers()
            self.wfile.write(raw)

        def do_GET(self) -> None:
            self.do_POST()

        def log_message(self, *_: object) -> None:
            """Nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Services) as server:
        Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        config = ClientTrustConfig.from_json(own.config(url))
        monkeypatch.setattr(ClientTrustConfig, "production", lambda **_: config)
        monkeypatch.setenv("GITHUB_ACTIONS", "true")
        monkeypatch.setenv("ACTIONS_ID_TOKEN_REQUEST_URL", f"{url}/token?")
        monkeypatch.setenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "of-the-job")
        said = shell("attest", shell.store("one"), "--keyless", "--output", "signed.json")
        server.shutdown()
    assert said.code == 0, said.err
    (shell.folder / "root.json").write_text(own.trusted())
    text = (shell.folder / "signed.json").read_text(encoding="utf-8")
    assert attested(shell, text).code == 0
    assert attested(shell, text, identity=IDENTITY.replace("team", "fork")).code == 2


@pytest.mark.parametrize(
    ("url", "code", "do"),
    [("http://127.0.0.1:9/token?", 4, "try again later"), ("", 2, "permissions: id-token: write")],
)
def test_a_job_without_a_token_says_what_to_do(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, url: str, code: int, do: str
) -> None:
    pytest.importorskip("sigstore")
    monkeypatch.setenv("GITHUB_ACTIONS", "true")
    monkeypatch.setenv("ACTIONS_ID_TOKEN_REQUEST_URL", url)
    monkeypatch.setenv("ACTIONS_ID_TOKEN_REQUEST_TOKEN", "of-the-job")
    ran = shell("attest", shell.store("one"), "--keyless")
    assert (ran.code, do in ran.err, "of-the-job" in ran.err) == (code, True, False), ran.err


def test_a_call_says_what_it_needs(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    name = shell.store("one")
    assert "--sign, or sign by the identity" in shell("attest", name).err
    monkeypatch.setitem(sys.modules, "sigstore", None)
    for module in ("sigstore.sign", "sigstore.verify"):
        monkeypatch.delitem(sys.modules, module, raising=False)
    said = shell("attest", name, "--keyless")
    assert (said.code, "pip install 'frontier-receipts[keyless]'" in said.err) == (2, True), said.err
    said = attested(shell, "{}")
    assert (said.code, "pip install 'frontier-receipts[keyless]'" in said.err) == (2, True), said.err
