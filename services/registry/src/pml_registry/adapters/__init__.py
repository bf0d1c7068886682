"""Implementations of the registry's ports on real systems and in memory."""
