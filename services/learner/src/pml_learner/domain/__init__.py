"""Learning rules as pure functions."""
