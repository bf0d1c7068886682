/** Delivery of answers to the program, one task apart. */
import { push, shift } from "./primordials.ts";
import { RealMessageChannel } from "./web.ts";

/** Delivers items so that the effects of one are complete before the next arrives. */
export class Deliveries<T> {
  #queue: T[] = [];
  #busy = false;
  #deliver: (item: T) => void;
  #nextTask: (then: () => void) => void;
  #idle: () => void;

  /** `idle` is called when the last item is delivered and its effects are complete. */
  constructor(
    deliver: (item: T) => void,
    nextTask: (then: () => void) => void,
    idle: () => void,
  ) {
    this.#deliver = deliver;
    this.#nextTask = nextTask;
    this.#idle = idle;
  }

  add(item: T): void {
    push(this.#queue, item);
    if (!this.#busy) this.#step();
  }

  #step(): void {
    this.#busy = this.#queue.length > 0;
    if (!this.#busy) {
      this.#idle();
      return;
    }
    this.#deliver(shift(this.#queue) as T);
    this.#nextTask(() => this.#step());
  }
}

/**
 * Runs a function in the next task, after every microtask. Two channels alternate: a message sent
 * to a port that does not wait yet is received among the microtasks of the current task.
 */
export function nextTaskOf(): (then: () => void) => void {
  let waiting = () => {};
  const channel = () => {
    const { port1, port2 } = new RealMessageChannel();
    port1.onmessage = () => waiting();
    return port2.postMessage.bind(port2);
  };
  let post = channel();
  let other = channel();
  return (then) => {
    waiting = then;
    const next = other;
    other = post;
    post = next;
    post(0);
  };
}
