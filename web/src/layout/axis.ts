/** Round positions for axis labels. */

/** About `wanted` round values (1, 2, 5 × 10ⁿ) that span 0…max or min…max. */
export function linearTicks(min: number, max: number, wanted: number): number[] {
  if (!(max > min)) return [min];
  const rough = (max - min) / Math.max(1, wanted);
  const step = roundStep(rough, 10, [1, 2, 5, 10]);
  return steps(min, max, step);
}

/** The same for bytes: steps are 1, 2, 4… times a power of 1024. */
export function byteTicks(min: number, max: number, wanted: number): number[] {
  if (!(max > min)) return [min];
  const rough = (max - min) / Math.max(1, wanted);
  const sizes = Array.from({ length: 11 }, (_, i) => 2 ** i);
  return steps(min, max, Math.max(1, roundStep(rough, 1024, sizes)));
}

function roundStep(rough: number, base: number, mantissas: number[]): number {
  const power = base ** Math.floor(Math.log(rough) / Math.log(base));
  return power * (mantissas.find((m) => m * power >= rough * 0.999) ?? base);
}

function steps(min: number, max: number, step: number): number[] {
  const first = Math.ceil(min / step - 1e-9);
  const last = Math.floor(max / step + 1e-9);
  return Array.from({ length: last - first + 1 }, (_, i) => (first + i) * step);
}

/**
 * Powers of `base` within min…max, thinned to at most `most`; if there are few powers of ten, also
 * twice and five times each.
 */
export function logTicks(min: number, max: number, base: number, most: number): number[] {
  const low = Math.ceil(Math.log(min) / Math.log(base) - 1e-9);
  const high = Math.floor(Math.log(max) / Math.log(base) + 1e-9);
  const fine = base === 10 && high - low < 2 ? finer(min, max) : [];
  if (fine.length > 0 && fine.length <= most) return fine;
  const stride = Math.max(1, Math.ceil((high - low + 1) / most));
  const ticks: number[] = [];
  for (let power = low; power <= high; power += stride) ticks.push(base ** power);
  return ticks;
}

/** 1, 2, 5 × 10ⁿ within min…max. */
function finer(min: number, max: number): number[] {
  const powers = [];
  for (let power = Math.floor(Math.log10(min)); power <= Math.log10(max); power += 1) powers.push(10 ** power);
  return powers.flatMap((power) => [1, 2, 5].map((times) => times * power)).filter((tick) => tick >= min * (1 - 1e-9) && tick <= max * (1 + 1e-9));
}

/** Maps a domain onto pixels. */
export type Scale = (value: number) => number;
export const linear =
  ([a, b]: [number, number], [from, to]: [number, number]): Scale =>
  (value) =>
    from + ((value - a) / (b - a || 1)) * (to - from);
export const log = ([a, b]: [number, number], range: [number, number]): Scale => {
  const inner = linear([Math.log(a), Math.log(b)], range);
  return (value) => inner(Math.log(value));
};
