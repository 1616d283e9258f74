/** Profiles for tests. */
import type { Profiles, Side, Track } from "../src/data/profile";
import { preorder } from "../src/layout/tree";

/** main → a, main → b → c, and an idle stack, over ten seconds, 10 µs a tick. */
export function profiles(count: number, weight: number | ((at: number) => number) = (at) => 1 + (at % 5), sides = 1): Profiles {
  const tree = preorder(Uint32Array.from([0, 0, 0, 1, 0, 3]), Uint32Array.from([0, 0, 1, 2, 3, 4]));
  const frames = ["main", "a", "b", "c", "default_idle"].map((name) => ({ name, module: name === "c" ? "libc" : "app", kind: "user" as const }));
  return { tree, frames, idle: Uint8Array.from([0, 0, 0, 0, 1]), sides: Array.from({ length: sides }, () => side(count, weight)) };
}

function side(count: number, weight: number | ((at: number) => number)): Side {
  const at = Array.from({ length: count }, (_, i) => i);
  const track: Track = {
    event: "cpu-clock",
    unit: "nanoseconds",
    frequency: 99,
    count,
    times: Uint32Array.from(at, (i) => Math.floor((i * 1_000_000) / count)),
    cpus: Uint16Array.from(at, (i) => i % 2),
    cpuNumbers: [0, 4],
    threads: Uint32Array.from(at, (i) => i % 3),
    stacks: Uint32Array.from(at, (i) => (i % 10 === 9 ? 2 : i % 2)),
    leaves: Uint32Array.from([2, 4, 5]),
    weight: typeof weight === "number" ? weight : Float64Array.from(at, weight),
  };
  return {
    name: "p",
    start_ns: 123_456_780_000,
    span_ns: 10_000_000_000,
    tick_ns: 10_000,
    has_times: true,
    cpus: 2,
    counters: [],
    threads: { count: 3, pids: Int32Array.from([7, 7, 8]), tids: Int32Array.from([7, 9, 8]), comms: ["main", "Worker"], comm: Uint32Array.from([0, 1, 1]), cgroups: ["/system.slice/a", "/system.slicer"], cgroup: Uint32Array.from([0, 0, 1]) },
    tracks: [track],
  };
}
