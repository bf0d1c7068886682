"""Executions wait for their turn, begin within bounds, and give their slot back."""

import asyncio
from contextlib import AsyncExitStack
from dataclasses import replace
from uuid import UUID

import pytest

from pml_gateway.application.admission import Admission
from pml_gateway.domain.api.errors import Busy
from pml_gateway.domain.workflow.turns import Bounds, Party
from pml_gateway.domain.workflow.workflow import Workflow
from pml_gateway.domain.workflow.workflow_state import State
from services.gateway.tests.support.builders import SCOPE, workflow
from services.gateway.tests.support.fake_stores import FakeWorkflows

ANA, BO = Party(SCOPE, "ana"), Party(SCOPE, "bo")
PATIENCE_S = 30.0


class Scene:
    """An admission of one slot, and its callers."""

    def __init__(self, waiting: int = 8) -> None:
        self.store = FakeWorkflows()
        bounds = Bounds(in_flight=1, waiting=waiting, waiting_per_scope=waiting)
        self.admission = Admission(bounds, self.store)
        self.begun: list[UUID] = []
        self.asked = 0

    def new(self) -> UUID:
        """The id of another execution."""
        self.asked += 1
        return UUID(int=self.asked)

    async def turn(
        self,
        party: Party,
        workflow_id: UUID,
        *,
        seen: Workflow | None = None,
        until: asyncio.Event | None = None,
        within_s: float = PATIENCE_S,
        is_new: bool = True,
    ) -> None:
        """One caller: its turn lasts until an event, and ends with what it has seen."""
        turn = self.admission.turn(party, workflow_id, within_s, is_new=is_new)
        async with turn as admitted:
            self.begun.append(workflow_id)
            admitted.workflow = seen
            if until is not None:
                await until.wait()

    async def occupied(self, held: AsyncExitStack) -> UUID:
        """Somebody has the slot until the stack is left."""
        first = self.new()
        await held.enter_async_context(
            self.admission.turn(ANA, first, PATIENCE_S, is_new=True),
        )
        return first


async def settle() -> None:
    """Let every task go as far as it can by itself."""
    for _ in range(20):
        await asyncio.sleep(0)


def standing(state: State) -> Workflow:
    return replace(workflow(), state=state)


async def test_a_free_slot_is_taken_without_giving_way_to_anybody() -> None:
    scene, others = Scene(), list[str]()
    asyncio.get_running_loop().call_soon(others.append, "somebody else ran")
    async with scene.admission.turn(ANA, scene.new(), PATIENCE_S, is_new=True):
        assert others == []


async def test_those_who_wait_take_turns_as_slots_are_given_back() -> None:
    scene = Scene()
    async with asyncio.TaskGroup() as callers, AsyncExitStack() as held:
        await scene.occupied(held)
        mine, theirs = [scene.new(), scene.new()], scene.new()
        for each in mine:
            callers.create_task(scene.turn(ANA, each))
        await settle()
        callers.create_task(scene.turn(BO, theirs))
        await settle()
        assert scene.begun == []
        await held.aclose()
    assert scene.begun == [mine[0], theirs, mine[1]]


async def test_too_many_of_one_principal_make_room_for_another() -> None:
    scene = Scene(waiting=2)
    async with AsyncExitStack() as held:
        await scene.occupied(held)
        tasks = [asyncio.create_task(scene.turn(ANA, scene.new())) for _ in range(2)]
        await settle()
        with pytest.raises(Busy, match="2 executions"):
            await scene.turn(ANA, scene.new())
        tasks.append(asyncio.create_task(scene.turn(BO, scene.new())))
        with pytest.raises(Busy, match="not accepted"):
            await tasks[1]
    await asyncio.gather(tasks[0], tasks[2])
    assert len(scene.begun) == 2


async def test_a_turn_that_does_not_come_in_time_is_refused_and_leaves_no_trace() -> None:
    scene = Scene(waiting=1)
    async with AsyncExitStack() as held:
        await scene.occupied(held)
        for _ in range(3):
            with pytest.raises(Busy, match="try again in"):
                await scene.turn(ANA, scene.new(), within_s=0.01)
    await scene.turn(ANA, scene.new())
    assert len(scene.begun) == 1


async def test_a_caller_that_leaves_before_its_turn_makes_room() -> None:
    scene = Scene(waiting=1)
    async with AsyncExitStack() as held:
        await scene.occupied(held)
        gone = asyncio.create_task(scene.turn(ANA, scene.new()))
        await settle()
        gone.cancel()
        await asyncio.wait({gone})
        waiting = asyncio.create_task(scene.turn(ANA, scene.new()))
        await settle()
        assert not waiting.done()
    await waiting


@pytest.mark.parametrize("state", ["requested", "running"])
async def test_what_goes_on_without_its_caller_keeps_its_slot_until_it_has_ended(
    state: State,
) -> None:
    scene, known = Scene(waiting=1), standing(state)
    await scene.store.accept(known, (known.requested,))
    await scene.turn(ANA, known.workflow_id, seen=known)
    waiting = asyncio.create_task(scene.turn(ANA, scene.new()))
    await settle()
    await scene.admission.release_ended()
    await settle()
    assert not waiting.done()
    scene.store.kept[known.scope, known.workflow_id] = standing("succeeded")
    await scene.admission.release_ended()
    await waiting


@pytest.mark.parametrize("state", ["awaiting_approval", "succeeded", "failed"])
async def test_what_waits_for_a_person_or_has_ended_is_not_in_flight(state: State) -> None:
    scene = Scene(waiting=0)
    await scene.turn(ANA, scene.new(), seen=standing(state))
    await scene.turn(ANA, scene.new())
    assert len(scene.begun) == 2


async def test_what_was_never_stored_gives_its_slot_back() -> None:
    scene, lost = Scene(waiting=0), standing("requested")
    await scene.turn(ANA, lost.workflow_id, seen=lost)
    await scene.admission.release_ended()
    await scene.turn(ANA, scene.new())
    assert len(scene.begun) == 2


async def test_a_known_workflow_needs_no_turn() -> None:
    scene, known = Scene(waiting=0), workflow()
    await scene.store.accept(known, (known.requested,))
    async with AsyncExitStack() as held:
        await scene.occupied(held)
        await scene.turn(ANA, known.workflow_id, is_new=False)
        with pytest.raises(Busy):
            await scene.turn(ANA, scene.new(), is_new=False)
    assert scene.begun == [known.workflow_id]


async def test_a_repeated_request_shares_the_turn_of_the_first() -> None:
    scene, same = Scene(waiting=1), Scene().new()
    async with AsyncExitStack() as held:
        scene.asked = 1
        await scene.occupied(held)
        twins = [asyncio.create_task(scene.turn(ANA, same, is_new=False)) for _ in range(3)]
        await settle()
        twins[0].cancel()
        await asyncio.wait({twins[0]})
        assert scene.begun == []
    await asyncio.gather(*twins[1:])
    assert scene.begun == [same, same]
    await scene.turn(ANA, scene.new())


async def test_one_caller_that_leaves_does_not_end_what_another_waits_for() -> None:
    scene, same, end = Scene(waiting=1), Scene().new(), asyncio.Event()
    scene.asked = 1
    stays = asyncio.create_task(scene.turn(ANA, same, until=end))
    await settle()
    await scene.turn(ANA, same, is_new=False)
    waiting = asyncio.create_task(scene.turn(ANA, scene.new()))
    await settle()
    assert not waiting.done()
    end.set()
    await asyncio.gather(stays, waiting)


async def test_a_gateway_that_ends_lets_everything_begin() -> None:
    scene = Scene(waiting=1)
    async with AsyncExitStack() as held:
        await scene.occupied(held)
        waiting = asyncio.create_task(scene.turn(ANA, scene.new()))
        await settle()
        scene.admission.close()
        await waiting
        for _ in range(3):
            await scene.turn(ANA, scene.new())
        assert len(scene.begun) == 4
