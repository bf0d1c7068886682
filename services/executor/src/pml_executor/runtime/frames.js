// @ts-check
/**
 * Frames between the executor and this process: 4 bytes of big-endian length, then the body. The
 * first body from the executor is JSON, every other starts with one byte of addressee; a body to
 * the executor starts with the secret and one byte of origin (`pml_executor.domain.frames`).
 *
 * @typedef {"h" | "p"} Party the host or the program
 */

const LENGTH_BYTES = 4;

/** Splits a byte stream into bodies, independent of its chunks. */
export class FrameReader {
  #pending = new Uint8Array(0);

  /**
   * @param {Uint8Array} chunk
   * @returns {Uint8Array[]}
   */
  push(chunk) {
    let rest = this.#join(chunk);
    /** @type {Uint8Array[]} */
    const bodies = [];
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

  /** @param {Uint8Array} chunk */
  #join(chunk) {
    if (this.#pending.length === 0) return chunk;
    const joined = new Uint8Array(this.#pending.length + chunk.length);
    joined.set(this.#pending);
    joined.set(chunk, this.#pending.length);
    return joined;
  }
}

/**
 * Encodes one frame to the executor.
 *
 * @param {Uint8Array} secret
 * @param {Party} origin
 * @param {Uint8Array} body
 */
export function frame(secret, origin, body) {
  const length = secret.length + 1 + body.length;
  const bytes = new Uint8Array(LENGTH_BYTES + length);
  new DataView(bytes.buffer).setUint32(0, length);
  bytes.set(secret, LENGTH_BYTES);
  bytes[LENGTH_BYTES + secret.length] = origin.charCodeAt(0);
  bytes.set(body, LENGTH_BYTES + secret.length + 1);
  return bytes;
}
