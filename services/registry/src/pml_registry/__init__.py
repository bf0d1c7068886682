"""Capability registry, tool catalog and discovery."""
