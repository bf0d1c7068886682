"""The checks that each client is asked to make, and how it says what came of them.

A client's program connects with `connect` and calls `go`. It prints a line of JSON for each check:
`{"check", "ok", "note"}`. `{"approve": id}` asks the matrix, as the person would be, to approve a
workflow; `{"ended": intent}` to look how a workflow ended. Runs in the environment of each client:
nothing of this project is imported.
"""

import asyncio
import json
import sys
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol

WITHIN_S = 30.0
HELD_S = 1.0
"""Time after which a call under way is cancelled."""


class Connection(Protocol):
    """A client that is connected to the gateway."""

    async def names(self) -> list[str]:
        """Return the names of the tools."""
        ...

    async def call(self, tool: str, arguments: dict[str, Any]) -> dict[str, Any]:
        """Call a tool; return its structured content, or the JSON of its text."""
        ...


Connect = Callable[[str, bool, Callable[[], None]], AbstractAsyncContextManager[Connection]]
"""Connects to a URL: whether the user approves on forms, and what to do when tools change."""


def say(**told: object) -> None:
    """Print a line of JSON."""
    sys.stdout.write(json.dumps(told) + "\n")
    sys.stdout.flush()


def step(n: int) -> str:
    """Return a program that needs approval."""
    return f"return await mcp.counting.step({{ n: {n} }});"


async def go(connect: Connect, **cannot: str) -> None:
    """Make every check but those that the client cannot pass, of which the reason is given."""
    url, first = sys.argv[1], int(sys.argv[2])
    checks = {
        "list": _list,
        "run": _run,
        "next": _next,
        "form": _form,
        "told": _told,
        "cancel": _cancel,
    }
    for name, check in checks.items():
        if name in cannot:
            say(check=name, ok=None, note=cannot[name])
            continue
        try:
            async with asyncio.timeout(WITHIN_S):
                await check(connect, url, first)
        except Exception as error:  # noqa: BLE001 - whatever a client raises is its answer
            said = str(getattr(error, "exceptions", [error])[0]) or repr(error)
            say(check=name, ok=False, note=said[:300])
        else:
            say(check=name, ok=True, note="")


def _nothing() -> None:
    """Ignore changes."""


async def _list(connect: Connect, url: str, first: int) -> None:
    async with connect(url, False, _nothing) as client:
        names = await client.names()
        assert "pml_execute" in names, names
        assert "counting_step" in names, names


async def _run(connect: Connect, url: str, first: int) -> None:
    async with connect(url, False, _nothing) as client:
        answer = await client.call("pml_execute", {"code": "return 1 + 1;"})
        assert answer["result"] == 2, answer


async def _next(connect: Connect, url: str, first: int) -> None:
    async with connect(url, False, _nothing) as client:
        asked = await client.call("pml_execute", {"code": step(first)})
        assert asked["status"] == "approval_required", asked
        way_on = asked["next"]["call"]
        say(approve=asked["workflowId"])
        answer = await client.call(way_on["tool"], way_on["arguments"])
        assert answer["result"] == {"result": f"step {first} done"}, answer


async def _form(connect: Connect, url: str, first: int) -> None:
    async with connect(url, True, _nothing) as client:
        answer = await client.call("pml_execute", {"code": step(first + 1)})
        assert answer["status"] == "success", answer


async def _told(connect: Connect, url: str, first: int) -> None:
    changed = asyncio.Event()
    async with connect(url, False, changed.set) as client:
        code = f"const seen = await mcp.counting.peek({{ path: '{first}' }});\nreturn seen;"
        name = f"client:look_{first}"
        answer = await client.call("pml_execute", {"code": code, "name": name})
        assert answer["status"] == "success", answer
        await changed.wait()
        async with asyncio.timeout(10):
            while f"cap_client_look_{first}" not in await client.names():  # noqa: ASYNC110
                await asyncio.sleep(0.1)


async def _cancel(connect: Connect, url: str, first: int) -> None:
    intent = f"cancel {first}"
    async with connect(url, False, _nothing) as client:
        program = {"code": "while (true) {}", "intent": intent, "timeout": WITHIN_S}
        call = asyncio.ensure_future(_awaited(client.call("pml_execute", program)))
        await asyncio.wait({call}, timeout=HELD_S)
        call.cancel()
        await asyncio.wait({call}, timeout=5.0)
        say(ended=intent)
        await asyncio.to_thread(sys.stdin.readline)


async def _awaited(work: Awaitable[dict[str, Any]]) -> dict[str, Any]:
    return await work
