// Opens reports in a real browser, from file://. REPORTS names the directory that contains them;
// screenshots are written there. Shared by the test files.
import assert from "node:assert/strict";
import { before, after } from "node:test";
import { pathToFileURL } from "node:url";
import { chromium } from "playwright-core";

export const directory = process.env.REPORTS;
assert.ok(directory, "REPORTS names the directory with the reports");
const executablePath = process.env.CHROMIUM ?? "/usr/bin/chromium";
const ARGUMENTS = [
  "--headless",
  "--no-sandbox",
  "--disable-gpu",
  "--disable-quic",
  "--no-first-run",
  "--disable-background-networking",
  "--disable-component-update",
  "--disable-sync",
];

export let browser;
before(async () => {
  // Playwright gives each launch a fresh user data directory and removes it at the end.
  browser = await chromium.launch({ executablePath, args: ARGUMENTS });
});
after(() => browser.close());

/** A page with its report open; fails at the end if it asked for anything or complained. */
export async function reading(name, options, use) {
  const context = await browser.newContext({ viewport: { width: 1280, height: 800 }, ...options });
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const page = await context.newPage();
  const address = pathToFileURL(`${directory}/${name}.html`).href;
  const complaints = [];
  page.on("console", (message) => complaints.push(`console ${message.type()}: ${message.text()}`));
  page.on("pageerror", (error) => complaints.push(`error: ${error.message}`));
  page.on("request", (request) => {
    if (request.url() !== address) complaints.push(`request: ${request.url()}`);
  });
  await page.goto(address);
  await page.waitForSelector("main h1");
  await settle(page);
  await use(page);
  assert.deepEqual(complaints, []);
  await context.close();
}

/** Two frames: sizes are observed in one, drawn by the next. */
export const settle = (page) =>
  page.evaluate(() => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 50)))));

/** A picture of the page, for whoever named a directory. */
export const shot = async (page, name, fullPage = false) => {
  if (process.env.SHOTS) await page.screenshot({ path: `${directory}/${name}.png`, fullPage });
};

/** Number of different colours on a canvas: an empty plot has one. */
export const colours = (page, selector) =>
  page.$eval(selector, (canvas) => {
    const { data } = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height);
    const seen = new Set();
    for (let at = 0; at < data.length; at += 4) seen.add((data[at] << 16) | (data[at + 1] << 8) | data[at + 2]);
    return seen.size;
  });

/** Whether the page is wider than its window, as happens when a part does not wrap. */
export const overflows = (page) => page.evaluate(() => document.documentElement.scrollWidth > innerWidth);

/** SVG labels of one chart that lie over each other. */
export const collisions = (page) =>
  page.$$eval("svg.chart", (charts) =>
    charts.flatMap((chart) => {
      const boxes = [...chart.querySelectorAll("text")].map((text) => [text.textContent, text.getBoundingClientRect()]);
      return boxes.flatMap(([a, first], index) =>
        boxes
          .slice(index + 1)
          .filter(([, second]) => first.left < second.right - 1 && second.left < first.right - 1 && first.top < second.bottom - 3 && second.top < first.bottom - 3)
          .map(([b]) => `${chart.getAttribute("aria-label")}: ${a} / ${b}`),
      );
    }),
  );

/** Tables whose heads don't stand above their columns; folded sections are opened to see theirs. Runs in the page. */
export function tornTables() {
  for (const fold of document.querySelectorAll(".fold")) fold.open = true;
  const torn = (table) => {
    const [head, row] = ["thead tr", "tbody tr"].map((part) => table.querySelector(part)?.getBoundingClientRect());
    // On narrow screens tables of answers are lists, whose rows name their columns themselves.
    return head && row && head.width > 0 && row.width > 0 && (Math.abs(head.left - row.left) > 1 || Math.abs(head.right - row.right) > 1 || head.bottom > row.top + 1);
  };
  return [...document.querySelectorAll("main table")].filter(torn).map((table) => table.caption?.textContent ?? table.textContent.slice(0, 80));
}

/** Texts whose contrast is below 4.5, or 3 where large (WCAG 2.2, 1.4.3). Runs in the page. */
export function lowContrast() {
  const channels = (color) => color.match(/[\d.]+/g).map(Number);
  const luminance = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) => (c / 255 <= 0.03928 ? c / 255 / 12.92 : ((c / 255 + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const ground = (element) => {
    for (let at = element; at; at = at.parentElement) {
      const color = getComputedStyle(at).backgroundColor;
      if (!/, 0\)$|transparent/.test(color)) return channels(color);
    }
    return [255, 255, 255];
  };
  const bad = [];
  const walker = document.createTreeWalker(document.querySelector("#report"), NodeFilter.SHOW_TEXT);
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (node.textContent.trim() === "" || element.closest("canvas, .tooltip")) continue;
    const style = getComputedStyle(element);
    const ink = channels(element.closest("svg") ? style.fill : style.color);
    const [a, b] = [luminance(ink), luminance(ground(element.closest("svg")?.parentElement ?? element))].sort((x, y) => y - x);
    const isLarge = parseFloat(style.fontSize) >= 24 || (parseFloat(style.fontSize) >= 18.7 && Number(style.fontWeight) >= 700);
    if ((a + 0.05) / (b + 0.05) < (isLarge ? 3 : 4.5)) bad.push(`${node.textContent.slice(0, 40)}: ${((a + 0.05) / (b + 0.05)).toFixed(2)}`);
  }
  return [...new Set(bad)];
}
