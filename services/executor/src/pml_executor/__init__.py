"""Durable, sandboxed runs."""
