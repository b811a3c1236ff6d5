"""MCP as frames: JSON-RPC messages kept as the bytes they came in."""
