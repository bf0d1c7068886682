import { deepStrictEqual, strictEqual } from "node:assert";
import { frame, FrameReader } from "./frames.js";

const encoder = new TextEncoder();
const decoder = new TextDecoder();

function inbound(...texts: string[]): Uint8Array {
  const frames = texts.map((text) => {
    const body = encoder.encode(text);
    const bytes = new Uint8Array(4 + body.length);
    new DataView(bytes.buffer).setUint32(0, body.length);
    bytes.set(body, 4);
    return [...bytes];
  });
  return new Uint8Array(frames.flat());
}

Deno.test("frames come out whole, independent of chunks", () => {
  const texts = ["", "a", "é".repeat(300), "{}"];
  const stream = inbound(...texts);
  for (const size of [1, 2, 3, 5, 7, 100, stream.length]) {
    const reader = new FrameReader();
    const read: string[] = [];
    for (let i = 0; i < stream.length; i += size) {
      for (const body of reader.push(stream.slice(i, i + size))) read.push(decoder.decode(body));
    }
    deepStrictEqual(read, texts);
  }
});

Deno.test("a frame to the executor starts with the secret and its origin", () => {
  const bytes = frame(encoder.encode("5ec2e7"), "p", encoder.encode("{}"));
  strictEqual(new DataView(bytes.buffer).getUint32(0), 9);
  strictEqual(decoder.decode(bytes.subarray(4)), "5ec2e7p{}");
});
