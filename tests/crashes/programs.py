"""Programs of every shape, each with the same end in every run.

`drawn` is what a program draws from its clock and random source: it differs between runs, and the
program itself reports whether a replay returned the same value. `wait` is the duration of a tool
call in milliseconds, so that results arrive in another order than the calls.
"""

from tests.crashes.parking_programs import PAID, PARKING_PROGRAMS
from tests.crashes.program import REFUSED, Program

SEQUENTIAL = """
const when = Date.now();
const first = await mcp.tally.mark({ run: args.run, n: 1, drawn: when });
const second = await mcp.tally.look({ run: args.run, n: first.n + 1, drawn: Math.random() });
console.log("halfway", second.n);
const id = crypto.randomUUID();
const third = await mcp.tally.mark({ run: args.run, n: second.n + 1, drawn: id });
const kept = first.drawn === when && third.drawn === id && Date.now() >= when;
return { steps: [first.n, second.n, third.n], kept };
"""

BRANCHING = """
const size = await mcp.tally.look({ run: args.run, n: 7 });
let label = "small";
if (size.n > 5) {
  const doubled = await mcp.tally.mark({ run: args.run, n: size.n * 2 });
  label = doubled.n === 14 ? "fourteen" : "other";
} else {
  await mcp.tally.mark({ run: args.run, n: -1 });
}
switch (label) {
  case "fourteen":
    await mcp.tally.mark({ run: args.run, n: 14, drawn: Math.random() });
    break;
  default:
    await mcp.tally.mark({ run: args.run, n: -2 });
}
const last = size.n % 2 === 0
  ? await mcp.tally.mark({ run: args.run, n: -3 })
  : await mcp.tally.look({ run: args.run, n: 1 });
const skipped = last.n > 5 && (await mcp.tally.mark({ run: args.run, n: -4 }));
const chosen = last.missing ?? (await mcp.tally.mark({ run: args.run, n: 3 }));
return { label, last: last.n, skipped, chosen: chosen.n };
"""

LOOPING = """
let sum = 0;
for (const n of [1, 2, 3]) {
  if (n === 2) continue;
  sum += (await mcp.tally.mark({ run: args.run, n })).n;
}
let left = 2;
while (left > 0) {
  left = (await mcp.tally.mark({ run: args.run, n: 10 + left })).n - 11;
}
let thirds = 0;
for (let i = 0; i < 1500; i++) {
  if (i % 3 === 0) thirds++;
}
outer: for (const row of [20, 30]) {
  for (const column of [1, 2]) {
    const seen = await mcp.tally.look({ run: args.run, n: row + column, drawn: Math.random() });
    if (seen.n === 22) break outer;
  }
}
return { sum, left, thirds };
"""

PARALLEL = """
const waits = [30, 5, 20, 0];
const chains = await Promise.all(waits.map(async (wait, i) => {
  const first = await mcp.tally.mark({ run: args.run, n: i, wait });
  const drawn = Math.random();
  const second = await mcp.tally.look({ run: args.run, n: 10 + first.n, wait: 20 - i, drawn });
  return [second.n, second.drawn === drawn];
}));
const nested = await Promise.all([
  Promise.all([
    mcp.tally.mark({ run: args.run, n: 20, wait: 10 }),
    mcp.tally.mark({ run: args.run, n: 21 }),
  ]),
  (async () => {
    await new Promise((done) => setTimeout(done, 3));
    const seen = await mcp.tally.look({ run: args.run, n: 22, wait: 5 });
    return await mcp.tally.mark({ run: args.run, n: seen.n + 1 });
  })(),
]);
return { chains, nested: [nested[0].map((each) => each.n), nested[1].n] };
"""

TRYING = """
const caught = [];
for (const n of [1, 2]) {
  try {
    await mcp.tally.mark({ run: args.run, n });
    await mcp.tally.refuse({ run: args.run, n: 10 + n });
    caught.push("this is not reached");
  } catch (error) {
    caught.push(String(error.message));
    if (n === 2) await mcp.tally.mark({ run: args.run, n: 20 + n });
  } finally {
    await mcp.tally.look({ run: args.run, n: 30 + n });
  }
}
const settled = await Promise.allSettled([
  mcp.tally.refuse({ run: args.run, n: 40, wait: 10 }),
  mcp.tally.mark({ run: args.run, n: 41 }),
]);
return { caught, settled: settled.map((each) => each.status) };
"""

FUNCTIONS = """
async function step(n) {
  const made = await mcp.tally.mark({ run: args.run, n });
  return made.n;
}
const pair = async (n) => (await step(n)) + (await step(n + 1));
async function down(n) {
  if (n === 0) return 0;
  return (await step(100 + n)) + (await down(n - 1));
}
const direct = await step(1);
const arrow = await pair(10);
const mapped = await Promise.all([20, 21].map((n) => step(n)));
const recursed = await down(2);
return { direct, arrow, mapped, recursed };
"""

READING = """
const first = await mcp.tally.look({ run: args.run, n: 1, drawn: Math.random() });
console.log("read", first.n);
const [left, right] = await Promise.all([
  mcp.tally.look({ run: args.run, n: first.n + 1, wait: 10 }),
  mcp.tally.look({ run: args.run, n: first.n + 2 }),
]);
const last = await mcp.tally.look({ run: args.run, n: left.n + right.n, drawn: Math.random() });
return { last: last.n, kept: first.drawn !== last.drawn };
"""

FAILING = """
const first = await mcp.tally.mark({ run: args.run, n: 1 });
const both = await Promise.all([
  mcp.tally.look({ run: args.run, n: 2, wait: 10 }),
  mcp.tally.mark({ run: args.run, n: 3 }),
]);
if (both[0].n + first.n === 3) {
  await mcp.tally.refuse({ run: args.run, n: 4 });
}
return await mcp.tally.mark({ run: args.run, n: -1 });
"""

PAIR = """
const first = await mcp.tally.mark({ run: args.run, n: args.n, drawn: Math.random() });
const second = await mcp.tally.look({ run: args.run, n: first.n + 1 });
return first.n + second.n;
"""

ROWS = """
let sum = 0;
for (const n of [args.n, args.n + 2]) {
  sum += await capabilities.steps_pair({ run: args.run, n });
}
if (sum > 50) await mcp.tally.refuse({ run: args.run, n: args.n + 4 });
return sum;
"""

CAPABILITIES = {"steps:pair": PAIR, "steps:rows": ROWS, "steps:paid": PAID}
"""Learned, in this order, before the programs run."""

NESTED = """
const alone = await capabilities.steps_pair({ run: args.run, n: 1 });
const [left, right] = await Promise.all([
  capabilities.steps_rows({ run: args.run, n: 10 }),
  capabilities.steps_pair({ run: args.run, n: 20 }),
]);
let caught = "";
try {
  await capabilities.steps_rows({ run: args.run, n: 30 });
} catch (error) {
  caught = String(error.message);
}
return { alone, left, right, caught };
"""

PROGRAMS = {
    "sequential": Program(SEQUENTIAL, {"steps": [1, 2, 3], "kept": True}),
    "branching": Program(
        BRANCHING, {"label": "fourteen", "last": 1, "skipped": False, "chosen": 3}
    ),
    "looping": Program(LOOPING, {"sum": 4, "left": 0, "thirds": 500}),
    "parallel": Program(
        PARALLEL,
        {"chains": [[n, True] for n in (10, 11, 12, 13)], "nested": [[20, 21], 23]},
    ),
    "trying": Program(
        TRYING,
        {
            "caught": [REFUSED.format(11), REFUSED.format(12)],
            "settled": ["rejected", "fulfilled"],
        },
    ),
    "functions": Program(
        FUNCTIONS, {"direct": 1, "arrow": 21, "mapped": [20, 21], "recursed": 203}
    ),
    "nested": Program(
        NESTED,
        {
            "alone": 3,
            "left": 46,
            "right": 41,
            "caught": f"steps:rows, line 6: {REFUSED.format(34)}",
        },
    ),
    "reading": Program(READING, {"last": 5, "kept": True}),
    "failing": Program(FAILING, error=REFUSED.format(4)),
    **PARKING_PROGRAMS,
}
