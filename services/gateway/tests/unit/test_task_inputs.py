"""Input for tools' servers, asked of the clients that poll the tasks of direct calls."""

import asyncio
from dataclasses import dataclass, field, replace
from datetime import timedelta

import pytest

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.contracts.tool import JsonObject
from pml_common.testing.memory_broker import MemoryBroker
from pml_common.testing.memory_bus import MemoryBus
from pml_gateway.adapters.bus.open_inputs import BusOpenInputs
from pml_gateway.application import task_inputs
from pml_gateway.application.task_inputs import NoInput, PolledClient, TaskInputs
from pml_gateway.domain.workflow.workflow import Workflow
from pml_gateway.entrypoints.mcp.client_requests import EnvelopeClient
from pml_gateway.ports import ClientRefused
from services.gateway.tests.support.builders import AT, RULES, SCOPE, workflow
from services.gateway.tests.support.fake_stores import FakeWorkflows
from services.gateway.tests.support.harness import workflow_service

RUNNING = replace(workflow(), state="running", due_at=AT)
ID = RUNNING.workflow_id
ASKED: JsonObject = {"method": "elicitation/create", "params": {"message": "Who?"}}
ROOTS: JsonObject = {"method": "roots/list", "params": {}}
ANSWER: JsonObject = {"action": "accept", "content": {"name": "Ada"}}


@dataclass
class Box:
    """A task's inputs at the gateway of its call, and at another one."""

    inputs: TaskInputs
    store: FakeWorkflows
    elsewhere: BusOpenInputs
    ended: list[Workflow] = field(default_factory=list[Workflow])

    async def runs(self, workflow: Workflow) -> bool:
        return workflow not in self.ended

    async def found(self, count: int) -> dict[str, JsonObject]:
        """Return what the other gateway finds, once that is so many requests."""

        async def look() -> dict[str, JsonObject] | None:
            found = {**await self.elsewhere.find(SCOPE, ID)}
            return found if len(found) == count else None

        return await eventually(look)


@pytest.fixture
async def box(monkeypatch: pytest.MonkeyPatch) -> Box:
    monkeypatch.setattr(task_inputs, "_POLL_EVERY_S", 0.01)
    broker, store = MemoryBroker(), FakeWorkflows()
    workflows = workflow_service(store, MemoryBus(broker))
    await store.accept(RUNNING, ())
    inputs = TaskInputs(BusOpenInputs(MemoryBus(broker)), workflows, lambda: AT)
    return Box(inputs, store, BusOpenInputs(MemoryBus(broker)))


async def test_requests_are_found_and_answered_one_by_one_at_any_gateway(box: Box) -> None:
    requests = {"who": ASKED, "where": ROOTS}
    asking = asyncio.create_task(box.inputs.ask(RUNNING, requests, 60.0, box.runs))
    found = await box.found(2)
    assert sorted(map(str, found.values())) == sorted(map(str, requests.values()))
    who, where = sorted(found, key=lambda key: found[key] != ASKED)
    await box.elsewhere.answer(SCOPE, ID, who, ANSWER, 60.0)
    assert await box.found(1) == {where: ROOTS}
    assert not asking.done()
    await box.elsewhere.answer(SCOPE, ID, where, {"roots": []}, 60.0)
    assert await asyncio.wait_for(asking, PATIENCE_S) == {"who": ANSWER, "where": {"roots": []}}
    assert await box.elsewhere.find(SCOPE, ID) == {}


async def test_nobody_takes_a_workflow_for_lost_while_its_client_may_answer(box: Box) -> None:
    asking = asyncio.create_task(box.inputs.ask(RUNNING, {"who": ASKED}, 60.0, box.runs))
    (key,) = await box.found(1)
    stored = await box.store.get(SCOPE, ID)
    assert stored is not None
    assert stored.due_at == AT + timedelta(seconds=60.0 + RUNNING.timeout_s) + RULES.patience
    await box.elsewhere.answer(SCOPE, ID, key, ANSWER, 60.0)
    await asyncio.wait_for(asking, PATIENCE_S)


async def test_a_wait_ends_with_its_time_and_with_its_workflow(box: Box) -> None:
    with pytest.raises(NoInput, match=r"did not answer within 0\.01 s") as late:
        await box.inputs.ask(RUNNING, {"who": ASKED}, 0.01, box.runs)
    assert not late.value.ended
    ended = replace(RUNNING, state="failed")
    box.ended.append(ended)
    with pytest.raises(NoInput, match="has ended") as over:
        await box.inputs.ask(ended, {"who": ASKED}, 60.0, box.runs)
    assert over.value.ended
    assert await box.elsewhere.find(SCOPE, ID) == {}


async def test_a_server_that_asks_meanwhile_waits_until_the_call_is_a_task(box: Box) -> None:
    client = PolledClient(EnvelopeClient({"roots": {}}), box.inputs, RUNNING, box.runs)
    assert (client.capabilities, client.takes_requests) == ({"roots": {}}, True)
    with pytest.raises(ClientRefused):
        await client.request("roots/list", {}, 0.01)
    asking = [asyncio.create_task(client.request("roots/list", {}, 60.0)) for _ in range(2)]
    await asyncio.sleep(0)
    assert await box.elsewhere.find(SCOPE, ID) == {}
    client.begin()
    assert client.polls()
    found = await box.found(2)
    for n, key in enumerate(sorted(found)):
        await box.elsewhere.answer(SCOPE, ID, key, {"roots": [n]}, 60.0)
    answers = await asyncio.wait_for(asyncio.gather(*asking), PATIENCE_S)
    assert sorted(map(str, answers)) == ["{'roots': [0]}", "{'roots': [1]}"]
    box.ended.append(RUNNING)
    with pytest.raises(ClientRefused, match="has ended"):
        await client.request("roots/list", {}, 60.0)


async def test_a_client_that_is_answered_at_once_polls_nothing(box: Box) -> None:
    client = PolledClient(EnvelopeClient({}), box.inputs, RUNNING, box.runs)
    assert not client.polls()
    assert client.is_answered
