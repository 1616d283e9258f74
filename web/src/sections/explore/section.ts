/** Samples over time and their flame graph, of one profile or of two. */
import { about, type Section } from "../section";
import { explorer } from "./index";

const one = about("profile", {
  id: "over-time",
  title: "Samples over time",
  nav: "Samples",
  applies: ({ profiles }) => profiles!.sides.some((side) => side.tracks.length > 0),
  intro: ({ profiles }) =>
    profiles!.sides[0]!.has_times
      ? "A column of the map is a period of time; its rows are parts of that period from the bottom up, as in FlameScope. Strong colours mean many samples. Drag over the map to show only that range below; drag with Shift to choose a range to compare with."
      : "Each box is a function, as wide as its weight with everything that it called.",
  render: ({ profiles, findings }) => explorer(profiles!, findings.events.map((event) => event.name)),
});

const two = about("profile_diff", {
  id: "diff-over-time",
  title: "Samples of both over time",
  nav: "Samples",
  applies: () => true,
  intro: () => "Boxes of the differential flame graph are as wide as the mean of both sides, so that what vanished stays visible: red has grown in B, blue has shrunk, pale is within the sampling error; the tables above say what is certain. Drag over either map to compare ranges.",
  render: ({ profiles, diff }) => {
    const events = profiles!.sides[0]!.tracks.map((track) => track.event).filter((event) => profiles!.sides[1]!.tracks.some((track) => track.event === event));
    return explorer(profiles!, [diff.event, ...events.filter((event) => event !== diff.event)]);
  },
});

export const SECTIONS: Section[] = [one, two];
