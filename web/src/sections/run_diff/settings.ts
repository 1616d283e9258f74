/** Settings in which two runs or their hosts differ. */
import type { Page } from "../../data/page";
import type { SettingChange } from "../../data/schema";
import { h } from "../../dom";
import { count } from "../../format";
import type { Section } from "../section";

/** Number of settings shown that are not known to affect what changed. */
const OTHERS = 12;

export const settings: Section = {
  id: "settings",
  title: "Settings that differ",
  nav: "Settings",
  applies: (page) => changed(page).length > 0,
  intro: () => "Between the two runs or their hosts. Those that are known to touch what changed come first.",
  render: (page) => {
    const all = changed(page);
    const [touching, others] = [all.filter(({ touches }) => touches.length > 0), all.filter(({ touches }) => touches.length === 0)];
    const row = (setting: (typeof touching)[0]) =>
      h("tr", {}, h("th", { scope: "row" }, h("code", {}, setting.name)), h("td", { class: "value" }, setting.a ?? "absent"), h("td", { class: "value" }, setting.b ?? "absent"), h("td", {}, setting.touches.length > 0 && h("div", {}, h("strong", { class: "churn-ink" }, "touches "), setting.touches.slice(0, 4).join(", ")), h("div", { class: "faint" }, setting.reason)));
    const table = (rows: typeof touching) => h("div", { class: "scroll" }, h("table", {}, h("caption", { class: "sr" }, "Settings that differ"), h("thead", {}, h("tr", {}, h("th", {}, "Setting"), h("th", {}, "A"), h("th", {}, "B"), h("th", {}, ""))), h("tbody", {}, ...rows.map(row))));
    const first = touching.length > 0 ? touching : others.slice(0, OTHERS);
    const rest = touching.length > 0 ? others : others.slice(OTHERS);
    return h("div", {}, table(first), rest.length > 0 && h("details", {}, h("summary", {}, `${count(rest.length)} more that are not known to touch what changed`), table(rest)));
  },
};


/** Settings of the runs, then those of the samples that are not among them. */
function changed({ run_diff, profile_diff }: Page): SettingChange[] {
  const ofRuns = run_diff?.settings ?? [];
  const known = new Set(ofRuns.map(({ name }) => name));
  return [...ofRuns, ...(profile_diff?.diff.settings ?? []).filter(({ name }) => !known.has(name))];
}
