import { decodeBytes, inflate, reader } from "./bytes";
import type { Page } from "./page";
import { unpack } from "./profile";

/**
 * Reads the report from its script elements: JSON, deflated and base64-encoded if large, and the
 * columns of its profiles.
 */
export async function load(element: HTMLElement, columns: HTMLElement): Promise<Page> {
  const text = element.textContent ?? "";
  const json = element.dataset["encoding"] === "deflate" ? await inflateText(text) : text;
  const page = JSON.parse(json) as Page;
  for (const data of [page.profile, page.profile_diff, page.samples]) if (data) data.profiles = await unpack(data.pack, reader(decodeBytes((columns.textContent ?? "").trim())));
  return page;
}

async function inflateText(base64: string): Promise<string> {
  const bytes = Uint8Array.from(atob(base64.trim()), (c) => c.charCodeAt(0));
  return new TextDecoder().decode(await inflate(bytes, "deflate"));
}
