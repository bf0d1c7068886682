"""The whole embedded stack, as the end-to-end tests have it."""

from tests.e2e.conftest import world as world
