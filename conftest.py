"""Registers the fixtures on real servers for every test of the workspace."""

import os
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, settings

pytest_plugins = ["libs.pml_local.tests.support.harness"]

# How long an example takes, and how long it takes to make one, depends on the machine's load.
settings.register_profile("pml", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("pml")


@pytest.fixture(scope="session", autouse=True)
def state_home() -> Iterator[None]:
    """Keep approvers' keys of stacks under test out of the tester's own folders."""
    with tempfile.TemporaryDirectory(prefix="pml-state-") as folder:
        os.environ["XDG_STATE_HOME"] = folder
        os.environ.pop("PML_APPROVER_KEY_FILE", None)
        yield
