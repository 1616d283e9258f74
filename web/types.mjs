// Writes src/data/schema.ts: the documents' types, from the schema that the Rust types make.
import { compile } from "json-schema-to-typescript";
import { readFileSync, writeFileSync } from "node:fs";

// A description beside a reference would make a type of its own of each.
const bare = (value) => {
  if (Array.isArray(value)) return value.map(bare);
  if (value === null || typeof value !== "object") return value;
  if (typeof value.$ref === "string") return { $ref: value.$ref };
  // Tuples as drafts before 2020 wrote them, which the generator reads.
  if (Array.isArray(value.prefixItems)) {
    const { prefixItems, ...rest } = value;
    return { ...rest, items: prefixItems.map(bare), additionalItems: false };
  }
  return Object.fromEntries(Object.entries(value).map(([name, inner]) => [name, bare(inner)]));
};

const schema = bare(JSON.parse(readFileSync(new URL("../docs/schema/schema.json", import.meta.url), "utf8")));
const bannerComment = "/* Made by types.mjs from docs/schema/schema.json: change the Rust types, not this file. */";
const types = await compile(schema, "Document", { bannerComment, additionalProperties: false, style: { printWidth: 120 } });
writeFileSync(new URL("src/data/schema.ts", import.meta.url), types);
