"""Puts the proxy in front of servers in the configuration of MCP hosts."""
