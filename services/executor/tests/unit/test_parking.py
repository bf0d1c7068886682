"""Runs that wait for approval of a call that the analysis could not find."""

import asyncio
from dataclasses import replace
from typing import cast

import pytest
from pydantic import JsonValue

from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.contracts.executor import RunFinished, WorkflowParked
from pml_common.contracts.gateway import ToolOutcome
from pml_common.contracts.tool import JsonObject, args_hash
from pml_common.testing.memory_bus import MemoryBus
from pml_executor.application.run_dependencies import RunDependencies
from services.executor.tests.support.builders import agreed, make_command
from services.executor.tests.support.fakes import crashing
from services.executor.tests.support.harness import (
    deliver,
    finish,
    journal_of,
    make_dependencies,
    parked,
)
from services.executor.tests.support.memory_sandbox import MemoryPool, ProgramApi
from services.executor.tests.support.memory_tools import MemoryTools, ending

WANTED = "mail:send"


async def write_to_whom(api: ProgramApi, args: JsonObject) -> JsonValue:
    """Read, send two mails by a name known only at run time, and read again."""
    read = await api.call("n1", "fs:read", {"path": "/to"})
    first = await api.call(None, WANTED, {"to": "ann", "after": read})
    second = await api.call(None, WANTED, {"to": "bob"})
    return [first, second, await api.call("n2", "fs:stat")]


async def all_at_once(api: ProgramApi, args: JsonObject) -> JsonValue:
    calls = (api.call("n1", "fs:read"), api.call(None, WANTED), api.call("n2", "fs:stat"))
    return list(await asyncio.gather(*calls))


POOL = {"write": write_to_whom, "all": all_at_once}


async def test_a_run_waits_at_each_call_that_a_person_must_agree_to_and_repeats_none() -> None:
    bus, tools, pool = MemoryBus(), MemoryTools(), MemoryPool(POOL)
    command = make_command("write")

    first = await parked(command, make_dependencies(bus, pool, tools))

    assert first.command_id == command.command_id
    assert first.grant_digest == command.grant.digest()
    assert (first.wanted.tool, first.beside) == (WANTED, ())
    assert first.wanted.why == "mail:send was not seen when the program was analysed"
    assert first.wanted.args == {"to": "ann", "after": {"path": "/to"}}
    assert [each.tool for each in first.task_results] == ["fs:read"]
    assert tools.made == {"fs:read": 1}
    types = [entry.type for entry in await journal_of(bus, command)]
    assert types == ["capability_start", "tool_start", "tool_end"]

    command = agreed(first, command)
    second = await parked(command, make_dependencies(bus, pool, tools))
    assert second.wanted.args == {"to": "bob"}
    assert second.wanted.occurrence == 1
    assert [each.tool for each in second.task_results] == ["fs:read", WANTED]

    fact = await finish(agreed(second, command), make_dependencies(bus, pool, tools))
    assert fact.success, fact.error
    assert tools.made == {"fs:read": 1, WANTED: 2, "fs:stat": 1}


async def test_a_command_under_which_a_run_was_parked_runs_nothing_when_it_comes_again() -> None:
    bus, tools, pool = MemoryBus(), MemoryTools(), MemoryPool(POOL)
    command = make_command("write")
    first = await parked(command, make_dependencies(bus, pool, tools))
    assert await parked(command, make_dependencies(bus, pool, tools)) == first

    went_on = agreed(first, command)
    second = await parked(went_on, make_dependencies(bus, pool, tools))
    for again in (command, went_on):
        assert await parked(again, make_dependencies(bus, pool, tools)) == second
    assert pool.leased == 2

    end = agreed(second, went_on)
    assert await finish(end, make_dependencies(bus, pool, tools)) == await finish(
        command, make_dependencies(bus, pool, tools)
    )


async def test_what_is_under_way_ends_and_is_kept_before_a_run_is_parked() -> None:
    bus, tools, pool = MemoryBus(), MemoryTools(), MemoryPool(POOL)
    begun, release = asyncio.Event(), asyncio.Event()

    async def slow(_: JsonObject) -> ToolOutcome:
        begun.set()
        await release.wait()
        return ToolOutcome(status="ok", result="read")

    tools.tools["fs:read"] = slow
    command = make_command("all")
    running = asyncio.create_task(parked(command, make_dependencies(bus, pool, tools)))
    async with asyncio.timeout(PATIENCE_S):
        await begun.wait()
    assert not running.done()
    release.set()
    fact = await running
    ended = {each.tool: each.success for each in fact.task_results}
    assert ended == {"fs:read": True, "fs:stat": True}

    end = await finish(agreed(fact, command), make_dependencies(bus, pool, tools))
    assert end.result == ["read", {}, {}]
    assert tools.made == {"fs:read": 1, WANTED: 1, "fs:stat": 1}


async def test_a_run_whose_call_nobody_can_account_for_ends_instead_of_waiting() -> None:
    lost = MemoryTools({"fs:read": ending(ToolOutcome(status="unknown"))})
    deps = make_dependencies(MemoryBus(), MemoryPool(POOL), lost)
    fact = await finish(make_command("all"), deps)
    assert fact.error is not None
    assert fact.error.kind == "outcome_unknown"


async def test_a_dry_run_asks_nobody_and_ends_as_denied() -> None:
    tools, command = MemoryTools(), make_command("write")
    deps = make_dependencies(MemoryBus(), MemoryPool(POOL), tools)
    grant = command.grant.model_copy(update={"dry_run": True})
    fact = await finish(command.model_copy(update={"grant": grant}), deps)
    assert fact.error is not None
    assert (fact.error.kind, fact.error.tool) == ("denied", WANTED)
    assert tools.made == {"fs:read": 1}


@pytest.mark.parametrize(
    "other",
    [
        {"args_hash": args_hash({"to": "bob"})},
        {"occurrence": 1},
        {"node_id": "n7"},
        {"tool": "x:y"},
    ],
    ids=lambda other: next(iter(other)),
)
async def test_agreement_to_a_call_is_none_to_another_call_of_the_same_tool(
    other: dict[str, object],
) -> None:
    bus, tools, pool = MemoryBus(), MemoryTools(), MemoryPool(POOL)
    command = make_command("write")
    first = await parked(command, make_dependencies(bus, pool, tools))
    to_other = agreed(first, command, first.wanted.model_copy(update=other))
    again = await parked(to_other, make_dependencies(bus, pool, tools))
    assert again.wanted == first.wanted
    assert tools.made == {"fs:read": 1}


async def test_the_time_for_which_a_run_was_parked_is_not_its_own() -> None:
    bus, tools, pool = MemoryBus(), MemoryTools(), MemoryPool(POOL)
    hours = 0.0

    def later() -> RunDependencies:
        deps = make_dependencies(bus, pool, tools)
        return replace(deps, now=lambda: deps.now() + hours * 3_600_000)

    command = make_command("write", timeout_s=600.0)
    command = command.model_copy(
        update={
            "grant": command.grant.model_copy(
                update={"expires_at": command.grant.expires_at.replace(year=2999)}
            )
        }
    )
    first = await parked(command, later())
    hours = 3.0
    command = agreed(first, command)
    second = await parked(command, later())
    hours = 9.0
    fact = await finish(agreed(second, command), later())
    assert fact.success, fact.error
    assert fact.duration_ms < 600_000


async def test_a_run_that_died_after_it_went_on_is_taken_over_and_parks_once() -> None:
    for effects in range(1, 40):
        bus, tools, pool = MemoryBus(), MemoryTools(), MemoryPool(POOL)
        command, died = make_command("write"), False
        while True:
            mortal, mortal_tools, is_dead = crashing(bus, tools, effects, effects % 2 == 0)
            try:
                facts = await deliver(command, make_dependencies(mortal, pool, mortal_tools))
            except RuntimeError:
                died = True
                facts = await deliver(command, make_dependencies(bus, pool, tools))
            except ExceptionGroup:
                died = True
                facts = await deliver(command, make_dependencies(bus, pool, tools))
            assert not is_dead() or died
            (fact,) = facts
            if isinstance(fact, RunFinished):
                break
            command = agreed(cast(WorkflowParked, fact), command)
        assert fact.success, fact.error
        assert tools.made == {"fs:read": 1, WANTED: 2, "fs:stat": 1}
        if not died:
            return
    raise AssertionError("no executor lived long enough")
