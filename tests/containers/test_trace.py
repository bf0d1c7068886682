"""One workflow is one trace of all five services in a real OTLP backend."""

import pytest

from libs.pml_local.tests.support.harness import eventually
from tests.containers.stack import ContainerStack
from tests.containers.traces import spans_of
from tests.e2e.collector import Span
from tests.e2e.traces import check_trace, is_whole

pytestmark = [pytest.mark.containers, pytest.mark.core]


async def test_one_workflow_is_one_trace_in_the_backend(containers: ContainerStack) -> None:
    answer = await containers.execute('return await mcp.counting.peek({ path: "/nowhere" });')
    assert answer["status"] == "success", answer

    async def whole_trace() -> list[Span] | None:
        spans = await spans_of(containers.traces_url, str(answer["workflow_id"]))
        return spans if is_whole(spans) else None

    check_trace(await eventually(whole_trace), "counting:peek")
