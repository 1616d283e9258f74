/** A table as JSON: an object for each row, by the heads of its columns, with what the cells show. */
export function records(rows: string[][]): string {
  const [first = [], ...rest] = rows;
  const heads: string[] = [];
  for (const [at, words] of first.entries()) {
    const head = words.trim() || `column ${at + 1}`;
    const same = heads.filter((other) => other === head || other.startsWith(`${head} (`)).length;
    heads.push(same === 0 ? head : `${head} (${same + 1})`);
  }
  const plain = (text = ""): string => text.trim().replaceAll("\u00a0", " ");
  return `${JSON.stringify(rest.map((row) => Object.fromEntries(heads.map((head, at) => [head, plain(row[at])]))), null, 1)}\n`;
}
