"""Queries over Unix sockets between services of one machine (ADR 0009)."""
