"""Every question on every surface: the command, the command against a server, GET, POST, Python and the agent's tool.

A question without cases fails, and so does one whose answers differ by a byte.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from mcp.server.mcpserver.exceptions import ToolError
from starlette.testclient import TestClient

import receipts
import report_store
from command_line import Said, Shell
from receipts.api.question import Question, every
from receipts.base.errors import ReceiptsError
from receipts.plugins.serve.operation import CODE
from receipts.plugins.serve.server import Server
from receipts.plugins.serve.tools import DATA, MAX_ANSWER, _tool, brief
from thorough import unless_thorough

pytestmark = pytest.mark.slow

EVERY = report_store.everything()
A, B, LEFT = EVERY[0].id, EVERY[4].id, EVERY[-2].id
CLAIMS = f"""schema_version = "1.0"
[[claim]]
id = "kept"
kind = "speedup"
text = "faster"
effect = "at least 1.1"
baseline = ["{A}"]
candidate = ["{B}"]
"""


class Case(NamedTuple):
    """One asking: the words of the command, and the same as values of parameters.

    ``files`` are documents by the words that stand for them: files of the command, documents elsewhere.
    """

    words: tuple[str, ...]
    values: Mapping[str, Any]
    files: Mapping[str, str] = {}


def case(*words: str, files: Mapping[str, str] | None = None, **values: Any) -> Case:
    return Case(words, values, files or {})


RAW = {"b.json": EVERY[4].raw.decode()}
TOML = {"claims.toml": CLAIMS}
CASES: Mapping[str, tuple[Case, ...]] = {
    "compare": (
        case(A, B, a=[A], b=[B]),
        case(A, LEFT, "-m", "step_seconds", a=[A], b=[LEFT], metric="step_seconds"),
        case("@golden", "b.json", a=["@golden"], b=["b.json"], files=RAW),
        case("b.json", "b.json", a=["b.json"], b=["b.json"], files=RAW),
        case(A, B, "--require", "not-slower=2%", a=[A], b=[B], require="not-slower=2%"),
        case(A, B, "--grade", "evidenced", "--pool", a=[A], b=[B], grade="evidenced", join="all"),
        case(A, B, "--waive", 'batch.micro_batch="why"', a=[A], b=[B], waivers={"batch.micro_batch": "why"}),
        case(
            *("a.json", "b.json", "--also-a", "c.json", "--also-b", "d.json"),
            a=["a.json", "c.json"],
            b=["b.json", "d.json"],
            files={
                name: EVERY[at].raw.decode()
                for name, at in (("a.json", 0), ("b.json", 4), ("c.json", 1), ("d.json", 5))
            },
        ),
        case("nobody", B, a=["nobody"], b=[B]),
        case(A, B, "--study", "none", a=[A], b=[B], study="none"),
    ),
    "why": (
        case(A, B, a=[A], b=[B]),
        case(A, LEFT, "--anyway", a=[A], b=[LEFT], anyway=True),
        case("@golden", "b.json", a=["@golden"], b=["b.json"], files=RAW),
    ),
    "neighbours": (
        case(A, receipt=A),
        case("b.json", "--limit", "2", receipt="b.json", limit=2, files=RAW),
        case(A, "--axis", "parallelism.tensr", receipt=A, axis="parallelism.tensr"),
    ),
    "noise": (case(), case("--lane", "cpu-torch", lane="cpu-torch"), case("--lane", "none", lane="none")),
    "list": (
        case(),
        case("outcome=oom", conditions=["outcome=oom"]),
        case("-n", "2", "--next", limit=2, deciding=True),
        case("--order", "stored", "-n", "3", "--all", order="stored", limit=3, superseded=True),
        case("lane=cpu-toch", conditions=["lane=cpu-toch"]),
        case("nothing", conditions=["nothing"]),
    ),
    "show": (
        case(A, receipt=A),
        case("small decoder", receipt="small decoder"),
        case("b.json", receipt="b.json", files=RAW),
        case("nobody", receipt="nobody"),
    ),
    "chips": (case(A, a=A), case(A, "b.json", a=A, b="b.json", files=RAW), case("small decoder", a="small decoder")),
    "repro": (case(A, receipt=A), case("b.json", receipt="b.json", files=RAW)),
    "check": (
        case(A, LEFT, receipts=[A, LEFT]),
        case("b.json", "--grade", "kept", receipts=["b.json"], grade="kept", files=RAW),
        case("nobody", A, receipts=["nobody", A]),
    ),
    "verify": (case(A, "small decoder", receipts=[A, "small decoder"]), case("--all", every=True), case()),
    "evidence list": (case(),),
    "preflight": (
        case(A, plan=A),
        case("b.json", plan="b.json", files=RAW),
        case("--rank", "plans.jsonl", rank="plans.jsonl", files={"plans.jsonl": json.dumps(json.loads(EVERY[0].raw))}),
        case(),
    ),
    "fit": (
        case(A, plan=A),
        case("b.json", A, plan="b.json", other=A, files=RAW),
        case(A, "--calibrate", plan=A, calibrate=True),
    ),
    "ceiling": (case("--lane", "cpu-torch", lane="cpu-torch"), case("--lane", "none", lane="none")),
    "claim list": (case(), case("--status", "refuted", status="refuted"), case("--everything", superseded=True)),
    "claim show": (case("kept", claim_id="kept"), case("none", claim_id="none")),
    "claim check": (
        case("claims.toml", files_="", files=TOML),
        case("--all", every=True),
        case("claims.toml", "--only", "none", only=["none"], files_="", files=TOML),
    ),
    "badge": (
        case(A, name=A),
        case("kept", "--label", "MTP off", name="kept", label="MTP off"),
        case("nobody", name="nobody"),
    ),
    "claim pending": (case(), case("claims.toml", files_="", files=TOML)),
    "claim footnote": (
        case("kept", claim_id="kept"),
        case("kept", "--file", "claims.toml", claim_id="kept", file="claims.toml", files=TOML),
    ),
    "frontier": (case(), case(lanes=["cpu-torch"])),
    "impact": (case(A, receipt=A), case("nobody", receipt="nobody")),
    "rules": (case(), case("C101", code="C101"), case("none", code="none")),
    "lanes": (case(), case("cpu-torch", name="cpu-torch")),
    "axes": (
        case("parallelism", prefix="parallelism"),
        case("--role", "work", role="work"),
        case("none", prefix="none"),
    ),
    "bridge": (
        case(A, B, a=A, b=B),
        case(A, "b.json", "--most", "3", a=A, b="b.json", most=3, files=RAW),
        case("nobody", "none", a="nobody", b="none"),
    ),
    "bisect": (case(A, B, good=A, bad=B),),
    "sweep": (
        case(A, B, "--vary", "micro_batch", receipts=[A, B], vary="micro_batch"),
        case(A, "b.json", "--vary", ",", receipts=[A, "b.json"], vary=",", files=RAW),
    ),
    "history": (case(A, receipt=A), case("--lane", "cpu-torch", lane="cpu-torch"), case()),
    "incident list": (case(), case("--all", every=True)),
    "judge": (case(trial="alone/none"),),
    "campaign": (case("none", name="none"),),
}


def test_every_question_has_cases() -> None:
    assert set(CASES) == set(every())


class Surfaces:
    """One question and case, asked wherever it can be."""

    def __init__(
        self, question: Question[..., Any], asked: Case, shell: Shell, server: Server, client: TestClient
    ) -> None:
        self.question, self.case, self.client, self.server = question, asked, client, server
        self.call = shell
        self.sent = {name.rstrip("_"): value for name, value in asked.values.items()}
        if "files_" in asked.values:
            self.sent["files"] = list(asked.files)
        for name, text in asked.files.items():
            (shell.folder / name).write_text(text, encoding="utf-8")

    def command(self, url: str, *more: str) -> Said:
        """What the command prints, of the store itself or of a server."""
        return self.call("--store", url, *self.question.name.split(), *self.case.words, *more)

    def _documents(self, read: Any) -> dict[str, Any]:
        """The values, each word that stands for a document replaced by what is read of it."""

        def one(item: Any) -> Any:
            return read(item) if isinstance(item, str) and item in self.case.files else item

        known = {item.name: item for item in self.question.parameters}
        return {
            name: ([one(each) for each in value] if isinstance(value, list) else one(value))
            if known[name].how.kind.document
            else value
            for name, value in self.sent.items()
        }

    def sent_as(self, name: str) -> dict[str, str]:
        """A file as a request or a tool gives it."""
        return {"document": self.case.files[name], "name": name}

    def python(self) -> tuple[str, int]:
        """The JSON of Python and its exit code; the error's text and 2 where it raises."""
        with receipts.open(self.server.opened.url) as store:
            try:
                answer = self.question.__get__(store)(**self._documents(Path))
                return answer.to_json() + "\n", answer.exit_code
            except ReceiptsError as error:
                return str(error), error.exit_code

    def http(self, form: str = "json", **more: str) -> Iterator[tuple[str, int]]:
        """The body and exit code of GET where words alone are asked, and of POST where it takes documents."""
        query, body, path = [("format", form), *more.items()], dict[str, Any](), self.question.path
        for item in self.question.parameters:
            if item.name not in self.sent:
                continue
            value = self._documents(self.sent_as)[item.name]
            if item.how.kind.document:
                body[item.wire] = value
                if isinstance(value, str):
                    path = path.replace(f"{{{item.wire}}}", value)
                continue
            path = path.replace(f"{{{item.wire}}}", str(value))
            words = [f"{axis}={why}" for axis, why in value.items()] if isinstance(value, dict) else value
            words = words if isinstance(words, list) else ["true" if words is True else str(words)]
            if f"{{{item.wire}}}" not in self.question.path:
                query += [(item.wire, word) for word in words]
        words_only = all(
            isinstance(one, str) for value in body.values() for one in (value if isinstance(value, list) else [value])
        )
        if words_only and "{" not in path:
            named = [
                (name, one)
                for name, value in body.items()
                for one in (value if isinstance(value, list) else [value])
                if f"{{{name}}}" not in self.question.path
            ]
            yield self._said(self.client.get(path, params=[*query, *named]))
        takes = any(item.how.kind.document and not item.how.local for item in self.question.parameters)
        if takes and "{" not in self.question.post:
            yield self._said(self.client.post(self.question.post, params=query, json=body))

    @staticmethod
    def _said(answered: Any) -> tuple[str, int]:
        if answered.status_code == 200:
            return answered.text, int(answered.headers[CODE])
        assert answered.status_code < 500, answered.text
        return str(answered.json()["detail"]), 2

    def tool(self) -> dict[str, Any]:
        """What the agent's tool answers."""
        ask = _tool(self.question, self.server.store)
        values = self._documents(self.sent_as)
        by_name = {item.name: item for item in self.question.parameters}

        def written(name: str, value: Any) -> Any:
            return (
                [f"{axis}={why}" for axis, why in value.items()]
                if isinstance(value, dict) and by_name[name].how.kind.gather is dict
                else value
            )

        sent = ask(**{by_name[name].wire: written(name, value) for name, value in values.items()})
        assert sent.structured_content is not None
        return sent.structured_content


def is_offered(question: Question[..., Any], values: Mapping[str, Any]) -> bool:
    """Whether an agent may give these values."""
    return all(item.how.kind.document not in ("claims", "lines") for item in question.parameters if item.name in values)


@pytest.mark.parametrize("name", sorted(CASES))
def test_one_question_has_one_answer(
    name: str, shell: Shell, server: Server, client: TestClient, listening: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    question = every()[name]
    monkeypatch.delenv("RECEIPTS_STORE")
    server.store().add_claims(CLAIMS.encode())
    for asked in CASES[name]:
        surfaces = Surfaces(question, asked, shell, server, client)
        python = surfaces.python()
        for answered in surfaces.http():
            assert (_without_source(answered[0]), answered[1]) == (_without_source(python[0]), python[1]), asked.words
        if is_offered(question, surfaces.sent):
            try:
                tool = surfaces.tool()
            except ToolError as error:
                said = str(error).partition(" (The message")[0]
                assert (_without_source(said), 2) == (_without_source(brief(python[0])), python[1])
            else:
                assert tool["note"] == DATA
                assert tool["exit_code"] == python[1]
                assert tool["answer"] == json.loads(python[0]) or "left" in json.dumps(tool["answer"])
        if not question.verb:
            continue
        here, there = surfaces.command(server.opened.url, "--json"), surfaces.command(listening, "--json")
        assert (here.out, here.code) == (there.out, there.code), (asked.words, there.err)
        if here.out:
            assert (here.out, here.code) == python, asked.words
        else:
            assert here.code == python[1] == 2, (asked.words, here.err)
        # How an answer is written follows from the question: its first case shows it.
        for form in ("text", "markdown") if asked is CASES[name][0] or unless_thorough(False, True) else ():
            local, remote = (surfaces.command(url, "--format", form) for url in (server.opened.url, listening))
            errors = [said.err.replace("receipts: ", "") for said in (local, remote)]  # of several one begins with it
            assert (local.out, local.code, errors[0]) == (remote.out, remote.code, errors[1]), (asked.words, form)
            for answered in surfaces.http(form, **({"width": "100"} if form == "text" else {})) if local.out else ():
                assert answered == (local.out, local.code), (asked.words, form)


def _without_source(text: str) -> str:
    """An error without the name of its document, which each surface has another for."""
    return re.sub(r"(?m)^(the document|the claims|\w+\[\d+\]|[\w./-]+\.(?:json|toml)): ", "", text)


def test_a_word_is_never_a_path_of_the_server(shell: Shell, client: TestClient) -> None:
    place = shell.folder / "here.json"
    place.write_bytes(EVERY[0].raw)
    for question in every().values():
        for item in question.parameters:
            if item.how.kind.document not in ("receipt", "plan") or "{" in question.path:
                continue
            others = {
                other.wire: "parallelism" if other.wire == "vary" else A
                for other in question.parameters
                if other.required and other is not item
            }
            answered = client.get(question.path, params={**others, item.wire: str(place)})
            lenient = item.how.kind.lenient and answered.status_code == 200 and answered.headers[CODE] == "2"
            assert answered.status_code == 404 or lenient, (question.name, item.name, answered.text)


def test_what_changes_something_is_asked_by_post_and_by_a_token_that_may(
    guarded: tuple[TestClient, dict[str, str]],
) -> None:
    client, tokens = guarded
    asked = 0
    for question in every().values():
        scoped = [item for item in question.parameters if item.how.scope]
        for item in scoped:
            named = {"a": [A], "b": [B]} if question.name == "compare" else {"claims": [{"document": CLAIMS}]}
            trial = {"trial": "alone/none"} if question.name == "judge" else {}  # of which nothing is stored
            named = {} if trial else named
            for scope, status in (("read", 403), ("submit", 403), ("admin", 404 if trial else 200)):
                headers = {"Authorization": f"Bearer {tokens[scope]}"}
                query = {item.wire: "true", **trial}
                assert client.get(question.post, params=query, headers=headers).status_code in (400, 403, 405)
                answered = client.post(question.post, params=query, json=named, headers=headers)
                assert answered.status_code == status, (question.name, scope, answered.text)
                asked += 1
    assert asked == 9


def test_a_form_of_every_answer_is_written_and_none_is_unknown(client: TestClient) -> None:
    for form, start in (("html", "<!doctype html>"), ("csv", "axis,"), ("markdown", "**")):
        answered = client.get("/v1/neighbours", params={"of": A, "format": form})
        assert answered.text.lower().startswith(start), answered.text[:80]
    assert client.get("/v1/neighbours", params={"of": A, "format": "pdf"}).status_code == 400


def test_a_long_answer_is_cut_for_an_agent_and_says_so() -> None:
    rows = [{"name": f"row {number}", "text": "x" * 100} for number in range(1000)]
    assert brief(rows[:3]) == rows[:3]
    short = brief(rows)
    assert (len(json.dumps(short)) <= MAX_ANSWER, short["rows"][0], short["left_out"] + len(short["rows"])) == (
        True,
        rows[0],
        1000,
    )
    held = brief({"status": "rejected", "proof": {"leaves": rows}, "findings": rows[:2]})
    assert (held["status"], held["findings"]) == ("rejected", rows[:2])
    assert len(json.dumps(held)) <= MAX_ANSWER
