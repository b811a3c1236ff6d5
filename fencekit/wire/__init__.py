"""MCP as frames: bytes kept, nothing re-modelled, no SDK. Shared by the proxy and the probe."""
