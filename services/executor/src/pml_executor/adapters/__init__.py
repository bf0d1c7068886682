"""Adapters of the ports: Deno processes, the bus, and in-memory implementations for tests."""
