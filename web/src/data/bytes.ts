/**
 * Bytes embedded in the page: thirteen bits as two characters out of 91, and numbers in bytes.
 * Written by `bytes.rs`.
 */

const DIGITS = "!#$%'()*+,-./0123456789:;=>?@ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyz{|}~";

export function decodeBytes(text: string): Uint8Array<ArrayBuffer> {
  const values = new Uint8Array(128).fill(255);
  for (let at = 0; at < DIGITS.length; at += 1) values[DIGITS.charCodeAt(at)] = at;
  const bytes = new Uint8Array((text.length >> 1) * 2);
  let [held, bits, length] = [0, 0, 0];
  for (let at = 0; at + 1 < text.length; at += 2) {
    const [high, low] = [values[text.charCodeAt(at) & 127]!, values[text.charCodeAt(at + 1) & 127]!];
    if (high === 255 || low === 255) throw new Error(`character ${at} of its samples is damaged`);
    held |= (high * 91 + low) << bits;
    for (bits += 13; bits >= 8; bits -= 8) {
      bytes[length++] = held;
      held >>>= 8;
    }
  }
  return bytes.subarray(0, length);
}

/** Position of a column in the bytes: first byte and length. */
export type Column = [from: number, length: number];

export async function inflate(bytes: Uint8Array<ArrayBuffer>, format: CompressionFormat): Promise<Uint8Array> {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream(format));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

type Numbers = Float64Array | Uint32Array | Uint16Array | Uint8Array;

/** Numbers with seven bits per byte, lowest first; the top bit means that more follow. */
export function varints<T extends Numbers>(bytes: Uint8Array, into: T, first = 0): T {
  let at = first;
  for (let from = 0; from < bytes.length; from += 1) {
    let byte = bytes[from]!;
    if (byte < 0x80) {
      into[at++] = byte;
      continue;
    }
    let [value, scale] = [byte & 0x7f, 128];
    do {
      byte = bytes[++from]!;
      value += (byte & 0x7f) * scale;
      scale *= 128;
    } while (byte & 0x80);
    into[at++] = value;
  }
  return into;
}

/** Reads columns from the page's bytes. */
export type Reader = <T extends Numbers>(column: Column, into: T, first?: number) => Promise<T>;

export function reader(bytes: Uint8Array<ArrayBuffer>): Reader {
  return async (column, into, first = 0) => varints(await inflate(bytes.subarray(column[0], column[0] + column[1]), "deflate-raw"), into, first);
}
