"""Programs that park: the tool of a call of `args.tool` is known only at run time.

The last call of `PARKING` takes `args.linger` milliseconds.
"""

from tests.crashes.program import REFUSED, Program

PAID = """
const first = await mcp.tally.mark({ run: args.run, n: args.n });
const paid = await mcp.call(args.tool, { run: args.run, n: first.n + 1, drawn: Math.random() });
const second = await mcp.tally.look({ run: args.run, n: paid.n + 1 });
return paid.n + second.n;
"""

PARKING = """
const when = Date.now();
const first = await mcp.tally.mark({ run: args.run, n: 1, drawn: when });
const paid = [];
for (const n of [2, 3]) {
  const drawn = Math.random();
  const bill = await mcp.call(args.tool, { run: args.run, n, drawn });
  paid.push([bill.n, bill.drawn === drawn]);
  if (n === 2) await mcp.tally.look({ run: args.run, n: 20 });
}
const last = await mcp.tally.mark({ run: args.run, n: 4, wait: args.linger });
return { steps: [first.n, last.n], paid, kept: first.drawn === when && Date.now() >= when };
"""

PARKING_BESIDE = """
const all = await Promise.all([
  mcp.tally.mark({ run: args.run, n: 1, wait: 20 }),
  mcp.call(args.tool, { run: args.run, n: 2, wait: 5, drawn: Math.random() }),
  mcp.tally.look({ run: args.run, n: 3, wait: 10 }),
  mcp.call(args.tool, { run: args.run, n: 4 }),
]);
return all.map((each) => each.n);
"""

PARKING_NESTED = """
const paid = await capabilities.steps_paid({ run: args.run, tool: args.tool, n: 1 });
let caught = "";
try {
  await mcp.tally.refuse({ run: args.run, n: paid });
} catch (error) {
  caught = String(error.message);
}
const last = await mcp.tally.mark({ run: args.run, n: paid + 1 });
return { paid, caught, last: last.n };
"""

PARKING_PROGRAMS = {
    "parking": Program(PARKING, {"steps": [1, 4], "paid": [[2, True], [3, True]], "kept": True}),
    "parking beside": Program(PARKING_BESIDE, [1, 2, 3, 4]),
    "parking nested": Program(PARKING_NESTED, {"paid": 5, "caught": REFUSED.format(5), "last": 6}),
}
