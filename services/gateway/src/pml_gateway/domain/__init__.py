"""What the gateway decides: pure functions and frozen values."""
