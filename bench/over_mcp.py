"""Cost of MCP: calls through the gateway, as ratios to their floors in one run.

P4   `tools/call` of a tool that does nothing, through the gateway, over the same tool on a bare
     server of the same SDK
P4b  `pml_execute` of a program with one tool call over MCP, over the same program over REST

Both tools only read; the one behind the gateway is a stub inside it. Floor and figure alternate in
rounds, and medians are compared. The `legacy` client speaks 2025-11-25.
`uv run python bench/over_mcp.py [--rounds N] [--mode legacy] [--json]`
"""

import argparse
import asyncio
import json
import statistics
import sys
import tempfile
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any, Literal

sys.path.insert(0, str(Path(__file__).parent.parent))  # when run as a script

from execution.callers import asked, execute
from execution.floors import CODE, p50, timed
from mcp import Client

from libs.pml_local.tests.support.harness import eventually
from pml_local.ports import free_port

_ECHO_SERVER = Path(__file__).parent / "execution" / "echo_server.py"
_CALLS, _WORKFLOWS, _ROUNDS = 200, 40, 5
_SAID: dict[str, Any] = {"greeting": "hello"}
GOALS = {"P4": 2.0, "P4b": 2.0}

Action = Callable[[], Awaitable[object]]
Mode = Literal["auto", "legacy"]


@asynccontextmanager
async def bare_server(mode: Mode) -> AsyncGenerator[Client]:
    """Connect to a server of the same tool without anything else, in a process of its own."""
    port = free_port()
    process = await asyncio.create_subprocess_exec(sys.executable, str(_ECHO_SERVER), str(port))
    try:
        await eventually(lambda: _answers(port), within=20.0)
        async with Client(f"http://127.0.0.1:{port}/mcp", mode=mode) as client:
            yield client
    finally:
        process.terminate()
        await process.wait()


async def _answers(port: int) -> bool:
    try:
        _, writer = await asyncio.open_connection("127.0.0.1", port)
    except OSError:
        return False
    writer.close()
    return True


async def compared(action: Action, floor: Action, times: int, rounds: int) -> tuple[float, float]:
    """Return the medians of an action and its floor, in ms, measured in turn."""
    await timed(times // 4, action)
    await timed(times // 4, floor)
    found = [
        (p50(await timed(times, action)), p50(await timed(times, floor))) for _ in range(rounds)
    ]
    return statistics.median(a for a, _ in found), statistics.median(b for _, b in found)


async def called(client: Client, name: str, args: dict[str, Any]) -> None:
    """Call a tool, which must succeed."""
    result = await client.call_tool(name, args)
    assert not result.is_error, result


async def main(rounds: int, mode: Mode) -> dict[str, tuple[float, float]]:
    """Measure both figures."""
    async with AsyncExitStack() as stack:
        folder = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="pml-bench-", ignore_cleanup_errors=True)
        )
        bare = await stack.enter_async_context(bare_server(mode))
        running, http = await stack.enter_async_context(asked(Path(folder), {}))
        through = await stack.enter_async_context(Client(f"{running.url}/mcp", mode=mode))
        direct = await compared(
            lambda: called(through, "pml_stub_echo", _SAID),
            lambda: called(bare, "echo", _SAID),
            _CALLS,
            rounds,
        )
        executed = await compared(
            lambda: called(through, "pml_execute", {"code": CODE}),
            lambda: execute(http, CODE),
            _WORKFLOWS,
            rounds,
        )
    return {"P4": direct, "P4b": executed}


def show(figures: dict[str, tuple[float, float]]) -> None:
    """Print the results for people."""
    told = {
        "P4": "tools/call through the gateway {:.2f} ms / on a bare server {:.2f} ms, p50",
        "P4b": "pml_execute over MCP {:.2f} ms / over REST {:.2f} ms, p50",
    }
    for name, (ms, floor) in figures.items():
        print(f"{name:<4}{ms / floor:6.2f}  (goal {GOALS[name]:g})  {told[name].format(ms, floor)}")


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description="Cost of MCP.")
    parser.add_argument("--rounds", type=int, default=_ROUNDS)
    parser.add_argument("--mode", choices=("auto", "legacy"), default="auto")
    parser.add_argument("--json", action="store_true")
    wanted = parser.parse_args()
    measured = asyncio.run(main(wanted.rounds, wanted.mode))
    if wanted.json:
        print(json.dumps({name: ms / floor for name, (ms, floor) in measured.items()}))
    else:
        show(measured)
