"""The server of a team: HTTP, pages and MCP over one store, with the calls that the commands make."""
