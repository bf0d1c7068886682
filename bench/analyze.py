"""Cost of an analysis over parsing alone (P9, at 50 lines), and its growth: p50 of CPU
milliseconds, which depend less on the machine's load than wall time.

`uv run python bench/analyze.py [rounds]`
"""

import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import log
from time import process_time

from pml_analysis.analysis import Analysis, analyze
from pml_analysis.decision.toolbox import Tools
from pml_analysis.syntax import parser
from pml_analysis.syntax.source import Source
from pml_common.contracts.decision import Policy
from pml_common.contracts.tool import ToolDefinition

PROGRAM = """\
// Collects the open invoices of one customer and writes a summary beside them.
const { customer, folder = "/data/invoices", limit = 20 } = args;
const today = new Date().toISOString().slice(0, 10);

type Invoice = { id: string; total: number; due: string; paid: boolean };

function overdue(invoice: Invoice): boolean {
  return !invoice.paid && invoice.due < today;
}

const listing = await mcp.fs.list_directory({ path: `${folder}/${customer}` });
const names = listing.entries
  .filter((entry) => entry.kind === "file" && entry.name.endsWith(".json"))
  .map((entry) => entry.name);

if (names.length === 0) {
  console.warn(`nothing found for ${customer}`);
  return { customer, invoices: [], total: 0 };
}

const invoices: Invoice[] = [];
for (const name of names.slice(0, limit)) {
  try {
    const file = await mcp.fs.read_text_file({ path: `${folder}/${customer}/${name}` });
    const invoice = JSON.parse(file.content) as Invoice;
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

await mcp.fs.write_file({
  path: `${folder}/${customer}/summary.json`,
  content: JSON.stringify(summary, null, 2),
});
if (late.length > 0) {
  await mcp.mail.send({ to: args.accountant, subject: "Overdue", body: JSON.stringify(late) });
}
return summary;
"""
SHORT = """\
const { path, limit = 10 } = args;
const listing = await mcp.fs.list_directory({ path });
const texts: string[] = [];
for (const entry of listing.entries.slice(0, limit)) {
  if (entry.kind === "file") {
    const file = await mcp.fs.read_text_file({ path: `${path}/${entry.name}` });
    texts.push(file.content);
  }
}
return texts;
"""
CALLED = ("fs:list_directory", "fs:read_text_file", "fs:write_file", "mail:send")
OTHERS = tuple(f"server{number % 50}:tool_{number}" for number in range(500))
TOOLS = Tools(
    ToolDefinition(server=name.partition(":")[0], name=name.partition(":")[2])
    for name in CALLED + OTHERS
)


def p50(work: Callable[[], object], rounds: int) -> float:
    """Median CPU time of one round in milliseconds."""
    times: list[float] = []
    for _ in range(rounds):
        began = process_time()
        work()
        times.append(process_time() - began)
    return statistics.median(times) * 1e3


def program(lines: int) -> str:
    """The first program above, in consecutive blocks of about this many lines."""
    head, _, body = PROGRAM.partition("\n\n")
    copies = round(lines / len(PROGRAM.splitlines()))
    if copies == 0:
        return SHORT
    blocks = ("{\n" + body.replace("return", "void") + "}" for _ in range(copies))
    return PROGRAM if copies == 1 else "\n".join([head, *blocks])


@dataclass(frozen=True)
class Cost:
    """CPU milliseconds of parsing a program and of its whole analysis."""

    code: str
    nodes: int
    parse: float
    whole: float

    def line(self) -> str:
        """A row of the table."""
        return (
            f"{len(self.code.splitlines()):>5} lines {len(self.code):>6} characters"
            f" {self.nodes:>4} nodes   parse {self.parse:7.3f}   analysis {self.whole:7.3f}"
            f"   P9 {self.whole / self.parse:5.1f}   {1e3 / self.whole:5.0f}/s per core"
        )


def measure(code: str, rounds: int) -> Cost:
    """Measure one program."""
    source = Source(code)

    def analysis() -> Analysis:
        outcome = analyze(code, tools=TOOLS, policy=Policy())
        assert isinstance(outcome, Analysis), outcome
        return outcome

    nodes = len(analysis().structure.nodes)
    return Cost(code, nodes, p50(lambda: parser.parse(source), rounds), p50(analysis, rounds))


def fit(costs: Sequence[Cost]) -> str:
    """Least squares: milliseconds per thousand characters, the fit of a straight line, and the
    exponent of a power law (1: linear)."""
    sizes = [len(cost.code) / 1e3 for cost in costs]
    times = [cost.whole for cost in costs]
    slope, start = statistics.linear_regression(sizes, times)
    power, _ = statistics.linear_regression([*map(log, sizes)], [*map(log, times)])
    r2 = statistics.correlation(sizes, times) ** 2
    return (
        f"milliseconds = {start:.2f} + {slope:.3f} * thousands of characters, r² = {r2:.4f};"
        f" as a power of the length: {power:.2f}"
    )


def main(rounds: int) -> None:
    """Print all figures."""
    print(f"{len(TOOLS)} tools, p50 of CPU milliseconds")
    costs: list[Cost] = []
    for lines in (10, 50, 100, 200, 500, 1000):
        costs.append(measure(program(lines), max(20, rounds * 50 // max(lines, 50))))
        print(costs[-1].line())
    print(fit(costs))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
