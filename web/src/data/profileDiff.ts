import type { Pack, Profiles } from "./profile";
import type { ProfileDiff } from "./profileFindings";

/** A page about two profiles. */
export interface ProfileDiffPage {
  kind: "profile_diff";
  generator: string;
  diff: ProfileDiff;
  pack: Pack;
  profiles?: Profiles;
}
