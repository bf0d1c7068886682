import { deepStrictEqual, strictEqual } from "node:assert";
import { Clock, dateOf } from "./clock.ts";

Deno.test("the clock advances when it is read and never goes back", () => {
  const clock = new Clock();
  clock.begin(1000);
  deepStrictEqual([clock.read(), clock.read()], [1000, 1001]);
  clock.reach(500);
  strictEqual(clock.read(), 1002);
  clock.reach(9000);
  deepStrictEqual([clock.sinceStart(), clock.after(5)], [8000, 9006]);
});

Deno.test("dates are real dates, of the clock's time", () => {
  const clock = new Clock();
  clock.begin(86_400_000);
  const real = Date;
  const ProgramDate = dateOf(clock);
  try {
    strictEqual(ProgramDate.now(), 86_400_000);
    strictEqual(new ProgramDate().getTime(), 86_400_001);
    strictEqual(new ProgramDate(0).toISOString(), "1970-01-01T00:00:00.000Z");
    strictEqual(new ProgramDate(2020, 1).getFullYear(), 2020);
    strictEqual(new ProgramDate() instanceof real, true);
    strictEqual(typeof (ProgramDate as unknown as () => string)(), "string");
    strictEqual(ProgramDate.UTC(1970, 0, 2), ProgramDate.parse("1970-01-02T00:00:00Z"));
    class Later extends ProgramDate {}
    strictEqual(new Later() instanceof Later, true);
    deepStrictEqual([ProgramDate.name, ProgramDate.length], ["Date", 7]);
  } finally {
    real.prototype.constructor = real;
  }
});
