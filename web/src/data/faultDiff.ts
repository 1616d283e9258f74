/** `pagewise_model::fault_diff::FaultDiff` as JSON: two traces side by side. Times are nanoseconds. */
import type { Labels } from "./faultPaths";
import type { FaultDiff } from "./schema";
export type { TraceSide as Side, Pair, Pairs, Test, Finding, QuantileShift, Shift, ClassChange, LayerChange, PathChange, FunctionChange, ExtraFunction, Part, Explanation, FaultDiff } from "./schema";

/** A page about two traces. */
export interface FaultDiffPage {
  kind: "fault_diff";
  generator: string;
  diff: FaultDiff;
  labels: Labels;
}
