"""The bridge between an MCP client on stdio and a gateway's `/mcp`."""
