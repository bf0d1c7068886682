"""Provides edges between tools, from JSON Schemas alone: shared by analyzer and registry."""
