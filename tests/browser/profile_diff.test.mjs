// Uses the page of two generated profiles, created by ./run: profile-diff.html.
import assert from "node:assert/strict";
import { test } from "node:test";
import { colours, lowContrast, overflows, reading, settle, shot, tornTables } from "./browser.mjs";

test("what grew is told with its interval, the setting behind it, both maps and one flame graph", async () => {
  await reading("profile-diff", {}, async (page) => {
    assert.equal(await overflows(page), false);
    assert.deepEqual(await page.evaluate(lowContrast), []);
    assert.deepEqual(await page.evaluate(tornTables), []);
    assert.match(await page.textContent("h1"), /grew in stalled/);
    const rows = await page.$$eval("#functions tbody tr", (rows) => rows.map((row) => row.textContent));
    assert.ok(rows.some((row) => /blk_mq_submit_bio.*\+[\d.]+.*sure/.test(row)), rows.join("\n"));
    assert.match(await page.textContent("#settings tbody tr"), /block\.nvme0n1\.scheduler.*none.*kyber.*touches/);
    assert.match(await page.textContent("#diff-counters"), /instructions per cycle/);
    assert.equal(await page.locator("canvas.heat").count(), 2);
    assert.ok((await colours(page, "canvas.flame")) > 10);
    await shot(page, "profile-diff", true);
  });
});

test("ranges of either side are compared, searched and filtered", async () => {
  await reading("profile-diff", { colorScheme: "dark" }, async (page) => {
    assert.deepEqual(await page.evaluate(lowContrast), []);
    assert.deepEqual(await page.evaluate(tornTables), []);
    await shot(page, "profile-diff-dark", true);
    const lines = () => page.$$eval("#profile-range p", (lines) => lines.map((line) => line.textContent));
    const [chosen, base] = await lines();
    assert.match(chosen, /^Chosen B: whole: [\d,]+ samples/);
    assert.match(base, /^Base A: whole: [\d,]+ samples/);
    await page.locator("canvas.heat").nth(0).focus();
    await page.keyboard.press("ArrowRight");
    await page.keyboard.press("Shift+ArrowRight");
    assert.match((await lines())[1], /^Base A: \S+\s\S+ to \S+\s\S+: [\d,]+ samples/);
    assert.equal((await lines())[0], chosen);
    await page.click("#profile-whole");
    assert.deepEqual(await lines(), [chosen, base]);
    await page.selectOption("#profile-process", { label: "nginx" });
    assert.notEqual((await lines())[0], chosen);
    await page.fill("#profile-search", "blk_mq_submit_bio");
    await settle(page);
    assert.match(await page.textContent("#profile-found"), /%/);
    await page.hover("#diff-over-time canvas.flame", { position: { x: 200, y: 10 } });
    assert.match(await page.textContent(".tooltip"), /CPUs? against/);
  });
});

test("a narrow window puts one map below the other", async () => {
  await reading("profile-diff", { viewport: { width: 390, height: 800 } }, async (page) => {
    assert.equal(await overflows(page), false);
    await shot(page, "profile-diff-narrow", true);
  });
});
