"""More requests than the stack can take: the surplus is refused, the rest is served fairly."""

import asyncio
import json
import sys
from collections.abc import AsyncGenerator
from dataclasses import replace
from itertools import count
from pathlib import Path

import httpx2
import pytest

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_local.composition import StackOptions
from pml_local.ports import free_port
from pml_local.services import GATEWAY, pml_services
from pml_local.stack import embedded_stack
from tests.e2e.collector import Collector
from tests.e2e.harness import StackHarness

pytestmark = [pytest.mark.integration, pytest.mark.nightly]

ROOT = Path(__file__).parents[2]
IN_FLIGHT, WAITING = 2, 3
Asked = asyncio.Task[httpx2.Response]
PROGRAM = "return await mcp.counting.step({ n: args.n });"


@pytest.fixture(scope="module")
async def stack(tmp_path_factory: pytest.TempPathFactory) -> AsyncGenerator[StackHarness]:
    """A stack with small limits, whose callers name themselves and may call the counting tools."""
    home = tmp_path_factory.mktemp("pml")
    folder = tmp_path_factory.mktemp("counted")
    servers, policy = home / "servers.json", home / "policy.json"
    server = [str(ROOT / "tests/e2e/counting_server.py"), str(folder)]
    counting = {"command": sys.executable, "args": server, "trust": "hints"}
    servers.write_text(json.dumps({"mcpServers": {"counting": counting}}))
    allowed = {"pattern": "counting:*", "verdict": "allow"}
    policy.write_text(json.dumps({"rules": [allowed]}))
    options = StackOptions(
        home=home / "data",
        gateway_port=free_port(),
        mcp_servers=servers,
        env={
            "PML_GATEWAY_POLICY_FILE": str(policy),
            "PML_GATEWAY_MAX_IN_FLIGHT": str(IN_FLIGHT),
            "PML_GATEWAY_MAX_WAITING_PER_SCOPE": str(WAITING),
        },
        services=[
            replace(
                service,
                argv=(sys.executable, "-m", "tests.faults.crowded_gateway"),
                env={**service.env, "PYTHONPATH": str(ROOT)},
            )
            if service.name == GATEWAY
            else service
            for service in pml_services()
        ],
    )
    async with (
        embedded_stack(options) as stack,
        httpx2.AsyncClient(base_url=stack.url, timeout=PATIENCE_S) as http,
    ):
        harness = StackHarness(stack, http, folder, Collector(""))
        await eventually(lambda: _runs(harness))
        yield harness


_keys = count()


def ask(w: StackHarness, principal: str, step: int) -> Asked:
    """Request a run of one step, under its own key."""
    body = {"code": PROGRAM, "args": {"n": step}, "idempotency_key": f"k{next(_keys)}"}
    headers = {"X-Principal": principal}
    return asyncio.create_task(w.http.post("/api/execute", json=body, headers=headers))


async def _runs(w: StackHarness) -> bool:
    """Whether a program can call the tools yet."""
    return (await ask(w, "ana", 0)).json().get("status") == "success"


async def _workflows(w: StackHarness) -> int:
    return (await w.http.get("/api/workflows")).json()["total"]


def order(w: StackHarness) -> list[int]:
    """The steps in the order they began."""
    return [int(line) for line in (w.folder / "steps.log").read_text(encoding="utf-8").split()]


async def test_exactly_the_surplus_is_refused_and_all_that_is_accepted_ends(
    stack: StackHarness,
) -> None:
    surplus, before = 6, await _workflows(stack)
    steps = range(100, 100 + IN_FLIGHT + WAITING + surplus)
    for step in steps:
        stack.hold(step)
    asked = {step: ask(stack, "ana", step) for step in steps}
    await eventually(lambda: sum(task.done() for task in asked.values()) >= surplus)
    for step in steps:
        stack.release(step)
    answers = {step: await task for step, task in asked.items()}
    refused = {step for step, answer in answers.items() if answer.status_code == 429}
    assert len(refused) == surplus
    for step in refused:
        assert int(answers[step].headers["retry-after"]) >= 1
        assert f"({WAITING} may)" in answers[step].json()["error"]["message"]
    accepted = set(steps) - refused
    assert {answers[step].json()["status"] for step in accepted} == {"success"}
    made = stack.steps()
    assert {step: made[step] for step in steps} == {step: int(step in accepted) for step in steps}
    assert await _workflows(stack) == before + len(accepted)


async def test_a_run_is_not_delayed_behind_the_backlog_of_another_principal(
    stack: StackHarness,
) -> None:
    mine = [200, 201, 202, 203, 204]
    for step in mine:
        stack.hold(step)
    backlog = [ask(stack, "ana", step) for step in mine]
    await eventually(lambda: len(set(order(stack)) & set(mine)) == IN_FLIGHT)
    theirs = ask(stack, "bo", 300)
    begun = [step for step in order(stack) if step in mine]
    await eventually(lambda: sum(task.done() for task in backlog) == 1)
    stack.release(begun[0])
    assert (await theirs).json()["status"] == "success"
    for step in mine:
        stack.release(step)
    answers = [await task for task in backlog]
    assert sorted(answer.status_code for answer in answers) == [200, 200, 200, 200, 429]
    later = [step for step in order(stack) if step in [*mine, 300]]
    assert later.index(300) == IN_FLIGHT
