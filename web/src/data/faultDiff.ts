/** `pagewise_model::fault_diff::FaultDiff` as JSON: two traces side by side. Times are nanoseconds. */
import type { Labels } from "./faultPaths";
import type { FaultDiff } from "./schema";
export type { TracedSide as Side, Pair, Pairs, Test, Finding, QuantileShift, Shift, ClassChange, LayerChange, PathChange, FunctionChange, ExtraFunction, Part, Explanation, FaultDiff } from "./schema";

/** The part of a page about two traces. */
export interface FaultDiffPage {
  diff: FaultDiff;
  labels: Labels;
}
