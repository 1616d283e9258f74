import type { Page } from "./page";

/** Reads the report out of its script element: plain JSON, or deflated and in base64 when large. */
export async function load(element: HTMLElement): Promise<Page> {
  const text = element.textContent ?? "";
  const json = element.dataset["encoding"] === "deflate" ? await inflate(text) : text;
  return JSON.parse(json) as Page;
}

async function inflate(base64: string): Promise<string> {
  const bytes = Uint8Array.from(atob(base64.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Response(stream).text();
}
