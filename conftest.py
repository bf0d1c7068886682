"""Registers the fixtures on real servers for every test of the workspace."""

pytest_plugins = ["pml_local.testing"]
