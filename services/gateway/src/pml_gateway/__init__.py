"""Agent-facing protocols, workflows, approvals and connections to MCP servers."""
