"""Other loads than that of bench/execute.py: more calls, calls that may not be repeated, a tool
server, a large result, many callers.

For each program: p50 one by one; workflows a second from many callers, with their p50, p95 and CPU.
For each kind of call: the time and CPU of one in a long run. The tools are the stub inside the
gateway, and those of a small MCP server over stdio, to which the gateway adds a process. There are
no goals.
`uv run python bench/loads.py [--seconds S] [--json]`
"""

import argparse
import asyncio
import json
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Final

sys.path.insert(0, str(Path(__file__).parent.parent))  # when run as a script

from execute import CALLS, call_to_call, in_turn
from execution.callers import Http, asked, execute
from execution.floors import CODE, WARM_UP, p50, p95, timed
from execution.processor import per_workflow, snapshot
from execution.throughput import CALLERS, SECONDS, saturate, two_cores

from pml_local.composition import POLICY_VARIABLE
from pml_local.stack import Stack

SERVER: Final = Path(__file__).parent / "execution/tool_server.py"
POLICY: Final = {"rules": [{"pattern": "bench:change", "verdict": "allow"}]}
RUNS, FEW, SIZE, MANY_CALLERS = 40, 10, 100_000, 64


@dataclass(frozen=True)
class Program:
    """A program, and the number of its concurrent callers."""

    name: str
    code: str
    callers: int = CALLERS


@dataclass(frozen=True)
class Figures:
    """Times of one program, in milliseconds: one by one, and from its callers."""

    program: str
    callers: int
    one_by_one_ms: float
    per_second: float
    p50_ms: float
    p95_ms: float
    cpu_ms: float


@dataclass(frozen=True)
class Call:
    """One call in a long run: the time from its start to the next one's, and its CPU."""

    tool: str
    p50_ms: float
    cpu_ms: float


PROGRAMS: Final = (
    Program("stub", CODE),
    Program("stub, 10 calls", in_turn("mcp.pml_stub.echo({ i })", FEW)),
    Program("server, reads", "return await mcp.bench.read({ i: 1 });"),
    Program("server, not repeatable", "return await mcp.bench.change({ i: 1 });"),
    Program("the same, 10 calls", in_turn("mcp.bench.change({ i })", FEW)),
    Program("server, 100 KB result", f"return await mcp.bench.page({{ size: {SIZE} }});"),
    Program("stub, 64 callers", CODE, MANY_CALLERS),
)
CALLED: Final = {
    "stub": "mcp.pml_stub.echo({ i })",
    "server, reads": "mcp.bench.read({ i })",
    "server, not repeatable": "mcp.bench.change({ i })",
}


async def figures(stack: Stack, http: Http, program: Program, seconds: float) -> Figures:
    """Measure one program."""
    await timed(WARM_UP, lambda: execute(http, program.code))
    alone = p50(await timed(RUNS, lambda: execute(http, program.code)))
    load = await saturate(stack, http, seconds=seconds, code=program.code, callers=program.callers)
    times = p50(load.seconds), p95(load.seconds)
    cpu_ms = load.cpu_ms["all"]
    return Figures(program.name, program.callers, alone, load.per_second, *times, cpu_ms)


async def one_call(stack: Stack, http: Http, tool: str, call: str) -> Call:
    """Measure one call; the run's own CPU is a small part of its share."""
    program = in_turn(call)
    await call_to_call(http, program)
    before = snapshot(stack)
    took = p50(await call_to_call(http, program))
    return Call(tool, took, per_workflow(before, snapshot(stack), CALLS)["all"])


def show(programs: Sequence[Figures], calls: Sequence[Call]) -> None:
    """Print the results for people."""
    print(
        f"{'program':<26}{'alone':>8}{'callers':>9}{'a second':>10}{'p50':>8}{'p95':>8}{'CPU':>8}"
    )
    for each in programs:
        print(
            f"{each.program:<26}{each.one_by_one_ms:8.1f}{each.callers:9}{each.per_second:10.1f}"
            f"{each.p50_ms:8.1f}{each.p95_ms:8.1f}{each.cpu_ms:8.1f}"
        )
    print(f"\n{'call':<26}{'p50':>8}{'CPU':>8}")
    for call in calls:
        print(f"{call.tool:<26}{call.p50_ms:8.2f}{call.cpu_ms:8.2f}")


def _written(folder: Path, name: str, content: object) -> Path:
    file = folder / name
    file.write_text(json.dumps(content), encoding="utf-8")
    return file


async def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description="Costs of other workflows.")
    parser.add_argument("--seconds", type=float, default=SECONDS)
    parser.add_argument("--json", action="store_true")
    wanted = parser.parse_args()
    entry = {"command": sys.executable, "args": [str(SERVER)], "trust": "hints"}
    with (
        tempfile.TemporaryDirectory(prefix="pml-bench-", ignore_cleanup_errors=True) as name,
        two_cores(),
    ):
        folder = Path(name)
        servers = _written(folder, "servers.json", {"mcpServers": {"bench": entry}})
        env = {POLICY_VARIABLE: str(_written(folder, "policy.json", POLICY))}
        async with asked(folder / "data", env, servers) as (stack, http):
            programs = [await figures(stack, http, each, wanted.seconds) for each in PROGRAMS]
            calls = [await one_call(stack, http, *each) for each in CALLED.items()]
    if wanted.json:
        found = {"programs": programs, "calls": calls}
        print(json.dumps({name: [asdict(one) for one in all_] for name, all_ in found.items()}))
    else:
        show(programs, calls)


if __name__ == "__main__":
    asyncio.run(main())
