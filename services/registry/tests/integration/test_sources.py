"""Story 10.5: sources of capabilities."""

import pytest

from pml_common.contracts.dns import Fork, SetVisibility
from pml_common.contracts.registry import CapabilityHit, Discover
from pml_common.contracts.source import CapabilitySource, FromCode, FromDag, FromTool
from pml_common.contracts.tool import JsonObject
from pml_registry.domain.visibility import Viewer
from pml_registry.entrypoints.bus.on_discover import on_discover
from pml_registry.ports.vectors import Embedder
from services.registry.tests.support.builders import (
    ELSEWHERE,
    HASH,
    UNNAMED,
    analysed,
    learning_update,
)
from services.registry.tests.support.store_driver import StoreDriver
from services.registry.tests.support.stores import Stores

pytestmark = pytest.mark.integration

TASK: JsonObject = {"id": "a", "tool": "fs:read", "arguments": {"path": "a\x00b"}, "depends_on": []}
DAG = FromDag(dag={"tasks": [TASK]})
TOOL = FromTool(tool_id="fs:read", default_args={"path": "a\x00b"})
STRANGER = Viewer(ELSEWHERE, "agent-9")


@pytest.mark.parametrize(
    ("source", "kept"),
    [(None, FromCode()), (FromCode(), FromCode()), (DAG, DAG), (TOOL, TOOL)],
    ids=["none", "code", "dag", "tool"],
)
async def test_story_10_5_a_saved_source_is_retrieved(
    registry: StoreDriver, source: CapabilitySource | None, kept: CapabilitySource
) -> None:
    analysis = analysed().model_copy(update={"source": source})
    await registry.analysed(analysis)
    record = await registry.resolve(UNNAMED)
    assert record.source == kept
    assert (record.capability_id, record.code_hash) == (analysis.capability.capability_id, HASH)
    assert record.code == analysis.code
    assert (await registry.lookup(str(record.record_id))).source_type == kept.type
    assert (await registry.whois(str(record.record_id))).record.source == kept


async def test_the_first_source_of_a_program_stays(registry: StoreDriver) -> None:
    await registry.analysed(analysed().model_copy(update={"source": DAG}))
    for later in (None, TOOL):
        await registry.analysed(analysed().model_copy(update={"source": later}))
        assert (await registry.resolve(UNNAMED)).source == DAG


async def test_a_copy_in_another_scope_has_the_source(registry: StoreDriver) -> None:
    await registry.named("fs:ensure", analysed().model_copy(update={"source": DAG}))
    await registry.change("fs:ensure", SetVisibility(visibility="public"))
    (called,) = await registry.describe("cap:acme.webapp:fs:ensure", scope=ELSEWHERE)
    assert called.capability is not None
    adopted = await registry.resolve(str(called.capability.capability_id), ELSEWHERE)
    assert (adopted.scope, adopted.source) == (ELSEWHERE, DAG)


async def test_a_fork_has_the_source(registry: StoreDriver) -> None:
    await registry.named("fs:ensure", analysed().model_copy(update={"source": TOOL}))
    await registry.change("fs:ensure", SetVisibility(visibility="public"))
    await registry.change("cap:acme.webapp:fs:ensure", Fork(name="fs:mine"), STRANGER)
    forked = await registry.resolve("fs:mine", ELSEWHERE)
    assert (forked.scope, forked.source) == (ELSEWHERE, TOOL)


async def test_a_hit_says_the_source_with_a_preview(stores: Stores, embedder: Embedder) -> None:
    registry = StoreDriver(stores, embedder)
    code = "\n".join(f'await mcp.call("fs:read", {{ part: {n} }});' for n in range(20))
    analysis = analysed(intent="read one file", code=code).model_copy(update={"source": DAG})
    await registry.named("fs:ensure", analysis)
    await registry.learned(learning_update())
    query = Discover(scope=analysis.scope, intent="read one file")
    (hit,) = (await on_discover(query, embedder, stores.index, stores.candidates)).hits
    assert isinstance(hit, CapabilityHit)
    assert hit.source_type == "dag"
    *lines, rest = hit.preview.split("\n")
    assert (lines, rest) == (code.split("\n")[: len(lines)], "…")
    assert 200 < len(hit.preview) <= 240
    assert (await registry.lookup("fs:ensure")).preview == hit.preview
