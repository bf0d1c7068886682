"""Fixtures of the command's tests."""

from libs.pml_cli.tests.support.fakes import gateway

__all__ = ["gateway"]
