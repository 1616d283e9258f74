import { expect, test } from "vitest";
import { deflateRawSync } from "node:zlib";
import { decodeBytes, reader, varints } from "../src/data/bytes";
import { unpack, type Pack } from "../src/data/profile";

test("two characters are thirteen bits", () => {
  // As `bytes.rs` holds for the same bytes.
  expect([...decodeBytes("~#!!")].slice(0, 2)).toEqual([0xff, 0x1f]);
  expect(() => decodeBytes('!"')).toThrow("damaged");
});

test("numbers of any length up to 2^53", () => {
  const bytes = [0x05, 0x80, 0x01, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x0f];
  expect([...varints(Uint8Array.from(bytes), new Float64Array(3))]).toEqual([5, 128, 2 ** 53 - 1]);
});

test("columns say what differs from what was to be expected", async () => {
  const parts: Buffer[] = [];
  let at = 0;
  const column = (...numbers: number[]): [number, number] => {
    const part = deflateRawSync(Uint8Array.from(numbers));
    parts.push(part);
    at += part.length;
    return [at - part.length, part.length];
  };
  const pack: Pack = {
    modules: ["app"],
    frames: [["main", 0, "user"], ["f", 0, "user"]],
    idle: [],
    nodes: 3,
    ups: column(0, 0),
    node_frames: column(0, 1),
    sides: [
      {
        name: "p", start_ns: 15_000, span_ns: 1e9, tick_ns: 10_000, has_times: true, cpus: 2, comms: ["a", "b"], threads: 2,
        pids: column(14, 1), tids: column(14, 6), thread_comms: column(0, 1), cgroups: ["/", "/a"], thread_cgroups: column(1, 0), counters: [],
        tracks: [{ event: "e", unit: "events", frequency: null, samples: 4, weight: null, cpu_numbers: [0, 1], leaves: column(2, 1), leaf_count: 2, times: column(0, 1, 2, 3), cpus: column(1, 2, 1, 0), threads: column(1, 2, 0, 0), stacks: column(0, 1, 0, 0), weights: column(6, 8, 0, 2) }],
      },
    ],
  };
  const { tree, sides } = await unpack(pack, reader(Uint8Array.from(Buffer.concat(parts.splice(0)))));
  expect([...tree.parents]).toEqual([0, 0, 1]);
  const [side] = sides;
  expect([side!.start_ns, [...side!.threads.pids], [...side!.threads.tids]]).toEqual([10_000, [7, 6], [7, 10]]);
  expect([...side!.threads.cgroup]).toEqual([1, 0]);
  const [track] = side!.tracks;
  expect([...track!.times]).toEqual([0, 1, 3, 6]);
  expect([...track!.cpus]).toEqual([0, 1, 0, 1]);
  expect([...track!.threads]).toEqual([0, 1, 0, 1]);
  expect([...(track!.weight as Float64Array)]).toEqual([5, 7, 5, 1]);
});
