/** Words of flame graphs of memory. */
import type { FlameWords } from "../../draw/flame";
import { bytes } from "../../format";

export const BYTES: FlameWords = {
  of: "this memory",
  weight: (total) => bytes(total),
  module: (module) => module || "unknown file",
  search: "Search function or file",
};
