// Loads programs as the sandbox does and runs each with and without its instrumentation, against
// tools that record their calls and answer by number. Reads and writes JSON.
const FUEL = 200;
const ANSWERS = [null, { a: 1 }, [1], "s", 0, { field: [1] }];
const ARGS = { a: "A", free: "F" };
const NAMES = "mcp,capabilities,args,context,console,__pml";

async function load(code) {
  const bytes = new TextEncoder().encode(`export default async(${NAMES})=>{{${code}\n}}`);
  const text = btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
  return (await import(`data:application/typescript;base64,${text}`)).default;
}

function every(make) {
  return new Proxy({}, { get: (_, key) => key === "then" ? undefined : make(String(key)) });
}

async function run(code) {
  const calls = [], path = [];
  const burn = () => {
    if (calls.length + path.length > FUEL) throw new Error("out of fuel");
  };
  const tool = (name, node) => {
    const call = (given) => {
      burn();
      calls.push([name, JSON.stringify(given) ?? null]);
      if (node) path.push([node, null]);
      return Promise.resolve(ANSWERS[(calls.length * 7 + name.length) % ANSWERS.length]);
    };
    return Object.assign(call, { tool: name });
  };
  const mcp = every((server) => every((name) => tool(`${server}:${name}`)));
  const at = (node, callee) => callee === undefined ? callee : tool(callee.tool, node);
  const decide = (node, value) => {
    burn();
    path.push([node, String(Boolean(value))]);
    return value;
  };
  const main = await load(code);
  try {
    const result = await main(mcp, {}, ARGS, ARGS, console, { at, decide });
    return { end: JSON.stringify(result) ?? "undefined", calls, path };
  } catch (error) {
    return { end: error.constructor.name, calls, path };
  }
}

const runs = [];
for (const [original, instrumented] of JSON.parse(await new Response(Deno.stdin.readable).text())) {
  try {
    runs.push([await run(original), await run(instrumented)]);
  } catch (error) {
    runs.push([original, String(error)]);
  }
}
console.log(JSON.stringify(runs));
