"""Registers the fixtures on real servers for every test of the workspace, and marks promises."""

import gc
import os
import tempfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import httpcore2
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.internal.detection import is_hypothesis_test
from typing_extensions import override
from xdist.remote import Producer
from xdist.scheduler import LoadFileScheduling

from libs.pml_local.tests.support.patience import SLOWNESS

pytest_plugins = ["libs.pml_local.tests.support.harness", "tools.gate.tracing"]

TEST_S = 300.0
"""A test that hangs fails with its stacks, long after the longest would have ended."""
os.environ.setdefault("PYTEST_TIMEOUT", str(TEST_S * SLOWNESS))  # read by pytest-timeout

# How long an example takes, and how long it takes to make one, depends on the machine's load.
settings.register_profile(
    "pml",
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    max_examples=50 * int(os.environ.get("PML_EXAMPLES", "1")),
)
settings.load_profile("pml")

# The authorities that a client trusts are read for each of a thousand: 20 ms of processor time.
httpcore2.default_ssl_context = cache(httpcore2.default_ssl_context)

ROOT = Path(__file__).parent
OWN_STACKS = frozenset({"test_demo.py", "test_examples.py", "test_signatures.py"})
"""Files of tests/e2e that start stacks of their own."""
PROMISES = (
    "tests/binding",
    "tests/crashes",
    "tests/e2e/test_crashes.py",
    "tests/e2e/test_parking.py",
    "tests/faults",
    "tests/walls",
    "libs/pml_common/tests/integration/test_bus_restarts.py",
    "services/executor/tests/hostile",
    "services/executor/tests/integration/test_deno_replay.py",
    "services/executor/tests/integration/test_parking_replay.py",
    "services/gateway/tests/integration/test_gateway_outages.py",
    "services/gateway/tests/integration/test_ledger_outages.py",
    "services/registry/tests/integration/test_record_races.py",
)
"""Tests of what must never fail, not even once: crashes, faults, hostile programs, what is bound
to what was shown, durability. The gate gives them no second try (tools/gate/tests.py)."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests of promises. Properties count for no coverage: what they reach is chance, and
    tracing doubles their time."""
    folders = [ROOT / each for each in PROMISES]
    for item in items:
        if any(item.path.is_relative_to(folder) for folder in folders):
            item.add_marker("promise")
        if is_hypothesis_test(getattr(item, "obj", None)):
            item.add_marker("no_cover")


class OneStack(LoadFileScheduling):
    """Gives a process one file at a time, but all files that share the stack of tests/e2e: its
    start takes longer than most of them."""

    @override
    def _split_scope(self, nodeid: str) -> str:
        file = super()._split_scope(nodeid)
        own = file.removeprefix("tests/e2e/") in OWN_STACKS
        return "tests/e2e" if file.startswith("tests/e2e/") and not own else file


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> OneStack | None:
    """Distribute tests by file (`--dist loadfile`) with the shared stack in mind."""
    return OneStack(config, log) if config.getoption("dist") == "loadfile" else None


def pytest_collection_finish() -> None:
    """Keep the collector from walking, again and again, what lives as long as the session."""
    gc.collect()
    gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def state_home() -> Iterator[None]:
    """Keep approvers' keys of stacks under test out of the tester's own folders."""
    with tempfile.TemporaryDirectory(prefix="pml-state-") as folder:
        os.environ["XDG_STATE_HOME"] = folder
        os.environ.pop("PML_APPROVER_KEY_FILE", None)
        yield
