import type { Ending } from "./schema";

/** How a program ended, to follow "the program". */
export function ended(ending: Ending): string {
  if (ending === "running") return "was still running when observation ended";
  return "killed" in ending ? `was killed by signal ${ending.killed}` : `exited with status ${ending.exited}`;
}
