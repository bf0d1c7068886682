"""`pml demo`: the main use case on real MCP servers, checked at every step."""
