"""Implementations of the registry's ports."""
