// Uses pages of generated profiles, created by ./run: profile.html and profile-large.html of one
// load, profile-deep.html, profile-hostile.html, profile-crowd.html.
import assert from "node:assert/strict";
import { statSync } from "node:fs";
import { test } from "node:test";
import { colours, directory, lowContrast, overflows, reading, settle, shot, tornTables } from "./browser.mjs";

const LEFT = 58;
const RANGE = "#profile-range";

/** Drags over a heat map from one share of its width and height to another; 0 is left and bottom. */
async function drag(page, from, to, { second = false, map = 0 } = {}) {
  const canvas = page.locator("canvas.heat").nth(map);
  await canvas.scrollIntoViewIfNeeded();
  const box = await canvas.boundingBox();
  const columns = Number(await page.locator("#profile-column").inputValue());
  const seconds = 20.27; // of a load of 160,000 samples, from a whole second on
  const wide = Math.min(72, (box.width - LEFT) / Math.ceil(seconds / (columns / 1e9)));
  const tall = box.height - 22;
  const point = ([column, share]) => [box.x + LEFT + (column + 0.5) * wide, box.y + tall * (1 - share) - 3];
  if (second) await page.keyboard.down("Shift");
  await page.mouse.move(...point(from));
  await page.mouse.down();
  await page.mouse.move(...point(to), { steps: 4 });
  await page.mouse.up();
  if (second) await page.keyboard.up("Shift");
}

const rangeText = (page) => page.textContent(RANGE);
/** The first number of samples in the words about what is chosen. */
const samplesIn = (text) => Number(/([\d,]+) samples/.exec(text)[1].replaceAll(",", ""));

test("a range of the heat map is a flame graph of exactly its samples", async () => {
  await reading("profile", {}, async (page) => {
    assert.equal(await overflows(page), false);
    assert.deepEqual(await page.evaluate(lowContrast), []);
    assert.deepEqual(await page.evaluate(tornTables), []);
    assert.match(await page.textContent("main"), /5\.\d\d of 8/);
    assert.ok((await colours(page, "canvas.heat")) > 20);
    await shot(page, "profile", true);
    const whole = samplesIn(await rangeText(page));
    // Columns are whole seconds of the clock, which starts at a quarter: column 6 is 5.75 to 6.75 s.
    await drag(page, [6, 0], [6, 0.99]);
    const part = samplesIn(await rangeText(page));
    assert.match(await rangeText(page), /^5\.75\ss to 6\.75\ss: [\d,]+ samples, [\d.]+\ss, 5\.\d\d CPUs in use, [45]\.\d\s% of all$/);
    await page.hover("#over-time canvas.flame", { position: { x: 200, y: 10 } });
    const [, seconds] = /^all([\d.]+)\ss · 100\s%/.exec(await page.textContent(".tooltip"));
    // The flame graph's root is what the range says, and the samples of 999 per second weigh that.
    assert.ok(Math.abs(Number(seconds) - part / 999) < 0.01, `${seconds} s, ${part} samples`);
    await page.click("#profile-rest");
    const [chosen, rest] = (await page.$$eval(`${RANGE} p`, (lines) => lines.map((line) => line.textContent))).map(samplesIn);
    assert.deepEqual([chosen, chosen + rest], [part, whole]);
    await page.click("#profile-alone");
    await page.click("#profile-whole");
    assert.match(await rangeText(page), /^Whole recording/);
  });
});

test("idle CPUs are left out until they are asked for", async () => {
  await reading("profile", {}, async (page) => {
    const busy = samplesIn(await rangeText(page));
    await page.click("#profile-idle");
    assert.ok(samplesIn(await rangeText(page)) > busy * 1.3);
    assert.match(await rangeText(page), /8\.00 CPUs/);
    await page.fill("#profile-search", "default_idle");
    assert.match(await page.textContent("#profile-found"), /^[23]\d\s% of the selection$/);
    await page.click("#profile-idle");
    assert.match(await page.textContent("#profile-found"), /^0\s%/);
  });
});

test("a search colours the cells and boxes; events, processes, threads and CPUs filter", async () => {
  await reading("profile", { colorScheme: "dark" }, async (page) => {
    assert.deepEqual(await page.evaluate(lowContrast), []);
    assert.deepEqual(await page.evaluate(tornTables), []);
    const picture = () => page.$eval("canvas.heat", (canvas) => canvas.toDataURL());
    const plain = await picture();
    await page.fill("#profile-search", "copy_user");
    assert.match(await page.textContent("#profile-found"), /^[\d.]+\s% of the selection$/);
    await settle(page);
    assert.notEqual(await picture(), plain);
    await shot(page, "profile-search", true);
    await page.fill("#profile-search", "");
    const whole = samplesIn(await rangeText(page));
    await page.selectOption("#profile-process", { label: "redis-server 200" });
    const redis = samplesIn(await rangeText(page));
    assert.ok(redis < whole / 2 && redis > 0);
    await page.selectOption("#profile-thread", { index: 1 });
    assert.ok(samplesIn(await rangeText(page)) < redis);
    await page.selectOption("#profile-process", "");
    await page.selectOption("#profile-cpu", "3");
    const cpu = samplesIn(await rangeText(page));
    assert.ok(cpu > whole / 9 && cpu < whole / 6);
    await page.selectOption("#profile-cpu", "");
    await page.fill("#profile-task", "nginx");
    await page.press("#profile-task", "Enter");
    assert.ok(samplesIn(await rangeText(page)) < whole / 2);
    await page.fill("#profile-task", "");
    await page.press("#profile-task", "Enter");
    await page.selectOption("#profile-event", "off-cpu (blocked)");
    assert.match(await rangeText(page), /^Whole recording: [\d,]+ samples, [\d.]+\ss$/);
    await page.selectOption("#profile-event", "page-faults");
    assert.match(await rangeText(page), /samples, [\d,]+ events$/);
    await page.selectOption("#profile-event", "cpu-clock");
    assert.equal(samplesIn(await rangeText(page)), whole);
    await page.selectOption("#profile-column", "5000000000");
    await page.selectOption("#profile-row", "100000000");
    await settle(page);
    assert.notEqual(await picture(), plain);
    assert.equal(samplesIn(await rangeText(page)), whole);
  });
});

test("two ranges are a differential flame graph", async () => {
  await reading("profile", {}, async (page) => {
    // The stall is at two sevenths: 5.7 to 6.7 s.
    await drag(page, [6, 0], [6, 0.99]);
    await drag(page, [10, 0], [13, 0.99], { second: true });
    const [chosen, base] = await page.$$eval(`${RANGE} p`, (lines) => lines.map((line) => line.textContent));
    assert.match(chosen, /^Chosen 5\.75\ss to 6\.75\ss/);
    assert.match(base, /^Base 9\.75\ss to 13\.[78]\ss/);
    assert.ok(await page.isVisible("#profile-key"));
    await page.click('[role=tab]:has-text("Functions")');
    const first = await page.textContent(".functions tbody tr");
    assert.match(first, /copy_user_generic|tcp_recvmsg/);
    assert.match(first, /[+×]/);
    await shot(page, "profile-ranges", true);
    await page.click('#profile-range ~ * button:has-text("by share"), button:has-text("by share")');
    assert.match(await page.textContent(".functions tbody tr"), /%/);
    await page.click("#profile-alone");
    assert.ok(await page.isHidden("#profile-key"));
  });
});

test("callers and callees of a function, from the list and from the flame graph", async () => {
  await reading("profile", {}, async (page) => {
    await page.click('[role=tab]:has-text("Functions")');
    await page.fill("#profile-search", "tcp_recvmsg");
    await page.click(".functions button:has-text('tcp_recvmsg')");
    const words = await page.textContent("[role=tabpanel]:not([data-off]) .lead");
    assert.match(words, /^tcp_recvmsg \[kernel\]: [\d.]+\ss, [\d.]+\s% of all$/);
    assert.equal(await page.locator("[role=tabpanel]:not([data-off]) canvas.flame").count(), 2);
    await shot(page, "profile-sandwich", true);
    await page.click('[role=tab]:has-text("Flame graph")');
    await page.focus("#over-time canvas.flame");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    assert.ok(await page.isVisible("#profile-zoom"));
    await page.click("#profile-sandwich");
    assert.match(await page.textContent("[role=tabpanel]:not([data-off]) .lead"), /push_back/);
    await page.click('[role=tab]:has-text("Processes and CPUs")');
    assert.match(await page.textContent("[role=tabpanel]:not([data-off])"), /redis-server 200/);
  });
});

test("keys choose on the map and go through the flame graph", async () => {
  await reading("profile", {}, async (page) => {
    await page.focus("canvas.heat");
    await page.keyboard.press("ArrowRight");
    const cell = samplesIn(await rangeText(page));
    await page.keyboard.press("Shift+ArrowRight");
    assert.ok(samplesIn(await rangeText(page)) > cell * 20);
    await page.keyboard.press("Escape");
    assert.match(await rangeText(page), /^Whole recording/);
    await page.keyboard.press("/");
    assert.equal(await page.evaluate(() => document.activeElement.id), "profile-search");
  });
});

test("a narrow window keeps everything within it", async () => {
  for (const colorScheme of ["light", "dark"]) {
    await reading("profile", { viewport: { width: 390, height: 800 }, colorScheme }, async (page) => {
      assert.equal(await overflows(page), false);
      await shot(page, `profile-narrow-${colorScheme}`, true);
    });
  }
});

test("a large profile stays small and quick", async () => {
  await reading("profile-large", {}, async (page) => {
    const bytes = statSync(`${directory}/profile-large.html`).size;
    const each = (bytes - 250_000) / 1_000_000;
    console.log(`profile-large.html: ${bytes} bytes, 1,000,000 samples of CPU time: ${each.toFixed(2)} bytes each over a shell of 250,000`);
    assert.ok(each <= 5, `${each} bytes per sample`);
    await drag(page, [1, 0], [2, 0.99]);
    assert.match(await rangeText(page), /of all$/);
  });
});

test("stacks of ten thousand frames are drawn row by row", async () => {
  await reading("profile-deep", {}, async (page) => {
    const tall = await page.$eval(".flame-room", (room) => room.offsetHeight);
    assert.ok(tall > 10_000 * 20, `${tall}`);
    const canvas = await page.$eval("#over-time canvas.flame", (canvas) => canvas.height);
    assert.ok(canvas <= 1000, `${canvas}`);
    await page.$eval(".deep", (scroller) => scroller.scrollTo(0, scroller.scrollHeight));
    await settle(page);
    await page.hover("#over-time canvas.flame", { position: { x: 30, y: canvas - 10 } });
    assert.match(await page.textContent(".tooltip"), /leaf/);
    await page.click('[role=tab]:has-text("Functions")');
    await page.click(".functions button:has-text('walk')");
    assert.match(await page.textContent("[role=tabpanel]:not([data-off]) .lead"), /100\s%/);
    await shot(page, "profile-deep");
  });
});

test("names that would like to be markup stay text", async () => {
  await reading("profile-hostile", {}, async (page) => {
    for (const tab of ["Functions", "Processes and CPUs", "Flame graph"]) await page.click(`[role=tab]:has-text("${tab}")`);
    await page.click('[role=tab]:has-text("Functions")');
    await page.click(".functions button >> nth=0");
    await page.hover("canvas.heat", { position: { x: 90, y: 60 } });
    await page.hover("canvas.lanes", { position: { x: 90, y: 30 } });
    await page.fill("#profile-search", "<img");
    assert.match(await page.textContent("#profile-found"), /%/);
    assert.equal(await page.evaluate(() => window.pwned), undefined);
    assert.equal(await page.locator("#report b, #report i, #report img, #report script").count(), 0);
    assert.doesNotMatch(await page.textContent("#report"), /[\u0000-\u0008\u001b\u202e]/);
    assert.equal(await overflows(page), false);
    await shot(page, "profile-hostile", true);
  });
});

test("a million threads do not hang the lists", async () => {
  await reading("profile-crowd", {}, async (page) => {
    assert.ok((await page.locator("#profile-thread option").count()) <= 201);
    const whole = samplesIn(await rangeText(page));
    assert.equal(whole, 1_200_000);
    const begin = Date.now();
    await page.fill("#profile-task", "999999");
    await page.press("#profile-task", "Enter");
    assert.equal(samplesIn(await rangeText(page)), 1);
    await page.fill("#profile-task", "worker-77");
    await page.press("#profile-task", "Enter");
    assert.ok(samplesIn(await rangeText(page)) < whole / 10);
    await page.click('[role=tab]:has-text("Processes and CPUs")');
    assert.ok(Date.now() - begin < 10_000, `${Date.now() - begin} ms`);
  });
});
