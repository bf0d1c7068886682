"""Contract of sandboxes: the fake's programs and Deno's behave the same."""

import asyncio
from collections.abc import AsyncGenerator
from dataclasses import dataclass

import pytest
from pydantic import JsonValue

from libs.pml_local.tests.support.patience import PATIENCE_S
from pml_common.contracts.scope import Scope
from pml_common.contracts.tool import JsonObject
from pml_executor.domain.protocol import (
    Answer,
    BranchNote,
    CallMade,
    LogNote,
    LoopNote,
    Note,
    Noted,
    Paused,
    Program,
    ProgramMessage,
    Returned,
    Threw,
)
from pml_executor.ports import Sandbox, SandboxPool
from services.executor.tests.support.memory_sandbox import (
    MemoryPool,
    MemoryProgram,
    ProgramApi,
    ToolFailed,
)

pytestmark = pytest.mark.integration

ACME = Scope(org="acme", project="webapp")


@dataclass(frozen=True)
class TwoFold:
    """One program, written for Deno and for the fake."""

    typescript: str
    python: MemoryProgram


async def _sum(api: ProgramApi, args: JsonObject) -> JsonValue:
    return [args["a"], {"b": args["b"]}]


async def _calls(api: ProgramApi, args: JsonObject) -> JsonValue:
    first = await api.call("n1", "fs:read", {"path": "/x"})
    return [first, await api.call("n1", "fs:read", {"path": "/y"})]


async def _parallel(api: ProgramApi, args: JsonObject) -> JsonValue:
    return list(await asyncio.gather(*(api.call("n1", "api:a", {"i": i}) for i in range(3))))


async def _catches(api: ProgramApi, args: JsonObject) -> JsonValue:
    try:
        return await api.call(None, "fs:read")
    except ToolFailed as error:
        return f"caught {error}"


async def _fails(api: ProgramApi, args: JsonObject) -> JsonValue:
    return await api.call("n1", "fs:read")


async def _notes(api: ProgramApi, args: JsonObject) -> JsonValue:
    api.log("one")
    api.decide("d1", False)
    api.round("l1")
    api.took("d2", "case:x")
    api.log("two")
    await api.call("n1", "fs:read")
    return None


async def _throws(api: ProgramApi, args: JsonObject) -> JsonValue:
    raise ValueError("of no use")


PROGRAMS = {
    "sum": TwoFold("return [args.a, { b: context.b }];", _sum),
    "calls": TwoFold(
        'const first = await __pml.at("n1", mcp.fs.read)({ path: "/x" });\n'
        'return [first, await __pml.at("n1", mcp.call)("fs:read", { path: "/y" })];',
        _calls,
    ),
    "parallel": TwoFold(
        'return await Promise.all([0, 1, 2].map((i) => __pml.at("n1", mcp.api.a)({ i })));',
        _parallel,
    ),
    "catches": TwoFold(
        "try { return await mcp.fs.read(); } catch (e) { return `caught ${e.message}`; }", _catches
    ),
    "fails": TwoFold('return await __pml.at("n1", mcp.fs.read)();', _fails),
    "notes": TwoFold(
        'console.log("one"); __pml.decide("d1", 0); __pml.round("l1");\n'
        '__pml.took("d2", "case:x"); console.log("two"); await __pml.at("n1", mcp.fs.read)();',
        _notes,
    ),
    "throws": TwoFold('throw new Error("of no use");', _throws),
}


@pytest.fixture(params=["memory", "deno"])
async def pool(
    request: pytest.FixtureRequest, deno_pool: SandboxPool
) -> AsyncGenerator[SandboxPool]:
    if request.param == "deno":
        yield deno_pool
    else:
        yield MemoryPool({two.typescript: two.python for two in PROGRAMS.values()})


def program(name: str, args: JsonObject | None = None) -> Program:
    return Program(
        code=PROGRAMS[name].typescript, args=args or {}, seed="0" * 32, now=1_700_000_000_000
    )


async def until_call(sandbox: Sandbox) -> CallMade:
    message = await said(sandbox)
    assert isinstance(message, CallMade)
    return message


async def said(sandbox: Sandbox) -> ProgramMessage:
    async with asyncio.timeout(PATIENCE_S):
        return await sandbox.receive()


async def test_a_program_gets_its_arguments_and_its_value_comes_back(pool: SandboxPool) -> None:
    async with pool.lease(ACME) as sandbox:
        await sandbox.run(program("sum", {"a": 1, "b": [None, "é"]}))
        assert await said(sandbox) == Returned(kind="returned", value=[1, {"b": [None, "é"]}])


async def test_calls_are_made_one_after_the_other(pool: SandboxPool) -> None:
    async with pool.lease(ACME) as sandbox:
        await sandbox.run(program("calls"))
        for number, path in enumerate(["/x", "/y"]):
            call = await until_call(sandbox)
            assert (call.id, call.node, call.tool) == (number, "n1", "fs:read")
            assert call.args == {"path": path}
            sandbox.answer(Answer(id=call.id, ok=True, value=path * 2, now=0))
        assert await said(sandbox) == Returned(kind="returned", value=["/x/x", "/y/y"])


async def test_parallel_calls_are_answered_in_any_order(pool: SandboxPool) -> None:
    async with pool.lease(ACME) as sandbox:
        await sandbox.run(program("parallel"))
        calls = [await until_call(sandbox) for _ in range(3)]
        for call in reversed(calls):
            sandbox.answer(Answer(id=call.id, ok=True, value=call.args["i"], now=0))
        assert await said(sandbox) == Returned(kind="returned", value=[0, 1, 2])


async def test_a_program_that_is_asked_to_pause_says_so_after_all_that_it_does_at_once(
    pool: SandboxPool,
) -> None:
    async with pool.lease(ACME) as sandbox:
        await sandbox.run(program("parallel"))
        first = await until_call(sandbox)
        sandbox.pause()
        others = [await until_call(sandbox) for _ in range(2)]
        assert await said(sandbox) == Paused(kind="paused")
        for call in (first, *others):
            sandbox.answer(Answer(id=call.id, ok=True, value=call.args["i"], now=0))
        assert await said(sandbox) == Returned(kind="returned", value=[0, 1, 2])


async def test_a_failed_call_can_be_caught(pool: SandboxPool) -> None:
    async with pool.lease(ACME) as sandbox:
        await sandbox.run(program("catches"))
        call = await until_call(sandbox)
        assert (call.node, call.args) == (None, {})
        sandbox.answer(Answer(id=call.id, ok=False, message="no file", now=0))
        assert await said(sandbox) == Returned(kind="returned", value="caught no file")


async def test_an_escaping_call_error_names_its_call(pool: SandboxPool) -> None:
    async with pool.lease(ACME) as sandbox:
        await sandbox.run(program("fails"))
        call = await until_call(sandbox)
        sandbox.answer(Answer(id=call.id, ok=False, message="no file", now=0))
        threw = await said(sandbox)
        assert isinstance(threw, Threw)
        assert (threw.call, threw.message) == (call.id, "no file")


async def test_notes_come_in_order_before_the_call_that_follows_them(pool: SandboxPool) -> None:
    async with pool.lease(ACME) as sandbox:
        await sandbox.run(program("notes"))
        notes: list[Note] = []
        while isinstance(message := await said(sandbox), Noted):
            notes += message.notes
        assert isinstance(message, CallMade)
        assert notes == [
            LogNote(type="log", level="info", message="one"),
            BranchNote(type="decision", node="d1", outcome="false"),
            LoopNote(type="loop", node="l1"),
            BranchNote(type="decision", node="d2", outcome="case:x"),
            LogNote(type="log", level="info", message="two"),
        ]


async def test_a_program_that_throws_says_what(pool: SandboxPool) -> None:
    async with pool.lease(ACME) as sandbox:
        await sandbox.run(program("throws"))
        threw = await said(sandbox)
        assert isinstance(threw, Threw)
        assert (threw.message, threw.call, threw.phase) == ("of no use", None, "run")


async def test_receiving_can_be_given_up_and_taken_up_again(pool: SandboxPool) -> None:
    async with pool.lease(ACME) as sandbox:
        with pytest.raises(TimeoutError):
            async with asyncio.timeout(0.02):  # waits: it is given up
                await sandbox.receive()
        await sandbox.run(program("sum", {"a": 1, "b": 2}))
        assert await said(sandbox) == Returned(kind="returned", value=[1, {"b": 2}])


async def test_two_sandboxes_know_nothing_of_each_other(pool: SandboxPool) -> None:
    async with pool.lease(ACME) as one, pool.lease(ACME) as other:
        await one.run(program("calls"))
        await other.run(program("sum", {"a": 1, "b": 2}))
        assert (await until_call(one)).id == 0
        assert isinstance(await said(other), Returned)
