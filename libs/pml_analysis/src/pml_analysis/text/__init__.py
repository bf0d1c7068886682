"""Text: whether it can be parsed, and its syntax errors."""
