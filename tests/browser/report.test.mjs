// Uses reports of recordings as a reader would: churning.html, hostile.html, bare.html,
// healthy.html and large.html, created by ./run.
import assert from "node:assert/strict";
import { readFileSync, statSync } from "node:fs";
import { test } from "node:test";
import { pathToFileURL } from "node:url";
import { deflateSync, inflateSync } from "node:zlib";
import { browser, collisions, colours, directory, lowContrast, overflows, reading, settle, shot, tornTables } from "./browser.mjs";

test("the first screen answers", async () => {
  await reading("churning", {}, async (page) => {
    const verdict = await page.textContent("h1");
    assert.match(verdict, /returned to the kernel, then requested again/);
    const firstScreen = await page.evaluate(() =>
      [...document.querySelectorAll("h1, .tile, #answer .cpu"), ...["#findings h2", "#fix h2", "#fix pre"].map((part) => document.querySelector(part))].every(
        (part) => part.getBoundingClientRect().bottom <= 800,
      ),
    );
    assert.ok(firstScreen, "verdict, figures, why and the settings to copy are on the first screen");
    assert.match(await page.textContent("#fix pre"), /GLIBC_TUNABLES=glibc\.malloc\.trim_threshold=1048576/);
    assert.match(await page.textContent("#proof"), /Proved: 7\.9 times as fast/);
    assert.ok((await colours(page, "canvas.flame")) > 20);
    assert.ok((await colours(page, "canvas.map")) > 3);
    await shot(page, "light-1280");
  });
});

for (const [width, colorScheme] of [[1280, "dark"], [1280, "light"], [400, "light"], [400, "dark"]]) {
  test(`fits ${width} pixels in ${colorScheme} without overlaps`, async () => {
    await reading("churning", { viewport: { width, height: 800 }, colorScheme }, async (page) => {
      assert.equal(await overflows(page), false);
      assert.deepEqual(await collisions(page), []);
      await shot(page, `${colorScheme}-${width}-full`, true);
    });
  });
}

test("text stands out from its ground (WCAG AA)", async () => {
  for (const colorScheme of ["light", "dark"]) {
    await reading("churning", { colorScheme }, async (page) => {
      assert.deepEqual(await page.evaluate(lowContrast), []);
      assert.deepEqual(await page.evaluate(tornTables), []);
    });
  }
});

test("a link shows what its reader chose", async () => {
  await reading("churning", {}, async (page) => {
    await page.fill("#flame-search", "deflateinit2_");
    const found = await page.textContent("#flame-found");
    const link = page.url();
    assert.match(link, /#view=flame\.\d+\.deflateinit2_$/);
    const other = await page.context().newPage();
    await other.goto(link);
    await other.waitForSelector("main h1");
    await settle(other);
    assert.equal(await other.inputValue("#flame-search"), "deflateinit2_");
    assert.equal(await other.textContent("#flame-found"), found);
  });
});

test("tables and plots can be saved", async () => {
  const context = await browser.newContext({ acceptDownloads: true });
  const page = await context.newPage();
  await page.goto(pathToFileURL(`${directory}/churning.html`).href);
  await page.waitForSelector("main h1");
  await settle(page);
  const saved = async (part, kind) => {
    const [download] = await Promise.all([page.waitForEvent("download"), page.click(`#${part} .save button:text-is("${kind}")`)]);
    return [download.suggestedFilename(), readFileSync(await download.path())];
  };
  const [name, table] = await saved("causes", "CSV");
  assert.match(name, /^pagewise-causes.*\.csv$/);
  assert.ok(table.toString("utf8").split("\r\n").length > 3, table.toString("utf8"));
  const [, rows] = await saved("causes", "JSON");
  assert.ok(JSON.parse(rows.toString("utf8")).every((row) => "Cause" in row), rows.toString("utf8"));
  const [, picture] = await saved("flame", "PNG");
  assert.equal(picture.subarray(1, 4).toString("latin1"), "PNG");
  await context.close();
});

test("the flame graph zooms, searches and obeys keys", async () => {
  await reading("churning", {}, async (page) => {
    await page.fill("#flame-search", "deflateinit2_");
    assert.match(await page.textContent("#flame-found"), /^70\s%\sof the faults in 1 box$/);
    await page.fill("#flame-search", "no such name");
    assert.equal(await page.textContent("#flame-found"), "No match");
    await page.fill("#flame-search", "");
    assert.equal(await page.textContent("#flame-found"), "");

    const flame = page.locator("canvas.flame");
    await flame.scrollIntoViewIfNeeded();
    const before = await flame.boundingBox();
    await flame.hover({ position: { x: 200, y: 12 * 20 + 10 } });
    assert.match(await page.textContent(".tooltip"), /deflateInit2_.*530,300 faults · 70\s%/);
    await flame.click({ position: { x: 200, y: 12 * 20 + 10 } });
    assert.equal(await page.isVisible("#flame-reset"), true);
    await flame.hover({ position: { x: before.width - 20, y: 12 * 20 + 10 } });
    assert.match(await page.textContent(".tooltip"), /deflateInit2_/, "the zoomed box fills the width");
    await page.click("#flame-reset");
    assert.equal(await page.isVisible("#flame-reset"), false);

    await flame.focus();
    await page.keyboard.press("Escape");
    for (let step = 0; step < 12; step += 1) await page.keyboard.press("ArrowDown");
    assert.match(await page.textContent("#flame .status"), /^deflateInit2_ \(libz\.so\.1\.2\.13\): 530,300 faults/);
    await page.keyboard.press("ArrowRight");
    assert.match(await page.textContent("#flame .status"), /^deflate \(/);
    await page.keyboard.press("Enter");
    assert.equal(await page.isVisible("#flame-reset"), true);
    await page.keyboard.press("Escape");
    assert.equal(await page.isVisible("#flame-reset"), false);
    await page.click("#flame-flip");
    await flame.hover({ position: { x: 200, y: before.height - 10 } });
    assert.match(await page.textContent(".tooltip"), /^all/, "the root is at the bottom");
    await page.click("#flame-flip");

    await page.locator("h1").click();
    await page.keyboard.press("/");
    assert.equal(await page.evaluate(() => document.activeElement.id), "flame-search");
  });
});

test("tabs follow mouse and arrow keys, and the copy button copies", async () => {
  await reading("churning", {}, async (page) => {
    const shown = () => page.locator("#fix > div > .tabs > [role=tabpanel]:not([data-off]) pre").innerText();
    const tabs = page.locator("#fix > div > .tabs [role=tab]");
    assert.ok((await tabs.count()) >= 4);
    assert.match(await shown(), /^export GLIBC_TUNABLES=/);
    await page.click("#fix .copy >> nth=0");
    await page.waitForFunction(() => document.querySelector("#fix .copy").textContent === "Copied");
    const copied = await page.evaluate(() => navigator.clipboard.readText());
    assert.equal(copied, "export GLIBC_TUNABLES=glibc.malloc.trim_threshold=1048576:glibc.malloc.mmap_threshold=33554432");
    await page.click("#fix > div > .tabs [role=tab]:has-text('systemd')");
    assert.match(await shown(), /\[Service\]/);
    await page.keyboard.press("ArrowRight");
    assert.match(await shown(), /^ENV /m);
    assert.equal(await page.getAttribute(":focus", "aria-selected"), "true");
  });
});

test("words explain themselves on focus and Escape closes", async () => {
  await reading("churning", {}, async (page) => {
    await page.focus("#findings .term >> nth=0");
    assert.match(await page.textContent(".tooltip"), /malloc\(\) hands out/);
    assert.equal(await page.isVisible(".tooltip"), true);
    await shot(page, "glossary");
    await page.keyboard.press("Escape");
    assert.equal(await page.isVisible(".tooltip"), false);
  });
});

test("plots switch between their views", async () => {
  await reading("churning", {}, async (page) => {
    const line = () => page.getAttribute("#timeline svg path.line >> nth=0", "d");
    const rate = await line();
    await page.click("#timeline .choice button[data-value=total]");
    await settle(page);
    assert.notEqual(await line(), rate);
    const picture = () => page.$eval("canvas.map", (canvas) => canvas.toDataURL());
    const faults = await picture();
    await page.click("#map .choice button[data-value=churn]");
    assert.notEqual(await picture(), faults);
    assert.match(await page.textContent("#map .legend"), /mostly avoidable/);
  });
});

test("colours follow the system, then the reader", async () => {
  await reading("churning", { colorScheme: "dark" }, async (page) => {
    const ground = () => page.evaluate(() => getComputedStyle(document.body).backgroundColor);
    const dark = await ground();
    const picture = () => page.$eval("canvas.flame", (canvas) => canvas.toDataURL());
    const darkFlame = await picture();
    await page.click("#theme");
    assert.notEqual(await ground(), dark);
    assert.notEqual(await picture(), darkFlame, "canvases are drawn anew");
    assert.equal(await page.textContent("#theme"), "Dark");
    await page.click("#theme");
    assert.equal(await ground(), dark);
  });
});

test("paper shows every export and hides what only a screen needs", async () => {
  await reading("churning", { colorScheme: "dark" }, async (page) => {
    await page.emulateMedia({ media: "print" });
    assert.equal(await page.isVisible("nav"), false);
    assert.equal(await page.isVisible(".copy >> nth=0"), false);
    const panels = page.locator("#fix > div > .tabs > [role=tabpanel]");
    for (let index = 0; index < (await panels.count()); index += 1) assert.equal(await panels.nth(index).isVisible(), true);
    await page.emulateMedia({ media: null });
    const pdf = await page.pdf({ path: `${directory}/report.pdf`, format: "A4", printBackground: true });
    assert.ok(pdf.length > 20_000);
  });
});

test("hostile names stay text", async () => {
  await reading("hostile", {}, async (page) => {
    const evil = "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1>";
    assert.equal(await page.evaluate(() => window.pwned), undefined);
    assert.equal(await page.locator("#report img, #report script").count(), 0);
    const text = await page.textContent("main");
    assert.ok(text.includes(evil), "the name is shown as it is");
    assert.ok(text.includes("\\u{1b}[31mred\\u{7}\\u{202e}txt.exe\\u{0}"), "control characters are written out");
    assert.doesNotMatch(text, /[\u0000\u0007\u001b\u202e]/);
    await page.fill("#flame-search", "onerror");
    assert.match(await page.textContent("#flame-found"), /[1-9]/);
    const flame = page.locator("canvas.flame");
    await flame.hover({ position: { x: 100, y: 30 } });
    assert.ok((await page.textContent(".tooltip")).startsWith(evil));
    assert.equal(await page.evaluate(() => window.pwned), undefined);
  });
});

test("a healthy program is told so and offered nothing", async () => {
  await reading("healthy", {}, async (page) => {
    assert.match(await page.textContent("h1"), /^Nothing to gain here/);
    assert.match(await page.textContent("#fix"), /Nothing to change/);
    assert.equal(await page.locator("#fix pre").count(), 0);
    await shot(page, "healthy", true);
  });
});

test("a report with nothing in it still opens", async () => {
  await reading("bare", {}, async (page) => {
    assert.match(await page.textContent("h1"), /No verdict/);
    assert.equal(await page.locator("canvas, svg").count(), 0, "no empty plots");
    await shot(page, "bare", true);
  });
});

test("without scripts the terminal summary is read", async () => {
  const context = await browser.newContext({ javaScriptEnabled: false });
  const page = await context.newPage();
  await page.goto(pathToFileURL(`${directory}/hostile.html`).href);
  // The text of noscript is markup only where scripts are off, so look at what is laid out.
  const text = await page.locator("noscript").innerText();
  assert.match(text, /Memory is returned to the kernel/);
  assert.match(text, /<script>window\.pwned=1<\/script>/);
  assert.equal(await page.locator("img").count(), 0);
  await context.close();
});

test("a part that fails leaves the others alone", async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  const whole = readFileSync(`${directory}/churning.html`, "utf8");
  const [, encoded] = whole.match(/data-encoding="deflate">([^<]+)</);
  const data = inflateSync(Buffer.from(encoded, "base64")).toString();
  assert.ok(data.includes('"start":"0x'), "the sample has addresses");
  const spoilt = deflateSync(data.replaceAll('"start":"0x', '"start":"?')).toString("base64");
  await page.setContent(whole.replace(encoded, () => spoilt));
  await page.waitForSelector("#map .warn");
  assert.match(await page.textContent("#map"), /This part cannot be shown/);
  assert.match(await page.textContent("#sites"), /lm_init/);
  await context.close();
});

test("a report cut short says so", async () => {
  const context = await browser.newContext();
  const page = await context.newPage();
  const whole = readFileSync(`${directory}/churning.html`, "utf8");
  await page.setContent(whole.replace(/(data-encoding="\w+">).{2000}/, "$1"));
  await page.waitForSelector("#report .warn");
  assert.match(await page.textContent("#report"), /cannot be shown/);
  await context.close();
});

test("a large report stays small and quick", async () => {
  assert.ok(statSync(`${directory}/large.html`).size <= 5_000_000);
  await reading("large", {}, async (page) => {
    const timing = await page.evaluate(() => performance.getEntriesByType("navigation")[0].domContentLoadedEventEnd);
    assert.ok(timing < 3_000, `${timing} ms`);
    await page.locator("canvas.flame").scrollIntoViewIfNeeded();
    const milliseconds = await page.evaluate(async () => {
      const search = document.querySelector("#flame-search");
      const start = performance.now();
      search.value = "function_1";
      search.dispatchEvent(new Event("input"));
      return performance.now() - start;
    });
    assert.ok(milliseconds < 500, `a search took ${milliseconds} ms`);
    console.log(`large.html: ${statSync(`${directory}/large.html`).size} bytes, loaded in ${Math.round(timing)} ms, searched in ${Math.round(milliseconds)} ms`);
  });
});

test("a recording with samples of CPU time shows them on the page about its faults", async () => {
  await reading("both", {}, async (page) => {
    assert.equal(await overflows(page), false);
    assert.deepEqual(await page.evaluate(lowContrast), []);
    assert.deepEqual(await page.evaluate(tornTables), []);
    assert.match(await page.textContent("#also-profile"), /CPUs in use0\.95 of 2.*990 samples/);
    assert.match(await page.textContent("#profile-range"), /^Whole recording: 990 samples/);
    assert.equal(await page.locator("canvas.flame").count(), 2);
    await page.fill("#profile-search", "compress");
    assert.match(await page.textContent("#profile-found"), /^67\s% of the selection$/);
    assert.equal(await page.inputValue("#flame-search"), "");
    await shot(page, "both", true);
  });
});
