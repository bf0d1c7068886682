"""The way that tool calls go on one machine."""

import pytest
from nats.aio.client import Client
from nats.aio.msg import Msg

from libs.pml_local.tests.support.harness import eventually
from pml_common.bus.connection import flush, subscribe
from pml_common.bus.names import query_subject
from pml_common.contracts.catalog import CALL_TOOL
from tests.e2e.collector import Span
from tests.e2e.harness import StackHarness

pytestmark = pytest.mark.e2e

CALLS = 20
MANY = f"""
for (let i = 0; i < {CALLS}; i++) {{ await mcp.pml_stub.echo({{ i }}); }}
return "done";
"""


async def test_tool_calls_are_requested_over_the_socket_and_not_over_nats(
    harness: StackHarness,
) -> None:
    queries, client = list[str](), Client()

    async def note(message: Msg) -> None:
        queries.append(message.subject)

    await client.connect(harness.stack.nats_url)
    try:
        await subscribe(client, query_subject(CALL_TOOL), note)
        await flush(client)

        async def over_socket() -> str | None:
            """Run until the executor has found the socket; returns the workflow."""
            queries.clear()
            ran = await harness.execute(MANY)
            assert ran["result"] == "done"
            return None if queries else str(ran["workflow_id"])

        workflow = await eventually(over_socket)
    finally:
        await client.close()

    def served() -> list[Span] | None:
        spans = harness.telemetry.of_workflow(workflow)
        found = [span for span in spans if span.name in ("ask call-tool", "serve call-tool")]
        return found if len(found) == 2 * CALLS else None

    spans = await eventually(served)
    assert {span.attributes["network.transport"] for span in spans} == {"unix"}
