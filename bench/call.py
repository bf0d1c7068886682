"""P3 in isolation: one journaled tool call and one raw request in alternation, and a call's CPU
time.

On a busy machine the times, and with them the ratio, differ from round to round; the CPU time of a
call hardly does. `uv run python bench/call.py [ROUNDS]`
"""

import asyncio
import statistics
import sys
import tempfile
from pathlib import Path

from execute import CALLS, MANY, call_to_call
from execution.callers import asked, execute
from execution.floors import p50, raw_request
from execution.processor import per_workflow, snapshot

ROUNDS = 5


async def main(rounds: int) -> None:
    """Measure each round, then print the medians."""
    calls: list[float] = []
    requests: list[float] = []
    used: list[dict[str, float]] = []
    with tempfile.TemporaryDirectory(prefix="pml-bench-", ignore_cleanup_errors=True) as name:
        async with asked(Path(name), {}) as (stack, http):
            await execute(http, MANY)
            for _ in range(rounds):
                requests.append(await raw_request(stack.nats_url))
                before = snapshot(stack)
                calls.append(p50(await call_to_call(http)))
                used.append(per_workflow(before, snapshot(stack), CALLS))
                print(_line(calls[-1], requests[-1]))
    print(f"\nmedian of {rounds}: {_line(statistics.median(calls), statistics.median(requests))}")
    print("\nCPU of a call, ms")
    for part in used[0]:
        print(f"  {part:<28}{statistics.median(each[part] for each in used):7.2f}")


def _line(call_ms: float, request_ms: float) -> str:
    return f"{call_ms / request_ms:6.2f}  {call_ms:.2f} ms a call, {request_ms:.2f} ms a request"


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else ROUNDS))
