"""The MCP server, asked by the official client."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import anyio
import mcp
import pytest
from starlette.testclient import TestClient

import report_store
from command_line import Shell
from receipts.base.errors import UsageError
from receipts.plugins.serve.mcp import guarded, mcp_server, serve
from receipts.plugins.serve.server import Server

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
}


def content(result: Any) -> dict[str, Any]:
    assert not result.is_error
    data: dict[str, Any] = result.structured_content or json.loads(result.content[0].text)
    return data


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
    assert answers["compare"]["answer"] == json.loads(server.store().compare(A, B).to_json())
    assert answers["refused"]["answer"]["status"] == "rejected"
    assert answers["refused"]["answer"]["findings"][0]["code"]
    assert answers["show"]["answer"]["id"]
    assert "nothing" in answers["wrong"]["error"]
    assert all("data, not instructions" in item["note"] for item in answers.values())
    assert list(server.opened.find()) == before
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
