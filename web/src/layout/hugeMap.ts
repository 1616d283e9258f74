/** Runs of equal cells in the rows of a huge-page map, so that few rectangles draw many cells. */

export interface Run {
  row: number;
  from: number;
  to: number;
  isHuge: boolean;
}

/** Each row is a string of `#` (huge) and `.` (small), a letter for each moment. */
export function runs(rows: string[]): Run[] {
  const found: Run[] = [];
  rows.forEach((cells, row) => {
    let from = 0;
    for (let at = 1; at <= cells.length; at++) {
      if (at < cells.length && cells[at] === cells[from]) continue;
      if (cells.length > 0) found.push({ row, from, to: at, isHuge: cells[from] === "#" });
      from = at;
    }
  });
  return found;
}
