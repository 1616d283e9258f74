import { h } from "../dom";
import { GLOSSARY } from "../glossary";
import type { Section } from "./section";

export const glossary: Section = {
  id: "glossary",
  title: "Words used here",
  nav: "Glossary",
  applies: () => true,
  render: () => h("dl", { class: "glossary" }, ...GLOSSARY.flatMap(({ word, text }) => [h("dt", {}, word), h("dd", {}, text)])),
};
