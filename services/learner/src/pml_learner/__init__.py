"""Traces, priorities, values and learned paths."""
