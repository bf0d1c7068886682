"""Cost of typed tools: generating declarations (CPU milliseconds), and checking a 50-line
program against them in a warm process (wall milliseconds, which depend on the machine's load).

`uv run python bench/type_check.py [rounds]`
"""

import asyncio
import statistics
import sys
from collections.abc import Awaitable, Callable, Sequence
from pathlib import Path
from time import perf_counter, process_time

from deno import find_deno_bin

sys.path.insert(0, str(Path(__file__).parent.parent))  # when run as a script

from pml_analysis.typing.declarations import declarations
from pml_checker.checker_process import CheckerCommand
from pml_checker.deno_checker import CheckerLimits, DenoChecker, deno_checker
from pml_common.contracts.tool import ToolDefinition
from services.analyzer.tests.support.schemas import CATALOGUE, livemcpbench

PROGRAM = """\
// Collects the open invoices of one customer and writes a summary beside them.
const { customer, folder = "/data/invoices", limit = 20 } = args;
const today = new Date().toISOString().slice(0, 10);

type Invoice = { id: string; total: number; due: string; paid: boolean };

function overdue(invoice: Invoice): boolean {
  return !invoice.paid && invoice.due < today;
}

const listing = await mcp.filesystem.list_directory({ path: `${folder}/${customer}` });
const names: string[] = String(listing)
  .split("\\n")
  .filter((line) => line.startsWith("[FILE]") && line.endsWith(".json"))
  .map((line) => line.slice(7));

if (names.length === 0) {
  console.warn(`nothing found for ${customer}`);
  return { customer, invoices: [], total: 0 };
}

const invoices: Invoice[] = [];
for (const name of names.slice(0, limit)) {
  try {
    const file = await mcp.call("filesystem:read_file", { path: `${folder}/${customer}/${name}` });
    const invoice = JSON.parse(file) as Invoice;
    if (invoice.paid) {
      continue;
    }
    invoices.push(invoice);
  } catch (error) {
    console.error(`skipped ${name}`, error);
  }
}

const late = invoices.filter(overdue);
const total = invoices.reduce((sum, invoice) => sum + invoice.total, 0);
const summary = {
  customer,
  date: today,
  open: invoices.length,
  late: late.map((invoice) => ({ id: invoice.id, days: invoice.due })),
  total,
};

await mcp.filesystem.write_file({
  path: `${folder}/${customer}/summary.json`,
  content: JSON.stringify(summary, null, 2),
});
return summary;
"""
WRONG = PROGRAM.replace("content: JSON", "contents: JSON")


async def times(
    rounds: int, work: Callable[[int], Awaitable[object]], clock: Callable[[], float] = perf_counter
) -> list[float]:
    """Milliseconds of each round, in order."""
    found: list[float] = []
    for number in range(rounds):
        began = clock()
        await work(number)
        found.append((clock() - began) * 1e3)
    return found


def shown(found: Sequence[float]) -> str:
    """Median and 95th percentile."""
    ordered = sorted(found)
    return f"p50 {statistics.median(found):6.1f}   p95 {ordered[int(len(ordered) * 0.95)]:6.1f}"


async def measure(checker: DenoChecker, tools: Sequence[ToolDefinition], rounds: int) -> None:
    """Measure and print one set of tools."""

    async def declare(_: int) -> object:
        return declarations(tools)

    async def check(number: int, program: str = PROGRAM, errors: int = 0) -> object:
        found = await checker.check(f"{program}// {number}", (), tools)
        assert len(found) == errors, found
        return found

    print(f"{len(tools)} tools, {len(declarations(tools)):,} characters of declarations")
    made = await times(max(5, rounds // 10), declare, process_time)
    print(f"  declarations (CPU)      {shown(made)}")
    (first,) = await times(1, check)
    print(f"  first check of a scope  {first:10.1f}")
    print(f"  warm check              {shown(await times(rounds, check))}")
    wrong = await times(rounds, lambda number: check(number, WRONG, 1))
    print(f"  warm check, one error   {shown(wrong)}")


async def main(rounds: int) -> None:
    """Measure few tools, then all of them."""
    if not CATALOGUE.exists():
        print(f"not measured: the tools of LiveMCPBench are not at {CATALOGUE}")
        return
    tools = livemcpbench()
    files = [tool for tool in tools if tool.server == "filesystem"][:10]
    command, limits = CheckerCommand(find_deno_bin()), CheckerLimits(patience_s=30)
    began = perf_counter()
    async with deno_checker(command, limits) as checker:
        await checker.check("return 1;", (), ())
        print(f"start until the first answer {(perf_counter() - began) * 1e3:.0f}")
        for some in (files, tools):
            await measure(checker, some, rounds)
        assert checker.process is not None
        print(f"memory of the checker after all that: {checker.process.resident_mib} MiB")


if __name__ == "__main__":
    asyncio.run(main(int(sys.argv[1]) if len(sys.argv) > 1 else 200))
