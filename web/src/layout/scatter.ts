/** Logarithmic scales between the least and the largest of some figures. */
import type { Tick } from "../draw/chart";

export interface Logarithmic {
  place: (value: number) => number;
  /** The least and the largest figure, as they are read; one, if they are the same. */
  ticks: Tick[];
}

export function logarithmic(figures: [number, string][], [from, to]: [number, number]): Logarithmic {
  const sorted = figures.filter(([value]) => value > 0).sort(([a], [b]) => a - b);
  const [least, largest] = [sorted[0], sorted[sorted.length - 1]];
  if (!least || !largest) return { place: () => from, ticks: [] };
  const width = Math.log(largest[0] / least[0]);
  const place = (value: number) => (width > 0 ? from + (Math.log(Math.max(value, least[0]) / least[0]) / width) * (to - from) : (from + to) / 2);
  const ends = width > 0 ? [least, largest] : [least];
  return { place, ticks: ends.map(([value, label]) => ({ at: place(value), label })) };
}
