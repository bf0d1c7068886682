"""`pml demo`: the main job, on real MCP servers, checked at every step."""
