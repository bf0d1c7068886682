"""SIGKILL of each container while runs are under way: none is lost, and no call made twice."""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from typing import cast

import pytest

from libs.pml_local.tests.support.harness import eventually
from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.contracts import ids
from pml_common.contracts.scope import Scope
from tests.containers.stack import ContainerStack
from tests.crashes.caller import Answer, Caller

pytestmark = pytest.mark.containers

THREE_CALLS = """
const first = await mcp.counting.step({ n: args.base });
const second = await mcp.counting.step({ n: args.base + 1 });
const third = await mcp.counting.step({ n: args.base + 2 });
return [first.result, second.result, third.result];
"""
STEPS, WITHIN_S = 3, 2 * PATIENCE_S
SCOPE = Scope(org="local", project="default")
REPLACED = {"executor": ("executor-1", "executor-2"), "gateway": ("gateway-1", "gateway-2")}
ALONE = ("analyzer-1", "learner-1", "registry-1", "nats-1", "postgres-1", "proxy-1")


@dataclass
class Runs:
    """Runs of three calls each: one in the middle of its second call, one that waits for its
    approval, one that is asked for later."""

    stack: ContainerStack
    name: str
    base: int
    killed: asyncio.Event = field(default_factory=asyncio.Event)
    _waits: asyncio.Event = field(default_factory=asyncio.Event)
    _answers: list[asyncio.Task[Answer]] = field(default_factory=list[asyncio.Task[Answer]])

    async def begin(self) -> None:
        """Start the first two, and wait until they are where the kill shall meet them."""
        self.stack.hold(self.base + 1)
        self._ask(0)
        self._ask(1, meanwhile=self._until_killed)
        await eventually(lambda: self.stack.steps()[self.base + 1] == 1)
        await eventually(self._waits.is_set)

    async def end(self) -> Sequence[Answer]:
        """Ask for the third, let all end, and return their answers."""
        self.killed.set()
        self._ask(2)
        self.stack.release(self.base + 1)
        async with asyncio.timeout(WITHIN_S):
            return await asyncio.gather(*self._answers)

    def made(self, run: int) -> list[int]:
        """Counts of the calls of a run that reached the tool."""
        made = self.stack.steps()
        return [made[self._base(run) + n] for n in range(STEPS)]

    def results(self, run: int) -> list[str]:
        """The result of an undisturbed run."""
        return [f"step {self._base(run) + n} done" for n in range(STEPS)]

    async def check_ended(self) -> None:
        """Assert that the ledger has every run, ended."""
        for run in range(len(self._answers)):
            workflow = ids.workflow_id(SCOPE, "local", self._key(run))
            await self.stack.end_of(str(workflow))

    def _ask(self, run: int, **more: object) -> None:
        caller = Caller(self.stack.http, approver=self.stack.approver, repeats=True, **more)  # pyright: ignore[reportArgumentType]
        asked = caller.execute(THREE_CALLS, self._key(run), {"base": self._base(run)})
        self._answers.append(asyncio.create_task(asked))

    async def _until_killed(self, question: int) -> None:
        self._waits.set()
        await self.killed.wait()

    def _key(self, run: int) -> str:
        return f"{self.name}-{run}"

    def _base(self, run: int) -> int:
        return self.base + 10 * run


@pytest.mark.core
async def test_another_executor_goes_on_where_a_killed_one_was(containers: ContainerStack) -> None:
    runs = Runs(containers, "executor", 1000)
    first, second = REPLACED["executor"]
    async with AsyncExitStack() as after:
        await containers.kill(second)
        await runs.begin()  # on the first: no other runs
        await containers.start(second)
        await containers.kill(first)
        after.push_async_callback(containers.start, first)
        answers = await runs.end()
        assert first not in await containers.running()
    _check_undisturbed(runs, answers)
    await runs.check_ended()


@pytest.mark.core
async def test_another_gateway_goes_on_where_a_killed_one_was(containers: ContainerStack) -> None:
    runs = Runs(containers, "gateway", 1100)
    first, second = REPLACED["gateway"]
    async with AsyncExitStack() as after:
        await containers.kill(second)
        await runs.begin()  # at the first: no other calls tools
        await containers.start(second)
        await containers.kill(first)
        after.push_async_callback(containers.start, first)
        answers = await runs.end()
        assert first not in await containers.running()
    # Nobody knows what became of the call that the killed one made, so it is not repeated.
    error = cast(Answer, answers[0]["error"])
    assert error["kind"] == "outcome_unknown", answers[0]
    assert runs.made(0) == [1, 1, 0]
    _check_undisturbed(runs, answers, but=0)
    await runs.check_ended()


@pytest.mark.parametrize("container", ALONE)
async def test_runs_outlive_a_killed_container_that_is_started_again(
    containers: ContainerStack, container: str
) -> None:
    runs = Runs(containers, container, 1200 + 100 * ALONE.index(container))
    await runs.begin()
    await containers.kill(container)
    runs.killed.set()
    ending = asyncio.create_task(runs.end())
    await containers.start(container)
    answers = await ending
    _check_undisturbed(runs, answers)
    await runs.check_ended()


def _check_undisturbed(runs: Runs, answers: Sequence[Answer], but: int | None = None) -> None:
    """Assert that all ended, except one, as if nothing had happened, each call made once."""
    for run, answer in enumerate(answers):
        if run != but:
            assert (answer["status"], answer["result"]) == ("success", runs.results(run)), answer
            assert runs.made(run) == [1] * STEPS
