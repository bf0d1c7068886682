import { deepStrictEqual, ok, throws } from "node:assert";
import { Clock } from "./clock.ts";
import { timerFunctions, Timers } from "./timers.ts";
import { alarm } from "./web.ts";

type Set = (f: () => void, delay?: number, ...args: unknown[]) => number;

/** Keeps the process alive, which alarms alone do not; in a Worker its port does. */
function test(name: string, body: () => Promise<void>): void {
  Deno.test(name, async () => {
    const alive = setInterval(() => {}, 1000);
    try {
      await body();
    } finally {
      clearInterval(alive);
    }
  });
}

function stage() {
  const clock = new Clock();
  clock.begin(1000);
  const state = { quiet: true };
  const timers = new Timers(clock, () => state.quiet, alarm);
  const { setTimeout, setInterval, clearTimeout } = timerFunctions(timers) as {
    setTimeout: Set;
    setInterval: Set;
    clearTimeout: (handle: unknown) => void;
  };
  return { clock, state, timers, setTimeout, setInterval, clearTimeout };
}

test("timers fire by the time they are due, and move the clock there", async () => {
  const { clock, setTimeout, clearTimeout } = stage();
  const fired: unknown[] = [];
  await new Promise<void>((done) => {
    setTimeout(() => done(fired.push(["last", clock.read()]) as never), 6);
    setTimeout(() => fired.push(["second", clock.read()]), 2);
    setTimeout(() => fired.push(["first", clock.read()]), 0);
    clearTimeout(setTimeout(() => fired.push("never"), 1));
  });
  deepStrictEqual(fired, [["first", 1000], ["second", 1002], ["last", 1006]]);
});

test("no timer fires while a call is under way", async () => {
  const { state, timers, setTimeout } = stage();
  const fired: string[] = [];
  const done = new Promise<void>((done) =>
    setTimeout(() => {
      fired.push("timer");
      done();
    }, 1)
  );
  state.quiet = false;
  await new Promise((later) => AbortSignal.timeout(15).addEventListener("abort", later));
  fired.push("answer");
  state.quiet = true;
  timers.wake();
  await done;
  deepStrictEqual(fired, ["answer", "timer"]);
});

test("an interval goes on until it is cleared", async () => {
  const { setInterval, clearTimeout, clock } = stage();
  const times: number[] = [];
  await new Promise<void>((done) => {
    const handle = setInterval(() => {
      times.push(clock.read());
      if (times.length < 3) return;
      clearTimeout(handle);
      done();
    }, 2);
  });
  deepStrictEqual(times, [1002, 1004, 1006]);
});

test("a replay does not wait again for timers of the past", async () => {
  const { timers, setTimeout, clock } = stage();
  timers.begin(1000 + 600_000);
  const began = performance.now();
  await new Promise<void>((done) => void setTimeout(done, 600_000));
  ok(performance.now() - began < 60_000); // sooner than the delay
  deepStrictEqual(clock.read(), 601_000);
});

test("a timer needs a function and takes odd delays for none", async () => {
  const { setTimeout } = stage();
  throws(() => setTimeout("code" as never), /needs a function/);
  for (const delay of [-1, NaN, Infinity, 2 ** 40, undefined]) {
    await new Promise<void>((done) => void setTimeout(done, delay));
  }
});
