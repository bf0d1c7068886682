"""P1, P2 and P3: what one workflow and one tool call cost, as ratios to their floors in one run.

P1  `pml_execute` with one tool call, warm, over a bare `deno run` of the same code
P2  the same with no process waiting warm
P3  one journaled tool call from inside the sandbox over a raw nats-py request

The tool is a stub that the gateway itself answers, so the figures are ours alone.
`uv run python bench/execute.py [--json]`
"""

import asyncio
import json
import statistics
import sys
import tempfile
from collections.abc import Awaitable, Callable
from itertools import pairwise
from pathlib import Path
from time import perf_counter

import httpx2
from deno import find_deno_bin
from nats.aio.client import Client
from nats.aio.msg import Msg
from nats.errors import Error as NatsError

from pml_common.bus.connection import subscribe
from pml_common.contracts.learner import ExecutionTrace
from pml_local.composition import StackOptions
from pml_local.stack import Stack, embedded_stack
from pml_local.testing import eventually

CODE = 'return await mcp.pml_stub.echo({ greeting: "hello" });'
CALLS = 200
MANY = f"""
let last;
for (let i = 0; i < {CALLS}; i++) {{ last = await mcp.pml_stub.echo({{ i }}); }}
return last;
"""
BARE = f"""
const mcp = {{ pml_stub: {{ echo: (args: unknown) => Promise.resolve(args) }} }};
const result = await (async () => {{ {CODE} }})();
console.log(JSON.stringify(result));
"""
GOALS = {"P1": 1.0, "P2": 2.5, "P3": 4.0}
WARM_UP, RUNS, REQUESTS = 10, 60, 2000
Json = dict[str, object]


def p50(seconds: list[float]) -> float:
    """Median in milliseconds."""
    return statistics.median(seconds) * 1000


async def timed(times: int, action: Callable[[], Awaitable[object]]) -> list[float]:
    """Seconds of each of `times` calls, one after the other."""
    found: list[float] = []
    for _ in range(times):
        began = perf_counter()
        await action()
        found.append(perf_counter() - began)
    return found


async def bare_deno(folder: Path) -> float:
    """p50 of a process that runs the same code with a stub inside, in ms."""
    program = folder / "bare.ts"
    program.write_text(BARE, encoding="utf-8")
    flags = ("--no-prompt", "--no-remote", "--no-npm", "--no-config", "--no-check")

    async def run() -> None:
        process = await asyncio.create_subprocess_exec(
            find_deno_bin(), "run", *flags, str(program), stdout=asyncio.subprocess.PIPE
        )
        out, _ = await process.communicate()
        assert json.loads(out) == {"greeting": "hello"}

    await timed(WARM_UP, run)
    return p50(await timed(RUNS, run))


async def execute(http: httpx2.AsyncClient, code: str) -> Json:
    """One workflow through REST; its answer."""
    answer = await http.post("/api/execute", json={"code": code})
    body: Json = answer.json()
    assert body["status"] == "success", body
    return body


async def workflows(stack: Stack) -> tuple[float, list[float]]:
    """p50 of one-call workflows in ms, and the call-to-call times of one long run in seconds."""
    async with httpx2.AsyncClient(base_url=stack.url, timeout=60.0) as http:
        await eventually(lambda: _known(http), within=20.0)
        await timed(WARM_UP, lambda: execute(http, CODE))
        one = p50(await timed(RUNS, lambda: execute(http, CODE)))
        workflow = (await execute(http, MANY))["workflowId"]

        async def learned() -> list[Json] | None:
            return (await http.get(f"/api/workflows/{workflow}/trace")).json()["traces"]

        traces: list[Json] = await eventually(learned, within=10.0)
    found = ExecutionTrace.model_validate(traces[0])
    starts = sorted(call.started_at for call in found.task_results)
    assert len(starts) == CALLS
    return one, [(later - earlier) / 1000 for earlier, later in pairwise(starts)]


async def _known(http: httpx2.AsyncClient) -> bool:
    """Whether the registry, and so the analyzer, knows the stub."""
    answer = await http.post("/api/discover", json={"intent": "echo", "type": "tool"})
    return answer.is_success and bool(answer.json()["hits"])


async def raw_request(url: str) -> float:
    """p50 of a nats-py request to a responder in another process, in ms."""
    responder = await asyncio.create_subprocess_exec(sys.executable, __file__, "--respond", url)
    client = Client()
    await client.connect(url)
    try:
        await eventually(lambda: _answers(client), within=10.0)
        return p50(await timed(REQUESTS, lambda: client.request("bench.echo", b"x", timeout=5)))
    finally:
        await client.close()
        responder.terminate()
        await responder.wait()


async def _answers(client: Client) -> bool:
    try:
        await client.request("bench.echo", b"x", timeout=0.2)
    except NatsError:
        return False
    return True


async def respond(url: str) -> None:
    """Echo until terminated."""
    client = Client()
    await client.connect(url)

    async def echo(message: Msg) -> None:
        await message.respond(message.data)

    await subscribe(client, "bench.echo", echo)
    await asyncio.Event().wait()


async def main() -> None:
    """Print each ratio with its floor."""
    with tempfile.TemporaryDirectory(prefix="pml-bench-", ignore_cleanup_errors=True) as name:
        folder = Path(name)
        floor = await bare_deno(folder)
        env = {"PML_GATEWAY_STUB_TOOLS": "true"}
        async with embedded_stack(StackOptions(home=folder / "warm", env=env)) as stack:
            warm, calls = await workflows(stack)
            request = await raw_request(stack.nats_url)
        env["PML_EXECUTOR_POOL_SIZE"] = "0"
        async with embedded_stack(StackOptions(home=folder / "cold", env=env)) as stack:
            cold, _ = await workflows(stack)
    call = p50(calls)
    rows = [
        ("P1", "pml_execute, warm", warm, "bare deno run", floor),
        ("P2", "pml_execute, cold pool", cold, "bare deno run", floor),
        ("P3", "journaled tool call", call, "raw nats-py request", request),
    ]
    if "--json" in sys.argv:
        print(json.dumps({name: {"ms": ms, "floor_ms": f} for name, _, ms, _, f in rows}))
        return
    for name, what, ms, floor_name, floor_ms in rows:
        ratio = ms / floor_ms
        print(
            f"{name}  {ratio:5.2f}  (goal {GOALS[name]:g})  "
            f"{what} {ms:.2f} ms / {floor_name} {floor_ms:.2f} ms, p50"
        )


if __name__ == "__main__":
    asyncio.run(respond(sys.argv[2]) if "--respond" in sys.argv else main())
