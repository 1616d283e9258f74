/** The most important thing in one sentence, and a description of the recording. */
import type { ProfileData } from "../../data/profile";
import type { EventProfile, ProfileSummary } from "../../data/profileFindings";
import type { HostSnapshot } from "../../data/schema";
import { h } from "../../dom";
import { compact, count, nanos, percent } from "../../format";
import type { Answer } from "../answer";
import { SEVERITY, tile, unit } from "../head";

export const answer: Answer<ProfileData> = {
  title: "CPU time and other events",
  nav: "CPU time",
  badge: (_, { diagnoses }) => {
    const first = diagnoses.find(({ id }) => id.startsWith("profile."));
    return first ? SEVERITY[first.severity] : ["Nothing stands out", "neutral"];
  },
  headline: (profile, { verdict }) => verdict || samplesOf(profile),
  account: (profile, { host }) => [h("div", { class: "tiles" }, used(profile.findings, host), ...profile.findings.events.slice(0, 3).map((event) => eventTile(event, profile.findings)), cost(profile))],
};

const samplesOf = (page: ProfileData): string => `${count(page.findings.events.reduce((sum, event) => sum + event.samples, 0))} samples`;

/** CPU time used, out of the available CPU time. */
export function used({ events, span }: Pick<ProfileSummary, "events" | "span">, host: Pick<HostSnapshot, "cpus">): HTMLElement | null {
  const clock = events.find((event) => event.unit === "nanoseconds" && !event.name.startsWith("off-cpu"));
  if (!clock || span <= 0) return null;
  const cpus = host.cpus || clock.cpus.length;
  const available = clock.idle > 0 ? clock.weight + clock.idle : cpus * span;
  const inUse = clock.weight / span;
  const of = cpus > 0 && unit(`of ${count(cpus)}`);
  return tile("CPUs in use", [inUse.toFixed(2), of], `${nanos(clock.weight)} of CPU time in ${nanos(span)}`, available > 0 ? `${percent(clock.weight / available)} of the CPUs' capacity` : null);
}

function eventTile(event: EventProfile, { span }: ProfileSummary): HTMLElement {
  const weight = { nanoseconds: nanos(event.weight), events: `${compact(event.weight)} events`, samples: "" }[event.unit];
  const asked = event.frequency === null ? null : `${count(event.frequency)} per second requested`;
  return tile(event.name, [count(event.samples), unit("samples")], weight === "" ? null : `${weight}${event.idle > 0 ? " busy" : ""}`, asked ?? (span > 0 ? `over ${nanos(span)}` : null));
}

function cost({ findings: { own_cost } }: ProfileData): HTMLElement | null {
  return own_cost !== null && own_cost > 0 ? tile("Cost of recording", nanos(own_cost), "CPU time, about") : null;
}
