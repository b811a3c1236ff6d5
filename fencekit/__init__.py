"""Retry safety for MCP tool calls: find double-fires, fence them, publish the evidence."""

__version__ = "0.1.0"
