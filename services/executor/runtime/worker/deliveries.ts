import { push, shift } from "./primordials.ts";

/** Hands out answers one task apart, so that what one sets off is done before the next arrives. */
export class Deliveries<T> {
  #queue: T[] = [];
  #busy = false;
  #deliver: (item: T) => void;
  #nextTask: (then: () => void) => void;

  constructor(deliver: (item: T) => void, nextTask: (then: () => void) => void) {
    this.#deliver = deliver;
    this.#nextTask = nextTask;
  }

  add(item: T): void {
    push(this.#queue, item);
    if (!this.#busy) this.#step();
  }

  #step(): void {
    this.#busy = this.#queue.length > 0;
    if (!this.#busy) return;
    const item = shift(this.#queue) as T;
    this.#deliver(item);
    this.#nextTask(() => this.#step());
  }
}
