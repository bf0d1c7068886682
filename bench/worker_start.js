/**
 * CPU of a Worker's start, in ms: as it is, with nothing of the language frozen, and with its
 * functions frozen, too, as for a program that is given capabilities. The three in turn, so that
 * what the machine does meanwhile meets all alike.
 *
 * `uv run deno run -A --unstable-worker-options --v8-flags=--single-threaded,--max-lazy \
 *   bench/worker_start.js [rounds]`
 */
const ROUNDS = Number(Deno.args[0] ?? 150);
const QUIET_MS = 12; // until a thread that was ended is gone
const FREEZING = "  freezeIntrinsics(values);";
const BUILD =
  new URL("../services/executor/src/pml_executor/runtime/build.ts", import.meta.url).pathname;

const built = await new Deno.Command(Deno.execPath(), {
  args: ["run", "--no-check", BUILD],
}).output();
const [code] = JSON.parse(new TextDecoder().decode(built.stdout));
if (!built.success || !code.includes(FREEZING)) throw new Error("the Worker's code is another");
const variants = {
  "nothing frozen": code.replace(FREEZING, ""),
  "as it is": code,
  "functions, too": code.replace(FREEZING, `${FREEZING} freezeMembers();`),
};

function cpu() {
  const { user, system } = Deno.cpuUsage();
  return (user + system) / 1000;
}

async function start(url) {
  const { port1, port2 } = new MessageChannel();
  const before = cpu();
  const worker = new Worker(url, { type: "module", deno: { permissions: "none" } });
  await new Promise((ready) => {
    port1.onmessage = ready;
    worker.postMessage(null, [port2]);
  });
  const took = cpu() - before;
  port1.close();
  worker.terminate();
  await new Promise((later) => setTimeout(later, QUIET_MS));
  return took;
}

const names = Object.keys(variants);
const urls = names.map((name) =>
  URL.createObjectURL(new Blob([variants[name]], { type: "text/javascript" }))
);
const took = names.map(() => []);
for (let round = -5; round < ROUNDS; round++) {
  for (let turn = 0; turn < urls.length; turn++) {
    const which = (turn + round + 5) % urls.length;
    const ms = await start(urls[which]);
    if (round >= 0) took[which].push(ms);
  }
}
const mean = (values) => values.reduce((sum, value) => sum + value, 0) / values.length;
const trimmed = (values) => {
  const sorted = values.toSorted((a, b) => a - b);
  return mean(sorted.slice(sorted.length / 10, -sorted.length / 10));
};
names.forEach((name, which) => {
  const more = trimmed(took[which].map((ms, round) => ms - took[0][round]));
  console.log(
    name.padEnd(16),
    mean(took[which]).toFixed(2),
    `${more >= 0 ? "+" : ""}${more.toFixed(2)}`,
  );
});
Deno.exit();
