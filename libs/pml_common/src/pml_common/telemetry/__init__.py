"""Traces, metrics and logs, the same in every service."""
