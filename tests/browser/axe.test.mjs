// What axe finds on every kind of page, at two widths and in both themes: nothing serious.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import { directory, reading } from "./browser.mjs";
import { PAGES } from "./pages.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What is serious or critical, with the first elements that show it. */
async function serious(page) {
  await page.evaluate(() => document.querySelectorAll("details").forEach((details) => (details.open = true)));
  await page.evaluate(axe);
  const { violations } = await page.evaluate(() => axe.run(document, { resultTypes: ["violations"] }));
  const bad = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  return bad.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.slice(0, 3).map(({ target }) => target.join(" "))}`);
}

for (const name of PAGES) {
  test(`axe finds nothing serious on ${name}`, async (context) => {
    if (!existsSync(`${directory}/${name}.html`)) return context.skip("this machine can't make it");
    for (const width of [1400, 420])
      for (const colorScheme of ["light", "dark"])
        await reading(name, { viewport: { width, height: 900 }, colorScheme }, async (page) => {
          assert.deepEqual(await serious(page), [], `${width} ${colorScheme}`);
        });
  });
}
