/** The parts of a page about a profile, top to bottom. */
import type { ProfilePage } from "../../data/profile";
import { h } from "../../dom";
import { count, nanos } from "../../format";
import type { Section } from "../section";
import { heatSection } from "./heat";

const answer: Section<ProfilePage> = {
  id: "answer",
  title: "",
  nav: "",
  applies: () => true,
  render: (page) => h("div", { class: "verdict" }, h("h1", {}, page.has_times ? `${count(page.samples)} samples in ${nanos(page.span_ns)}` : `${count(page.samples)} samples`), h("p", { class: "faint" }, `${page.events.map((event) => event.name).join(", ")} · ${count(page.threads.length)} threads · ${count(page.frames.length)} functions`)),
};

const missing: Section<ProfilePage> = {
  id: "missing",
  title: "What is missing",
  nav: "Missing",
  applies: (page) => page.losses.length + page.notes.length > 0,
  render: (page) => h("ul", {}, ...page.losses.map(([text, n]) => h("li", {}, `${count(n)} ${text}`)), ...page.notes.map((note) => h("li", {}, note))),
};

export const SECTIONS: Section<ProfilePage>[] = [answer, heatSection, missing];
