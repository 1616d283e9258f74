// What axe finds on every kind of page, at two widths and in both themes: nothing serious.
import assert from "node:assert/strict";
import { existsSync, readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { test } from "node:test";
import { directory, reading, settle } from "./browser.mjs";
import { PAGES } from "./pages.mjs";

const axe = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** What is serious or critical by these rules, with the first elements that show it. */
async function serious(page, rules) {
  const { violations } = await page.evaluate((rules) => axe.run(document, { resultTypes: ["violations"], ...rules }), rules);
  const bad = violations.filter(({ impact }) => impact === "serious" || impact === "critical");
  return bad.map(({ id, help, nodes }) => `${id}: ${help}: ${nodes.slice(0, 3).map(({ target }) => target.join(" "))}`);
}

for (const name of PAGES) {
  test(`axe finds nothing serious on ${name}`, async (context) => {
    if (!existsSync(`${directory}/${name}.html`)) return context.skip("this machine can't make it");
    for (const width of [1400, 420])
      await reading(name, { viewport: { width, height: 900 }, colorScheme: "light" }, async (page) => {
        await page.evaluate(() => document.querySelectorAll("details").forEach((details) => (details.open = true)));
        await page.evaluate(axe);
        assert.deepEqual(await serious(page, {}), [], `${width} light`);
        // A theme changes colours and nothing else.
        await page.emulateMedia({ colorScheme: "dark" });
        await page.waitForFunction(() => document.documentElement.dataset.theme === "dark");
        await settle(page);
        assert.deepEqual(await serious(page, { runOnly: ["color-contrast", "link-in-text-block"] }), [], `${width} dark`);
      });
  });
}
