import { chromium } from "playwright-core";
import { readdirSync } from "node:fs";
const H = "/var/tmp/traces/html";
const b = await chromium.launch({ executablePath: "/usr/bin/chromium", args: ["--no-sandbox"] });
for (const f of readdirSync(H).filter((f) => f.endsWith(".html") && (!process.argv[2] || f.includes(process.argv[2])))) {
  const p = await b.newPage({ viewport: { width: +(process.argv[3] ?? 1200), height: 900 } });
  p.on("pageerror", (e) => console.log(f, "ERROR", e.message));
  await p.goto("file://" + H + "/" + f);
  await p.waitForTimeout(700);
  const h = await p.evaluate(() => [document.documentElement.scrollHeight, document.documentElement.scrollWidth]);
  console.log(f, h);
  const n = Math.ceil(h[0] / 2600);
  for (let i = 0; i < n; i++) await p.screenshot({ path: `${H}/${f.replace(".html", "")}-${process.argv[3] ?? 1200}-${i}.png`, fullPage: true, clip: { x: 0, y: i * 2600, width: h[1], height: Math.min(2600, h[0] - i * 2600) } });
  await p.close();
}
await b.close();
