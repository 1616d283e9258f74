/** `pagewise_model::profile_findings` and `profile_diff` as JSON (docs/schema/schema.json). */
export type { ProfileSummary, EventProfile, ProfileDiff, RunDiff, FigureChange, Measure, ProfileSide as DiffSide, Change, StackChange } from "./schema";

