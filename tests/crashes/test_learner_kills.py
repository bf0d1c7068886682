"""A sample of `tests.crashes.learner_kills`; `make crash-learner` kills 100."""

import asyncio
from pathlib import Path

import pytest

from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.contracts.catalog import SERVICES
from pml_local.keys import make_keys
from tests.crashes.learner_kills import kill_learners

pytestmark = pytest.mark.integration

WITHIN_S = 2 * PATIENCE_S


async def test_killed_learners_lose_no_trace_and_learn_none_twice(
    nats_url: str, learner_dsn: str, stack_home: Path
) -> None:
    make_keys(stack_home / "keys", SERVICES)
    async with asyncio.timeout(WITHIN_S):
        outcome = await kill_learners(nats_url, learner_dsn, stack_home, kills=2, seed=7)
    assert outcome.faults == [], outcome
    assert (outcome.kills, outcome.runs > 0) == (2, True)
