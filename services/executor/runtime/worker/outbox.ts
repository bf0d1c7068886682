/** What leaves the Worker, as texts; see `pml_executor.domain.protocol`. */
import type { Failure } from "./failure.ts";
import { flat, toJson } from "./json_safe.ts";
import { join, push, slice, soon } from "./primordials.ts";
import { Tally } from "./tally.ts";
import type { Bridge } from "./tools.ts";

const MAX_NOTES = 64;

/** Sends texts; notes wait for the end of the current task, or for what must follow them. */
export class Outbox implements Bridge {
  readonly tally = new Tally((node, outcome, counted) => this.#report(node, outcome, counted));
  #post: (text: string) => void;
  #notes: string[] = [];

  constructor(post: (text: string) => void) {
    this.#post = post;
  }

  call(id: number, node: string | null, tool: string, args: string): void {
    const head = flat({ kind: "call", id, node, tool });
    this.#send(`${slice(head, 0, -1)},"args":${args}}`);
  }

  log(level: string, message: string): void {
    this.#note(flat({ type: "log", level, message }));
  }

  returned(value: unknown): void {
    const text = toJson(value);
    this.tally.finish();
    this.#send(`{"kind":"returned","value":${text}}`);
  }

  threw(failure: Failure, phase: "load" | "run", call: number | null): void {
    this.tally.finish();
    this.#send(flat({ kind: "threw", phase, call, ...failure }));
  }

  #report(node: string, outcome: string | null, counted: number): void {
    this.#note(
      outcome === null
        ? flat({ type: "loop", node, counted })
        : flat({ type: "decision", node, outcome, counted }),
    );
    if (counted > 0) this.#flush(); // rare, and a loop that never ends comes to no other moment
  }

  #note(note: string): void {
    push(this.#notes, note);
    if (this.#notes.length === 1) soon(() => this.#flush());
    if (this.#notes.length >= MAX_NOTES) this.#flush();
  }

  #send(text: string): void {
    this.#flush();
    this.#post(text);
  }

  #flush(): void {
    if (this.#notes.length === 0) return;
    const notes = join(this.#notes, ",");
    this.#notes = [];
    this.#post(`{"kind":"noted","notes":[${notes}]}`);
  }
}
