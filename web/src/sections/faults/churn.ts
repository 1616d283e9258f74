import type { Histogram, Report } from "../../data/types";
import { h } from "../../dom";
import { histogramChart } from "../../draw/histogram";
import { INKS } from "../../draw/inks";
import { axisBytes, bytes, count, percent } from "../../format";
import { logBins, padded } from "../../layout/histogram";
import type { Section } from "../section";

const PER_OCTAVE = 4;

export const churnSizes: Section<Report> = {
  id: "churn",
  title: "What is returned and requested again",
  nav: "Sizes",
  folded: true,
  applies: (report) => report.findings.churn.released_sizes.count > 0,
  intro: () => "Sizes of the pieces of memory that the program returned to the kernel. Allocator thresholds above these sizes keep the memory.",
  render: (report) => {
    const { released_sizes, refault_ratio, bytes: churned } = report.findings.churn;
    const parts = routes(report);
    const bins = padded(logBins(parts.map((part) => part.sizes), PER_OCTAVE), PER_OCTAVE);
    const svg = histogramChart(bins, {
      title: "Histogram of released sizes",
      names: parts.map((part) => part.name),
      inks: parts.map((part) => part.ink),
      base: 2,
      label: axisBytes,
      marks: [],
      axes: { up: "releases", across: "size of a release, logarithmic" },
    });
    const ratio = refault_ratio ? ` ${percent(refault_ratio.value)} of the faults on such memory hit a page that had been there before.` : "";
    return h(
      "div",
      {},
      h("p", {}, `${count(released_sizes.count)} releases; ${bytes(churned)} were returned and faulted in again.${ratio}`),
      parts.length > 1 && h("ul", { class: "legend" }, ...parts.map((part) => h("li", {}, h("span", { class: `swatch ${part.ink}` }), part.name))),
      h("div", {}, svg),
    );
  },
};

/** One series for each route with sizes; a single one if routes were not distinguished. */
function routes(report: Report): { name: string; ink: string; sizes: Histogram }[] {
  const { churn } = report.findings;
  const told = churn.routes.filter((route) => route.released_sizes.count > 0);
  if (told.length < 2) return [{ name: "releases", ink: "churn", sizes: churn.released_sizes }];
  return told.map((route, index) => ({
    name: `${report.labels.regions[route.region] ?? route.region}, ${report.labels.causes[route.cause] ?? route.cause} (${count(route.faults)} faults)`,
    ink: index === 0 ? "churn" : INKS[(index - 1) % INKS.length]!,
    sizes: route.released_sizes,
  }));
}
