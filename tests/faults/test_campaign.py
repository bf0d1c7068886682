"""A sample of the fault campaign: a few faults under load. `make faults` runs the whole."""

import asyncio
from pathlib import Path

import pytest

from libs.pml_local.tests.support.patience import PATIENCE_S
from tests.faults.campaign import campaign
from tests.faults.records import Fault
from tests.faults.report import report_of
from tests.faults.site import site

pytestmark = pytest.mark.e2e

WITHIN_S = 5 * PATIENCE_S
SEED = 9
FAULTS = (
    Fault("kill", "executor"),
    Fault("poison", "repeated"),
    Fault("freeze", "gateway", 1.0),
    Fault("kill", "nats"),
    Fault("poison", "forged"),
)


async def test_a_stack_under_load_keeps_its_promises_through_faults(stack_home: Path) -> None:
    async with asyncio.timeout(3 * WITHIN_S), site(stack_home, disk=False) as ready:
        outcome = await campaign(ready, FAULTS, seed=SEED, seconds=WITHIN_S)

    assert outcome.violations == [], report_of(outcome)
