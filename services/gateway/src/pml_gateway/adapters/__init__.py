"""What implements the ports: MCP servers, Postgres."""
