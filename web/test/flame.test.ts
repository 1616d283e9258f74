import { describe, expect, it } from "vitest";
import type { FlameNode } from "../src/data/types";
import { boxes, frames, search } from "../src/layout/flame";

const node = (name: string, total: number, children: FlameNode[] = [], module = "m"): FlameNode => ({ name, module, total, children });
const tree = node("all", 100, [
  node("main", 90, [node("work", 60, [node("memset", 50, [], "libc.so.6")]), node("work2", 30)]),
  node("init", 10),
]);

describe("frames", () => {
  it("places children side by side inside their parent", () => {
    const placed = frames(tree).map(({ node, x, width, depth }) => [node.name, x, width, depth]);
    expect(placed).toEqual([
      ["all", 0, 1, 0],
      ["main", 0, 0.9, 1],
      ["init", 0.9, expect.closeTo(0.1), 1],
      ["work", 0, 0.6, 2],
      ["work2", 0.6, 0.3, 2],
      ["memset", 0, 0.5, 3],
    ]);
  });

  it("clips children that claim more than their parent", () => {
    const greedy = frames(node("all", 10, [node("a", 8), node("b", 8)]));
    expect(greedy.map((frame) => frame.width)).toEqual([1, 0.8, expect.closeTo(0.2)]);
  });

  it("survives recursion a hundred thousand frames deep", () => {
    let deep = node("leaf", 1);
    for (let depth = 0; depth < 100_000; depth += 1) deep = node("f", 1, [deep]);
    expect(frames(deep)).toHaveLength(100_001);
  });

  it("has nothing to place where nothing was counted", () => {
    expect(frames(node("all", 0))).toEqual([]);
  });
});

describe("boxes", () => {
  const all = frames(tree);
  it("fills the width with the focus and keeps its ancestors above", () => {
    const work = all.find((frame) => frame.node.name === "work")!;
    const shown = boxes(all, work, 600).map((box) => [box.frame.node.name, box.left, Math.round(box.width), box.isAncestor]);
    expect(shown).toEqual([
      ["all", 0, 600, true],
      ["main", 0, 600, true],
      ["work", 0, 600, false],
      ["memset", 0, 500, false],
    ]);
  });

  it("leaves out what is narrower than half a pixel", () => {
    expect(boxes(all, all[0]!, 4).map((box) => box.frame.node.name)).not.toContain("init");
    expect(boxes(all, all[0]!, 100).map((box) => box.frame.node.name)).toContain("init");
  });
});

describe("search", () => {
  const all = frames(tree);
  it("counts nested matches once", () => {
    const { frames: found, share } = search(all, "WORK");
    expect([...found].map((frame) => frame.node.name)).toEqual(["work", "work2"]);
    expect(share).toBeCloseTo(0.9);
    expect(search(all, "m").share).toBeCloseTo(1);
  });

  it("finds by file", () => {
    expect(search(all, "libc").share).toBeCloseTo(0.5);
  });

  it("finds nothing for nothing", () => {
    expect(search(all, "  ")).toEqual({ frames: new Set(), share: 0 });
  });
});
