"""What an analysis costs over parsing alone (P9), and how it grows: p50 of CPU
milliseconds, which other work on the machine disturbs less than wall time.

`uv run python bench/analyze.py [rounds]`
"""

import statistics
import sys
from collections.abc import Callable
from time import process_time

from pml_analyzer.domain.analysis import Analysis, analyze
from pml_analyzer.syntax import parser
from pml_analyzer.syntax.source import Source
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
CALLED = ("fs:list_directory", "fs:read_text_file", "fs:write_file", "mail:send")
OTHERS = tuple(f"server{number % 50}:tool_{number}" for number in range(500))
TOOLS = tuple(
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


def program(copies: int) -> str:
    """The program, `copies` times in blocks of their own."""
    if copies == 1:
        return PROGRAM
    head, _, body = PROGRAM.partition("\n\n")
    return "\n".join([head, *("{\n" + body.replace("return", "void") + "}" for _ in range(copies))])


def measure(copies: int, rounds: int) -> None:
    """Print one line."""
    code = program(copies)
    source = Source(code)

    def analysis() -> Analysis:
        outcome = analyze(code, tools=TOOLS, policy=Policy())
        assert isinstance(outcome, Analysis), outcome
        return outcome

    nodes = len(analysis().structure.nodes)
    parse, whole = p50(lambda: parser.parse(source), rounds), p50(analysis, rounds)
    print(
        f"{len(code.splitlines()):>5} lines {nodes:>4} nodes   parse {parse:7.3f}"
        f"   analysis {whole:7.3f} ({whole / len(code) * 1e3:.3f} per 1000 characters)"
        f"   P9 {whole / parse:5.1f}   {1e3 / whole:5.0f}/s per core"
    )


def main(rounds: int) -> None:
    """Print all figures."""
    for copies in (1, 2, 5, 10, 20):
        measure(copies, max(5, rounds // copies))


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 200)
