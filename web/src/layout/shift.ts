/** Axes of quantile-shift plots. */

/** The smallest share above a quantile that the axis can distinguish. */
const LAST = 8e-4;

/** Half of the axis goes to the body up to the 90th percentile, the rest to the tail by its logarithm. */
export function quantilePlace(quantile: number): number {
  if (quantile <= 0.9) return (quantile / 0.9) * 0.5;
  const tail = Math.max(LAST, 1 - quantile);
  return Math.min(1, 0.5 + (0.5 * Math.log10(0.1 / tail)) / Math.log10(0.1 / LAST));
}

export const quantileTicks = (): number[] => [0.1, 0.25, 0.5, 0.75, 0.9, 0.99, 0.999];

export interface Symmetric {
  /** −1…1. */
  place: (value: number) => number;
  ticks: number[];
}

/**
 * A scale on which a shift of 50 ns in the body and one of 5 ms in the tail are both seen: linear
 * around 0, logarithmic beyond. Its linear part ends at a thousandth of the largest value, or at
 * the smallest round value below which there is nothing.
 */
export function symmetric(values: number[]): Symmetric {
  const finite = values.filter((value) => Number.isFinite(value)).map(Math.abs);
  const most = Math.max(...finite, 1);
  const typical = [...finite].sort((a, b) => a - b)[Math.floor(finite.length / 4)] ?? 1;
  const bend = Math.min(most, Math.max(most / 1000, 10 ** Math.floor(Math.log10(Math.max(typical, 1)))));
  const whole = Math.asinh(most / bend);
  const place = (value: number) => Math.asinh(value / bend) / whole;
  const powers: number[] = [];
  for (let power = 10 ** Math.ceil(Math.log10(bend)); power <= most * 1.0001; power *= 10) powers.push(power);
  const shown = powers.length > 4 ? powers.filter((_, at) => (powers.length - 1 - at) % 2 === 0) : powers.length > 0 ? powers : [most];
  return { place, ticks: [...shown.map((tick) => -tick).reverse(), 0, ...shown] };
}
