"""Hostile programs: they try to escape, or to exhaust resources."""
