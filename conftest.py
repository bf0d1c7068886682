"""Registers the fixtures on real servers for every test of the workspace."""

from hypothesis import settings

pytest_plugins = ["pml_local.testing"]

# How long an example takes says how busy the machine is.
settings.register_profile("pml", deadline=None)
settings.load_profile("pml")
