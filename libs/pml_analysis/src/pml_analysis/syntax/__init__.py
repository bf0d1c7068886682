"""A typed, exact view over tree-sitter's TypeScript grammar; knows nothing of tools."""
