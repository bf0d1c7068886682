"""Parameters: the arguments that a caller may pass."""
