/** Which memory was huge: address upwards, time across. */
import type { Controlled, HugeSimulationPage } from "../../data/hugeSimulation";
import { h, s } from "../../dom";
import { chart, xAxis, yAxis, type Plot } from "../../draw/chart";
import { bytes } from "../../format";
import { linear, linearTicks } from "../../layout/axis";
import { runs } from "../../layout/hugeMap";
import { hideTip, showTip } from "../../tooltip";
import type { Section } from "../section";
import { seconds } from "./words";

export const hugeMap: Section<HugeSimulationPage> = {
  id: "huge-map",
  title: "Map of huge pages",
  nav: "Huge-page map",
  applies: ({ simulation }) => simulation.controlled.some((run) => run.map.rows.length > 0),
  intro: () => "Each row is a piece of memory that a huge page can map, addresses growing upwards. Strong colour: mapped huge; pale: split into small pages.",
  render: ({ simulation }) =>
    h(
      "div",
      {},
      h("ul", { class: "legend" }, h("li", {}, h("span", { class: "swatch good" }), "huge"), h("li", {}, h("span", { class: "swatch needed pale" }), "small")),
      ...simulation.controlled.filter((run) => run.map.rows.length > 0).map(map),
    ),
};

function map(run: Controlled): HTMLElement {
  const { rows, starts, row_bytes } = run.map;
  const columns = Math.max(...rows.map((row) => row.length), 1);
  const end = run.timeline.at(-1)?.at_s ?? columns;
  const cell = Math.max(3, Math.min(14, 360 / rows.length));
  const height = rows.length * cell + 40;
  const svg = chart(height, `Huge pages of ${run.workload} by address and time`, (svg, width) => {
    const plot: Plot = { left: 130, right: width - 8, top: 8, bottom: height - 28 };
    const x = linear([0, columns], [plot.left, plot.right]);
    const time = linear([0, end], [plot.left, plot.right]);
    const top = (row: number) => plot.bottom - (row + 1) * cell;
    const every = Math.max(1, Math.ceil(rows.length / (height / 40)));
    const named = starts.map((start, row) => ({ start, row })).filter(({ row }) => row % every === 0);
    svg.append(
      ...yAxis(plot, named.map(({ start, row }) => ({ at: top(row) + cell / 2, label: start }))),
      ...xAxis(plot, linearTicks(0, end, Math.max(2, width / 130)).map((tick) => ({ at: time(tick), label: seconds(tick) }))),
    );
    for (const { row, from, to, isHuge } of runs(rows)) {
      svg.append(
        s("rect", {
          x: x(from),
          y: top(row),
          width: Math.max(0.5, x(to) - x(from)),
          height: Math.max(1, cell - 1),
          class: isHuge ? "map-huge" : "map-small",
          pointermove: (event: PointerEvent) => showTip(event.clientX, event.clientY, h("strong", {}, starts[row] ?? ""), h("div", {}, `${bytes(row_bytes)}, ${isHuge ? "huge" : "small pages"} from ${seconds((from / columns) * end)} to ${seconds((to / columns) * end)}`)),
          pointerleave: hideTip,
        }),
      );
    }
  });
  return h("figure", {}, h("figcaption", {}, `${run.workload} with ${run.controller}`), h("div", {}, svg));
}
