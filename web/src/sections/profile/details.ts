/** Counters, frames without names, what is missing, the machine. */
import type { ProfileData } from "../../data/profile";
import type { ProfileFindings } from "../../data/profileFindings";
import { h } from "../../dom";
import { compact, count, nanos, percent } from "../../format";
import { facts, machine, settings } from "../host";
import type { Section } from "../section";
import { remedy } from "./findings";

export const counters: Section<ProfileData> = {
  id: "counters",
  title: "Counters",
  nav: "Counters",
  applies: ({ findings }) => findings.counters.length > 0,
  intro: () => "Over the whole recording; over time they stand under the heat map. Counters that the machine lacks are left out, never zero.",
  render: ({ findings }) => {
    const row = ({ name, total, rate, counted }: ProfileFindings["counters"][0]) => {
      const isClock = name.endsWith("-clock");
      const shown = total === null ? "" : isClock ? nanos(total) : compact(total);
      const each = total === null ? rate.toFixed(2) : isClock ? `${(rate / 1e9).toFixed(2)} CPUs` : `${compact(rate)} per second`;
      return h("tr", {}, h("th", { scope: "row" }, name), h("td", { class: "number" }, shown), h("td", { class: "number" }, each), h("td", { class: "number" }, counted < 0.99 ? `counted ${percent(counted)} of the time, scaled` : ""));
    };
    return h("div", { class: "scroll" }, h("table", { class: "functions plain" }, h("caption", { class: "sr" }, "Counters"), h("thead", {}, h("tr", {}, h("th", {}, "Counter"), h("th", { class: "number" }, "Count"), h("th", { class: "number" }, "Rate"), h("th", {}))), h("tbody", {}, ...findings.counters.map(row))));
  },
};

export const unknown: Section<ProfileData> = {
  id: "unknown",
  title: "Frames without a name",
  nav: "Unknown frames",
  applies: ({ findings }) => findings.unknown.length > 0,
  intro: () => "Why they have none, the share of samples whose stacks have such a frame, and of those that end in one.",
  render: ({ findings }) =>
    h(
      "div",
      { class: "scroll" },
      h("table", {}, h("caption", { class: "sr" }, "Causes of missing names"), h("thead", {}, h("tr", {}, h("th", { class: "number" }, "In stacks"), h("th", { class: "number" }, "At the end"), h("th", {}, "File"), h("th", {}, "What it means, and what to do"))), h("tbody", {}, ...findings.unknown.map((cause) => h("tr", {}, h("td", { class: "number" }, percent(cause.touched)), h("td", { class: "number" }, percent(cause.own)), h("td", {}, cause.module || "–"), h("td", {}, remedy(cause.remedy)))))),
    ),
};

export const missing: Section<ProfileData> = {
  id: "missing",
  title: "What is missing",
  nav: "Missing",
  applies: ({ losses, findings }) => losses.length + findings.notes.length > 0,
  render: ({ losses, findings }) => h("ul", {}, ...losses.map(([text, n]) => h("li", {}, `${count(n)} ${text}`)), ...findings.notes.map((note) => h("li", {}, note))),
};

export const host: Section<ProfileData> = {
  id: "host",
  title: "Recording and machine",
  nav: "Machine",
  applies: ({ findings: { host } }) => host.hostname + host.kernel + host.cpu !== "" || Object.keys(host.settings).length > 0,
  render: ({ findings, profiles }) => {
    const { host } = findings;
    return h(
      "div",
      { class: "columns" },
      facts("Recording", [
        ["Command", findings.command.join(" ")],
        ["Elapsed", findings.span > 0 ? nanos(findings.span) : ""],
        ["Threads", count(profiles!.sides[0]!.threads.count)],
        ["Functions", count(profiles!.frames.length)],
        ["Different stacks", count(profiles!.sides[0]!.tracks.reduce((sum, track) => sum + track.leaves.length, 0))],
      ]),
      machine(host),
      settings(host),
    );
  },
};
