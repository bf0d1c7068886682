"""Traces and logs, the same in every service."""
