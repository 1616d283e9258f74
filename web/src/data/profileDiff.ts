import type { Pack, Profiles } from "./profile";
import type { ProfileDiff } from "./profileFindings";

/** The part of a page about two profiles. */
export interface ProfileDiffPage {
  diff: ProfileDiff;
  pack: Pack;
  profiles?: Profiles;
}
