"""Shapes of the results of tools without an output schema."""

from uuid import uuid4

import pytest
from pydantic import JsonValue

from pml_common.bus.errors import BusUnavailable
from pml_common.contracts.gateway import ObservedOutput, OutputsObserved
from pml_common.contracts.tool import ToolDefinition
from pml_common.json_shapes import MOST_VALUES
from pml_gateway.adapters.tool_router import ToolRouter
from pml_gateway.application.observed_outputs import FROM, ObservedOutputs
from pml_gateway.ports import Caller, CallOrigin
from services.gateway.tests.support.builders import SCOPE
from services.gateway.tests.support.harness import FakeServers

STAT = ToolDefinition(server="fs", name="stat")
TYPED = ToolDefinition(server="fs", name="typed", output_schema={"type": "object"})


class Sink:
    """Takes messages; may be away."""

    def __init__(self) -> None:
        self.messages: list[OutputsObserved] = []
        self.away = False

    async def publish(self, message: OutputsObserved) -> None:
        if self.away:
            raise BusUnavailable("NATS is away")
        self.messages.append(message)


@pytest.fixture
def sink() -> Sink:
    return Sink()


@pytest.fixture
def outputs(sink: Sink) -> ObservedOutputs:
    return ObservedOutputs(sink.publish, SCOPE)


def see(outputs: ObservedOutputs, *results: JsonValue, definition_hash: str = "h1") -> None:
    for result in results:
        outputs.see(STAT, definition_hash, {"size": result})


async def test_nothing_is_said_after_a_few_results(outputs: ObservedOutputs, sink: Sink) -> None:
    see(outputs, *range(FROM - 1))
    await outputs.publish_new()
    assert sink.messages == []


async def test_what_is_new_is_published_once(outputs: ObservedOutputs, sink: Sink) -> None:
    see(outputs, *range(FROM))
    for _ in range(2):
        await outputs.publish_new()
        see(outputs, 7)
    see(outputs, 1.5)
    await outputs.publish_new()
    types = [
        output.result_schema["properties"] for each in sink.messages for output in each.outputs
    ]
    assert types == [{"size": {"type": "integer"}}, {"size": {"type": "number"}}]
    assert (sink.messages[0].scope, sink.messages[0].server) == (SCOPE, "fs")


async def test_another_definition_is_observed_anew(outputs: ObservedOutputs, sink: Sink) -> None:
    see(outputs, *range(FROM))
    see(outputs, *["x"] * FROM, definition_hash="h2")
    await outputs.publish_new()
    (output,) = sink.messages[0].outputs
    assert isinstance(output, ObservedOutput)
    assert output.definition_hash == "h2"
    assert output.result_schema["properties"] == {"size": {"type": "string"}}


async def test_large_results_and_those_of_typed_tools_are_skipped(
    outputs: ObservedOutputs, sink: Sink
) -> None:
    large: list[JsonValue] = [0] * MOST_VALUES
    for _ in range(FROM):
        outputs.see(STAT, "h1", large)
        outputs.see(TYPED, "h1", {"size": 1})
    await outputs.publish_new()
    assert sink.messages == []


async def test_what_could_not_be_published_is_published_later(
    outputs: ObservedOutputs, sink: Sink
) -> None:
    see(outputs, *range(FROM))
    sink.away = True
    with pytest.raises(BusUnavailable):
        await outputs.publish_new()
    sink.away = False
    await outputs.publish_new()
    assert len(sink.messages) == 1


async def test_every_successful_call_is_seen_with_the_definition_that_was_called() -> None:
    seen: list[tuple[str, str, object]] = []

    def observe(tool: ToolDefinition, definition_hash: str, result: JsonValue) -> None:
        seen.append((tool.name, definition_hash, result))

    servers = FakeServers(listed={"fs": (STAT,)})
    router = ToolRouter([servers], observe=observe)
    origin = CallOrigin(Caller(SCOPE, "agent-7"), uuid4())
    await router.call("fs:stat", {"a": 1}, 1.0, origin)
    await router.call("fs:gone", {"a": 1}, 1.0, origin)
    assert seen == [("stat", STAT.definition_hash, {"a": 1})]
