/** Numbers for people: few digits, a unit, the interval next to the figure. */
import type { Estimate } from "./data/types";

const NONE = "–";

/** False for values that JSON cannot represent (NaN arrives as null). */
export const isNumber = (value: unknown): value is number =>
  typeof value === "number" && Number.isFinite(value);

export function count(value: number): string {
  return isNumber(value) ? Math.round(value).toLocaleString("en-US") : NONE;
}

/** A count and what is counted: 1 fault, 2 faults. */
export const counted = (value: number, one: string): string => `${count(value)} ${one}${value === 1 ? "" : "s"}`;

/** A count in few digits, for axes: 1.5M, 330k. */
export function compact(value: number): string {
  const scales: [number, string][] = [
    [1e9, "G"],
    [1e6, "M"],
    [1e3, "k"],
  ];
  for (const [scale, suffix] of scales) {
    if (Math.abs(value) >= scale) return `${Number((value / scale).toPrecision(3))}${suffix}`;
  }
  return `${Number(value.toPrecision(3))}`;
}

function percentDigits(share: number): string {
  const perCent = share * 100;
  if (!isNumber(share)) return NONE;
  if (perCent === 0) return "0";
  if (Math.abs(perCent) < 0.1) return "<0.1";
  if (perCent >= 99.95 && perCent < 100) return ">99.9";
  if (Math.abs(perCent) < 9.95 || (perCent > 99 && perCent < 100)) return perCent.toFixed(1);
  return perCent.toFixed(0);
}

/** A share as per cent, never rounded to a false whole. The space is non-breaking. */
export const percent = (share: number): string => `${percentDigits(share)}\u00a0%`;

/** A share; if nothing was seen, its upper bound. */
export function percentSeen(share: Estimate): string {
  if (share.value !== 0 || share.high <= 0) return percent(share.value);
  const most = percent(share.high);
  return most.startsWith("<") ? most : `≤ ${most}`;
}

/** The 95 % interval of a share in words, or an empty text if it is a point. */
export function percentRange(share: Estimate): string {
  if (share.low === share.high) return "";
  return `${percentDigits(share.low)} to ${percentDigits(share.high)}\u00a0%`;
}

/** Ratios above this are not measurements: an interval without an upper end. */
export const UNBOUNDED = 1e6;

function factorDigits(factor: number): string {
  if (!isNumber(factor)) return NONE;
  if (factor > UNBOUNDED || factor <= 0) return NONE;
  return factor.toFixed(factor < 2 ? 2 : factor < 19.95 ? 1 : 0);
}

export const factor = (ratio: number): string => `×${factorDigits(ratio)}`;
/** The interval, if its ends are informative: one that spans a factor of ten is not. */
export const factorRange = (ratio: Estimate): string => {
  const usable = isNumber(ratio.low) && isNumber(ratio.high) && ratio.low > 0 && ratio.high < UNBOUNDED;
  return usable && ratio.high / ratio.low <= 10 ? `${factorDigits(ratio.low)} to ${factorDigits(ratio.high)}` : "too few runs for an interval";
};

/**
 * Ends of a prediction that are further apart give no information about the size
 * (model/src/ratio.rs).
 */
const TOO_WIDE = 4;

/** What a prediction's interval supports: the figure and its interval, a bound, or nothing. */
export function predictedFactor({ value, low, high }: Estimate): { figure: string; interval: string | null } | null {
  if (![value, low, high].every(isNumber) || low <= 0 || high >= UNBOUNDED) return null;
  if (high / low <= TOO_WIDE) return { figure: factor(value), interval: `95 % interval ${factorDigits(low)} to ${factorDigits(high)}` };
  return low > 1 ? { figure: `more than ${factor(low)}`, interval: null } : null;
}

function scaled(value: number, units: [number, string][]): string {
  if (!isNumber(value)) return NONE;
  const [size, name] = units.find(([size]) => Math.abs(value) >= size) ?? units.at(-1)!;
  const quotient = value / size;
  const magnitude = Math.abs(quotient);
  const digits = size === 1 ? 0 : magnitude < 10 ? 2 : magnitude < 100 ? 1 : 0;
  return `${quotient.toFixed(digits)}\u00a0${name}`;
}

/** Nanoseconds in a suitable unit: 1.47 µs. */
export const nanos = (value: number): string =>
  scaled(value, [
    [1e9, "s"],
    [1e6, "ms"],
    [1e3, "µs"],
    [1, "ns"],
  ]);

/** `6.61 µs ± 480 ns`; if nothing may be left after the correction, `≤ 7.09 µs`. */
export function interval(value: number, bounds: [number, number] | undefined): string {
  if (bounds === undefined) return nanos(value);
  const [low, high] = bounds;
  if (low <= 0 && high > 0) return `≤ ${nanos(high)}`;
  return `${nanos(value)} ± ${nanos(Math.max(value - low, high - value))}`;
}

/** The same with an error in either direction; 0: the value is exact. */
export const within = (value: number, error: number): string => interval(value, error > 0 ? [Math.max(0, value - error), value + error] : undefined);

/** Bytes with a binary unit: 126 KiB. */
export const bytes = (value: number): string =>
  scaled(value, [
    [2 ** 40, "TiB"],
    [2 ** 30, "GiB"],
    [2 ** 20, "MiB"],
    [2 ** 10, "KiB"],
    [1, "B"],
  ]);

/** The same without trailing zeros, for axes: 64 KiB, 1.5 µs. */
export const trimmed = (text: string): string => text.replace(/(\.\d*?)0+(?=\u00a0)/, "$1").replace(/\.(?=\u00a0)/, "");

/** Labels of axes: a plain 0, no meaningless digits. */
export const axisNanos = (value: number): string => (value === 0 ? "0" : trimmed(nanos(value)));
export const axisBytes = (value: number): string => (value === 0 ? "0" : trimmed(bytes(value)));

/** A change with its sign. */
export function byteChange(value: number): string {
  if (!isNumber(value)) return NONE;
  if (Math.abs(value) < 0.5) return "±0";
  return `${value > 0 ? "+" : "−"}${bytes(Math.abs(value))}`;
}
