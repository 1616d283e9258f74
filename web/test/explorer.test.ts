import { expect, test } from "vitest";
import { Explorer, isWithin } from "../src/layout/explorer";
import { profiles } from "./profile";

test("a control group holds those below it, not those whose names begin alike", () => {
  expect(isWithin("/system.slice/a", "/system.slice")).toBe(true);
  expect(isWithin("/system.slice", "/system.slice")).toBe(true);
  expect(isWithin("/system.slicer", "/system.slice")).toBe(false);
  expect(isWithin("/a", "/")).toBe(true);
});

test("only samples of the chosen control group count", () => {
  const explorer = new Explorer(profiles(900), "cpu-clock");
  const whole = explorer.weights(explorer.chosen).samples;
  const counts = ["/system.slice", "/system.slicer", "/none"].map((cgroup) => {
    explorer.tasks.cgroup = cgroup;
    explorer.refilter();
    return explorer.weights(explorer.chosen).samples;
  });
  expect(counts).toEqual([(whole / 3) * 2, whole / 3, 0]);
});
