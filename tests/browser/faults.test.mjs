// Uses reports of function_graph traces as a reader would: trace-*.html, created by ./run from
// tests/fixtures/traces.
import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { test } from "node:test";
import { collisions, colours, directory, lowContrast, overflows, reading, settle, shot, tornTables } from "./browser.mjs";

const SECTIONS = ["answer", "findings", "classes", "patterns", "layers", "contributors", "tail", "paths-timeline", "paths-flame", "locks", "paths", "method", "missing", "glossary"];

for (const [width, colorScheme] of [[1280, "light"], [1600, "dark"], [400, "light"]]) {
  test(`a trace's page fits ${width} pixels in ${colorScheme}, every part drawn`, async () => {
    await reading("trace-redis", { viewport: { width, height: 900 }, colorScheme }, async (page) => {
      const shown = await page.$$eval("main > section", (sections) => sections.map((section) => section.id));
      assert.deepEqual(shown, SECTIONS);
      assert.equal(await page.locator("main .warn >> text=cannot be shown").count(), 0);
      assert.equal(await overflows(page), false);
      assert.deepEqual(await collisions(page), []);
      assert.deepEqual(await page.evaluate(lowContrast), []);
      assert.deepEqual(await page.evaluate(tornTables), []);
      await shot(page, `trace-${colorScheme}-${width}`, true);
    });
  });
}

test("the headline tells corrected beside traced", async () => {
  await reading("trace-redis", {}, async (page) => {
    assert.match(await page.textContent("h1"), /^163 page faults in .* different paths; .* On the CPU, a fault takes .* \(.* as traced\)\.$/);
    assert.match(await page.textContent("#answer .tiles"), /as traced/);
    assert.match(await page.textContent("#method"), /Every traced call inside a fault costs 1\.3\d/);
    assert.match(await page.textContent("#method"), /Yes: in every call of 163 faults/);
  });
});

test("the pattern map unfolds, finds and explains a call", async () => {
  await reading("trace-redis", {}, async (page) => {
    const boxes = () => page.locator("#patterns .pattern").count();
    assert.match(await page.textContent("#patterns .way"), /^handle_mm_fault$/);
    const before = await boxes();
    assert.ok(before >= 8, `${before} boxes at first`);
    await page.fill("#pattern-search", "get_page_from_freelist");
    assert.match(await page.textContent("#pattern-found"), /^[2-9] places$/);
    assert.ok((await boxes()) > before, "the way to each place is unfolded");
    const marked = page.locator("#patterns .pattern.marked");
    assert.ok((await marked.count()) >= 2);
    await marked.first().click();
    assert.match(await page.textContent("#patterns .way"), /^handle_mm_fault → .* → get_page_from_freelist$/);
    assert.match(await page.textContent("#patterns .parts"), /get_page_from_freelist itself/);
    assert.ok((await page.locator("#patterns .call-details svg.chart .kfill").count()) > 2, "its times are drawn");
    await marked.first().hover();
    assert.match(await page.textContent(".tooltip"), /faults \(.*without tracing/s);
    await page.focus("#patterns .pattern.selected");
    await page.keyboard.press("ArrowLeft");
    await page.keyboard.press("Enter");
    assert.doesNotMatch(await page.textContent("#patterns .way"), /get_page_from_freelist$/);
    await page.click("#patterns button:has-text('Main paths')");
    assert.equal(await boxes(), before);
    await page.selectOption("#patterns select", "write_reuse");
    assert.match(await page.textContent("#patterns .patterns"), /do_wp_page/);
    assert.doesNotMatch(await page.textContent("#patterns .patterns"), /wp_page_copy/);
  });
});

test("parts of a call add up to it", async () => {
  await reading("trace-redis", {}, async (page) => {
    const shares = await page.$$eval("#patterns .parts tbody tr", (rows) => rows.map((row) => [2, 3, 4].map((at) => row.querySelectorAll("td")[at].textContent)));
    const value = (text) => (text.includes("<") ? 0 : text.startsWith("−") ? -1 : 1) * parseFloat(text.replace(/[^\d.]/g, "") || "0");
    for (const column of [0, 1, 2]) {
      const sum = shares.reduce((all, row) => all + value(row[column]), 0);
      assert.ok(Math.abs(sum - 100) < 2, `column ${column} adds up to ${sum}`);
    }
  });
});

test("histograms have both axes and both times", async () => {
  await reading("trace-redis", {}, async (page) => {
    const paths = () => page.$$eval("#layers .layer:first-child .kfill", (bars) => bars.map((bar) => bar.getAttribute("x")).join());
    assert.equal(await page.locator("#layers .layer:first-child figure").count(), 2);
    assert.match(await page.textContent("#layers .layer:first-child"), /µs · \d+\s%/);
    const log = await paths();
    await page.click("#layers .choice button[data-value=linear]");
    await settle(page);
    assert.notEqual(await paths(), log);
    await page.selectOption("#layers select", "write_copy");
    await settle(page);
    assert.ok((await page.locator("#layers [data-layer=copying] .kfill").count()) > 0);
    await page.click("#layers details summary");
    await settle(page);
    assert.ok((await page.locator("#layers details .layer").count()) > 0);
    assert.deepEqual(await collisions(page), []);
  });
});

test("the flame graph weighs time", async () => {
  await reading("trace-redis", {}, async (page) => {
    assert.ok((await colours(page, "#paths-flame canvas")) > 10);
    await page.fill("#flame-search", "do_wp_page");
    assert.match(await page.textContent("#flame-found"), /%\sof the time in [1-9] box/);
    const flame = page.locator("#paths-flame canvas");
    await flame.hover({ position: { x: 300, y: 30 } });
    assert.match(await page.textContent(".tooltip"), /handle_mm_fault.*ms · 100\s%/s);
    const corrected = await page.$eval("#paths-flame canvas", (canvas) => canvas.toDataURL());
    await page.click("#paths-flame .choice button[data-value=raw]");
    await settle(page);
    assert.notEqual(await page.$eval("#paths-flame canvas", (canvas) => canvas.toDataURL()), corrected);
  });
});

test("a trace without faults says what to trace, and shows no empty sections", async () => {
  await reading("trace-none", {}, async (page) => {
    assert.match(await page.textContent("h1"), /No complete page fault/);
    assert.match(await page.textContent(".verdict"), /Trace one of exc_page_fault/);
    const shown = await page.$$eval("main > section", (sections) => sections.map((section) => section.id));
    assert.deepEqual(shown, ["answer", "method", "glossary"]);
  });
});

test("what a trace lacks is said with the reason", async () => {
  await reading("trace-redis", {}, async (page) => {
    assert.match(await page.textContent("#locks"), /No wait for the mmap lock of 0\.1 ms or more/);
  });
});

test("hostile names stay text", async () => {
  await reading("trace-hostile", {}, async (page) => {
    assert.equal(await page.evaluate(() => window.pwned), undefined);
    assert.equal(await page.locator("#report img, #report script, #report b").count(), 0);
    assert.match(await page.textContent(".command"), /<img src=x onerror=window\.pwned=1>\.txt/);
  });
});

test("a page stays small", () => {
  for (const trace of ["redis", "tpcc", "contend"]) assert.ok(statSync(`${directory}/trace-${trace}.html`).size < 600_000, trace);
});
