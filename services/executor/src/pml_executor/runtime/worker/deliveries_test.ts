import { deepStrictEqual } from "node:assert";
import { Deliveries, nextTaskOf } from "./deliveries.ts";

Deno.test("the effects of one delivery are complete before the next", async () => {
  const log: string[] = [];
  const waiting = new Map<number, () => void>();
  const chains = [1, 2, 3, 4].map(async (i) => {
    await new Promise<void>((resolve) => waiting.set(i, resolve));
    for (let hop = 0; hop < 50 * (4 - i); hop++) await null;
    log.push(`done ${i}`);
  });
  const idle = new Promise<void>((resolve) => {
    const deliveries = new Deliveries<number>(
      (i) => {
        log.push(`given ${i}`);
        waiting.get(i)!();
      },
      nextTaskOf(),
      resolve,
    );
    for (const i of [1, 2, 3, 4]) deliveries.add(i);
  });
  await Promise.all([...chains, idle]);
  deepStrictEqual(log, [1, 2, 3, 4].flatMap((i) => [`given ${i}`, `done ${i}`]));
});
