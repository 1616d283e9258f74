import { expect, it } from "vitest";
import { visible } from "../src/data/visible";
import { axisBytes, axisNanos, byteChange, bytes, compact, count, counted, factor, factorRange, nanos, percent, percentRange } from "../src/format";

const plain = (text: string) => text.replaceAll("\u00a0", " ");

it("rounds shares to no false whole", () => {
  expect([0, 0.0004, 0.023, 0.672, 0.995, 0.9998, 1].map(percent).map(plain)).toEqual(["0 %", "<0.1 %", "2.3 %", "67 %", "99.5 %", ">99.9 %", "100 %"]);
  expect(plain(percentRange({ value: 0.5, low: 0.4, high: 0.6 }))).toBe("40 to 60 %");
  expect(percentRange({ value: 0.5, low: 0.5, high: 0.5 })).toBe("");
  expect(factorRange({ value: 1.2, low: 0, high: Number.MAX_VALUE })).toBe("too few runs for an interval");
  expect(factorRange({ value: 0.8, low: 0.04, high: 15.8 })).toBe("too few runs for an interval");
  expect(factorRange({ value: 1.9, low: 1.86, high: 1.95 })).toBe("1.86 to 1.95");
});

it("shows what JSON could not carry as a dash", () => {
  const none = null as unknown as number;
  expect([count(none), percent(none), factor(none), nanos(none), bytes(none), byteChange(none)].map(plain)).toEqual(["–", "– %", "×–", "–", "–", "–"]);
});

it("counts one and many", () => {
  expect([0, 1, 1_234].map((n) => counted(n, "fault"))).toEqual(["0 faults", "1 fault", "1,234 faults"]);
});

it("chooses units", () => {
  expect([890, 1_470, 27_400_000, 3.2e9].map(nanos).map(plain)).toEqual(["890 ns", "1.47 µs", "27.4 ms", "3.20 s"]);
  expect([512, 126 * 1024, 64 * 2 ** 20].map(bytes).map(plain)).toEqual(["512 B", "126 KiB", "64.0 MiB"]);
  expect([0, 5e8, 1.5e9, 2e9].map(axisNanos).map(plain)).toEqual(["0", "500 ms", "1.5 s", "2 s"]);
  expect([0, 2 ** 26, 1.5 * 2 ** 30].map(axisBytes).map(plain)).toEqual(["0", "64 MiB", "1.5 GiB"]);
  expect([999, 1_500, 330_000, 2e6].map(compact)).toEqual(["999", "1.5k", "330k", "2M"]);
  expect([278_528, -1_572_864, 0].map(byteChange).map(plain)).toEqual(["+272 KiB", "−1.50 MiB", "±0"]);
});

it("writes out characters that act", () => {
  expect(visible("a\u001b[31mb\u202ec\n\u0000")).toBe("a\\u{1b}[31mb\\u{202e}c\\n\\u{0}");
  expect(visible("std::vec<größe>")).toBe("std::vec<größe>");
});
