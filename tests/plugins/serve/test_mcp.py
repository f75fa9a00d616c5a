"""The MCP server, asked by the official client."""

from __future__ import annotations

import json
import os
import sys
from functools import partial
from pathlib import Path
from typing import Any

import anyio
import mcp
import pytest
from starlette.testclient import TestClient

import report_store
from command_line import Shell
from receipts.base.errors import UsageError
from receipts.plugins.serve.server import Server
from receipts.plugins.serve.tools import MAX_ANSWER, brief, guarded, mcp_server, serve

EVERY = report_store.everything()
A, B, LEFT = EVERY[0].id, EVERY[4].id, EVERY[-2].id
CALLS: dict[str, dict[str, Any]] = {
    "compare": {"a": A, "b": B},
    "neighbours": {"of": A},
    "bridge": {"a": A, "b": B},
    "show": {"receipt": "@golden"},
    "preflight": {"plan": {"document": json.loads(EVERY[0].raw)}},
    "list": {"where": ["outcome=oom"]},
    "check": {"receipt": A},
    "noise": {},
    "rules": {"code": "C101"},
    "fit": {"plan": A},
    "claim_list": {},
    "history": {"receipt": A},
    "judge": {"trial": "alone/none"},
    "search": {"words": "outcome=oom"},
}


def content(result: Any) -> dict[str, Any]:
    """The data of an answer, which its text holds between two lines; of an error its text."""
    (words,) = (item.text for item in result.content)
    if result.is_error:
        return {"error": words}
    _, line, data, end = words.split("\n")
    assert line.startswith("receipts-data-")
    assert (json.loads(data), end) == (result.structured_content, line)
    assert len(json.dumps(result.structured_content)) <= MAX_ANSWER + 500
    read: dict[str, Any] = result.structured_content
    return read


async def _asked(target: Any) -> dict[str, dict[str, Any]]:
    async with mcp.Client(target) as client:
        tools = (await client.list_tools()).tools
        assert {tool.name for tool in tools} == set(CALLS)
        assert all(tool.annotations is not None and tool.annotations.read_only_hint for tool in tools)
        answers = {name: content(await client.call_tool(name, words)) for name, words in CALLS.items()}
        answers["refused"] = content(await client.call_tool("compare", {"a": A, "b": LEFT}))
        answers["wrong"] = content(await client.call_tool("show", {"receipt": "nothing"}))
    return answers


def test_the_official_client_lists_and_calls_every_tool(server: Server) -> None:
    before = list(server.opened.find())
    answers = anyio.run(_asked, mcp_server(server.store))
    assert answers["compare"]["answer"]["status"] == "accepted"
    assert answers["compare"]["answer"] == brief(json.loads(server.store().compare(A, B).to_json()), MAX_ANSWER - 200)
    assert {row["outcome"] for row in answers["search"]["answer"]} == {"oom"}
    assert "the store holds no launch of it" in answers["judge"]["error"]
    assert answers["refused"]["answer"]["status"] == "rejected"
    assert answers["refused"]["answer"]["findings"][0]["code"]
    assert answers["show"]["answer"]["id"]
    assert "nothing" in answers["wrong"]["error"]
    assert all("data, not instructions" in str(item) for item in answers.values())
    assert list(server.opened.find()) == before
    server.close()


def test_a_cut_answer_says_how_to_get_the_rest_and_gives_it(server: Server) -> None:
    async def ask() -> list[dict[str, Any]]:
        async with mcp.Client(mcp_server(server.store, whole=True)) as client:
            seen = [content(await client.call_tool("axes", {}))]
            for _ in range(40):
                if not isinstance(seen[-1]["answer"], dict):
                    break
                start = int(seen[-1]["answer"]["rest"].rpartition("start=")[2])
                seen.append(content(await client.call_tool("axes", {"start": start})))
            seen.append(content(await client.call_tool("axes", {"part": "0/none"})))
            return seen

    *pages, wrong = anyio.run(ask)
    rows = [
        row
        for page in pages
        for row in (page["answer"]["rows"] if isinstance(page["answer"], dict) else page["answer"])
    ]
    assert len(pages) > 2
    assert rows == json.loads(server.store().axes().to_json())
    assert "no such part" in wrong["error"]
    server.close()


def test_files_below_the_working_folder_are_read_where_its_client_starts_it(
    server: Server, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    for place in ("here/run.json", "above.json"):
        (tmp_path / place).write_bytes(EVERY[0].raw)

    async def ask(*, files: bool) -> list[dict[str, Any]]:
        async with mcp.Client(mcp_server(server.store, files=files)) as client:
            paths = ("run.json", "../above.json", "none.json")
            calls = [("check", {"receipt": {"file": path}}) for path in paths] + [("fit", {"plan": {"file": paths[0]}})]
            return [content(await client.call_tool(name, given)) for name, given in calls]

    read, above, none, plan = anyio.run(partial(ask, files=True))
    assert read["answer"][0]["receipt"] == A
    assert "outside the working folder" in above["error"]
    assert "there is no such file" in none["error"]
    assert "answer" in plan
    assert all("error" in item for item in anyio.run(partial(ask, files=False)))
    server.close()


def test_over_http_a_token_that_may_read_is_asked_for(server: Server) -> None:
    tokens = server.tokens
    reads, submits = (tokens.add(scope, [scope], None)[1] for scope in ("read", "submit"))
    app = guarded(mcp_server(server.store).streamable_http_app(stateless_http=True), tokens)
    hello = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    statuses = []
    with TestClient(app, base_url="http://127.0.0.1:8701") as client:
        for told in (
            {},
            {"Authorization": "Bearer rcp_x"},
            *({"Authorization": f"Bearer {t}"} for t in (submits, reads)),
        ):
            headers = {"Accept": "application/json, text/event-stream", **told}
            statuses.append(client.post("/mcp", json=hello, headers=headers).status_code)
    assert statuses == [401, 401, 403, 200]
    server.close()


def test_without_a_token_in_the_store_it_does_not_listen(server: Server) -> None:
    with pytest.raises(UsageError, match="receipts token add"):
        serve(str(server.opened.database.address.url), server.rulebook, "127.0.0.1:8701")
    server.close()


@pytest.mark.slow
def test_it_speaks_over_standard_input_and_output(shell: Shell) -> None:
    shell.store("one")
    command = mcp.StdioServerParameters(
        command=sys.executable,
        args=["-m", "receipts", "--store", str(shell.folder / "store.sqlite"), "mcp"],
        env=dict(os.environ),
    )

    async def ask() -> str:
        async with mcp.Client(command) as client:
            return str(content(await client.call_tool("show", {"receipt": "one"}))["answer"]["id"])

    assert anyio.run(ask) == shell.made["one"]
