/** Seeded random numbers: every replay of a run gets the same ones. */
import {
  defineProperty,
  digits,
  floor,
  RealTypeError,
  RealUint8Array,
  slice,
} from "./primordials.ts";

/** sfc32 (Doty-Humphrey's small fast counter), 32 bits a step. */
export class Random {
  #a = 0;
  #b = 0;
  #c = 0;
  #counter = 1;

  /** `seed`: 32 hexadecimal digits. */
  begin(seed: string): void {
    const word = (i: number) => parseInt(slice(seed, i * 8, i * 8 + 8), 16) | 0;
    this.#a = word(0);
    this.#b = word(1) ^ word(3);
    this.#c = word(2);
    this.#counter = 1;
    for (let i = 0; i < 12; i++) this.word();
  }

  word(): number {
    const sum = (this.#a + this.#b + this.#counter) | 0;
    this.#counter = (this.#counter + 1) | 0;
    this.#a = this.#b ^ (this.#b >>> 9);
    this.#b = (this.#c + (this.#c << 3)) | 0;
    this.#c = (((this.#c << 21) | (this.#c >>> 11)) + sum) | 0;
    return sum >>> 0;
  }

  /** Returns a number in [0, 1), with 53 random bits. */
  fraction(): number {
    return ((this.word() >>> 5) * 67_108_864 + (this.word() >>> 6)) / 9_007_199_254_740_992;
  }

  byte(): number {
    return floor(this.word() / 16_777_216);
  }

  uuid(): string {
    let text = "";
    for (let i = 0; i < 16; i++) {
      let byte = this.byte();
      if (i === 6) byte = (byte & 0x0f) | 0x40;
      if (i === 8) byte = (byte & 0x3f) | 0x80;
      if (i === 4 || i === 6 || i === 8 || i === 10) text += "-";
      text += (byte < 16 ? "0" : "") + digits(byte, 16);
    }
    return text;
  }
}

const MAX_RANDOM_BYTES = 65_536;

/** Builds the program's `crypto`. */
export function cryptoOf(random: Random): Pick<Crypto, "randomUUID" | "getRandomValues"> {
  return {
    randomUUID: () => random.uuid() as ReturnType<Crypto["randomUUID"]>,
    getRandomValues: <T extends ArrayBufferView | null>(array: T): T => {
      if (array === null) throw new RealTypeError("crypto.getRandomValues needs a typed array");
      if (array.byteLength > MAX_RANDOM_BYTES) {
        throw new RealTypeError(`crypto.getRandomValues fills ${MAX_RANDOM_BYTES} bytes at most`);
      }
      const bytes = new RealUint8Array(array.buffer, array.byteOffset, array.byteLength);
      for (let i = 0; i < bytes.length; i++) bytes[i] = random.byte();
      return array;
    },
  };
}

/** Replaces `Math.random` by one that draws from `random`. */
export function seedMath(random: Random): void {
  const value = () => random.fraction();
  defineProperty(Math, "random", { value, writable: true, configurable: true });
}
