/**
 * The wire between the executor and this process: 4 bytes of big-endian length, then the body.
 * Towards the executor every body begins with the secret; see `pml_executor.domain.frames`.
 */

const LENGTH_BYTES = 4;

/** Whose words a frame carries: the host's own or, unread, the program's. */
export type Origin = "h" | "p";

/** Cuts a byte stream into bodies, whatever the chunks. */
export class FrameReader {
  #pending = new Uint8Array(0);

  push(chunk: Uint8Array): Uint8Array[] {
    let rest = this.#join(chunk);
    const bodies: Uint8Array[] = [];
    for (;;) {
      if (rest.length < LENGTH_BYTES) break;
      const length = new DataView(rest.buffer, rest.byteOffset).getUint32(0);
      if (rest.length < LENGTH_BYTES + length) break;
      bodies.push(rest.slice(LENGTH_BYTES, LENGTH_BYTES + length));
      rest = rest.subarray(LENGTH_BYTES + length);
    }
    this.#pending = rest.slice();
    return bodies;
  }

  #join(chunk: Uint8Array): Uint8Array {
    if (this.#pending.length === 0) return chunk;
    const joined = new Uint8Array(this.#pending.length + chunk.length);
    joined.set(this.#pending);
    joined.set(chunk, this.#pending.length);
    return joined;
  }
}

/** One whole frame towards the executor. */
export function frame(secret: Uint8Array, origin: Origin, body: Uint8Array): Uint8Array {
  const length = secret.length + 1 + body.length;
  const bytes = new Uint8Array(LENGTH_BYTES + length);
  new DataView(bytes.buffer).setUint32(0, length);
  bytes.set(secret, LENGTH_BYTES);
  bytes[LENGTH_BYTES + secret.length] = origin.charCodeAt(0);
  bytes.set(body, LENGTH_BYTES + secret.length + 1);
  return bytes;
}
