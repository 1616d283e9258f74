/**
 * Profiles as written by `crates/report/src/html/pack.rs` and `track.rs`, and their decoded form.
 */
import type { Column, Reader } from "./bytes";
import type { ProfileSummary } from "./profileFindings";
import { preorder, type Tree } from "../layout/tree";

export type FrameKind = "kernel" | "user" | "inlined" | "jit" | "task";
export type Unit = "nanoseconds" | "events" | "samples";

export interface Pack {
  modules: string[];
  frames: [name: string, module: number, kind: FrameKind][];
  idle: number[];
  nodes: number;
  ups: Column;
  node_frames: Column;
  sides: PackedSide[];
}

interface PackedSide {
  name: string;
  start_ns: number;
  span_ns: number;
  tick_ns: number;
  has_times: boolean;
  cpus: number;
  comms: string[];
  threads: number;
  pids: Column;
  tids: Column;
  thread_comms: Column;
  cgroups: string[];
  thread_cgroups: Column;
  tracks: PackedTrack[];
  counters: Counter[];
}

interface PackedTrack {
  event: string;
  unit: Unit;
  frequency: number | null;
  samples: number;
  weight: number | null;
  cpu_numbers: number[];
  leaves: Column;
  leaf_count: number;
  times: Column;
  cpus: Column;
  threads: Column;
  stacks: Column;
  weights: Column | null;
}

export interface Counter {
  name: string;
  /** Share of the time in which it was counted. */
  counted: number;
  /** Milliseconds since the first moment, and the count since the point before. */
  points: [number, number][];
}

/** The part of a page about one profile. */
export interface ProfileData {
  name: string;
  findings: ProfileSummary;
  pack: Pack;
  /** Filled by {@link unpack}. */
  profiles?: Profiles;
}

/** All profiles of a page: one, or two to compare, over one tree of stacks. */
export interface Profiles {
  tree: Tree;
  frames: Frame[];
  /** For each frame, whether a CPU in it is idle. */
  idle: Uint8Array;
  sides: Side[];
}

export interface Frame {
  name: string;
  module: string;
  kind: FrameKind;
}

export interface Side extends Pick<PackedSide, "name" | "span_ns" | "tick_ns" | "has_times" | "cpus" | "counters"> {
  /** The first tick by the recording's clock, nanoseconds. */
  start_ns: number;
  threads: Threads;
  tracks: Track[];
}

export interface Threads {
  count: number;
  pids: Int32Array;
  tids: Int32Array;
  comms: string[];
  /** Index in `comms` of each thread. */
  comm: Uint32Array;
  /** Paths of control groups; empty if they were not recorded. */
  cgroups: string[];
  /** Index in `cgroups` of each thread. */
  cgroup: Uint32Array;
}

/** The samples of one event, in time order. */
export interface Track {
  event: string;
  unit: Unit;
  frequency: number | null;
  count: number;
  /** Ticks since the first moment. */
  times: Uint32Array;
  /** Index in `cpuNumbers`. */
  cpus: Uint16Array;
  cpuNumbers: number[];
  threads: Uint32Array;
  /** Index in `leaves`. */
  stacks: Uint32Array;
  /** Nodes that are complete stacks of samples. */
  leaves: Uint32Array;
  /** One weight for all samples, or one per sample. */
  weight: number | Float64Array;
}

export async function unpack(pack: Pack, read: Reader): Promise<Profiles> {
  const [ups, nodeFrames] = await Promise.all([read(pack.ups, new Uint32Array(pack.nodes), 1), read(pack.node_frames, new Uint32Array(pack.nodes), 1)]);
  const frames = pack.frames.map(([name, module, kind]) => ({ name, module: pack.modules[module] ?? "", kind }));
  const idle = new Uint8Array(frames.length);
  for (const frame of pack.idle) idle[frame] = 1;
  return { tree: preorder(ups, nodeFrames), frames, idle, sides: await Promise.all(pack.sides.map((side) => unpackSide(side, read))) };
}

async function unpackSide(side: PackedSide, read: Reader): Promise<Side> {
  const count = side.threads;
  const [pids, tids, comm, cgroup, tracks] = await Promise.all([
    read(side.pids, new Float64Array(count)).then(steps),
    read(side.tids, new Float64Array(count)).then(steps),
    read(side.thread_comms, new Uint32Array(count)),
    read(side.thread_cgroups, new Uint32Array(count)),
    Promise.all(side.tracks.map((track) => unpackTrack(track, read))),
  ]);
  const start = Math.floor(side.start_ns / side.tick_ns) * side.tick_ns;
  return { ...side, start_ns: start, threads: { count, pids, tids, comms: side.comms, comm, cgroups: side.cgroups, cgroup }, tracks };
}

/** Zigzag-coded differences, summed up. */
function steps(folded: Float64Array): Int32Array {
  let value = 0;
  return Int32Array.from(folded, (code) => (value += code % 2 === 0 ? code / 2 : -(code + 1) / 2));
}

async function unpackTrack(track: PackedTrack, read: Reader): Promise<Track> {
  const n = track.samples;
  const [times, cpus, threads, stacks, leaves, weights] = await Promise.all([
    read(track.times, new Uint32Array(n)),
    read(track.cpus, new Uint16Array(n)),
    read(track.threads, new Uint32Array(n)),
    read(track.stacks, new Uint32Array(n)),
    read(track.leaves, new Uint32Array(track.leaf_count)),
    track.weights && read(track.weights, new Float64Array(n)),
  ]);
  for (let at = 1; at < n; at += 1) times[at]! += times[at - 1]!;
  byTurns(cpus, track.cpu_numbers.length);
  kept(threads, cpus, track.cpu_numbers.length);
  if (weights) kept(weights, cpus, track.cpu_numbers.length);
  return { event: track.event, unit: track.unit, frequency: track.frequency, count: n, times, cpus, cpuNumbers: track.cpu_numbers, threads, stacks, leaves, weight: weights ?? track.weight ?? 1 };
}

/**
 * 0 is the CPU that followed the previous one at its last occurrence; otherwise the number plus
 * one.
 */
function byTurns(codes: Uint16Array, cpus: number): void {
  const next = new Uint16Array(cpus);
  let before = 0;
  for (let at = 0; at < codes.length; at += 1) {
    const cpu = codes[at] === 0 ? next[before]! : codes[at]! - 1;
    next[before] = cpu;
    codes[at] = cpu;
    before = cpu;
  }
}

/** 0 is the last value on that CPU; otherwise the value plus one. */
function kept(codes: Uint32Array | Float64Array, cpus: Uint16Array, count: number): void {
  const held = new Float64Array(count);
  for (let at = 0; at < codes.length; at += 1) {
    if (codes[at] !== 0) held[cpus[at]!] = codes[at]! - 1;
    codes[at] = held[cpus[at]!]!;
  }
}
