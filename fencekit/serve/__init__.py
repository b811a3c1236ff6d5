"""The fence as an MCP server on stdio."""
