/** What grew from one look to the next. */
import type { Growth, Memory } from "../../data/schema";
import { h, type Child } from "../../dom";
import { barTable, type Bar } from "../../draw/bars";
import { bytes, nanos } from "../../format";
import type { Section } from "../section";
import { groupName, margin, partTitle, signedBytes } from "./words";

/** Rows that are shown; JSON has all. */
const MOST = 12;

const NANOS_PER_HOUR = 3.6e12;

const ink = (added: number): string => (added > 0 ? "churn" : "good");

export const memoryGrowth: Section<Memory> = {
  id: "memory-growth",
  title: "What grew",
  nav: "What grew",
  applies: ({ growth }) => growth != null && growth.rows.length > 0,
  intro: ({ growth }) => {
    const elapsed = growth!.elapsed_ns;
    return `From the first look to the second${elapsed == null ? "" : `, ${nanos(elapsed)} later`}. Bars show how much was added (orange) or went away (green).`;
  },
  render: ({ growth }) => h("div", {}, ...rows(growth!), ...blocks(growth!), ...stacks(growth!)),
};

/** What was added per hour, where the looks are at one run. */
const rate = ({ elapsed_ns: elapsed }: Growth, added: number): string[] => (elapsed == null || elapsed === 0 ? [] : [signedBytes((added / elapsed) * NANOS_PER_HOUR)]);
const rateHead = ({ elapsed_ns: elapsed }: Growth): string[] => (elapsed == null || elapsed === 0 ? [] : ["Per hour"]);

function rows(growth: Growth): Child[] {
  const bars = growth.rows.slice(0, MOST).map((row): Bar => {
    const added = row.after - row.before;
    return { name: [partTitle(row)], share: Math.abs(added), figures: [bytes(row.before), bytes(row.after), signedBytes(added), ...rate(growth, added)], ink: ink(added) };
  });
  return [barTable("What grew", ["What", "Before", "After", "Added", ...rateHead(growth)], bars, ["Before"])];
}

function blocks(growth: Growth): Child[] {
  const bars = (growth.blocks ?? []).slice(0, MOST).map(({ group, added }): Bar => ({ name: [groupName(group)], share: Math.abs(added.value), figures: [signedBytes(added.value), margin(added), ...rate(growth, added.value)], ink: ink(added.value) }));
  return bars.length === 0 ? [] : [h("h3", {}, "Blocks in use that grew, by type or size"), barTable("Blocks in use that grew", ["Blocks", "Added", "±", ...rateHead(growth)], bars)];
}

function stacks({ stacks = [] }: Growth): Child[] {
  const bars = stacks.slice(0, MOST).map(({ frames, before, after, added }): Bar => {
    const names = frames.map(({ name }) => name);
    return { name: [h("span", { title: names.join(" ← ") }, names.slice(0, 3).join(" ← ") || "[no stack]")], share: Math.abs(added.value), figures: [bytes(before.value), bytes(after.value), signedBytes(added.value), margin(added)], ink: ink(added.value) };
  });
  return bars.length === 0 ? [] : [h("h3", {}, "Call stacks that hold more or less"), barTable("Call stacks", ["Allocated by", "Before", "After", "Added", "±"], bars, ["Before", "After"])];
}
