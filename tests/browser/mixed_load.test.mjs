// Uses the page of a recording of a whole machine, created by ./mixed_load: mixed.html,
// report.json.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { colours, directory, lowContrast, overflows, reading, settle, shot, tornTables } from "./browser.mjs";

const LEFT = 58;
const report = JSON.parse(readFileSync(`${directory}/report.json`));
const profile = report.kind === "run" ? report.evidence.run.profile : report.evidence.profile;
const clock = profile.events[0];

/** The first number of samples in the words about what is chosen. */
const samplesIn = (text) => Number(/([\d,]+) samples/.exec(text)[1].replaceAll(",", ""));
const lines = (page) => page.$$eval("#profile-range p", (all) => all.map((line) => line.textContent));
/** "6.01 s to 7.02 s" as seconds. */
const secondsIn = (text) => /([\d.]+)\s(m?s) to ([\d.]+)\s(m?s)/.exec(text);

/** Drags over the heat map's columns, from one share of its width to another. */
async function drag(page, from, to, second = false) {
  const canvas = page.locator("canvas.heat").first();
  await canvas.scrollIntoViewIfNeeded();
  const box = await canvas.boundingBox();
  const point = (share, height) => [box.x + LEFT + (box.width - LEFT) * share, box.y + (box.height - 22) * height];
  if (second) await page.keyboard.down("Shift");
  await page.mouse.move(...point(from, 0.95));
  await page.mouse.down();
  await page.mouse.move(...point(to, 0.05), { steps: 5 });
  await page.mouse.up();
  if (second) await page.keyboard.up("Shift");
  await settle(page);
}

test("the whole machine's samples come first, drawn over time", async () => {
  await reading("mixed", {}, async (page) => {
    assert.equal(await overflows(page), false);
    assert.deepEqual(await page.evaluate(lowContrast), []);
    assert.deepEqual(await page.evaluate(tornTables), []);
    assert.match(await page.textContent("header .command"), /^all processes, during sleep/);
    assert.ok((await colours(page, "canvas.heat")) > 10);
    await page.click("#profile-idle").catch(() => assert.equal(clock.idle, 0));
    assert.equal(samplesIn((await lines(page))[0]), clock.samples, "all samples of the recording, idle ones included");
    await shot(page, "mixed", true);
  });
});

test("a range dragged over is a flame graph of exactly its samples", async () => {
  await reading("mixed", {}, async (page) => {
    const whole = samplesIn((await lines(page))[0]);
    await drag(page, 0.15, 0.3);
    const [chosen] = await lines(page);
    const samples = samplesIn(chosen);
    assert.ok(samples > 0 && samples < whole, chosen);
    await page.hover("[id$=over-time] canvas.flame", { position: { x: 300, y: 10 } });
    const [, figure, unit] = /^all([\d.]+)\s(m?s) · 100\s%/.exec(await page.textContent(".tooltip"));
    const seconds = Number(figure) * (unit === "s" ? 1 : 0.001);
    const each = (clock.weight + clock.idle) / clock.samples / 1e9;
    assert.ok(Math.abs(seconds - samples * each) <= 0.006 * seconds + each, `${seconds} s in the flame graph, ${samples} samples of ${each} s in the range`);
    // The same range by the command line holds the same samples.
    const parts = secondsIn(chosen);
    assert.ok(parts, chosen);
    await page.click("#profile-rest");
    const [part, rest] = (await lines(page)).map(samplesIn);
    assert.deepEqual([part, part + rest], [samples, whole]);
  });
});

test("a search colours cells; two ranges are compared", async () => {
  await reading("mixed", {}, async (page) => {
    const picture = () => page.$eval("canvas.heat", (canvas) => canvas.toDataURL());
    const plain = await picture();
    const name = clock.functions.find((found) => !found.name.startsWith("[unknown") && found.own > 0).name;
    await page.fill("#profile-search", name);
    await settle(page);
    assert.match(await page.textContent("#profile-found"), /^[\d.]+\s% of the selection$/);
    assert.doesNotMatch(await page.textContent("#profile-found"), /^0\s%/);
    assert.notEqual(await picture(), plain);
    await shot(page, "mixed-search", true);
    await page.fill("#profile-search", "no function is called so");
    await settle(page);
    assert.equal(await page.textContent("#profile-found"), "No match");
    await page.fill("#profile-search", "");
    await drag(page, 0.1, 0.3);
    await drag(page, 0.5, 0.8, true);
    const [chosen, base] = await lines(page);
    assert.match(chosen, /^Chosen /);
    assert.match(base, /^Base /);
    assert.ok(samplesIn(base) > 0);
    assert.ok(await page.isVisible("#profile-key"));
    await shot(page, "mixed-ranges", true);
    await page.click('[role=tab]:has-text("Functions")');
    assert.ok((await page.locator(".functions tbody tr").count()) > 5);
  });
});

test("events, processes and CPUs filter; every CPU's samples are all of them", async () => {
  await reading("mixed", {}, async (page) => {
    const whole = samplesIn((await lines(page))[0]);
    const cpus = await page.$$eval("#profile-cpu option", (all) => all.map((option) => option.value).filter((value) => value !== ""));
    let sum = 0;
    for (const cpu of cpus) {
      await page.selectOption("#profile-cpu", cpu);
      sum += samplesIn((await lines(page))[0]);
    }
    if (cpus.length > 0) {
      assert.equal(sum, whole);
      await page.selectOption("#profile-cpu", "");
    }
    const sysbench = await page.$$eval("#profile-process option", (all) => all.find((option) => /sysbench/.test(option.textContent))?.value);
    assert.ok(sysbench, "sysbench was sampled");
    await page.selectOption("#profile-process", sysbench);
    const part = samplesIn((await lines(page))[0]);
    assert.ok(part > 0 && part < whole);
    await shot(page, "mixed-process", true);
  });
});

test("two ranges of the recording are compared by pagewise diff", async () => {
  const { PAGEWISE } = process.env;
  const args = ["diff", "perf.data", "perf.data", "--range-a", "0s..4s", "--range-b", "rest", "-o", "mixed-diff.html", "--json"];
  const found = JSON.parse(execFileSync(PAGEWISE, args, { cwd: directory, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"], maxBuffer: 1 << 28 }));
  const { a, b } = found.evidence.profile_diff;
  assert.ok(a.samples > 0 && b.samples > 0);
  await reading("mixed-diff", {}, async (page) => {
    assert.equal(await overflows(page), false);
    assert.ok((await colours(page, "canvas.heat")) > 5);
    await shot(page, "mixed-diff", true);
  });
});
