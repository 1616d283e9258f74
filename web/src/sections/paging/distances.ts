/** How long pages were evicted before they came back. */
import type { PagingTimeline } from "../../data/schema";
import { h } from "../../dom";
import { histogramChart } from "../../draw/histogram";
import { bytes, compact, count, percent } from "../../format";
import { distanceBins } from "../../layout/watched";
import type { Section } from "../section";

const NAMES = ["waited for", "read ahead"];
const INKS = ["churn", "needed"];

export const distances: Section<PagingTimeline> = {
  id: "distances",
  title: "How long pages stayed away",
  nav: "Refault distances",
  applies: ({ refault_distances }) => refault_distances.buckets.length > 0,
  intro: () =>
    "Pages evicted between a page's eviction and its return. A page that came back after n evictions would have stayed with room for n more, under a policy that evicts roughly in order of use.",
  render: ({ refault_distances: all }) => {
    const svg = histogramChart(distanceBins(all.buckets), {
      title: "Histogram of refault distances, in pages",
      names: NAMES,
      inks: INKS,
      base: 2,
      label: compact,
      marks: [],
      axes: { up: "pages", across: "evictions while away, logarithmic" },
    });
    const larger = all.larger_budget;
    return h(
      "div",
      {},
      h("ul", { class: "legend" }, ...NAMES.map((name, at) => h("li", {}, h("span", { class: `swatch ${INKS[at]}` }), name))),
      h("div", {}, svg),
      larger !== null && h("p", {}, `A budget larger by ${bytes(larger.more_bytes)} would save at least ${percent(larger.spared.low)} of the waits for the store.`),
      h("p", { class: "faint" }, `Estimated from ${count(all.sampled_pages)} pages that were followed.`),
    );
  },
};
