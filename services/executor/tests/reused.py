"""Programs one after another in one process, each in a Worker of its own."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

from pydantic import JsonValue

from pml_executor.adapters.deno_sandbox import DenoCommand, DenoSandbox
from pml_executor.adapters.walls import in_the_open
from pml_executor.domain.protocol import Answer, CallMade, Noted, Program, Returned
from pml_executor.domain.resources import Resources
from pml_executor.ports import SandboxBroken
from services.executor.tests.walled import bare_runtime, site

RESOURCES = Resources(max_rss_mib=256, runs=100)
NEXT = """const seen = [typeof c, typeof [].map, [1].concat(2).length];
return [...seen, await mcp.api.a({ n: 2 })];"""
SEEN = ["undefined", "function", 2, "two"]

NOW = "mcp.api.now({});"
"""Tells, at once, that what is tried after the end is being tried."""


def later(tried: str) -> str:
    """A program that returns and goes on."""
    return f"setTimeout(() => {{ {tried} }}, 0); return 0;"


SOON = f"setTimeout(() => {NOW[:-1]}, 100); return 0;"


async def bare_command(folder: Path) -> DenoCommand:
    """No walls, and a Worker that keeps every global."""
    command = await in_the_open(site(bare_runtime(folder)))
    return replace(command, resources=RESOURCES, stop_patience_s=10)


@asynccontextmanager
async def started(command: DenoCommand) -> AsyncGenerator[DenoSandbox]:
    sandbox = await DenoSandbox.start(command)
    try:
        async with asyncio.timeout(20):
            yield sandbox
    finally:
        await sandbox.close()


async def value_of(sandbox: DenoSandbox, code: str) -> JsonValue:
    """What a program returns; its calls are its first ones and are answered with "two"."""
    await sandbox.run(Program(code=code, args={}, seed="0" * 32, now=0))
    calls = 0
    while not isinstance(message := await sandbox.receive(), Returned):
        assert isinstance(message, CallMade | Noted), message
        if isinstance(message, CallMade):
            assert (message.id, message.tool) == (calls, "api:a")
            sandbox.answer(Answer(id=calls, ok=True, value="two", now=0))
            calls += 1
    return message.value


async def reused(sandbox: DenoSandbox, code: str) -> bool:
    """Whether the process can be used again after this program, once it has gone on."""
    try:
        assert await value_of(sandbox, code) == 0
        while NOW[:-2] in code and not isinstance(await sandbox.receive(), CallMade):
            pass
    except SandboxBroken:
        return False
    sandbox.finish()
    return await sandbox.renew()
