/** Huge pages of running programs: whether they help, and where they are. */
import type { Balance, Changes } from "../../data/schema";
import { h, type Child } from "../../dom";
import { hugeMap, mapLegend } from "../../draw/hugeMap";
import { byteChange, bytes, count, nanos, percent } from "../../format";
import type { Section } from "../section";
import type { Answer } from "../answer";
import { tile, type Tone } from "../head";

const BASES: Record<Balance["verdict"]["basis"], string> = {
  interleaved: "measured in this process, alternating between base and huge pages",
  measured: "measured in this process at different times; --prove alternates",
  walks: "page walks, counted by hardware: a bound",
  probe: "a pointer chase on this machine, not this program: a bound",
  none: "no measurement was conclusive",
};

const BADGES: Record<Balance["verdict"]["effect"], [string, Tone]> = {
  help: ["Huge pages help", "good"],
  hurt: ["Huge pages hurt", "bad"],
  no_measurable_effect: ["No measurable effect", "neutral"],
  unknown: ["Inconclusive", "neutral"],
};

export const answer: Answer<Balance> = {
  title: "Page sizes",
  nav: "Page sizes",
  badge: ({ verdict }) => BADGES[verdict.effect],
  headline: (_, { verdict }) => verdict,
  below: ({ verdict }) => [h("p", { class: "faint" }, `Basis: ${BASES[verdict.basis]}.`)],
  account: (balance) => [h("div", { class: "tiles" }, ...tiles(balance)), ...guests(balance)],
};

function tiles(balance: Balance): Child[] {
  const { before, after, max_rss, peak_rss } = balance;
  const share = ({ huge, small }: typeof before) => `${count(huge)} of ${count(huge + small)}`;
  const kept = max_rss === null ? "" : `${bytes(max_rss)} promised: ${peak_rss <= max_rss ? "kept" : "exceeded by the program itself"}`;
  return [
    tile("Huge pages", share(after), `${share(before)} before, ${bytes(balance.huge_page)} each`, after.blocked > 0 ? `${count(after.blocked)} more left alone` : ""),
    tile("Resident memory", bytes(after.rss), `${byteChange(after.rss - before.rss)} since the first look, ${bytes(peak_rss)} at most`, balance.applied ? `${bytes(balance.verdict.rss_growth)} of it added by huge pages` : "", kept),
    balance.applied && tile("Changes", count(balance.built.count + balance.split.count), made("built", balance.built), made("split", balance.split)),
    tile("Controller", percent(balance.controller_cpu / Math.max(1, balance.elapsed)), `of a CPU: ${nanos(balance.controller_cpu)} in ${nanos(balance.elapsed)}`, balance.applied ? balance.controller : "dry run: nothing was changed"),
  ];
}

const guests = ({ processes }: Balance): HTMLElement[] =>
  processes.flatMap((process) =>
    process.guest_memory.map((guest) => h("p", { class: guest.misaligned_by === 0 ? "faint" : "warn" }, `Guest memory of ${process.comm} (${process.pid}), ${bytes(guest.length)} at ${guest.start}: ${guest.misaligned_by === 0 ? "aligned to huge pages" : `${bytes(guest.misaligned_by)} off, so the guest's huge pages cannot be the host's`}.`)),
  );

const made = (word: string, { count: times, median, p95 }: Changes): string => (median === null || p95 === null ? `none ${word}` : `${count(times)} ${word}, ${nanos(median)} each (95 % below ${nanos(p95)})`);

export const balanceMap: Section<Balance> = {
  id: "balance-map",
  title: "Map of huge pages",
  nav: "Huge-page map",
  applies: (balance) => balance.processes.some((process) => process.map.rows.length > 0),
  intro: () => "Memory whose page size can be changed, as shown by PAGEMAP_SCAN; addresses grow upwards, gaps between mappings are left out. Green is mapped by huge pages, pale by small ones.",
  render: (balance) => h("div", {}, mapLegend(), ...balance.processes.filter((process) => process.map.rows.length > 0).map((process) => hugeMap(`${process.comm} (${process.pid})`, process.map))),
};
