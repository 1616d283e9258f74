/** Figures of the explorer in words. */
import { compact, count, nanos, percent } from "../../format";
import type { Choice, Explorer } from "../../layout/explorer";
import { rangeSpan } from "../../layout/slice";

/** A sum of weights. */
export function weightWords(explorer: Explorer, weight: number): string {
  switch (explorer.unit) {
    case "nanoseconds":
      return nanos(weight);
    case "samples":
      return `${count(weight)} ${Math.round(weight) === 1 ? "sample" : "samples"}`;
    case "events":
      return `${weight < 1e6 ? count(weight) : compact(weight)} events`;
  }
}

/** What an event counts, to follow "of". */
export function eventWords(event: string): string {
  if (event.startsWith("off-cpu")) return event.replace(/^off-cpu/, "time off the CPU");
  return /^(cpu|task)-clock/.test(event) ? "CPU time" : event;
}

/** An amount as in boxes: a weight, or, if two sides are compared, a rate or a share. */
export function amountWords(explorer: Explorer, amount: number): string {
  if (!explorer.base) return weightWords(explorer, amount);
  if (explorer.measure === "share") return percent(amount);
  if (explorer.unit !== "nanoseconds") return `${compact(amount * 1e9)} per second`;
  return explorer.event.startsWith("off-cpu") ? `${compact(amount)} threads` : cpus(amount);
}

/** CPUs in use: 1.32 CPUs, 4.1 % of a CPU. */
export const cpus = (amount: number): string => (amount >= 0.995 ? `${amount.toFixed(amount < 9.95 ? 2 : 1)} CPUs` : `${percent(amount)} of a CPU`);

/** A choice of time: all of it, from when to when, or the rest. */
export function choiceWords(explorer: Explorer, { side, range, rest }: Choice): string {
  const { tick_ns, span_ns } = explorer.profiles.sides[side]!;
  const letter = explorer.isPair ? `${side === 0 ? "A" : "B"}: ` : "";
  if (!range) return `${letter}${explorer.isPair ? "whole" : "Whole recording"}`;
  const [from, to] = [Math.max(0, range[0] * tick_ns), Math.min(span_ns, range[1] * tick_ns)];
  return `${letter}${rest ? "all but " : ""}${nanos(from)} to ${nanos(to)}`;
}

/** What was chosen, its samples, weight and the corresponding share of a CPU. */
export function totalWords(explorer: Explorer, choice: Choice): string {
  const { totals, samples, span } = explorer.weights(choice);
  const whole = choice.range ? explorer.weights({ ...choice, range: null, rest: false }).totals[0]! : 0;
  const weight = explorer.unit === "samples" ? [] : [weightWords(explorer, totals[0]!)];
  const isClock = explorer.unit === "nanoseconds" && explorer.profiles.sides[choice.side]!.has_times;
  const rate = isClock && !explorer.event.startsWith("off-cpu") ? [`${cpus(totals[0]! / span)} in use`] : [];
  return [`${count(samples)} samples`, ...weight, ...rate, ...(choice.range ? [`${percent(whole > 0 ? totals[0]! / whole : 0)} of all`] : [])].join(", ");
}

export const isEmptyRange = (explorer: Explorer, choice: Choice): boolean => choice.range !== null && rangeSpan(explorer.profiles.sides[choice.side]!, choice.range) <= 0;
