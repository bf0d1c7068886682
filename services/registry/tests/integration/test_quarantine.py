"""Tools in quarantine and learned outputs."""

import asyncio
from uuid import uuid4

import pytest

from pml_common.contracts.gateway import ObservedOutput, OutputsObserved, ToolsListed
from pml_common.contracts.registry import Discover, ListTools, ToolCatalog
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject, QuarantinedTool, ToolDefinition
from pml_common.json_shapes import as_schema, merged, shape_of
from pml_registry.entrypoints.bus.on_discover import on_discover
from pml_registry.entrypoints.bus.on_list_tools import on_list_tools
from pml_registry.entrypoints.bus.on_outputs_observed import on_outputs_observed
from pml_registry.entrypoints.bus.on_tools_listed import on_tools_listed
from pml_registry.ports.vectors import Embedder
from services.registry.tests.support.builders import ELSEWHERE, SCOPE, listed, tool
from services.registry.tests.support.stores import Stores

pytestmark = pytest.mark.integration

READ, WRITE = tool("fs:read", "Reads a file."), tool("fs:write", "Writes a file.")
HELD = QuarantinedTool(
    server="fs", name="read", changed=("description",), definition_hash="ab" * 32
)


def _held(*tools: ToolDefinition, held: tuple[QuarantinedTool, ...] = (HELD,)) -> ToolsListed:
    return listed(*tools).model_copy(update={"quarantined": held})


async def _catalog(stores: Stores, server: str | None = None, scope: Scope = SCOPE) -> ToolCatalog:
    return await on_list_tools(ListTools(scope=scope, server=server), stores.tools)


async def test_a_tool_in_quarantine_is_listed_as_such_and_not_found(
    stores: Stores, embedder: Embedder
) -> None:
    await on_tools_listed(listed(READ, WRITE), stores.tools, embedder)
    message = _held(WRITE)
    for _ in range(2):
        assert len(await on_tools_listed(message, stores.tools, embedder)) == 1
    known = await _catalog(stores)
    assert ([each.name for each in known.tools], known.quarantined) == (["write"], (HELD,))
    assert (await _catalog(stores, "git")).quarantined == ()
    assert (await _catalog(stores, scope=ELSEWHERE)).quarantined == ()
    found = await on_discover(
        Discover(scope=SCOPE, intent="read a file"), embedder, stores.index, stores.candidates
    )
    assert [hit.id for hit in found.hits] == ["fs:write"]


async def test_the_end_of_a_quarantine_is_a_change(stores: Stores, embedder: Embedder) -> None:
    await on_tools_listed(_held(WRITE), stores.tools, embedder)
    assert not await on_tools_listed(_held(WRITE), stores.tools, embedder)
    assert len(await on_tools_listed(_held(WRITE, held=()), stores.tools, embedder)) == 1
    assert (await _catalog(stores)).quarantined == ()


async def test_only_valid_tools_of_the_server_itself_are_in_quarantine(
    stores: Stores, embedder: Embedder
) -> None:
    others = [
        HELD.model_copy(update=update)
        for update in ({"server": "git"}, {"name": "a b"}, {"name": "write"})
    ]
    await on_tools_listed(_held(WRITE, held=(*others, HELD)), stores.tools, embedder)
    assert (await _catalog(stores)).quarantined == (HELD,)


def _shape(value: JsonObject) -> JsonObject:
    found = shape_of(value)
    assert found is not None
    return found


ONE, TWO = _shape({"size": 1, "path": "x"}), _shape({"size": 1.5})


def _observed(*shapes: JsonObject, of: ToolDefinition = READ) -> OutputsObserved:
    outputs = tuple(
        ObservedOutput(name=of.name, definition_hash=of.definition_hash, result_schema=shape)
        for shape in shapes
    )
    return OutputsObserved(scope=SCOPE, event_id=uuid4(), server=of.server, outputs=outputs)


async def _learned(stores: Stores) -> JsonObject | None:
    return (await _catalog(stores, "fs")).tools[0].learned_output


async def test_a_learned_output_is_only_widened(stores: Stores, embedder: Embedder) -> None:
    await on_tools_listed(listed(READ), stores.tools, embedder)
    assert await _learned(stores) is None
    for shape, changed, known in (
        (ONE, 1, ONE),
        (ONE, 0, ONE),
        (TWO, 1, merged(ONE, TWO)),
        (ONE, 0, merged(ONE, TWO)),
    ):
        message = _observed(shape)
        for _ in range(2):
            assert len(await on_outputs_observed(message, stores.tools)) == changed
        assert await _learned(stores) == as_schema(known)


async def test_a_learned_output_is_no_part_of_the_definition(
    stores: Stores, embedder: Embedder
) -> None:
    await on_tools_listed(listed(READ), stores.tools, embedder)
    await on_outputs_observed(_observed(ONE), stores.tools)
    (known,) = (await _catalog(stores)).tools
    assert known.learned_output is not None
    assert known.definition_hash == READ.definition_hash
    assert not await on_tools_listed(listed(READ), stores.tools, embedder)


async def test_another_definition_is_learned_anew_and_a_tool_that_returns_keeps_what_was(
    stores: Stores, embedder: Embedder
) -> None:
    await on_tools_listed(listed(READ), stores.tools, embedder)
    await on_outputs_observed(_observed(ONE), stores.tools)
    for message in (listed(), listed(READ)):
        await on_tools_listed(message, stores.tools, embedder)
    assert await _learned(stores) == as_schema(ONE)
    other = tool("fs:read", "other")
    await on_tools_listed(listed(other), stores.tools, embedder)
    assert await _learned(stores) is None
    assert not await on_outputs_observed(_observed(ONE), stores.tools)
    await on_outputs_observed(_observed(TWO, of=other), stores.tools)
    assert await _learned(stores) == as_schema(TWO)


async def test_what_is_observed_at_once_is_merged(stores: Stores, embedder: Embedder) -> None:
    await on_tools_listed(listed(READ), stores.tools, embedder)
    shapes = [_shape({f"part{n}": n}) for n in range(6)]
    await asyncio.gather(*(on_outputs_observed(_observed(shape), stores.tools) for shape in shapes))
    learned = await _learned(stores)
    assert learned is not None
    assert learned["required"] == []
    assert isinstance(learned["properties"], dict)
    assert len(learned["properties"]) == 6


async def test_what_a_server_says_itself_stands(stores: Stores, embedder: Embedder) -> None:
    typed = READ.model_copy(update={"output_schema": {"type": "object"}})
    await on_tools_listed(listed(typed), stores.tools, embedder)
    await on_outputs_observed(_observed(ONE, of=typed), stores.tools)
    assert await _learned(stores) is None
