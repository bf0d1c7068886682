"""Capability DNS, tool catalogue and discovery."""
