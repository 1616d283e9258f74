import { createHash } from "node:crypto";
import { defineConfig, type Plugin } from "vite";

const sha256 = (text: string): string =>
  `'sha256-${createHash("sha256").update(text).digest("base64")}'`;

/**
 * Puts script and style into the page and seals it: its Content-Security-Policy allows exactly
 * this script and this style and no request of any kind, so that a hostile symbol name that got
 * past the text nodes still could not run.
 */
function sealIntoOneFile(): Plugin {
  return {
    name: "seal-into-one-file",
    enforce: "post",
    generateBundle(_options, bundle) {
      let script = "";
      let style = "";
      for (const [name, part] of Object.entries(bundle)) {
        if (part.type === "chunk") script += part.code.trim();
        else if (name.endsWith(".css")) style += String(part.source).trim();
        else continue;
        delete bundle[name];
      }
      if (/<\/script|<!--/i.test(script)) this.error("the script would end its own element");
      const policy =
        `default-src 'none'; script-src ${sha256(script)}; style-src ${sha256(style)}; ` +
        "base-uri 'none'; form-action 'none'";
      const page = bundle["index.html"];
      if (page?.type !== "asset") return this.error("index.html was not built");
      page.source = String(page.source)
        .replace(/\s*<script type="module"[^>]*><\/script>/, "")
        .replace(/\s*<link rel="stylesheet"[^>]*>/, "")
        .replace("SEALED-POLICY", () => policy)
        .replace("<!--style-->", () => `<style>${style}</style>`)
        .replace("<!--script-->", () => `<script type="module">${script}</script>`);
      page.fileName = "report.html";
    },
  };
}

export default defineConfig({
  base: "./",
  build: {
    outDir: "../crates/report/assets",
    emptyOutDir: true,
    assetsInlineLimit: 1_000_000,
    cssCodeSplit: false,
    modulePreload: false,
    target: "es2022",
  },
  plugins: [sealIntoOneFile()],
});
