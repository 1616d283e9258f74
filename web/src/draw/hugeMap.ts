/** Which memory was huge: address upwards, time across. */
import type { HugeMap } from "../data/schema";
import { h, s } from "../dom";
import { axisNanos, bytes, percent } from "../format";
import { linear, linearTicks } from "../layout/axis";
import { runs } from "../layout/hugeMap";
import { hideTip, showTip } from "../tooltip";
import { chart, xAxis, yAxis, type Plot } from "./chart";

/** What the colours mean; once above all maps. */
export const mapLegend = (): HTMLElement =>
  h("ul", { class: "legend" }, h("li", {}, h("span", { class: "swatch good" }), "huge"), h("li", {}, h("span", { class: "swatch needed pale" }), "small pages"), h("li", { class: "faint" }, "between: a row of several huge pages of which some are huge"));

export function hugeMap(title: string, map: HugeMap): HTMLElement {
  const { rows, starts, row_bytes, until: end } = map;
  const columns = rows.reduce((most, row) => Math.max(most, row.length), 1);
  const cell = Math.max(2.5, Math.min(14, 360 / rows.length));
  const gap = cell >= 6 ? 1 : 0;
  const height = rows.length * cell + 40;
  const svg = chart(height, `Huge pages by address and time: ${title}`, (svg, width) => {
    const plot: Plot = { left: 130, right: width - 8, top: 8, bottom: height - 28 };
    const x = linear([0, columns], [plot.left, plot.right]);
    const time = linear([0, end], [plot.left, plot.right]);
    const top = (row: number) => plot.bottom - (row + 1) * cell;
    const every = Math.max(1, Math.ceil(rows.length / (height / 40)));
    for (const { row, from, to, huge } of runs(rows)) {
      const box = (className: string, opacity: number) =>
        s("rect", {
          x: x(from),
          y: top(row),
          width: Math.max(0.5, x(to) - x(from)),
          height: cell - gap,
          class: className,
          "fill-opacity": opacity,
          pointermove: (event: PointerEvent) =>
            showTip(event.clientX, event.clientY, h("strong", {}, starts[row] ?? ""), h("div", {}, `${bytes(row_bytes)}, ${huge === 1 ? "huge" : huge === 0 ? "small pages" : `about ${percent(huge)} huge`} from ${axisNanos((from / columns) * end)} to ${axisNanos((to / columns) * end)}`)),
          pointerleave: hideTip,
        });
      svg.append(box("map-small", 0.2));
      if (huge > 0) svg.append(box("map-huge", 0.8 * huge));
    }
    const named = starts.map((start, row) => ({ start, row })).filter(({ row }) => row % every === 0);
    svg.append(
      ...yAxis(plot, named.map(({ start, row }) => ({ at: top(row) + cell / 2, label: start }))),
      ...xAxis(plot, linearTicks(0, end, Math.max(2, width / 130)).map((tick) => ({ at: time(tick), label: axisNanos(tick) }))),
    );
  }, { up: "address", across: "time since the start" });
  return h("figure", {}, h("figcaption", {}, `${title}; a row is ${bytes(row_bytes)}`), h("div", {}, svg));
}
