/** What a reader has chosen to see of a page's profiles, and the figures that follow from it. */
import type { Profiles, Side, Unit } from "../data/profile";
import { difference, single, type Amounts, type Measure } from "./amounts";
import { heat, type Heat, type Scale } from "./heat";
import { slice, weigh, type Range, type Slice, type Weights } from "./slice";
import { below, matching, ranks } from "./tree";

/** Samples of one side: all, a range of their time, or all except that range. */
export interface Choice {
  side: number;
  range: Range;
  rest: boolean;
}

export interface Tasks {
  /** A process: its id if there is one profile, its name if there are two. */
  process: string | null;
  /** Number of a thread of the one profile. */
  thread: number | null;
  /** Path of a control group; those below it count, too. */
  cgroup: string | null;
  /** Part of a name, or a process or thread id. */
  text: string;
  cpu: number | null;
}

/** Number of choices whose weights are kept: those on screen. */
const KEPT = 4;

export class Explorer {
  readonly tasks: Tasks = { process: null, thread: null, cgroup: null, text: "", cpu: null };
  idle = false;
  query = "";
  measure: Measure = "rate";
  chosen: Choice;
  base: Choice | null;
  private readonly slices = new Map<string, Slice | null>();
  /** The last weights computed: texts and pictures need the same ones. */
  private weighed = new Map<string, Weights>();
  private rank: Uint32Array | null = null;

  constructor(
    readonly profiles: Profiles,
    public event: string,
  ) {
    const isPair = profiles.sides.length > 1;
    this.chosen = { side: isPair ? 1 : 0, range: null, rest: false };
    this.base = isPair ? { side: 0, range: null, rest: false } : null;
    if (!profiles.sides.every((side) => side.has_times)) this.measure = "share";
  }

  get isPair(): boolean {
    return this.profiles.sides.length > 1;
  }

  get unit(): Unit {
    return this.profiles.sides.flatMap((side) => side.tracks).find((track) => track.event === this.event)?.unit ?? "samples";
  }

  /** Frames in the order of their names. */
  get ranks(): Uint32Array {
    return (this.rank ??= ranks(this.profiles.frames));
  }

  /** Call after `event`, `idle` or `tasks` were changed. */
  refilter(): void {
    this.slices.clear();
    this.weighed.clear();
  }

  /** A side's samples of an event that the filters keep; null if it has none of that event. */
  slice(at: number, event = this.event): Slice | null {
    const key = `${at} ${event}`;
    const known = this.slices.get(key);
    if (known !== undefined) return known;
    const side = this.profiles.sides[at]!;
    const track = side.tracks.find((track) => track.event === event);
    const made = track ? slice(this.profiles, side, track, { threads: this.threads(side), cpu: this.tasks.cpu, idle: this.idle }) : null;
    this.slices.set(key, made);
    return made;
  }

  private threads(side: Side): Uint8Array | null {
    const { process, thread, cgroup, text } = this.tasks;
    const needle = text.trim().toLowerCase();
    if (process === null && thread === null && cgroup === null && needle === "") return null;
    const { count, pids, tids, comm, comms } = side.threads;
    const grouped = cgroup === null ? null : side.threads.cgroups.map((path) => isWithin(path, cgroup));
    const named = comms.map((name) => name.toLowerCase().includes(needle));
    const keeps = Uint8Array.from(pids, (pid, at) => {
      if (thread !== null && at !== thread) return 0;
      if (grouped && !grouped[side.threads.cgroup[at]!]) return 0;
      if (process !== null && (this.isPair ? comms[comm[at]!] : String(pid)) !== process) return 0;
      return needle === "" || named[comm[at]!] || String(pid) === needle || String(tids[at]) === needle ? 1 : 0;
    });
    return keeps.subarray(0, count);
  }

  /** What flame graphs and tables show. */
  amounts(): Amounts {
    const chosen = this.weights(this.chosen);
    return this.base ? difference(this.weights(this.base), chosen, this.measure) : single(chosen);
  }

  weights({ side, range, rest }: Choice): Weights {
    const key = `${this.event} ${side} ${range} ${rest}`;
    const known = this.weighed.get(key);
    if (known) return known;
    const found = this.slice(side);
    const { tree } = this.profiles;
    const made = found ? weigh(tree, found, range, rest) : { totals: new Float64Array(tree.count), samples: 0, span: Math.max(1, this.profiles.sides[side]!.span_ns) };
    if (this.weighed.size >= KEPT) this.weighed.clear();
    this.weighed.set(key, made);
    return made;
  }

  /** Frames that the search matches; null if there is no search. */
  get matches(): Uint8Array | null {
    return matching(this.profiles.frames, this.query);
  }

  heat(at: number, scale: Scale): Heat | null {
    const found = this.slice(at);
    if (!found) return null;
    const frames = this.matches;
    const marked = frames && below(this.profiles.tree, frames);
    return heat(found, scale, marked && Uint8Array.from(found.track.leaves, (node) => marked[node]!));
  }
}

/** Whether a control group is the given one or is below it. */
export const isWithin = (path: string, group: string): boolean => path === group || path.startsWith(`${group.replace(/\/$/, "")}/`);

/** Processes of one profile by weight, or names of two profiles. */
export function processes(profiles: Profiles, weights: Float64Array[]): { key: string; name: string; weight: number }[] {
  const sums = new Map<string, { weight: number; most: number; name: string }>();
  profiles.sides.forEach(({ threads }, at) => {
    for (let thread = 0; thread < threads.count; thread += 1) {
      const name = threads.comms[threads.comm[thread]!] ?? "";
      const key = profiles.sides.length > 1 ? name : String(threads.pids[thread]!);
      const weight = weights[at]?.[thread] ?? 0;
      const known = sums.get(key);
      if (!known) sums.set(key, { weight, most: weight, name });
      else {
        known.weight += weight;
        if (weight > known.most) Object.assign(known, { most: weight, name });
      }
    }
  });
  const all = [...sums].map(([key, { weight, name }]) => ({ key, name, weight }));
  return all.sort((a, b) => b.weight - a.weight);
}
