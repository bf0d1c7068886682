"""A plugin for pytest: in the processes of xdist, coverage traces imports and the calls of tests.

Tracing doubles the time of whatever runs, also of what is not measured: pytest's own work between
two tests, and in the process that distributes them. pytest-cov begins with the first conftest and
once more with the session; of the two collectors the first goes on while the second is paused, and
nobody reads what it has.
"""

from collections.abc import Generator
from typing import Protocol, cast

import pytest


class Controller(Protocol):
    """A part of pytest-cov that it stops for tests with the marker `no_cover`."""

    def pause(self) -> None:
        """Trace nothing."""
        ...

    def resume(self) -> None:
        """Trace again."""
        ...


def controller(config: pytest.Config) -> Controller | None:
    """Return the controller of this process, if coverage is measured in it."""
    plugin = config.pluginmanager.get_plugin("_cov")
    return cast("Controller | None", getattr(plugin, "cov_controller", None))


def _in_worker(config: pytest.Config) -> bool:
    return hasattr(config, "workerinput")


@pytest.hookimpl(tryfirst=True)
def pytest_sessionstart(session: pytest.Session) -> None:
    """Stop what began with the first conftest, except where it is all there is."""
    measured = controller(session.config)
    if measured and (_in_worker(session.config) or session.config.getoption("dist") != "no"):
        measured.pause()


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> None:
    """Stop after the imports."""
    if _in_worker(session.config) and (measured := controller(session.config)):
        measured.pause()


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_call(item: pytest.Item) -> Generator[None, object, object]:
    """Trace a test's call; pytest-cov itself stops for those with `no_cover`, but goes on then."""
    measured = controller(item.config) if _in_worker(item.config) else None
    if measured is None:
        return (yield)
    measured.resume()
    try:
        return (yield)
    finally:
        measured.pause()
