/** The most important thing in one sentence, and what the recording is. */
import type { ProfileData } from "../../data/profile";
import type { EventProfile, ProfileFindings } from "../../data/profileFindings";
import { h } from "../../dom";
import { compact, count, nanos, percent } from "../../format";
import { SEVERITY } from "../answer";
import type { Section } from "../section";
import { tile, unit, verdict, type Tone } from "../head";

export const answer: Section<ProfileData> = {
  id: "answer",
  title: "",
  nav: "",
  applies: () => true,
  render: (page) => {
    const { findings } = page;
    const worst = findings.diagnoses[0]?.severity;
    const [badge, tone]: [string, Tone] = worst ? SEVERITY[worst] : ["Nothing stands out", "neutral"];
    return h(
      "div",
      {},
      verdict(badge, tone, findings.headline || samplesOf(page)),
      tiles(page),
    );
  },
};

/** The same below the answer about a recording's faults. */
export const summary: Section<ProfileData> = {
  id: "answer",
  title: "Where the time went",
  nav: "CPU time",
  applies: () => true,
  render: (page) => h("div", {}, h("p", { class: "lead" }, page.findings.headline || samplesOf(page)), tiles(page)),
};

const tiles = (page: ProfileData): HTMLElement => h("div", { class: "tiles" }, used(page.findings), ...page.findings.events.slice(0, 3).map((event) => eventTile(event, page.findings)), lost(page));

const samplesOf = (page: ProfileData): string => `${count(page.findings.events.reduce((sum, event) => sum + event.samples, 0))} samples`;

/** CPU time used of what the CPUs had to give. */
export function used({ events, span, host }: Pick<ProfileFindings, "events" | "span" | "host">): HTMLElement | null {
  const clock = events.find((event) => event.unit === "nanoseconds" && !event.name.startsWith("off-cpu"));
  if (!clock || span <= 0) return null;
  const cpus = host.cpus || clock.cpus.length;
  const available = clock.idle > 0 ? clock.weight + clock.idle : cpus * span;
  const inUse = clock.weight / span;
  const of = cpus > 0 && unit(`of ${count(cpus)}`);
  return tile("CPUs in use", [inUse.toFixed(2), of], `${nanos(clock.weight)} of CPU time in ${nanos(span)}`, available > 0 ? `${percent(clock.weight / available)} of what the CPUs had` : null);
}

function eventTile(event: EventProfile, { span }: ProfileFindings): HTMLElement {
  const weight = { nanoseconds: nanos(event.weight), events: `${compact(event.weight)} events`, samples: "" }[event.unit];
  const asked = event.frequency === null ? null : `${count(event.frequency)} per second asked for`;
  return tile(event.name, [count(event.samples), unit("samples")], weight === "" ? null : `${weight}${event.idle > 0 ? " busy" : ""}`, asked ?? (span > 0 ? `over ${nanos(span)}` : null));
}

function lost({ losses, findings }: ProfileData): HTMLElement | null {
  const all = losses.reduce((sum, [, n]) => sum + n, 0);
  const cost = findings.own_cost !== null && findings.own_cost > 0 ? `recording cost about ${nanos(findings.own_cost)}` : null;
  if (all === 0 && cost === null) return null;
  return tile("Missing", all === 0 ? "nothing" : count(all), ...losses.slice(0, 2).map(([text, n]) => `${count(n)} ${text}`), cost);
}
