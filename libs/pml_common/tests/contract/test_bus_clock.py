"""The server's time in every replica."""

from datetime import timedelta
from uuid import uuid4

from libs.pml_common.tests.support.harness import BusHarness
from pml_common.contracts.catalog import TOOLS_LISTED
from pml_common.contracts.gateway import ToolsListed
from pml_common.contracts.scope import Scope

SCOPE = Scope(org="acme", project="webapp")


async def test_all_replicas_have_the_servers_time(harness: BusHarness) -> None:
    first, second = await harness.connect("gateway"), await harness.connect("registry")
    before = first.now()
    event_id = uuid4()
    await first.publish(ToolsListed(event_id=event_id, scope=SCOPE, server="fs", tools=()))
    after = second.now()
    [stored] = await second.history(SCOPE, "fs", of=TOOLS_LISTED)
    slack = timedelta(seconds=0.5)
    assert before - slack < stored.stored_at < after + slack
    assert (*first.outages(), *second.outages()) == ()
