"""The gateway's decisions: pure functions and frozen values."""
