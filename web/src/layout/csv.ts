/** A table as comma-separated values (RFC 4180). */

const isNumber = (cell: string): boolean => /^[+\-−]?[\d.,\s]*\d/.test(cell);

/** A name from a recording must not become a formula in a spreadsheet. */
const harmless = (cell: string): string => (/^[=@\t\r]/.test(cell) || (/^[+\-]/.test(cell) && !isNumber(cell)) ? `'${cell}` : cell);

function field(cell: string): string {
  const text = harmless(cell.replace(/[\u00a0\u202f]/g, " ").trim());
  return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
}

export const csv = (rows: string[][]): string => rows.map((row) => `${row.map(field).join(",")}\r\n`).join("");
