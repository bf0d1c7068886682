"""Results of capabilities that are served from the cache, and those that are not."""

import asyncio
from dataclasses import replace
from datetime import timedelta
from uuid import UUID

import pytest

from libs.pml_local.tests.support.databases import SharedDatabase
from pml_common.contracts.scope import Scope
from pml_common.testing.memory_bus import MemoryBus
from pml_gateway.adapters.bus.results import BusResults
from pml_gateway.domain.api.api import ExecuteRequest
from pml_gateway.domain.workflow.workflow import Approval, Workflow
from pml_gateway.ports import Caller
from services.gateway.tests.support.builders import AT, NESTED_HASH, READ, SCOPE, WRITE, workflow
from services.gateway.tests.support.cached import (
    MEMOIZE,
    PERSISTENT,
    allow,
    choose,
    learn,
    look,
    with_cache,
)
from services.gateway.tests.support.fakes import record
from services.gateway.tests.support.harness import Json, World

pytestmark = pytest.mark.integration


async def test_without_a_cache_policy_every_call_runs(w: World) -> None:
    first, again = await look(w), await look(w)
    assert first["workflow_id"] != again["workflow_id"]
    assert "cached" not in again
    assert len(w.peers.runs) == 2


@pytest.mark.parametrize("cache", [MEMOIZE, PERSISTENT])
async def test_a_call_with_the_same_arguments_is_answered_without_a_run(
    w: World, cache: Json
) -> None:
    await choose(w, cache)
    first = await look(w)
    assert "cached" not in first
    assert await look(w) == {**first, "cached": True}
    by_id = await look(w, capability=first["capability_id"])
    assert (by_id["cached"], by_id["workflow_id"]) == (True, first["workflow_id"])
    assert (await w.workflow(first["workflow_id"]))["result"] == first["result"]
    other = await look(w, "/b")
    assert "cached" not in other
    assert len(w.peers.runs) == 2


async def test_a_run_with_effects_is_not_cached(w: World) -> None:
    await choose(w, MEMOIZE)
    w.peers.tools = (READ, WRITE)
    allow(w, ("fs:write", "allow"))
    await look(w)
    assert "cached" not in await look(w)


@pytest.mark.parametrize("rule", ["fs:read", "cap:fs:look"])
async def test_a_result_that_the_policy_denies_now_is_not_served(w: World, rule: str) -> None:
    await choose(w, MEMOIZE)
    first = await look(w)
    allow(w, (rule, "deny"))
    assert "cached" not in await look(w)
    assert len(w.peers.requests) == 2
    allow(w)
    again = await look(w)
    assert again["cached"]
    # A denied run leaves what was kept; one of a capability that was asked about took its place.
    assert (again["workflow_id"] == first["workflow_id"]) == (rule == "fs:read")


async def test_after_a_change_of_a_tool_the_capability_runs(w: World) -> None:
    await choose(w, PERSISTENT)
    await look(w)
    changed = READ.model_copy(update={"description": "Reads another way."})
    w.servers.listed = {"fs": (changed, WRITE)}
    w.peers.tools = (changed,)
    assert "cached" not in await look(w)
    assert (await look(w))["cached"]
    w.servers.listed = {}
    assert "cached" not in await look(w)


async def test_after_a_change_of_the_code_the_capability_runs(w: World) -> None:
    await choose(w, PERSISTENT)
    await look(w)
    cache = w.peers.names["fs:look"].cache
    learn(w, "return 'new';", cache=cache, code_hash="ef" * 32)
    assert "cached" not in await look(w)


async def test_a_failed_run_is_not_cached(w: World) -> None:
    learn(w, "fail")
    await choose(w, MEMOIZE)
    assert (await look(w))["status"] == "error"
    assert (await look(w))["status"] == "error"
    assert len(w.peers.runs) == 2


async def test_pending_and_approved_workflows_are_not_cached(w: World) -> None:
    learn(w, "ask")
    await choose(w, MEMOIZE)
    asked = await look(w)
    assert asked["status"] == "approval_required"
    done = await w.decide(asked["workflow_id"], "approve", wait=True)
    assert done.json()["status"] == "success"
    joined = await look(w)
    assert (joined["joined"], joined["workflow_id"]) == (True, asked["workflow_id"])
    again = await look(w)
    assert again["status"] == "approval_required"
    assert again["workflow_id"] != asked["workflow_id"]


async def test_a_result_is_judged_by_what_is_stored_of_its_workflow(
    w: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another gateway has stored an approval that this one has not heard of."""

    read = w.kept.get

    async def approved(scope: Scope, workflow_id: UUID) -> Workflow:
        stored = await read(scope, workflow_id)
        assert stored is not None
        return replace(stored, approval=Approval(workflow_id, AT, AT, "approved", "noor", AT))

    await choose(w, MEMOIZE)
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(w.kept, "get", approved)
        assert (await look(w))["status"] == "success"
    assert "cached" not in await look(w)


async def test_a_dry_run_is_neither_cached_nor_served_from_the_cache(w: World) -> None:
    await choose(w, MEMOIZE)
    dry = await look(w, dry_run=True)
    first = await look(w)
    assert "cached" not in first
    assert (await look(w))["cached"]
    again = await look(w, dry_run=True)
    assert "cached" not in again
    assert len({dry["workflow_id"], first["workflow_id"], again["workflow_id"]}) == 3


async def test_an_idempotency_key_has_an_execution_of_its_own(w: World) -> None:
    await choose(w, MEMOIZE)
    first = await look(w)
    keyed = await look(w, idempotency_key="k")
    assert "cached" not in keyed
    assert keyed["workflow_id"] != first["workflow_id"]
    assert await look(w, idempotency_key="k") == keyed
    assert (await look(w))["workflow_id"] == first["workflow_id"]


async def test_two_calls_at_once_both_run_and_are_both_right(w: World) -> None:
    await choose(w, MEMOIZE)
    answers = await asyncio.gather(look(w), look(w))
    assert all(answer["status"] == "success" for answer in answers)
    assert (await look(w))["workflow_id"] in {answer["workflow_id"] for answer in answers}


async def test_after_its_time_to_live_a_result_is_not_served(w: World) -> None:
    await choose(w, {"policy": "persistent", "ttl_s": 60})
    parts, cache = w.parts, w.parts.use_cases.cache
    request = ExecuteRequest(capability="fs:look", args={"path": "/a"})
    await with_cache(w, cache).execute(SCOPE, "mira", request)
    for seconds, cached in ((0, True), (61, False)):
        waited = timedelta(seconds=seconds)
        later = replace(cache, now=lambda waited=waited: parts.bus.now() + waited)
        answer = await with_cache(w, later).execute(SCOPE, "mira", request)
        assert answer.cached is cached


async def test_after_a_change_of_a_nested_capability_the_capability_runs(w: World) -> None:
    learn(w, "nested")
    w.peers.names["fs_look"] = record(workflow(), "fs:inner", NESTED_HASH)
    await choose(w, MEMOIZE)
    await look(w)
    assert (await look(w))["cached"]
    w.peers.names["fs_look"] = record(workflow(), "fs:inner", "ef" * 32)
    assert "cached" not in await look(w)
    assert {*w.peers.described_for} == {"mira"}
    allow(w, ("cap:fs:inner", "deny"))
    w.peers.names["fs_look"] = record(workflow(), "fs:inner", NESTED_HASH)
    assert "cached" not in await look(w)


async def test_mcp_clients_get_cached_results(w: World) -> None:
    await choose(w, MEMOIZE)
    calls = w.tools
    args: Json = {"capability": "cap:fs:look", "args": {"path": "/a"}}
    w.peers.names["cap:fs:look"] = w.peers.names["fs:look"]
    first = await calls.call(Caller(SCOPE, "mira"), "pml_execute", args)
    again = await calls.call(Caller(SCOPE, "mira"), "pml_execute", args)
    assert first.structured_content is not None
    assert again.structured_content == {**first.structured_content, "cached": True}


async def test_with_the_cache_unavailable_a_capability_runs(w: World) -> None:
    await choose(w, MEMOIZE)
    await look(w)
    gone = MemoryBus()
    gone.kill()
    away = replace(w.parts.use_cases.cache, memoized=BusResults(gone, w.parts.bus.now))
    request = ExecuteRequest(capability="fs:look", args={"path": "/a"})
    answer = await with_cache(w, away).execute(SCOPE, "mira", request)
    assert (answer.status, answer.cached) == ("success", False)
    assert (await look(w))["cached"]


async def test_a_result_whose_workflow_is_gone_is_not_served(
    w: World, shared: SharedDatabase
) -> None:
    await choose(w, MEMOIZE)
    await look(w)
    await w.broker.settled()
    await shared.empty()
    assert "cached" not in await look(w)
