"""A sample of the crash suite: kills at a point of each program, and some zombies.

`make crash` runs the whole suite.
"""

import asyncio
from pathlib import Path

import pytest

from libs.pml_local.tests.support.patience import PATIENCE_S
from tests.crashes.crash_stack import crash_stack
from tests.crashes.suite import crash_suite

pytestmark = pytest.mark.e2e

WITHIN_S = 15 * PATIENCE_S


async def test_runs_end_the_same_wherever_their_executors_die_or_freeze(stack_home: Path) -> None:
    async with asyncio.timeout(WITHIN_S), crash_stack(stack_home) as ready:
        report = await crash_suite(ready, every=False)

    assert report.failures == [], "\n".join(report.lines())
