/** `pagewise_model::profile_findings` and `profile_diff` as JSON (docs/schema/schema.json). */
export type { ProfileSummary, EventProfile, ProfileDiff, RunDiff, FigureChange, Measure, WeighedSide as DiffSide, Change, StackChange } from "./schema";

