"""The scanner: lists MCP tools from which a write is reachable, with the path to it."""
