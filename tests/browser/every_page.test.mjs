// Every kind of page at the two widths and in both themes for which the guides are written: the
// same sections in the same order, nothing wider than the window, nothing too pale, no errors.
import assert from "node:assert/strict";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { collisions, directory, lowContrast, overflows, reading, shot, tornTables } from "./browser.mjs";
import { PAGES, TABLES } from "./pages.mjs";

/** The one order of sections, of all documents. */
const ORDER = [
  ...["answer", "also-run-diff", "also-profile-diff", "also-faults", "also-profile", "runs", "findings", "fix", "settings", "proof"],
  ...["tasks", "timeline", "functions", "stacks", "over-time", "diff-over-time", "counters", "diff-counters"],
  ...["memory-growth", "memory", "memory-course", "memory-holders", "touched", "memory-blocks", "memory-beside"],
  ...["causes", "flame", "map", "sites", "latency", "churn", "threads"],
  ...["classes", "patterns", "layers", "contributors", "tail", "paths-timeline", "paths-flame", "locks", "paths", "outside"],
  ...["diff-classes", "explain", "shifts", "diff-functions", "diff-paths"],
  ...["paging", "distances"],
  ...["page-sizes", "balance-course", "simulation-course", "balance-map", "simulation-map", "sweep", "reuse"],
  ...["machine", "method", "missing", "glossary"],
];


for (const name of PAGES) {
  test(`${name} reads well at 1,400 and 420 pixels, in light and dark`, async (context) => {
    if (!existsSync(`${directory}/${name}.html`)) return context.skip("this machine can't make it");
    for (const width of [1400, 420]) {
      for (const colorScheme of ["light", "dark"]) {
        await reading(name, { viewport: { width, height: 900 }, colorScheme }, async (page) => {
          const where = `${width} ${colorScheme}`;
          const shown = await page.$$eval("main > section", (sections) => sections.map((section) => section.id));
          // Tables have sections of their own.
          if (!TABLES.includes(name)) assert.deepEqual(shown, ORDER.filter((id) => shown.includes(id)), where);
          else assert.ok((await page.locator("table.sheet tbody tr").count()) > 0, where);
          assert.equal(await page.locator(".verdict .pill").count(), 1, "one badge");
          assert.equal(await page.locator("main .warn >> text=cannot be shown").count(), 0);
          assert.equal(await overflows(page), false, where);
          assert.deepEqual(await collisions(page), [], where);
          await shot(page, `${name}-${width}-${colorScheme}`, true);
          // These open what is folded.
          assert.deepEqual(await page.evaluate(tornTables), [], where);
          assert.deepEqual(await page.evaluate(lowContrast), [], where);
          assert.equal(await overflows(page), false, `${where}, unfolded`);
        });
      }
    }
  });
}

test("a folded section opens for whoever follows a link to it", async () => {
  await reading("churning", {}, async (page) => {
    const isOpen = () => page.$eval("#method .fold", (fold) => fold.open);
    assert.equal(await isOpen(), false);
    await page.click("nav a:has-text('Method')");
    await page.waitForFunction(() => document.querySelector("#method .fold").open);
    assert.match(await page.innerText("#method"), /Written by/);
  });
});
