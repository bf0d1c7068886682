"""Fixtures of the command's tests."""

from libs.pml_cli.tests.scripted import gateway

__all__ = ["gateway"]
