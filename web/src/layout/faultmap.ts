/** Fault map: from rows of unequal stretches to bands with labels and coloured cells. */
import type { FaultMap } from "../data/types";

export interface Band {
  region: string;
  start: string;
  /** First row and the first past it. */
  from: number;
  to: number;
  top: number;
  height: number;
}

export interface MapLayout {
  bands: Band[];
  /** Top of each row. */
  tops: number[];
  rowHeight: number;
  height: number;
  most: number;
}

/** Space between stretches that are not neighbours, pixels. */
export const BAND_GAP = 6;
/** Least height of a band, so that its label fits, pixels. */
const LEAST_BAND = 15;
/** Height that a label needs, pixels. */
const LABEL_HEIGHT = 14;
/** With more bands than this, they move together and not each has a label. */
const MANY_BANDS = 24;

/** Low addresses at the bottom, as usual in memory maps. Bands are neighbours of one kind. */
export function layoutMap(map: FaultMap, wanted: number): MapLayout {
  const bands: Band[] = [];
  map.rows.forEach((row, index) => {
    const last = bands.at(-1);
    if (last && last.region === row.region && follows(map, index)) last.to = index + 1;
    else bands.push({ region: row.region, start: row.start, from: index, to: index + 1, top: 0, height: 0 });
  });
  const rowHeight = Math.max(2, Math.min(12, Math.floor(wanted / Math.max(1, map.rows.length))));
  const tops = new Array<number>(map.rows.length).fill(0);
  const isCrowded = bands.length > MANY_BANDS;
  const gap = isCrowded ? 1 : BAND_GAP;
  let y = 0;
  for (const band of [...bands].reverse()) {
    band.top = y;
    band.height = Math.max(isCrowded ? 0 : LEAST_BAND, (band.to - band.from) * rowHeight);
    for (let row = band.from; row < band.to; row += 1) tops[row] = y + (band.to - 1 - row) * rowHeight;
    y += band.height + gap;
  }
  const most = map.cells.reduce((most, cell) => Math.max(most, cell.faults), 0);
  return { bands, tops, rowHeight, height: Math.max(0, y - gap), most };
}

/**
 * Positions of the names of bands: the highest bands come first, and those without room for a name
 * have none.
 */
export function labels(bands: Band[]): { region: string; middle: number }[] {
  const placed: { region: string; middle: number }[] = [];
  for (const { region, top, height } of [...bands].sort((a, b) => b.height - a.height)) {
    const middle = Math.max(top + Math.min(height / 2, 10), LABEL_HEIGHT / 2);
    if (placed.every((other) => Math.abs(other.middle - middle) >= LABEL_HEIGHT)) placed.push({ region, middle });
  }
  return placed;
}

/** Whether row `index` begins where the one before ends, or within sixteen times its length. */
function follows(map: FaultMap, index: number): boolean {
  const before = map.rows[index - 1]!;
  const gap = BigInt(map.rows[index]!.start) - BigInt(before.start) - BigInt(before.length);
  return gap >= 0n && gap <= BigInt(before.length) * 16n;
}

/** Strength of a cell, 0…1, by the logarithm: one fault remains visible next to a thousand. */
export function strength(faults: number, most: number): number {
  if (!(faults > 0) || !(most > 0)) return 0;
  return 0.25 + 0.75 * (Math.log1p(faults) / Math.log1p(most));
}
