import type { Page } from "./page";
import { decodeProfile } from "./profile";

/** Reads the report out of its script element: plain JSON, or deflated and in base64 when large. */
export async function load(element: HTMLElement): Promise<Page> {
  const text = element.textContent ?? "";
  const json = element.dataset["encoding"] === "deflate" ? new TextDecoder().decode(await inflateBytes(text)) : text;
  const page = JSON.parse(json) as Page;
  if (page.kind === "profile") await decodeProfile(page);
  return page;
}

export async function inflateBytes(base64: string): Promise<Uint8Array> {
  const bytes = Uint8Array.from(atob(base64.trim()), (c) => c.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}
