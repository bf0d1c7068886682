/** Messages from the Worker, as texts of one message per line (`pml_executor.domain.protocol`). */
import type { Failure, Place } from "./failure.ts";
import { flat, toJson } from "./json_safe.ts";
import { LostParts } from "./lost.ts";
import { join, push, slice } from "./primordials.ts";
import { Tally } from "./tally.ts";
import type { ReturnedPart } from "./returned_parts.ts";
import type { Bridge } from "./tools.ts";
import type { Unawaited } from "./unawaited.ts";
import { soon } from "./web.ts";

const MAX_NOTES = 64;
/** Maximum length of a text in which notes are sent together with the message after them. */
const MAX_TOGETHER = 16_384;

/** The calls, of a tool and of a capability, that a thrown value is the error of; null if none. */
export interface Source {
  call: number | null;
  capability: number | null;
}

/** Sends texts; notes wait for the end of the current task, or for the next other message. */
export class Outbox implements Bridge {
  readonly tally = new Tally((node, outcome, counted, within) =>
    this.#report(node, outcome, counted, within)
  );
  #post: (text: string) => void;
  #notes: string[] = [];

  constructor(post: (text: string) => void) {
    this.#post = post;
  }

  call(
    id: number,
    within: number | null,
    node: string | null,
    tool: string,
    args: string,
    place: Place | null = null,
  ): void {
    const call = { kind: "call", id, within, node, tool };
    const head = flat(place === null ? call : { ...call, ...place });
    this.#send(`${slice(head, 0, -1)},"args":${args}}`);
  }

  /** Reports a call of a capability, by its number, at a node. */
  entered(
    id: number,
    within: number | null,
    node: string,
    capability: number,
    args: string,
  ): void {
    const head = flat({ kind: "entered", id, within, node, capability });
    this.#send(`${slice(head, 0, -1)},"args":${args}}`);
  }

  /** Reports the value that a call of a capability returned, and what was lost of it. */
  left(id: number, value: string, lost: LostParts): void {
    this.#send(`{"kind":"left","id":${id},"value":${value}${lostField(lost)}}`);
  }

  /** Reports the failure of a call of a capability. */
  failed(id: number, failure: Failure, origin: Source): void {
    this.#send(flat({ kind: "failed", id, ...origin, ...failure }));
  }

  /** Reports that every message of the current task is sent. */
  paused(): void {
    this.#send('{"kind":"paused"}');
  }

  log(level: string, message: string, within: number | null = null): void {
    this.#note(flat({ type: "log", within, level, message }));
  }

  /**
   * Reports the program's value; what is still under way: calls, and dropped promises; and the part
   * of a result that was undefined and gave it that value.
   */
  returned(
    value: unknown,
    calls: number[] = [],
    dropped: Unawaited[] = [],
    part: ReturnedPart | null = null,
  ): void {
    const lost = new LostParts("result");
    const text = toJson(value, lost.add, "result");
    this.tally.finish();
    const isOver = calls.length === 0 && dropped.length === 0;
    const open = isOver ? "" : `,"under_way":${toJson(calls)},"dropped":${toJson(dropped)}`;
    const of = part === null ? "" : `,"part":${toJson(part)}`;
    this.#send(`{"kind":"returned","value":${text}${lostField(lost)}${open}${of}}`);
  }

  threw(failure: Failure, phase: "load" | "run", origin: Source): void {
    this.tally.finish();
    this.#send(flat({ kind: "threw", phase, ...origin, ...failure }));
  }

  #report(
    node: string,
    outcome: string | null,
    counted: number,
    within: number | null,
  ): void {
    this.#note(
      outcome === null
        ? flat({ type: "loop", within, node, counted })
        : flat({ type: "decision", within, node, outcome, counted }),
    );
    if (counted > 0) this.#flush(); // rare, and an endless loop allows no other flush
  }

  #note(note: string): void {
    push(this.#notes, note);
    if (this.#notes.length === 1) soon(() => this.#flush());
    if (this.#notes.length >= MAX_NOTES) this.#flush();
  }

  #send(text: string): void {
    const notes = this.#noted();
    if (notes.length + text.length <= MAX_TOGETHER) return this.#post(notes + text);
    if (notes !== "") this.#post(slice(notes, 0, -1));
    this.#post(text);
  }

  #flush(): void {
    const notes = this.#noted();
    if (notes !== "") this.#post(slice(notes, 0, -1));
  }

  /** Takes the queued notes as one line with its line end; empty without any. */
  #noted(): string {
    if (this.#notes.length === 0) return "";
    const notes = join(this.#notes, ",");
    this.#notes = [];
    return `{"kind":"noted","notes":[${notes}]}\n`;
  }
}

function lostField(lost: LostParts): string {
  const { sentences } = lost;
  return sentences.length === 0 ? "" : `,"lost":${toJson(sentences)}`;
}
