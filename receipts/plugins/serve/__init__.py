"""The server of a team: HTTP, pages and MCP over one store, with the calls that the commands make."""

from receipts.base.plugins import Plugin, Verb

PLUGIN = Plugin(
    verbs={
        "serve": Verb("run", "Serve a team", "Serve the store over HTTP, with pages."),
        "token": Verb("run", "Serve a team", "Create, list and revoke tokens for the server."),
        "mcp": Verb("run", "Serve a team", "Serve the store's questions to an agent, read-only."),
    },
)
