"""The bound of waits scales with the machine."""

import os
import subprocess
import sys

import pytest

from libs.pml_local.tests.support import patience


@pytest.mark.parametrize(
    ("ratio", "scaled_by"), [(0.2, 1.0), (1.0, 1.0), (4.5, 4.5), (900.0, patience.MOST)]
)
def test_a_slow_machine_gets_more_time_but_not_forever(ratio: float, scaled_by: float) -> None:
    assert patience.factor(ratio) == scaled_by


def test_a_session_measures_once_and_its_processes_inherit_the_factor(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    ratios = iter([7.5, 2.0])
    monkeypatch.setattr(patience, "measured", lambda: next(ratios))
    monkeypatch.delenv(patience.VARIABLE)
    assert (patience.slowness(), patience.slowness()) == (7.5, 7.5)
    module = "libs.pml_local.tests.support.patience"
    printed = subprocess.run(
        [sys.executable, "-m", module],
        capture_output=True,
        text=True,
        timeout=patience.PATIENCE_S,
    )
    assert printed.stdout == "7.5\n"


def test_the_work_is_measured() -> None:
    assert patience.measured() > 0


def test_a_hanging_test_ends_later_than_its_waits(pytestconfig: pytest.Config) -> None:
    assert float(os.environ["PYTEST_TIMEOUT"]) > 3 * patience.PATIENCE_S
    assert pytestconfig.pluginmanager.hasplugin("timeout")
