/** An outline of calls, `f { a ×3 { c } ( d e ) ×2 }`, as indented lines. */

export interface OutlineLine {
  depth: number;
  text: string;
}

export function indented(outline: string): OutlineLine[] {
  const lines: OutlineLine[] = [];
  const loops: OutlineLine[] = [];
  let depth = 0;
  /** The line to which a number of repeats refers. */
  let last: OutlineLine | undefined;
  for (const word of outline.split(" ")) {
    if (word === "") continue;
    if (word === "{") depth += 1;
    else if (word === "}") depth = Math.max(0, depth - 1);
    else if (word === ")") {
      depth = Math.max(0, depth - 1);
      last = loops.pop();
    } else if (word.startsWith("×") && last !== undefined) {
      last.text += ` ${word}`;
    } else {
      last = { depth, text: word === "(" ? "in turn" : word };
      lines.push(last);
      if (word === "(") {
        loops.push(last);
        depth += 1;
      }
    }
  }
  return lines;
}
