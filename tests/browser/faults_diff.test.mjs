// Uses the page of two function_graph traces as a reader would: trace-diff.html, created by ./run
// from tests/fixtures/traces.
import assert from "node:assert/strict";
import { test } from "node:test";
import { collisions, lowContrast, overflows, reading, shot, tornTables } from "./browser.mjs";

for (const [width, colorScheme] of [[1280, "light"], [1600, "dark"], [400, "light"]]) {
  test(`two traces' page fits ${width} pixels in ${colorScheme}, every part drawn`, async () => {
    await reading("trace-diff", { viewport: { width, height: 900 }, colorScheme }, async (page) => {
      assert.equal(await page.locator("main .warn >> text=cannot be shown").count(), 0);
      assert.equal(await overflows(page), false);
      assert.deepEqual(await collisions(page), []);
      assert.deepEqual(await page.evaluate(lowContrast), []);
      assert.deepEqual(await page.evaluate(tornTables), []);
      await shot(page, `trace-diff-${colorScheme}-${width}`, true);
    });
  });
}

test("both medians are told, and that too few faults were there to test", async () => {
  await reading("trace-diff", {}, async (page) => {
    assert.match(await page.textContent("h1"), /The median fault takes [\d.]+\s?.s in A, [\d.]+\s?.s in B; 163 and 106 faults\. Not tested/u);
    assert.equal(await page.locator("#answer .tiles > *").count(), 2);
    assert.match(await page.textContent("#findings"), /tests need 128 faults in each trace/);
    assert.ok((await page.locator("svg.chart").count()) > 0, "distributions are drawn");
  });
});
