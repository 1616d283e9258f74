/** Memory, faults and transfers over time. */
import type { PagingPoint, PagingTimeline } from "../../data/schema";
import { h } from "../../dom";
import { legend, timePane, type Pane } from "../../draw/series";
import { bytes, compact, percent } from "../../format";
import { rates, type Point } from "../../layout/series";
import { recentShares } from "../../layout/watched";
import type { Section } from "../section";

export const course: Section<PagingTimeline> = {
  id: "paging",
  title: "Paging over time",
  nav: "Paging",
  applies: ({ points }) => points.length > 1,
  intro: () => "Sum over all live processes. A wait for the store is a fault on an evicted page; no thread waited for pages that were read ahead.",
  render: ({ points }) => {
    const end = points.at(-1)!.time;
    const times = points.map((point) => point.time);
    const level = (of: (point: PagingPoint) => number): Point[] => points.map((point, at) => ({ x: times[at]!, y: of(point) }));
    const rate = (of: (point: PagingPoint) => number): Point[] => rates(times, points.map(of));
    const share = (whole: (point: PagingPoint) => number, part: (point: PagingPoint) => number): Point[] =>
      recentShares(times, points.map(whole), points.map(part));
    const hot = share((p) => p.watched_soon, (p) => p.used_soon);
    const pane = (title: string, rest: Pick<Pane, "lines"> & Partial<Pane>): HTMLElement => {
      const whole: Pane = { title, unit: "number", label: compact, end, ...rest };
      return h("figure", {}, h("figcaption", {}, title), legend(whole), h("div", {}, timePane(whole)));
    };
    return h(
      "div",
      {},
      pane("Memory", {
        unit: "bytes",
        label: bytes,
        lines: [
          { name: "resident", ink: "good", points: level((p) => p.resident_bytes) },
          { name: "limit for resident pages", ink: "kernel", points: level((p) => p.limit_bytes) },
          { name: "not managed", ink: "needed", points: level((p) => p.unmanaged_bytes) },
        ],
      }),
      pane("In the store", { unit: "bytes", label: bytes, lines: [{ name: "in the store", ink: "violet", points: level((p) => p.store_bytes) }] }),
      pane("Faults per second", {
        lines: [
          { name: "waits for the store", ink: "churn", points: rate((p) => p.refaults) },
          { name: "first touches", ink: "needed", points: rate((p) => p.first_touches) },
          { name: "uses of watched pages", ink: "good", points: rate((p) => p.seen_used) },
        ],
      }),
      hot.length > 1 &&
        pane("Share of resident pages, estimated from randomly watched ones", {
          label: percent,
          lines: [
            { name: "used again within a second", ink: "churn", points: hot },
            { name: "within eight seconds", ink: "needed", points: share((p) => p.watched_later, (p) => p.used_later) },
            { name: "seen written within a second", ink: "violet", points: share((p) => p.watched_soon, (p) => p.written_soon) },
          ],
        }),
      pane("Pages per second", {
        lines: [
          { name: "read", ink: "churn", points: rate((p) => p.pages_read) },
          { name: "read ahead", ink: "needed", points: rate((p) => p.pages_read_ahead) },
          { name: "written", ink: "violet", points: rate((p) => p.pages_written) },
          { name: "evicted", ink: "kernel", points: rate((p) => p.pages_evicted) },
        ],
      }),
    );
  },
};
