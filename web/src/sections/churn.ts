import { h } from "../dom";
import { histogramChart } from "../draw/histogram";
import { axisBytes, bytes, count, percent } from "../format";
import { logBins, padded } from "../layout/histogram";
import type { Section } from "./section";

export const churnSizes: Section = {
  id: "churn",
  title: "What is given back and taken again",
  nav: "Sizes",
  kinds: ["findings"],
  applies: (report) => report.findings.churn.released_sizes.count > 0,
  intro: () => "Sizes of the stretches of memory that the program returned to the kernel. Settings of the allocator that are larger than these sizes keep the memory.",
  render: (report) => {
    const { released_sizes, refault_ratio, bytes: churned } = report.findings.churn;
    const bins = padded(logBins([released_sizes], 4), 4);
    const svg = histogramChart(bins, {
      title: "Histogram of released sizes",
      names: ["released"],
      inks: ["churn"],
      base: 2,
      label: axisBytes,
      marks: [],
    });
    const ratio = refault_ratio ? ` ${percent(refault_ratio.value)} of the faults on such memory hit a page that had been there before.` : "";
    return h(
      "div",
      {},
      h("p", {}, `${count(released_sizes.count)} releases; ${bytes(churned)} were given back and faulted in again.${ratio}`),
      h("div", {}, svg),
    );
  },
};
