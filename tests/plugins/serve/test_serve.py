"""The server: who may ask what, the commands' answers, and what it refuses."""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import re
from pathlib import Path
from typing import Any

import pytest
from starlette.testclient import TestClient

import report_store
from command_line import Shell
from receipts.base.errors import StoreError, UsageError
from receipts.cli import main
from receipts.emit import Recorder
from receipts.plugins.serve.guard import AccessDenied, AccessLog, Busy, Limits
from receipts.plugins.serve.operations import OPERATIONS
from receipts.plugins.serve.run import ServeOptions, address, is_local, prepared, with_pages
from receipts.plugins.serve.server import Server, Settings
from receipts.store import open_store
from receipts.store.credentials import INCLUDES, Tokens

pytestmark = pytest.mark.slow

EVERY = report_store.everything()
A, B = EVERY[0].id, EVERY[4].id
GUARDED = [item for item in OPERATIONS if item.scope is not None]

JSON = {"Content-Type": "application/json"}


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


# Tokens


def test_a_token_of_each_scope_gets_403_on_every_route_outside_it(guarded: tuple[TestClient, dict[str, str]]) -> None:
    client, tokens = guarded
    described = client.get("/openapi.json").json()["paths"]
    outside = 0
    for path, methods in described.items():
        for method, operation in methods.items():
            scope = operation.get("x-scope")
            url = re.sub(r"{\w+}", "golden", path)
            if scope is None:
                assert client.request(method, url).status_code == 200
                continue
            assert client.request(method, url).status_code == 401
            for own, secret in tokens.items():
                kind, lane = own.split(":") if ":" in own else (own, None)
                if lane and kind == scope:
                    continue
                status = client.request(method, url, headers=bearer(secret)).status_code
                assert (status == 403) is (scope not in INCLUDES.get(kind, {kind})), (own, method, path, status)
                outside += status == 403
    assert outside > 40


def test_a_token_of_a_lane_submits_to_that_lane_alone(guarded: tuple[TestClient, dict[str, str]]) -> None:
    client, tokens = guarded
    tree = json.loads(EVERY[0].raw)
    tree["run"].update(launch="another", lane="unlisted", started="2026-03-09T09:00:00+00:00")
    own = bearer(tokens["submit:cpu-torch"])
    refused = client.post("/v1/receipts", content=json.dumps(tree), headers={**own, **JSON})
    assert refused.status_code == 403
    assert "cpu-torch" in refused.json()["detail"]
    tree["run"]["lane"] = "cpu-torch"
    assert client.post("/v1/receipts", content=json.dumps(tree), headers={**own, **JSON}).status_code == 201


def test_a_token_that_is_revoked_or_expired_stands_no_more(server: Server) -> None:
    from datetime import UTC, datetime, timedelta

    tokens = Tokens(server.opened.database)
    token, secret = tokens.add("ana", ["read"], None)
    _, past = tokens.add("bo", ["read"], datetime.now(UTC) - timedelta(seconds=1))
    asking = Server(server.opened, server.rulebook, Settings(("testserver",)))
    with TestClient(with_pages(asking)) as client:
        assert client.get("/v1/pins", headers=bearer(secret)).status_code == 200
        assert client.get("/v1/pins", headers=bearer(secret[:-1] + "x")).status_code == 401
        assert client.get("/v1/pins", headers=bearer(past)).status_code == 401
        tokens.revoke("ana")
        answer = client.get("/v1/pins", headers=bearer(secret))
        assert (answer.status_code, answer.headers["www-authenticate"]) == (401, "Bearer")
    assert secret not in repr(token)
    again, _ = tokens.add("ana", ["read"], None)
    assert again.prefix != token.prefix


def test_no_secret_is_in_the_store(server: Server) -> None:
    _, secret = Tokens(server.opened.database).add("ana", ["read"], None)
    path = Path(server.opened.url)
    kept = b"".join(file.read_bytes() for file in path.parent.glob(f"{path.name}*"))
    assert secret[:12].encode() in kept
    assert secret[13:].encode() not in kept


def test_every_row_has_its_token_as_actor(guarded: tuple[TestClient, dict[str, str]], server: Server) -> None:
    client, tokens = guarded
    tree = json.loads(EVERY[0].raw)
    tree["run"].update(launch="another", started="2026-03-09T09:00:00+00:00")
    sent = client.post("/v1/receipts", content=json.dumps(tree), headers={**bearer(tokens["submit"]), **JSON}).json()
    assert server.opened.entry(sent["id"]).actor == "token:submit"
    client.put("/v1/pins/by", json={"receipt": A}, headers=bearer(tokens["decide"]))
    assert server.opened.pins()["by"].actor == "token:decide"


def test_guessing_tokens_is_slowed_down(server: Server) -> None:
    Tokens(server.opened.database).add("ana", ["read"], None)
    asking = Server(server.opened, server.rulebook, Settings(("testserver",), limits=Limits(failures="3/minute")))
    with TestClient(with_pages(asking)) as client:
        statuses = [client.get("/v1/pins", headers=bearer(f"rcp_{i:08x}_{'x' * 43}")).status_code for i in range(5)]
        assert statuses == [401, 401, 401, 429, 429]


def test_what_others_try_locks_nobody_out(server: Server) -> None:
    _, right = Tokens(server.opened.database).add("ana", ["read"], None)
    asking = Server(server.opened, server.rulebook, Settings(("testserver",), limits=Limits(failures="3/minute")))
    with TestClient(with_pages(asking)) as client:
        for wrong in (f"{right[:13]}{'x' * 43}", "rcp_wrong"):
            statuses = [client.get("/v1/pins", headers=bearer(wrong)).status_code for _ in range(30)]
            assert statuses[-1] == 429
            assert client.get("/v1/pins", headers=bearer(right)).status_code == 200
        assert client.get("/v1/pins").status_code == 401  # nothing was tried


def test_a_token_that_is_tried_from_many_addresses_is_slowed_down(server: Server) -> None:
    _, right = Tokens(server.opened.database).add("ana", ["read"], None)
    asking = Server(server.opened, server.rulebook, Settings(limits=Limits(failures="3/minute")))
    for number in range(3):
        with pytest.raises(AccessDenied):
            asking.authenticate(f"{right[:13]}{'x' * 43}", "read", f"10.0.0.{number}")
    with pytest.raises(Busy):
        asking.authenticate(f"{right[:13]}{'x' * 43}", "read", "10.0.0.9")
    assert asking.authenticate(right, "read", "10.0.0.9") is not None


@pytest.mark.parametrize(("proxies", "told"), [((), "127.0.0.1"), (("127.0.0.1",), "6.6.6.6")])
def test_only_a_proxy_that_is_named_says_who_asks(
    server: Server, monkeypatch: pytest.MonkeyPatch, proxies: tuple[str, ...], told: str
) -> None:
    import uvicorn

    from receipts.plugins.serve.run import serve

    callers = []
    monkeypatch.setattr(Server, "admit", lambda self, caller: callers.append(caller))

    def one(running: uvicorn.Server) -> None:
        running.config.load()
        app: Any = running.config.loaded_app
        with TestClient(app, client=("127.0.0.1", 4711), base_url="http://127.0.0.1") as client:
            assert client.get("/healthz", headers={"X-Forwarded-For": "6.6.6.6"}).status_code == 200

    monkeypatch.setattr(uvicorn.Server, "run", one)
    serve(
        server.opened.url, server.rulebook, ServeOptions("127.0.0.1:0", (), (), "9/second", 1, proxies=proxies), print
    )
    assert callers == [told]


def test_the_access_log_says_who_asked_what_and_no_secret(
    guarded: tuple[TestClient, dict[str, str]], tmp_path: Path
) -> None:
    client, tokens = guarded
    log = AccessLog(client.app, str(tmp_path / "log"))
    asking = TestClient(log)
    asking.get("/v1/pins", headers=bearer(tokens["read"]))
    asking.get(f"/v1/receipts/{tokens['admin']}?q={tokens['admin']}", headers=bearer(tokens["read"]))
    asking.get("/v1/tokens", headers=bearer(tokens["read"]))
    asking.get("/runs", headers=bearer(tokens["read"]))
    asking.get("/v1/pins", headers=bearer("rcp_00000000_nobody"))
    asking.get("/nowhere\u202e")
    log.close()
    logged = (tmp_path / "log").read_text(encoding="utf-8")
    lines = [re.sub(r" \d+ B \d+ ms$", "", line.partition(" testclient ")[2]) for line in logged.splitlines()]
    assert lines == [
        "read GET /v1/pins 200",
        "read GET /v1/receipts/[redacted] 400",
        "read GET /v1/tokens 403",
        "read GET /runs 200",
        "- GET /v1/pins 401",
        "- GET /nowhere%E2%80%AE 404",
    ]
    assert not any(secret in logged for secret in tokens.values())
    counted = client.get("/metrics", headers=bearer(tokens["read"])).text
    assert 'receipts_auth_failures_total{status="401"} 1' in counted
    assert 'receipts_auth_failures_total{status="403"} 1' in counted
    for name in ("store_bytes", "store_receipts"):
        assert int(re.search(rf"^receipts_{name} (\d+)$", counted, re.M)[1]) > 0  # type: ignore[index]  # it is there
    for name in ("writer_queue_documents", "spool_documents", "notices_failed", "comparisons_running"):
        assert f"receipts_{name} 0\n" in counted
    assert 'receipts_build_info{version="' in counted


def test_the_commands_of_tokens(shell: Shell) -> None:
    said = shell("token", "add", "ci", "--scope", "submit:cpu-torch", "--scope", "read", "--expires", "12h")
    assert re.fullmatch(r"rcp_[0-9a-f]{8}_[\w-]{43}\n", said.out)
    listed = shell("token", "list", "--json").json
    assert [(item["name"], item["scopes"]) for item in listed] == [("ci", ["submit:cpu-torch", "read"])]
    assert said.out[4:].strip() not in shell("token", "list").out
    assert shell("token", "add", "ci", "--scope", "read").code == 2
    assert shell("token", "add", "x", "--scope", "write").code == 2
    assert shell("token", "add", "x").code == 2
    assert shell("token", "add", "x", "--scope", "read", "--expires", "soon").code == 2
    assert shell("token", "revoke", "ci").code == 0
    assert shell("token", "list", "--json").json == []
    assert shell("token", "revoke", "ci").code == 2


# Answers


def asked(url: str, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[str, int]:
    """What the command prints over the same store."""
    capsys.readouterr()
    code = main(["--store", url, *words])
    return capsys.readouterr().out, code


CASES: tuple[tuple[str, tuple[str, ...]], ...] = (
    (f"/v1/compare?a={A}&b={B}", ("compare", A, B, "--json")),
    (f"/v1/compare?a={B}&b={A}&metric=step_seconds", ("compare", B, A, "-m", "step_seconds", "--json")),
    (
        "/v1/compare?a=label%3Dleft*&b=from a notebook",
        ("compare", "label=left*", "from a notebook", "--json"),
    ),
    (f"/v1/compare?a={A}&b={B}&format=text&width=100", ("compare", A, B)),
    (f"/v1/compare?a={A}&b={B}&format=markdown", ("compare", A, B, "--format", "markdown")),
    (f"/v1/compare?a={A}&b={B}&format=line", ("compare", A, B, "--format", "line")),
    (f"/v1/receipts/{A}", ("show", A, "--json")),
    ("/v1/receipts/@golden?format=text&width=100&facts=true", ("show", "@golden", "--facts")),
    (f"/v1/receipts/{A}/raw", ("show", A, "--raw")),
    ("/v1/receipts?where=outcome%3Doom", ("list", "outcome=oom", "--json")),
    (f"/v1/neighbours?of={A}", ("neighbours", A, "--json")),
    (f"/v1/bridge?a={A}&b={B}", ("bridge", A, B, "--json")),
    (f"/v1/preflight?plan={A}", ("preflight", A, "--json")),
    ("/v1/claims", ("claim", "list", "--json")),
    ("/v1/pins", ("pin", "--json")),
)


@pytest.mark.parametrize(("path", "words"), CASES, ids=[path[:40] for path, _ in CASES])
def test_every_answer_equals_the_command_s_byte_for_byte(
    client: TestClient,
    server: Server,
    path: str,
    words: tuple[str, ...],
    monkeypatch: pytest.MonkeyPatch,
    capfdbinary: pytest.CaptureFixture[bytes],
) -> None:
    monkeypatch.setenv("COLUMNS", "100")
    answer = client.get(path)
    code = main(["--store", server.opened.url, *words])
    assert answer.content == capfdbinary.readouterr().out
    if "/raw" not in path and "pins" not in path:
        assert int(answer.headers["receipts-exit-code"]) == code


def test_documents_are_compared_as_files_are(
    client: TestClient, server: Server, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "b.json").write_bytes(EVERY[4].raw)
    body = {"a": [A], "b": [{"document": EVERY[4].raw.decode()}]}
    out, _ = asked(server.opened.url, capsys, "compare", A, str(tmp_path / "b.json"), "--json")
    assert client.post("/v1/compare", json=body).text == out


def test_a_word_never_names_a_file_of_the_server(client: TestClient, tmp_path: Path) -> None:
    place = tmp_path / "here.json"
    place.write_bytes(EVERY[0].raw)
    for word in (str(place), os.path.relpath(place)):
        assert client.get("/v1/compare", params={"a": word, "b": B}).status_code == 404
        assert client.get("/v1/neighbours", params={"of": word}).status_code == 404
        assert client.get("/v1/preflight", params={"plan": word}).status_code == 404
        assert client.post("/v1/compare", json={"a": [word], "b": [B]}).status_code == 404


def test_pages_of_a_list_hold_each_receipt_once(client: TestClient) -> None:
    for order in ("newest", "oldest"):
        ids, path = [], f"/v1/receipts?limit=2&superseded=true&order={order}"
        while path:
            answer = client.get(path)
            ids += [item["id"] for item in answer.json()]
            link = answer.headers.get("link", "")
            path = link.partition(">")[0].removeprefix("<")
        whole = client.get(f"/v1/receipts?limit=1000&superseded=true&order={order}").json()
        assert ids == [item["id"] for item in whole]
        assert len(ids) == len(EVERY)
    assert client.get("/v1/receipts?cursor=nothing").status_code == 400


def test_the_digest_is_the_tag(client: TestClient) -> None:
    answer = client.get(f"/v1/receipts/{A}/raw")
    assert answer.headers["etag"] == f'"{A}"'
    again = client.get(f"/v1/receipts/{A}/raw", headers={"If-None-Match": f'"{A}"'})
    assert (again.status_code, again.content) == (304, b"")


def test_a_receipt_is_stored_once_whoever_sends_it_how_often(client: TestClient) -> None:
    tree = json.loads(EVERY[0].raw)
    tree["run"].update(launch="new", label="new", started="2026-03-09T09:00:00+00:00")
    raw = json.dumps(tree).encode()
    first = client.post("/v1/receipts", content=raw, headers=JSON)
    packed = client.post("/v1/receipts", content=gzip.compress(raw), headers={**JSON, "Content-Encoding": "gzip"})
    assert (first.status_code, packed.status_code) == (201, 200)
    assert first.json()["id"] == packed.json()["id"]
    tree["run"]["label"] = "other bytes"
    other = client.post("/v1/receipts", content=json.dumps(tree), headers=JSON)
    assert other.status_code == 409
    assert client.get(f"/v1/receipts/{first.json()['id']}/raw").content == raw
    del tree["run"]["lane"], tree["run"]["kind"]
    refused = client.post("/v1/receipts", content=json.dumps(tree), headers=JSON)
    assert refused.status_code == 422
    assert refused.headers["content-type"] == "application/problem+json"
    assert len(refused.json()["errors"]) >= 2
    assert {"at", "what", "do"} <= set(refused.json()["errors"][0])


def test_claims_are_judged_and_added(client: TestClient) -> None:
    claim = '[[claim]]\nid = "x"\nkind = "speedup"\ntext = "B is 1.3x"\neffect = "at least 1.1"\n'
    claim += f'baseline = ["{A}"]\ncandidate = ["{B}"]\n'
    text = f'schema_version = "1.0"\n{claim}'
    headers = {"Content-Type": "application/toml"}
    judged: Any = client.post("/v1/claims/check", content=text, headers=headers)
    assert judged.status_code == 200, judged.text
    assert [item["claim"] for item in judged.json()] == ["x"]
    assert client.get("/v1/claims").json() == []
    assert client.post("/v1/claims", content=text, headers=headers).status_code == 201
    assert client.get("/v1/claims/x").json()["verdict"]["claim"] == "x"
    assert client.get("/v1/reports/claims/x?format=html").text.startswith("<!doctype html>")
    refused = client.post("/v1/claims", content="[[claim]]", headers=headers)
    assert refused.status_code == 422


def test_a_file_of_evidence_is_kept_under_its_digest_alone(client: TestClient, server: Server) -> None:
    from receipts.store.evidence import kept_files

    raw = b"step 1: 0.8 s\n" * 1000
    digest = hashlib.sha256(raw).hexdigest()
    headers = {"Content-Type": "application/octet-stream"}
    other = client.put(f"/v1/evidence/{digest}", content=raw[1:], headers=headers)
    assert (other.status_code, other.json()["errors"][0]["at"]) == (422, "sha256")
    first = client.put(f"/v1/evidence/{digest}", content=raw, headers=headers)
    packed = {**headers, "Content-Encoding": "gzip"}
    again = client.put(f"/v1/evidence/{digest}", content=gzip.compress(raw), headers=packed)
    assert (first.status_code, again.status_code) == (201, 200)
    place = kept_files(server.opened.database.address)
    assert place is not None
    assert [item.digest for item in place.all()] == [digest]
    with place.file(digest) as file:
        assert file.read_bytes() == raw


def test_the_trace_that_a_receipt_names_is_read_where_it_was_sent(client: TestClient, tmp_path: Path) -> None:
    attention = "aten::_scaled_dot_product_flash_attention_for_cpu"
    events = [
        {"ph": "X", "cat": "cpu_op", "name": name, "ts": at, "dur": 5, "pid": os.getpid()}
        for at, name in enumerate(("ProfilerStep#1", attention, "aten::mm"))
    ]
    trace = tmp_path / "run.trace.json"
    trace.write_text(json.dumps({"schemaVersion": 1, "traceEvents": events}))
    with Recorder("cpu-torch", out=tmp_path / "run.json", probes=False, quiet=True) as rec:
        rec.attach(trace, kind="torch-profiler")
        for _ in range(3):
            with rec.step(tokens=512):
                pass
    raw = trace.read_bytes()
    headers = {"Content-Type": "application/octet-stream"}
    client.put(f"/v1/evidence/{hashlib.sha256(raw).hexdigest()}", content=raw, headers=headers)
    stored = client.post("/v1/receipts", content=(tmp_path / "run.json").read_bytes(), headers=JSON).json()
    shown = client.get(f"/v1/receipts/{stored['id']}/raw").json()
    assert shown["path"]["witnessed"]["attention"] == "sdpa_flash"


# What is refused


def test_a_body_is_bounded_as_it_comes_and_unpacked(server: Server) -> None:
    asking = Server(server.opened, server.rulebook, Settings(("testserver",), open=True, limits=Limits(body=10_000)))
    with TestClient(with_pages(asking)) as client:
        assert client.post("/v1/receipts", content=b" " * 10_001, headers=JSON).status_code == 413
        bomb, packed = gzip.compress(b" " * 50_000_000), {**JSON, "Content-Encoding": "gzip"}
        assert client.post("/v1/receipts", content=bomb, headers=packed).status_code == 413
        whole = gzip.compress(b"{}")
        for encoding, content in (("gzip", b"no gzip"), ("gzip", whole[:-4]), ("gzip", whole + whole), ("br", b"x")):
            answer = client.post("/v1/receipts", content=content, headers={**JSON, "Content-Encoding": encoding})
            assert answer.status_code == 415, (encoding, content)
        assert client.post("/v1/receipts", content=b"x", headers={"Content-Type": "text/html"}).status_code == 415


def test_a_question_is_bounded(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    where = [("where", "chips>=1")] * 51
    assert client.get("/v1/receipts", params=where[:50]).status_code == 200
    assert client.get("/v1/receipts", params=where).status_code == 400
    assert client.get("/runs", params={"q": "chips>=1 " * 51}).status_code == 400
    assert client.post("/v1/compare", json={"a": ["x"] * 1001, "b": [B]}).status_code == 422
    assert client.get("/v1/frontier?lane=cpu-torch&lane=cpu-torch").json() == client.get("/v1/frontier").json()
    monkeypatch.setattr("receipts.api.comparison.MAX_RECEIPTS", 3)
    refused = client.get("/v1/compare", params={"a": "label=*", "b": B})
    assert (refused.status_code, "at most 3" in refused.json()["detail"]) == (400, True)


@pytest.mark.parametrize("path", ["/login", f"/runs/{A}"])
def test_a_form_of_any_bytes_is_refused_or_without_effect(client: TestClient, path: str) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded"}
    parts = {"Content-Type": "multipart/form-data; boundary=x"}
    for headers, content in (
        (form, b"token=%ff%00&form=%c3%a9&pin=x"),
        (form, b"token=" + b"a" * 3_000_000),
        (form, b"&".join(b"a%d=1" % number for number in range(100))),
        (parts, b"--x"),
        (parts, b'--x\r\nContent-Disposition: form-data; name="token"; filename="a"\r\n\r\nb\r\n--x--\r\n'),
    ):
        answer = client.post(path, content=content, headers=headers, follow_redirects=False)
        assert answer.status_code in (303, 400, 403), (headers, content[:50])
        assert "set-cookie" not in answer.headers
    assert client.get("/v1/pins/x").json() == []


def test_a_caller_is_slowed_down_and_comparisons_are_counted(server: Server) -> None:
    asking = Server(
        server.opened, server.rulebook, Settings(("testserver",), open=True, limits=Limits(rate="3/minute"))
    )
    with TestClient(with_pages(asking)) as client:
        answers = [client.get("/healthz") for _ in range(4)]
        assert [item.status_code for item in answers] == [200, 200, 200, 429]
        assert answers[-1].headers["retry-after"] == "1"
    limits = Limits(comparisons=1, patience=0.01)
    one = Server(server.opened, server.rulebook, Settings(("testserver",), open=True, limits=limits))
    with TestClient(with_pages(one)) as client:
        with one.gate:
            busy = client.get(f"/v1/compare?a={A}&b={B}")
        assert (busy.status_code, "retry-after" in busy.headers) == (429, True)
        assert client.get(f"/v1/compare?a={A}&b={B}").status_code == 200
        assert "receipts_comparisons_running 0" in client.get("/metrics").text


def test_another_host_s_name_and_another_site_are_refused(client: TestClient) -> None:
    assert client.get("/healthz", headers={"Host": "evil.example"}).status_code == 421
    answer = client.get("/v1/pins", headers={"Origin": "https://evil.example"})
    assert "access-control-allow-origin" not in answer.headers
    assert client.options("/v1/pins", headers={"Origin": "https://evil.example"}).status_code == 405


ELSEWHERE = (
    {"Origin": "https://evil.example", "Sec-Fetch-Site": "cross-site"},
    {"Origin": "https://evil.example"},
    {"Origin": "http://testserver:3000", "Sec-Fetch-Site": "same-site"},  # another port of this machine
    {"Origin": "http://testserver:3000"},
    {"Origin": "null"},
    {"Origin": "http://[testserver"},
    {"Sec-Fetch-Site": "cross-site"},
    {"Origin": "http://evil.example", "Sec-Fetch-Site": "same-origin"},
)


@pytest.mark.parametrize("headers", ELSEWHERE)
def test_a_page_elsewhere_changes_nothing(client: TestClient, server: Server, headers: dict[str, str]) -> None:
    decided = {"receipt": A, "decision": "ship", "reason": "evil"}
    for method, path, body in (
        ("POST", "/v1/decisions", decided),
        ("PUT", "/v1/pins/evil", {"receipt": A}),
        ("DELETE", "/v1/pins/golden", None),
        ("POST", "/v1/compare", {"a": [A], "b": [B]}),
        ("POST", "/logout", None),
    ):
        assert client.request(method, path, json=body, headers=headers).status_code == 403, (method, path)
    assert server.opened.pins().keys() == {"golden"}
    assert client.get("/v1/pins", headers=headers).status_code == 200


def test_no_name_has_a_null_character(client: TestClient) -> None:
    for path in (
        *(
            "/v1/receipts/a%00b",
            "/v1/receipts/a%00b/raw",
            "/v1/pins/a%00",
            "/v1/claims/%00",
            "/runs/%00",
            "/v1/compare?a=%00",
        ),
        *("/compare?a=%00&b=x", "/runs?q=%00", "/v1/receipts?where=label%3D%00"),
    ):
        assert client.get(path).status_code == 400, path


def test_an_answer_says_nothing_of_the_store_that_failed(
    client: TestClient, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def fails(*_: object, **__: object) -> None:
        raise StoreError("postgresql://ana@db.internal/receipts: it does not answer")

    monkeypatch.setattr("receipts.api.store.Store.get", fails)
    monkeypatch.setattr("receipts.store.Store.resolve", fails)
    monkeypatch.setattr("receipts.store.Store.resolve_all", fails)
    for path in (f"/v1/receipts/{A}", f"/runs/{A}"):
        answer = client.get(path)
        assert answer.status_code == 503
        assert "db.internal" not in answer.text
    assert capsys.readouterr().err.count("db.internal") == 2


def test_a_body_without_its_type_is_no_document(client: TestClient) -> None:
    # What `fetch` sends of a page elsewhere, with `no-cors` and a Blob.
    decided = json.dumps({"receipt": A, "decision": "ship", "reason": "evil"})
    for headers in ({}, {"Content-Type": "text/plain"}, {"Content-Type": "application/x-www-form-urlencoded"}):
        assert client.post("/v1/decisions", content=decided, headers=headers).status_code == 415


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Origin": "http://testserver", "Sec-Fetch-Site": "same-origin"},
        {"Origin": "https://lab.example", "Sec-Fetch-Site": "cross-site"},
        {"Origin": "https://receipts.example.org", "Sec-Fetch-Site": "same-origin"},
    ],
)
def test_programs_this_site_a_listed_one_and_a_proxy_s_name_may_write(server: Server, headers: dict[str, str]) -> None:
    settings = Settings(("testserver", "receipts.example.org"), ("https://lab.example",), open=True)
    with TestClient(with_pages(Server(server.opened, server.rulebook, settings))) as client:
        assert client.put("/v1/pins/mine", json={"receipt": A}, headers=headers).status_code == 200


def test_an_upload_is_unpacked_in_pieces(client: TestClient, monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand bytes of every one that came: what is unpacked at once is what is in memory."""
    from receipts.plugins.serve import guard

    longest = []
    unpacked = guard._pieces

    def watched(*given: Any) -> Any:
        for piece in unpacked(*given):
            longest.append(len(piece))
            yield piece

    monkeypatch.setattr(guard, "_pieces", watched)
    raw = bytes(20 << 20)
    headers = {"Content-Type": "application/octet-stream", "Content-Encoding": "gzip"}
    digest = hashlib.sha256(raw).hexdigest()
    assert client.put(f"/v1/evidence/{digest}", content=gzip.compress(raw), headers=headers).status_code == 201
    assert sum(longest) == len(raw)
    assert max(longest) <= guard.PIECE


@pytest.mark.parametrize(
    "text",
    [".".join("a" * 20_000), " . ".join("a" * 20), ".".join(['"a"'] * 20), "a" * 2000, "x = " + "{ a = " * 70],
)
def test_a_key_of_toml_is_bounded_before_it_is_parsed(client: TestClient, text: str) -> None:
    headers = {"Content-Type": "application/toml"}
    for body in (f"{text} = 1", f"[{text}]\nx = 1"):
        answer = client.post("/v1/claims/check", content=body, headers=headers)
        assert answer.status_code == 422, body[:40]
    assert client.post("/v1/claims/check", content="#" * (1 << 18) + "#", headers=headers).status_code == 413


def test_an_address_that_others_reach_needs_tokens_and_a_name(server: Server) -> None:
    asked = ServeOptions("0.0.0.0:8700", ("r.example",), (), "9/second", 1)
    url = server.opened.url
    with pytest.raises(UsageError, match="receipts token add"):
        prepared(url, server.rulebook, asked, "0.0.0.0")
    with pytest.raises(UsageError, match=r"--host r.example: .*receipts token add"):
        prepared(url, server.rulebook, asked, "127.0.0.1")  # a proxy would hand on what others send
    Tokens(server.opened.database).add("ana", ["read"], None)
    assert not prepared(url, server.rulebook, asked, "0.0.0.0").settings.open
    with pytest.raises(UsageError, match="--host"):
        prepared(url, server.rulebook, asked._replace(hosts=()), "0.0.0.0")
    with pytest.raises(UsageError, match="--rate"):
        prepared(url, server.rulebook, asked._replace(rate="many"), "127.0.0.1")
    for text in ("8700", "127.0.0.1:", "127.0.0.1:x", ":8700"):
        with pytest.raises(UsageError, match="--listen"):
            address(text)
    assert [is_local(item) for item in ("127.0.0.1", "::1", "localhost", "0.0.0.0", "r.example")] == [True] * 3 + [
        False
    ] * 2


def test_a_store_that_does_not_answer_is_503(client: TestClient, server: Server, tmp_path: Path) -> None:
    with open_store(server.opened.url) as other:
        assert other.id == client.get("/healthz").json()["store"]
    (tmp_path / "store.sqlite").write_bytes(b"no database at all, but long enough to be looked at by anybody " * 100)
    answer = client.get("/v1/pins")
    assert answer.status_code == 503
    assert answer.json()["detail"]
