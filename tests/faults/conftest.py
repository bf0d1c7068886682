"""The embedded stack of the end-to-end tests."""

from tests.e2e.conftest import harness as harness
