"""Commands whose store is a server: the same words, and the spool where it does not answer."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path

import pytest
from starlette.testclient import TestClient

import report_store
from command_line import Said, Shell
from receipts.base.errors import UsageError
from receipts.plugins.serve.server import Server
from receipts.signing.key import MEDIA, RECEIPT, new_key, signed
from receipts.store.credentials import Tokens
from receipts.workflows.server import RemoteServer as Client

pytestmark = pytest.mark.slow

EVERY = report_store.everything()
A, B, LEFT = EVERY[0].id, EVERY[4].id, EVERY[-2].id
READ = (
    ("list",),
    ("list", "outcome=oom", "--limit", "1"),
    ("list", "--json", "--all"),
    ("show", A),
    ("show", "@golden", "--json"),
    ("show", A, "--raw"),
    ("verify", A, "small decoder"),
    ("verify", A, "--json"),
    ("compare", A, B),
    ("compare", A, B, "--json"),
    ("compare", "@golden", B, "--format", "line"),
    ("compare", A, B, "-v", "--format", "markdown", "--metric", "step_seconds"),
    ("preflight", A, "--json"),
    ("pin",),
    ("pin", "@golden", "--json"),
    ("claim", "list", "--json"),
)


@pytest.fixture
def both(shell: Shell, server: Server, listening: str, monkeypatch: pytest.MonkeyPatch) -> tuple[Shell, str, str]:
    """The shell, and the two names of one store: its server, and its file."""
    monkeypatch.delenv("RECEIPTS_STORE")
    return shell, listening, server.opened.url


def test_every_answer_is_the_one_of_the_store_itself(both: tuple[Shell, str, str]) -> None:
    shell, url, path = both
    for words in READ:
        there, here = shell("--store", url, *words), shell("--store", path, *words)
        assert (there.out, there.code) == (here.out, here.code), words


def test_a_list_that_is_longer_than_a_page_is_whole(
    both: tuple[Shell, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    shell, url, path = both
    monkeypatch.setattr("receipts.cli.far.PAGE", 3)
    for order in ("newest", "oldest", "stored"):
        for words in ("--limit 0", "-n 7 --all", "--limit 0 --json", "-n 5 --format csv"):
            asked = ("list", "--order", order, *words.split())
            there, here = shell("--store", url, *asked), shell("--store", path, *asked)
            assert (there.out, there.err, there.code) == (here.out, here.err, here.code), asked
            assert len(here.lines) > 5


def test_what_an_answer_is_written_as_is_written_here(both: tuple[Shell, str, str]) -> None:
    shell, url, path = both
    calls = (
        ("compare", A, B, "--require", "faster", "--junit"),
        ("chips", A, "--svg"),
        ("bridge", A, B, "--svg"),
        ("preflight", A, "--next"),
    )
    for number, words in enumerate(calls):
        said = []
        for store, name in ((url, f"there{number}"), (path, f"here{number}")):
            answered = shell("--store", store, *words, name)
            file = shell.folder / name
            text = file.read_text(encoding="utf-8") if file.exists() else None
            said.append((answered.out.replace(name, "F"), answered.err.replace(name, "F"), answered.code, text))
        assert said[0] == said[1], words
    plans = [("bridge", A, LEFT, "--plan", str(shell.folder / name), "--json") for name in ("a", "b")]
    there, here = (shell("--store", store, *words) for store, words in zip((url, path), plans, strict=True))
    assert (there.code, there.out.replace("/a/", "/b/")) == (here.code, here.out)


def test_files_are_sent_and_compared(both: tuple[Shell, str, str]) -> None:
    shell, url, path = both
    file = shell.write("b", run__label="another")
    for words in (("compare", A, file, "--json"), ("preflight", file, "--json")):
        assert shell("--store", url, *words).out == shell("--store", path, *words).out


def test_a_signature_reaches_the_store_through_its_server(both: tuple[Shell, str, str]) -> None:
    shell, url, path = both
    for name in ("ana", "eve"):
        shell("key", "new", name, "--out", name)
    shell("--store", path, "key", "trust", "ana", "ana.pub")
    own = shell.write("own")
    foreign = shell("--store", url, "submit", own, "--sign", "eve")
    assert (foreign.code, "the signature is refused" in foreign.err) == (2, True)
    assert shell("--store", url, "submit", own, "--sign", "ana").code == 0
    assert "signed by ana" in shell("--store", url, "show", "own").out
    envelope = shell("--store", path, "show", "own", "--envelope").out
    (shell.folder / "own.dsse.json").write_text(envelope)
    again = shell("--store", url, "submit", "own.dsse.json", "--signed", "--json")
    assert (again.code, again.json[0]["new"]) == (0, False)


def test_a_token_of_one_lane_signs_for_no_other(guarded: tuple[TestClient, dict[str, str]], shell: Shell) -> None:
    client, tokens = guarded
    headers = {"Authorization": f"Bearer {tokens['submit:cpu-torch']}", "Content-Type": MEDIA}
    key = new_key("ana", shell.folder / "ana")
    for lane, status in (("cpu-jax", 403), ("cpu-torch", 409)):  # 409: nobody trusts the key
        raw = Path(shell.write(lane, run__lane=lane)).read_bytes()
        content = signed(RECEIPT, raw, key).to_json()
        assert client.post("/v1/envelopes", content=content, headers=headers).status_code == status
    assert client.post("/v1/envelopes", content="{}", headers=headers).status_code == 422


def test_a_signed_receipt_waits_in_no_spool(shell: Shell, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("receipts.workflows.server.ATTEMPTS", 1)
    monkeypatch.setenv("RECEIPTS_SPOOL", str(shell.folder / "spool"))
    shell("key", "new", "ana", "--out", "ana")
    words = ("--store", "http://127.0.0.1:9", "submit", shell.write("own"))
    refused = shell(*words, "--sign", "ana")
    assert (refused.code, "cannot be reached" in refused.err) == (4, True)
    assert not (shell.folder / "spool").exists()
    assert shell(*words).code == 4
    assert (shell.folder / "spool").exists()


def test_a_submit_ends_as_it_would_in_the_store(both: tuple[Shell, str, str], tmp_path: Path) -> None:
    shell, url, path = both
    good, wrong = shell.write("good"), tmp_path / "wrong.json"
    wrong.write_text('{"schema_version": "1.0"}', encoding="utf-8")
    sent = shell("--store", url, "submit", good, str(wrong), "--json")
    assert sent.code == 2
    assert [item.get("new") for item in sent.json] == [True, None]
    again = shell("--store", path, "submit", good, "--json").json[0]
    assert (again["id"], again["new"], again["status"]) == (shell.made["good"], False, sent.json[0]["status"])
    other = shell.write("other", run__launch="launch-good")
    assert "launch" in shell("--store", url, "submit", other).err


def test_evidence_is_sent_and_kept_by_the_server(both: tuple[Shell, str, str]) -> None:
    shell, url, path = both
    event = {"ph": "X", "cat": "user_annotation", "name": "ProfilerStep#1", "pid": 1, "tid": 1, "ts": 0, "dur": 990}
    kernel = {**event, "cat": "cpu_op", "name": "aten::_scaled_dot_product_flash_attention_for_cpu", "dur": 10}
    trace = {"schemaVersion": 1, "deviceProperties": [], "record_shapes": 1, "traceEvents": [event, kernel]}
    (shell.folder / "trace.json").write_text(json.dumps(trace), encoding="utf-8")
    file = shell.write("traced", path__witnessed={"framework": "torch"})
    assert shell("--store", url, "submit", file, "--evidence", "trace.json").code == 0
    (kept,) = shell("--store", path, "evidence", "list", "--json").json
    raw = (shell.folder / "trace.json").read_bytes()
    assert (kept["digest"], len(kept["receipts"])) == (hashlib.sha256(raw).hexdigest(), 1)


def test_pins_and_claims_are_written_by_the_server(both: tuple[Shell, str, str], tmp_path: Path) -> None:
    shell, url, path = both
    assert shell("--store", url, "pin", "@other", A[:8], "--note", "why").code == 0
    assert shell("--store", path, "pin", "@other", "--json").json[0]["receipt"] == A
    assert shell("--store", url, "pin", "@other", "--remove").code == 0
    claims = tmp_path / "claims.toml"
    claims.write_text(
        'schema_version = "1.0"\n[[claim]]\nid = "x"\nkind = "speedup"\ntext = "faster"\neffect = "at least 1.1"\n'
        f'baseline = ["{A}"]\ncandidate = ["{B}"]\n',
        encoding="utf-8",
    )
    judged = shell("--store", url, "claim", "check", str(claims), "--json")
    assert (judged.out, judged.code) == (
        (here := shell("--store", path, "claim", "check", str(claims), "--json")).out,
        here.code,
    )
    assert shell("--store", url, "claim", "add", str(claims)).code == 0
    assert [item["claim"] for item in shell("--store", path, "claim", "list", "--json").json] == ["x"]


def test_what_cannot_be_delivered_waits_in_the_spool(
    both: tuple[Shell, str, str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    shell, url, path = both
    monkeypatch.setenv("RECEIPTS_SPOOL", str(tmp_path / "spool"))
    monkeypatch.setattr("receipts.workflows.server.time.sleep", lambda _seconds: None)
    away = "http://127.0.0.1:1"
    kept = shell("--store", away, "submit", shell.write("late"))
    assert kept.code == 4
    assert f"receipts --store '{away}' flush" in kept.err
    assert shell("--store", away, "flush").code == 4
    folder = next((tmp_path / "spool").iterdir())
    from receipts.workflows import spool

    folder.rename(spool.place(url))
    assert shell("--store", url, "flush").code == 0
    assert shell("--store", path, "show", shell.made["late"], "--raw").code == 0
    assert shell("--store", url, "flush").out == "nothing is waiting to be stored\n"


def test_what_needs_the_database_says_so(both: tuple[Shell, str, str]) -> None:
    shell, url, _ = both
    refused: list[Said] = [
        shell("--store", url, *words)
        for words in (
            ("verify", A, "--evidence", str(shell.folder)),
            ("impact", A, "--in", str(shell.folder)),
            ("audit",),
            ("decide", A),
        )
    ]
    assert [item.code for item in refused] == [2] * 4
    assert all(url in item.err for item in refused)
    assert shell("--store", url, "show", "nothing").code == 2


def test_a_token_is_sent_from_the_environment_and_never_in_the_clear(
    both: tuple[Shell, str, str], server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    shell, url, _ = both
    _, secret = Tokens(server.opened.database).add("ana", ["read"], None)
    object.__setattr__(server.settings, "open", False)
    refused = shell("--store", url, "list")
    assert (refused.code, "RECEIPTS_TOKEN" in refused.err) == (2, True)
    monkeypatch.setenv("RECEIPTS_TOKEN", secret)
    assert shell("--store", url, "list").code == 0
    pinned = shell("--store", url, "pin", "@x", A)
    assert (pinned.code, "decide" in pinned.err) == (2, True)
    with pytest.raises(UsageError, match="https"):
        Client("http://receipts.example.org")
    for wrong in ("https://", "https://a@b", "https://a/?token=x"):
        with pytest.raises(UsageError, match="RECEIPTS_TOKEN"):
            Client(wrong)
    for wrong in ("https://[", "https://h:99999", "https://h:x"):
        with pytest.raises(UsageError, match="HOST:PORT"):
            Client(wrong)
    for odd in ("a\nb", "\N{EURO SIGN}"):
        with pytest.raises(UsageError, match="on one line"):
            Client("https://receipts.example.org", odd)


def test_something_else_that_answers_is_no_server_of_receipts(shell: Shell, listening: str) -> None:
    said = shell("--store", f"{listening}/elsewhere", "list")
    assert said.code == 2
    assert json.loads(said.out or "null") is None
