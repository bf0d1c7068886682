"""Decisions of the registry as pure functions."""
