"""The proxy that stands in front of an MCP server and lets each effect through once."""
