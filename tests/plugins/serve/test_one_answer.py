"""One question has one answer: the command, Python and HTTP give the same bytes and the same exit code."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from starlette.testclient import TestClient

import receipts
import report_store
from command_line import Shell
from receipts.base.errors import ReceiptsError
from receipts.plugins.serve.operation import CODE
from receipts.plugins.serve.server import Server
from thorough import unless_thorough

pytestmark = pytest.mark.slow

EVERY = report_store.everything()
METRICS = ("tokens_per_second", "step_seconds", "peak_bytes", "mfu")
CLAIMS = """
schema_version = "1.0"
[[claim]]
id = "one"
kind = "speedup"
text = "faster"
metric = "{metric}"
effect = "at least 1.1"
baseline = ["{a}"]
candidate = ["{b}"]
"""


class Question(NamedTuple):
    """One question in three forms: words of the command, a call in Python, and path, query and body over HTTP."""

    words: tuple[str, ...]
    call: Callable[[receipts.Store], Any]
    path: str
    query: Mapping[str, str] = MappingProxyType({})


def names() -> st.SearchStrategy[str]:
    """A receipt by its id, a prefix, its label (which several may share) or a pin."""
    ids = st.sampled_from([item.id for item in EVERY])
    return st.one_of(ids, ids.map(lambda item: item[:16]), st.just("@golden"))


@st.composite
def questions(draw: st.DrawFn) -> Question:
    """Any question that all three can be asked."""
    a, b, metric = draw(names()), draw(names()), draw(st.sampled_from(METRICS))
    of = ("--metric", metric, "--json")
    sides = {"a": a, "b": b, "metric": metric}
    outcome = draw(st.sampled_from(["outcome=ok", "outcome=oom", "chips>=1", "chips>=1000"]))
    kinds = {
        "show": Question(("show", a, "--json"), lambda store: store.get(a), f"/v1/receipts/{a}"),
        "list": Question(
            ("list", outcome, "--limit", "3", "--json"),
            lambda store: store.find(outcome, limit=3),
            "/v1/receipts",
            {"where": outcome, "limit": "3"},
        ),
        "compare": Question(
            ("compare", a, b, *of), lambda store: store.compare(a, b, metric=metric), "/v1/compare", sides
        ),
        "neighbours": Question(
            ("neighbours", a, *of),
            lambda store: store.neighbours(a, metric=metric),
            "/v1/neighbours",
            {"of": a, "metric": metric},
        ),
        "bridge": Question(("bridge", a, b, *of), lambda store: store.bridge(a, b, metric=metric), "/v1/bridge", sides),
        "preflight": Question(
            ("preflight", a, "--json"), lambda store: store.preflight(a), "/v1/preflight", {"plan": a}
        ),
        "claims": Question(("claim", "list", "--json"), lambda store: store.claims(), "/v1/claims"),
    }
    return kinds[draw(st.sampled_from(sorted(kinds)))]


@settings(
    max_examples=unless_thorough(20, 400),
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(question=questions())
def test_command_python_and_http_answer_with_the_same_bytes(
    shell: Shell, server: Server, client: TestClient, question: Question
) -> None:
    printed = shell("--store", server.opened.url, *question.words)
    sent = client.get(question.path, params=question.query)
    with receipts.open(server.opened.url) as store:
        try:
            answer = question.call(store)
        except ReceiptsError as error:
            refused = str(error)
        else:
            refused = ""
    if refused:
        assert (printed.code, sent.json()["detail"]) == (2, refused)
        return
    assert sent.status_code == 200
    assert (sent.text, int(sent.headers[CODE])) == (printed.out, printed.code)
    assert (answer.to_json() + "\n", answer.exit_code) == (printed.out, printed.code)


def test_a_file_is_checked_alike_by_command_and_python(shell: Shell) -> None:
    file = shell.folder / "checked.json"
    for one in EVERY[:: unless_thorough(3, 1)]:
        file.write_bytes(one.raw)
        printed, answer = shell("check", str(file), "--json"), receipts.check(file)
        assert (answer.to_json() + "\n", answer.exit_code) == (printed.out, printed.code)


def test_claims_of_a_file_are_judged_alike(shell: Shell, server: Server, client: TestClient) -> None:
    from receipts.publish.text import json_text

    for metric in METRICS:
        text = CLAIMS.format(metric=metric, a=EVERY[0].id, b=EVERY[4].id)
        file = shell.folder / "claims.toml"
        file.write_text(text, encoding="utf-8")
        printed = shell("--store", server.opened.url, "claim", "check", str(file), "--json")
        headers = {"Content-Type": "application/toml"}
        with receipts.open(server.opened.url) as store:
            judged = store.claim_check(text.encode()).to_dict()
        assert client.post("/v1/claims/check", content=text.encode(), headers=headers).text == printed.out
        assert json_text(judged) + "\n" == printed.out
