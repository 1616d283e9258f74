import type { Pack, Profiles } from "./profile";
import type { ProfileDiff } from "./profileFindings";

/** The part of a page about two profiles. */
export interface ProfileDiffPage {
  diff: ProfileDiff;
  /** What a reader should know. */
  notes: string[];
  pack: Pack;
  profiles?: Profiles;
}
