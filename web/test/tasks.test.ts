import { expect, test } from "vitest";
import type { Tasks, TaskSum } from "../src/data/schema";
import { cpuByProcess, taskRows } from "../src/layout/tasks";

const sum = (threads: number, ...parts: [string, number][]): TaskSum => ({
  threads,
  lifetime: parts.reduce((all, [, value]) => all + value, 0),
  parts: parts.map(([id, value]) => ({ id, label: id, time: { value, low: value, high: value }, places: id === "sleep" ? ["hrtimer_nanosleep"] : [] })),
});

const tasks: Tasks = {
  processes: [
    {
      pid: 7,
      parent: 1,
      name: "work",
      began: 0,
      lifetime: 100,
      all: sum(3, ["cpu", 120], ["sleep", 90], ["pipe", 60], ["unexplained", 30]),
      threads: [{ tid: 8, name: "a", began: 0, all: sum(1, ["cpu", 100]) }],
      others: sum(2, ["cpu", 20], ["sleep", 180]),
    },
    { pid: 9, parent: 7, name: "gzip", began: 10, lifetime: 50, all: sum(1, ["cpu", 30], ["ready", 20]), threads: [{ tid: 9, name: "gzip", began: 10, all: sum(1, ["cpu", 30], ["ready", 20]) }] },
  ],
  unseen: sum(4, ["unexplained", 12]),
  elsewhere: 50,
};

test("bars add up, and each kind of time has its colour", () => {
  const [work, gzip, unseen] = taskRows(tasks);
  expect(work!.parts.map(({ id }) => id)).toEqual(["user", "violet", "rose", "rest"]);
  for (const { parts } of [work!, gzip!, ...work!.threads]) expect(parts.reduce((all, { share }) => all + share, 0)).toBeCloseTo(1);
  expect(work!.parts[1]!.name).toBe("sleep (hrtimer_nanosleep)");
  expect([work!.name, gzip!.name, unseen!.name]).toEqual(["work 7, 3 threads", "gzip 9", "4 threads ended unseen"]);
  expect(work!.threads.map(({ name }) => name)).toEqual(["a 8", "2 threads more, added up"]);
  expect(gzip!.threads).toEqual([]);
});

test("no two waits share a colour, and waits beyond the colours are one part", () => {
  const waits = ["a", "b", "c", "d", "e", "f"].map((id, at): [string, number] => [id, 30 - at]);
  const [row] = taskRows({ processes: [], others: sum(1, ["cpu", 10], ...waits), elsewhere: 0 });
  const ids = row!.parts.map(({ id }) => id);
  expect(new Set(ids).size).toBe(ids.length);
  expect(row!.parts.at(-1)).toMatchObject({ name: "other waits", nanos: 26 + 25 });
});

test("the CPU time by process ends with what belongs to no thread seen", () => {
  expect(cpuByProcess(tasks).map(({ name, nanos, share }) => [name, nanos, share])).toEqual([
    ["work 7", 120, 0.6],
    ["gzip 9", 30, 0.15],
    ["in threads not seen", 50, 0.25],
  ]);
});
