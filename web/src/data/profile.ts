/**
 * A profile as `crates/report/src/html/profile.rs` writes it: samples as columns of numbers of
 * variable length, deflated, in base64.
 */
import { inflateBytes } from "./load";

export interface ProfilePage {
  kind: "profile";
  generator: string;
  name: string;
  command_line: string;
  start_ns: number;
  span_ns: number;
  has_times: boolean;
  samples: number;
  events: { name: string; unit: "nanoseconds" | "events" | "samples" }[];
  threads: [pid: number, tid: number, comm: string][];
  modules: string[];
  frames: [name: string, module: number][];
  nodes: number;
  columns: Record<"times" | "threads" | "events" | "weights" | "stacks" | "parents" | "frames", string>;
  losses: [string, number][];
  notes: string[];
  /** Filled by {@link decodeProfile}. */
  decoded?: Decoded;
}

export interface Decoded {
  /** Microseconds since the first moment, ascending. */
  times: Float64Array;
  threads: Uint32Array;
  events: Uint8Array;
  weights: Float64Array;
  /** Innermost node of each sample's stack. */
  stacks: Uint32Array;
  /** Caller of each node; node 0 is the root. Callers come first. */
  parents: Uint32Array;
  /** Frame of each node. */
  frames: Uint32Array;
}

/** Numbers of seven bits a byte, lowest first; the top bit says that more follow. */
export function varints<T extends Float64Array | Uint32Array | Uint8Array>(bytes: Uint8Array, into: T, first = 0): T {
  let at = first;
  let value = 0;
  let scale = 1;
  for (const byte of bytes) {
    value += (byte & 0x7f) * scale;
    if (byte & 0x80) scale *= 128;
    else {
      into[at++] = value;
      value = 0;
      scale = 1;
    }
  }
  return into;
}

export async function decodeProfile(page: ProfilePage): Promise<void> {
  const column = async <T extends Float64Array | Uint32Array | Uint8Array>(name: keyof ProfilePage["columns"], into: T, first = 0) => varints(await inflateBytes(page.columns[name]), into, first);
  const n = page.samples;
  const [times, threads, events, weights, stacks, parents, frames] = await Promise.all([
    column("times", new Float64Array(n)),
    column("threads", new Uint32Array(n)),
    column("events", new Uint8Array(n)),
    column("weights", new Float64Array(n)),
    column("stacks", new Uint32Array(n)),
    column("parents", new Uint32Array(page.nodes), 1),
    column("frames", new Uint32Array(page.nodes), 1),
  ]);
  for (let at = 1; at < n; at += 1) times[at]! += times[at - 1]!;
  for (let at = 1; at < page.nodes; at += 1) parents[at] = at - parents[at]!;
  page.decoded = { times, threads, events, weights, stacks, parents, frames };
}
