"""Implementations of the ports: MCP client, Postgres, bus, memory."""
