// Uses the page of a generated profile, profile.html of 10,000 samples and profile-large.html of
// 1,000,000, which ./run makes.
import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { test } from "node:test";
import { colours, directory, lowContrast, overflows, reading, settle, shot } from "./browser.mjs";

/** Drags over the heat map from one share of its drawn width and height to another. */
async function drag(page, columns, from, to) {
  const canvas = page.locator("canvas.heat");
  await canvas.scrollIntoViewIfNeeded();
  const box = await canvas.boundingBox();
  const wide = Math.min(26, (box.width - 58) / columns);
  const point = ([column, share]) => [box.x + 58 + (column + 0.5) * wide, box.y + 300 * (1 - share) - 3];
  await page.mouse.move(...point(from));
  await page.mouse.down();
  await page.mouse.move(...point(to), { steps: 4 });
  await page.mouse.up();
}

test("a range of the heat map is a flame graph of exactly its samples", async () => {
  await reading("profile", {}, async (page) => {
    assert.equal(await overflows(page), false);
    assert.deepEqual(await page.evaluate(lowContrast), []);
    assert.match(await page.textContent("h1"), /^10,000 samples in 20\.0\ss$/);
    assert.ok((await colours(page, "canvas.heat")) > 3);
    await shot(page, "profile", true);
    assert.match(await page.textContent("#heat-range"), /^Whole recording: 10,000 samples/);
    // The clock begins at a quarter of a second: column 6 is 5.75 to 6.75 s.
    await drag(page, 21, [6, 0], [6, 0.99]);
    assert.match(await page.textContent("#heat-range"), /^5\.75\ss to 6\.75\ss: 500 samples, 500 samples, 5\.0\s% of all$/);
    await page.hover("#heat canvas.flame", { position: { x: 200, y: 10 } });
    assert.match(await page.textContent(".tooltip"), /^all.*500 samples · 100\s%/s);
    await page.fill("#flame-search", "copy_user");
    assert.match(await page.textContent("#flame-found"), /%\sof the weight in 1 box/);
    await page.click("#heat button:has-text('Whole recording')");
    assert.match(await page.textContent("#heat-range"), /^Whole recording/);
  });
});

test("a search colours the cells, threads and scales filter", async () => {
  await reading("profile", { colorScheme: "dark" }, async (page) => {
    const picture = () => page.$eval("canvas.heat", (canvas) => canvas.toDataURL());
    const plain = await picture();
    await page.fill("#heat-search", "copy_user");
    assert.match(await page.textContent("#heat-found"), /^1\.[5-9]\s% of all$/);
    await settle(page);
    assert.notEqual(await picture(), plain);
    await shot(page, "profile-search");
    await page.selectOption("#heat-thread", "1");
    assert.match(await page.textContent("#heat-range"), /^Whole recording: 3,[2-4]\d\d samples/);
    await page.click("#heat .choice button[data-value=fine]");
    await settle(page);
    assert.notEqual(await picture(), plain);
    assert.equal(await page.locator("#report b").count(), 0, "names stay text");
  });
});

test("a large profile stays small and quick", async () => {
  await reading("profile-large", {}, async (page) => {
    const bytes = statSync(`${directory}/profile-large.html`).size;
    console.log(`profile-large.html: ${bytes} bytes, 1,000,000 samples`);
    assert.ok(bytes < 250_000 + 5_000_000, `${bytes} bytes`);
    await drag(page, 21, [3, 0], [9, 0.99]);
    assert.match(await page.textContent("#heat-range"), /: 3[45]\d,\d\d\d samples/);
  });
});
