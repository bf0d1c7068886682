"""Registers the fixtures on real servers for every test of the workspace."""

import os
import tempfile
from collections.abc import Iterator

import pytest
from hypothesis import settings

pytest_plugins = ["pml_local.testing"]

# How long an example takes says how busy the machine is.
settings.register_profile("pml", deadline=None)
settings.load_profile("pml")


@pytest.fixture(scope="session", autouse=True)
def state_home() -> Iterator[None]:
    """Approvers' keys of stacks under test lie in no folder of the tester's."""
    with tempfile.TemporaryDirectory(prefix="pml-state-") as folder:
        os.environ["XDG_STATE_HOME"] = folder
        os.environ.pop("PML_APPROVER_KEY_FILE", None)
        yield
