"""Names: their bindings, and the origins of their values."""
