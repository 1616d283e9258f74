/** An outline of calls, `f { a b×3 { c } }`, as indented lines. */

export interface OutlineLine {
  depth: number;
  text: string;
}

export function indented(outline: string): OutlineLine[] {
  const lines: OutlineLine[] = [];
  let depth = 0;
  for (const word of outline.split(" ")) {
    if (word === "{") depth += 1;
    else if (word === "}") depth = Math.max(0, depth - 1);
    else if (word !== "") lines.push({ depth, text: word });
  }
  return lines;
}
