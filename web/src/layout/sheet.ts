/** Scales of the bars and intervals in a column of a table. */
import type { Cell } from "../data/sheets";

/** The largest value of a column: the length of a whole bar. */
export const most = (cells: Cell[]): number => Math.max(...cells.map(({ value }) => Math.abs(value ?? 0)), 1e-300);

export interface Scale {
  /** Where a value stands, per cent of the width. */
  at: (value: number) => number;
  /** Where zero stands, if there are values on both sides of it. */
  zero: number | null;
}

/** A scale for all intervals of a column: from zero, or around it. */
export function scaleOf(cells: Cell[]): Scale {
  const ends = cells.flatMap(({ value, interval }) => [value, ...(interval ?? [])]).filter((end): end is number => end !== undefined && Number.isFinite(end));
  const [low, high] = [Math.min(0, ...ends), Math.max(0, ...ends)];
  const width = high - low || 1;
  return { at: (value) => 1 + ((Math.max(low, Math.min(high, value)) - low) / width) * 98, zero: low < 0 && high > 0 ? 1 + (-low / width) * 98 : null };
}

/** A link of a table: to a part of the page, or to a page next to it; none of any other kind. */
export function safeLink(link: string): string | null {
  if (/^#[\w.~%-]+$/.test(link)) return link;
  const isPlain = /^(?!\/)[^:\\?#]+\.html$/.test(link);
  return isPlain ? link.split("/").map(encodeURIComponent).join("/") : null;
}
