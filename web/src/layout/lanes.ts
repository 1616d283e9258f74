/**
 * Time series under a heat map: events by their weight, counters by their rate, in parts of its
 * columns.
 */
import type { Counter } from "../data/profile";
import type { Heat } from "./heat";
import type { Slice } from "./slice";

export interface Lane {
  name: string;
  /** The unit of the values. */
  unit: "CPUs" | "threads" | "per second" | "ratio";
  /** One for each part of a column, from the map's first one on. */
  values: Float64Array;
  most: number;
}

/** The most informative ratios of counters: name, numerator, denominator. */
const RATIOS: [string, string, string][] = [
  ["instructions per cycle", "instructions", "cycles"],
  ["cache misses per reference", "cache-misses", "cache-references"],
];

const laneOf = (name: string, unit: Lane["unit"], values: Float64Array): Lane => ({ name, unit, values, most: values.reduce((most, value) => Math.max(most, value), 0) });

/** An event's weight by elapsed time: CPUs in use, waiting threads, events per second. */
export function eventLane({ track, side }: Slice, heat: Heat, parts: number): Lane {
  const values = new Float64Array(heat.columns * parts);
  const width = (heat.height * heat.scale.rows) / parts;
  const { times, weight, count, unit, event } = track;
  for (let at = 0; at < count; at += 1) {
    const bin = Math.min(values.length - 1, Math.floor((times[at]! - heat.origin) / width));
    values[bin]! += typeof weight === "number" ? weight : weight[at]!;
  }
  const seconds = (width * side.tick_ns) / 1e9;
  const isTime = unit === "nanoseconds";
  for (let bin = 0; bin < values.length; bin += 1) values[bin]! /= isTime ? seconds * 1e9 : seconds;
  const isWait = event.startsWith("off-cpu");
  return laneOf(event, isTime ? (isWait ? "threads" : "CPUs") : "per second", values);
}

/** Counters by their rate, each count spread over the time since the point before; then ratios. */
export function counterLanes(counters: Counter[], tickNs: number, heat: Heat, parts: number): Lane[] {
  const sums = new Map(counters.map((counter) => [counter.name, binned(counter, tickNs, heat, parts)]));
  const seconds = (heat.height * heat.scale.rows * tickNs) / parts / 1e9;
  const lanes = counters.map(({ name }) => {
    const isClock = name.endsWith("-clock");
    return laneOf(name, isClock ? "CPUs" : "per second", sums.get(name)!.map((sum) => sum / seconds / (isClock ? 1e9 : 1)));
  });
  for (const [name, part, whole] of RATIOS) {
    const [a, b] = [sums.get(part), sums.get(whole)];
    if (a && b) lanes.push(laneOf(name, "ratio", a.map((sum, bin) => (b[bin]! > 0 ? sum / b[bin]! : 0))));
  }
  return lanes;
}

function binned(counter: Counter, tickNs: number, heat: Heat, parts: number): Float64Array {
  const sums = new Float64Array(heat.columns * parts);
  const width = (heat.height * heat.scale.rows * tickNs) / parts / 1e6;
  const origin = (heat.origin * tickNs) / 1e6;
  let before = 0;
  for (const [time, count] of counter.points) {
    const [from, to] = [(before - origin) / width, (time - origin) / width];
    for (let bin = Math.max(0, Math.floor(from)); bin < Math.min(sums.length, Math.ceil(Math.max(to, from + 1e-9))); bin += 1) {
      const part = to > from ? (Math.min(to, bin + 1) - Math.max(from, bin)) / (to - from) : 1;
      sums[bin]! += count * Math.max(0, part);
    }
    before = time;
  }
  return sums;
}
