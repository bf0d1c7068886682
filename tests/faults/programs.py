"""The programs of the load, each with its expected end."""

from collections.abc import Mapping
from dataclasses import dataclass
from random import Random

from pml_common.contracts.tool import JsonObject
from tests.crashes.program import Program
from tests.crashes.programs import CAPABILITIES, PROGRAMS

READING = """
const first = await mcp.tally.look({ run: args.run, n: 1 });
const rest = await Promise.all([
  mcp.depot.look({ run: args.run, n: first.n + 1 }),
  mcp.tally.look({ run: args.run, n: first.n + 2, wait: 20 }),
]);
return rest.map((each) => each.n);
"""

KEEPING = """
const first = await mcp.depot.put({ run: args.run, n: 1 });
const second = await mcp.tally.put({ run: args.run, n: first.n + 1, wait: 50 });
return (await mcp.depot.put({ run: args.run, n: second.n + 1 })).n;
"""

LOOPING = """
let sum = 0;
for (const n of [1, 2, 3, 4]) {
  sum += (await mcp.depot.look({ run: args.run, n })).n;
  sum += (await mcp.depot.mark({ run: args.run, n: 10 * n, wait: 10 })).n;
  sum += (await mcp.tally.put({ run: args.run, n: 100 * n })).n;
}
return sum;
"""

LONG = """
let sum = 0;
for (const n of [1, 2, 3]) {
  sum += (await mcp.depot.mark({ run: args.run, n, wait: 1000 })).n;
  sum += (await mcp.tally.put({ run: args.run, n: 10 * n, wait: 1000 })).n;
  sum += (await mcp.tally.mark({ run: args.run, n: 100 * n, wait: 500 })).n;
}
return sum;
"""

PAYING = """
const seen = await mcp.tally.look({ run: args.run, n: 1 });
return (await mcp.tally.pay({ run: args.run, n: 2 })).n + seen.n;
"""


@dataclass(frozen=True)
class Kind:
    """A program of the load: its weight, and its caller's further actions."""

    program: Program
    weight: int
    capability: str | None = None
    """Run by this name instead of its code."""
    cancelled: bool = False
    """Its caller cancels it after a while."""
    asks: bool = False
    """Needs approval from a person, who denies one of five."""


_PAIR = Program(CAPABILITIES["steps:pair"], 11)

KINDS: Mapping[str, Kind] = {
    "reading": Kind(Program(READING, [2, 3]), 4),
    "keeping": Kind(Program(KEEPING, 3), 4),
    "sequential": Kind(PROGRAMS["sequential"], 4),
    "parallel": Kind(PROGRAMS["parallel"], 2),
    "looping": Kind(Program(LOOPING, 1110), 3),
    "long": Kind(Program(LONG, 666), 3),
    "cancelled": Kind(Program(LONG, 666), 2, cancelled=True),
    "paying": Kind(Program(PAYING, 3), 2, asks=True),
    "parking": Kind(PROGRAMS["parking"], 2, asks=True),
    "by name": Kind(_PAIR, 3, capability="steps:pair"),
    "nested": Kind(PROGRAMS["nested"], 2),
    "failing": Kind(PROGRAMS["failing"], 1),
}


def draw(chance: Random) -> str:
    """Draw one kind, by weight."""
    return chance.choices(list(KINDS), [kind.weight for kind in KINDS.values()])[0]


def request_of(name: str, run: str, timeout_s: float) -> JsonObject:
    """Build the caller's request."""
    kind = KINDS[name]
    args: JsonObject = {"run": run, "tool": "tally:pay", "linger": 0, "n": 5}
    source: JsonObject = {"code": kind.program.code}
    if kind.capability is not None:
        source = {"capability": kind.capability}
    return {**source, "args": args, "idempotency_key": run, "timeout": timeout_s}
