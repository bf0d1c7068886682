"""Cost of compiling every program before its approval, and of analysing long ones in a process:
wall milliseconds per program, p50 and p95, new and known.

`uv run python bench/compile_check.py [rounds]`
"""

import asyncio
import statistics
import sys
from collections.abc import Awaitable, Callable
from time import perf_counter

from analyze import TOOLS, program
from deno import find_deno_bin

from pml_analysis.analysis import NO_CAPABILITIES, Analysis, analyze
from pml_analysis.text.limits import DEFAULT_LIMITS
from pml_analyzer.adapters.deno_compiler import deno_compiler
from pml_analyzer.adapters.inline_engine import InlineEngine
from pml_analyzer.adapters.process_engine import process_engine
from pml_analyzer.adapters.worker_pool import WorkerLimits
from pml_analyzer.application.compile_check import CompileCheck
from pml_common.contracts.decision import Policy
from pml_common.contracts.gateway import ExecutionRequested
from pml_common.contracts.scope import Scope

SCOPE = Scope(org="acme", project="webapp")
LINES = (10, 50, 200, 1000)


def requested(code: str) -> ExecutionRequested:
    """A request for one program."""
    return ExecutionRequested.model_validate(
        {
            "scope": SCOPE,
            "event_id": "00000000-0000-0000-0000-000000000001",
            "workflow_id": "00000000-0000-0000-0000-000000000002",
            "principal": "agent-7",
            "code": code,
            "policy": Policy(),
            "requested_at": "2026-01-01T00:00:00Z",
        }
    )


async def clocked(what: str, rounds: int, work: Callable[[int], Awaitable[object]]) -> None:
    """Measure and print one operation."""
    times: list[float] = []
    for number in range(rounds):
        began = perf_counter()
        await work(number)
        times.append((perf_counter() - began) * 1e3)
    p95 = statistics.quantiles(times, n=20)[18]
    print(f"  {what:<24} p50 {statistics.median(times):7.3f}   p95 {p95:7.3f}")


async def main(rounds: int) -> None:
    """Print all figures."""
    limits = WorkerLimits(deadline_s=30)
    async with (
        deno_compiler(find_deno_bin(), limits) as compiler,
        process_engine(limits, inline=0) as engine,
    ):
        for lines in LINES:
            code = program(lines)
            outcome = analyze(code, tools=TOOLS, policy=Policy())
            assert isinstance(outcome, Analysis)
            print(f"{len(code.splitlines())} lines, {len(code)} characters")
            request, check = requested(code), CompileCheck(compiler)
            text = outcome.instrumented

            async def new(number: int, text: str = text) -> object:
                return await compiler.compile_error(SCOPE, f"{text}//{number}")

            async def known(
                _: int, check: CompileCheck = check, outcome: Analysis = outcome
            ) -> object:
                return await check.of(SCOPE, outcome)

            async def here(_: int, request: ExecutionRequested = request) -> object:
                return await InlineEngine().analyze(request, TOOLS, NO_CAPABILITIES, DEFAULT_LIMITS)

            async def there(_: int, request: ExecutionRequested = request) -> object:
                return await engine.analyze(request, TOOLS, NO_CAPABILITIES, DEFAULT_LIMITS)

            for what, work in (
                ("compiled, new", new),
                ("compiled, known", known),
                ("read here", here),
                ("read in a process", there),
            ):
                await work(-1)
                await clocked(what, rounds, work)


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 100))
