/** Runs of equal cells in the rows of a huge-page map, so that few rectangles draw many cells. */

export interface Run {
  row: number;
  from: number;
  to: number;
  /** Share of the memory that was mapped huge. */
  huge: number;
}

/**
 * Each row is a string, a character for each moment: `#` all huge, `.` none, `1` to `9` tenths, a
 * blank where there was no memory.
 */
export function runs(rows: string[]): Run[] {
  const found: Run[] = [];
  rows.forEach((cells, row) => {
    let from = 0;
    for (let at = 1; at <= cells.length; at++) {
      if (at < cells.length && cells[at] === cells[from]) continue;
      const huge = share(cells[from]);
      if (huge !== null) found.push({ row, from, to: at, huge });
      from = at;
    }
  });
  return found;
}

function share(letter: string | undefined): number | null {
  if (letter === "#") return 1;
  if (letter === ".") return 0;
  return letter !== undefined && letter >= "1" && letter <= "9" ? Number(letter) / 10 : null;
}
