import { describe, expect, it } from "vitest";
import { indented } from "../src/layout/outline";

const lines = (outline: string) => indented(outline).map(({ depth, text }) => `${"-".repeat(depth)}${text}`);

describe("an outline as lines", () => {
  it("indents what is called", () => {
    expect(lines("f { a { b } c }")).toEqual(["f", "-a", "--b", "-c"]);
  });

  it("has repeats beside calls and before loops", () => {
    expect(lines("f { a ×3–15 { c } ( d e { g } ) ×2 h }")).toEqual(["f", "-a ×3–15", "--c", "-in turn ×2", "--d", "--e", "---g", "-h"]);
  });

  it("bears outlines that were cut", () => {
    expect(lines("f { a ( b … )")).toEqual(["f", "-a", "-in turn", "--b", "--…"]);
    expect(lines("} ) ×2")).toEqual(["×2"]);
  });
});
