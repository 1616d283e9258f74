/** The parts of a page about a profile, top to bottom. A recording with faults shows them behind those of its faults. */
import type { ProfileData } from "../../data/profile";
import { explorer } from "../explore";
import type { Section } from "../section";
import { answer, summary } from "./answer";
import { counters, host, missing, unknown } from "./details";
import { findings } from "./findings";

const explore: Section<ProfileData> = {
  id: "over-time",
  title: "Samples over time",
  nav: "Samples",
  applies: ({ profiles }) => profiles!.sides.some((side) => side.tracks.length > 0),
  intro: ({ profiles }) =>
    profiles!.sides[0]!.has_times
      ? "A column of the map is a stretch of time, its rows are parts of it from the bottom up, as in FlameScope; strong cells have much. Drag over the map: what stands below is of exactly that range. Dragging with Shift chooses a range to compare with."
      : "Each box is a function, as wide as its weight with everything that it called.",
  render: ({ profiles, findings }) => explorer(profiles!, findings.events.map((event) => event.name)),
};

const PARTS: Section<ProfileData>[] = [findings, explore, counters, unknown];

/** The parts on the page of a recording with faults. */
export const BESIDE_FAULTS: Section<ProfileData>[] = [summary, ...PARTS];
/** The same where the samples say more than the faults. */
export const PROFILE_FIRST: Section<ProfileData>[] = [answer, ...PARTS];
export const SECTIONS: Section<ProfileData>[] = [answer, ...PARTS, missing, host];
