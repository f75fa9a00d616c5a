"""The MCP server, asked by the official client."""

from __future__ import annotations

import json
import os
import sys
from typing import Any

import anyio
import mcp
import pytest

import report_store
from command_line import Shell
from receipts.serve.mcp import mcp_server
from receipts.serve.server import Server

EVERY = report_store.everything()
A, B, LEFT = EVERY[0].id, EVERY[4].id, EVERY[-2].id
CALLS: dict[str, dict[str, Any]] = {
    "compare": {"a": A, "b": B},
    "explain_refusal": {"a": A, "b": LEFT},
    "neighbours": {"receipt": A},
    "bridge": {"a": A, "b": B},
    "show": {"receipt": "@golden"},
    "what_next": {"receipt": A},
    "preflight": {"plan": json.loads(EVERY[0].raw)},
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
        answers["wrong"] = content(await client.call_tool("show", {"receipt": "nothing"}))
    return answers


def test_the_official_client_lists_and_calls_every_tool(server: Server) -> None:
    before = list(server.opened.find())
    answers = anyio.run(_asked, mcp_server(server.store))
    assert answers["compare"]["answer"]["status"] == "accepted"
    assert answers["compare"]["answer"] == json.loads(server.store().compare(A, B).to_json())
    assert answers["explain_refusal"]["status"] == "rejected"
    assert answers["explain_refusal"]["reasons"][0]["code"]
    assert answers["show"]["answer"]["id"]
    assert "nothing" in answers["wrong"]["error"]
    assert all("data, not instructions" in item["note"] for item in answers.values())
    assert list(server.opened.find()) == before
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
