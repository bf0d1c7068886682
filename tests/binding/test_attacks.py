"""Programs that try to pass arguments that were not shown: a sample, with the real and a lying
analysis.

`make bound-attacks` runs all of them with every lie.
"""

import asyncio
from pathlib import Path

import pytest

from libs.pml_local.tests.support.patience import PATIENCE_S
from tests.binding.attacks import attacks
from tests.binding.stage import stage
from tests.binding.suite import as_it_is, suite, with_lies

pytestmark = pytest.mark.e2e

EVERY = 80
WITHIN_S = 15 * PATIENCE_S


async def test_nothing_arrives_that_was_neither_shown_nor_asked_about(stack_home: Path) -> None:
    some = attacks()[::EVERY]
    trials = [*as_it_is(some), *with_lies(some, every=False)]
    async with asyncio.timeout(WITHIN_S), stage(stack_home, lanes=2, lying=True) as ready:
        report = await suite(ready, trials)

    assert report.failures == [], "\n".join(report.lines())
