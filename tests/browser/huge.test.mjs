// Uses pages about huge pages, created by ./run: huge-simulation.html (mcf on the paper's machine
// with its controller), huge-sweep.html, and huge-balance.html (a live process; only where
// possible).
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { collisions, directory, lowContrast, overflows, reading, settle, shot, tornTables } from "./browser.mjs";

/** Labels of a chart that its accessible name starts with. */
const labels = (page, name) => page.$$eval(`svg.chart[aria-label^="${name}"] text`, (texts) => texts.map((text) => text.textContent));

test("a simulation shows refills by size, huge pages, load, imbalance, the map and curves with every machine's reach", async () => {
  await reading("huge-simulation", {}, async (page) => {
    assert.equal(await overflows(page), false);
    assert.deepEqual(await page.evaluate(lowContrast), []);
    assert.deepEqual(await page.evaluate(tornTables), []);
    assert.deepEqual(await collisions(page), []);
    const captions = await page.$$eval("#simulation-course figcaption", (captions) => captions.map((caption) => caption.textContent));
    for (const wanted of [/refills per second/, /^Huge pages$/, /refills took much time/, /Imbalance/, /Time per access/]) assert.ok(captions.some((caption) => wanted.test(caption)), captions.join("\n"));
    assert.equal(await page.locator('#simulation-course svg[aria-label^="TLB refills"] path.line').count(), 2);
    // The controller splits: the map has both colours, and rows that were huge first.
    assert.ok((await page.locator("#simulation-map .map-huge").count()) > 10);
    assert.ok((await page.locator("#simulation-map .map-small").count()) > (await page.locator("#simulation-map .map-huge").count()));
    const addresses = await labels(page, "Huge pages by address");
    assert.ok(addresses.filter((label) => /^0x[0-9a-f]{6,}$/.test(label)).length >= 3, addresses.join(" "));
    const reaches = (await labels(page, "Misses of mcf")).filter((label) => label.includes("entries"));
    assert.ok(reaches.some((label) => /Loongson 3A4000: 2048 entries, 32\sMiB/.test(label)), reaches.join("\n"));
    assert.match(await page.textContent("#page-sizes"), /guest, huge at both levels/);
    await page.locator("#simulation-map .map-huge").first().hover({ force: true });
    assert.match(await page.textContent(".tooltip"), /huge/);
    await shot(page, "huge-simulation", true);
  });
});

test("axes of lines that are all zero or all alike have labels that differ", async () => {
  await reading("huge-sweep", { colorScheme: "dark" }, async (page) => {
    assert.deepEqual(await page.evaluate(lowContrast), []);
    assert.deepEqual(await page.evaluate(tornTables), []);
    assert.deepEqual(await collisions(page), []);
    const repeated = await page.$$eval("svg.chart", (charts) =>
      charts.flatMap((chart) => {
        return ["end", "middle"].flatMap((axis) => {
          const texts = [...chart.querySelectorAll(`text[text-anchor="${axis}"]:not(.over)`)].map((text) => text.textContent);
          return texts.length === new Set(texts).size ? [] : [`${chart.getAttribute("aria-label")}: ${texts.join(", ")}`];
        });
      }),
    );
    assert.deepEqual(repeated, []);
    assert.match(await page.textContent("#sweep"), /Least with \d+ of \d+/);
    const reaches = (await labels(page, "Misses of gups")).filter((label) => label.includes("entries"));
    for (const machine of ["Skylake", "Golden Cove", "Zen 4", "Neoverse V2"]) assert.ok(reaches.some((label) => label.includes(machine)), reaches.join("\n"));
    await shot(page, "huge-sweep-dark", true);
  });
});

test("a narrow window leaves all of it readable", async () => {
  await reading("huge-simulation", { viewport: { width: 390, height: 800 } }, async (page) => {
    assert.equal(await overflows(page), false);
    assert.deepEqual(await collisions(page), []);
    await shot(page, "huge-simulation-narrow", true);
  });
});

test("a live process shows its verdict, huge pages over time, cost of work and the map of its memory", async (context) => {
  if (!existsSync(`${directory}/huge-balance.html`)) return context.skip("this machine lets nobody change page sizes of processes");
  await reading("huge-balance", {}, async (page) => {
    assert.equal(await overflows(page), false);
    assert.deepEqual(await page.evaluate(lowContrast), []);
    assert.deepEqual(await page.evaluate(tornTables), []);
    assert.deepEqual(await collisions(page), []);
    const [, verdict] = (await page.textContent("h1")).match(/^(?:Huge pages|Inconclusive: huge pages) (help|hurt|make no measurable difference|may or may not help)/);
    const captions = await page.$$eval("#balance-course figcaption", (captions) => captions.map((caption) => caption.textContent));
    for (const wanted of [/CPU time per unit of work/, /^Huge pages$/, /Resident memory/]) assert.ok(captions.some((caption) => wanted.test(caption)), captions.join("\n"));
    // Both sizes took turns; which one wins is the machine's to say.
    for (const size of [".map-huge", ".map-small"]) assert.ok((await page.locator(`#balance-map ${size}`).count()) > 0, `${verdict}: ${size}`);
    // The map goes on while page sizes take turns, the course of figures does not.
    const seconds = (await labels(page, "Huge pages by address")).filter((label) => /^\d+(\.\d)?\ss$/.test(label));
    assert.ok(seconds.length >= 2, seconds.join(" "));
    await page.locator('#balance-course svg[aria-label^="Huge pages"]').hover();
    await settle(page);
    assert.match(await page.textContent(".tooltip"), /huge pages: \d+/);
    await shot(page, "huge-balance", true);
  });
});
