/** Faults by cause and by kind of memory. */
import type { Report, Share } from "../../data/types";
import { h } from "../../dom";
import { barTable } from "../../draw/bars";
import { bytes, count, nanos, percent } from "../../format";
import { term } from "../../glossary";
import type { Section } from "../section";

const MEANINGS: Record<string, string> = {
  first_touch: "The page was never touched before. Every program needs these: once for each page.",
  refault_after_munmap: "Churn: the page was used, returned by munmap(), mapped and touched again.",
  refault_after_brk: "Churn: the heap shrank and grew again, and the page was touched again.",
  refault_after_dontneed: "Churn: the allocator told the kernel to drop the page by madvise(MADV_DONTNEED), then touched it again.",
  refault_after_free: "Churn: the allocator allowed the kernel to drop the page by madvise(MADV_FREE), then touched it again.",
  copy_on_write: "After fork(), parent and child share memory; the first write copies the page.",
  write_after_read: "The page was read first, which costs little, and is now written, so it needs memory of its own.",
  file_minor: "A page of a program or a file that was already in memory and only had to be attached.",
  file_major: "A page of a program or a file that had to be read from a disk.",
  file_copy: "A page of a private file mapping, copied at the first write because the write must not reach the file.",
  shared: "Memory shared between processes, touched for the first time here.",
  swap_in: "The page had been moved to swap space because memory was short.",
  write_protect: "The page was there but protected: by mprotect(), or by a tool that tracks writes.",
  stack_growth: "The stack grew by a page.",
  huge_page: "One fault gave a huge page (2 MiB) instead of 512 small ones.",
  unknown: "The recording does not show the cause.",
  heap: "The area that malloc() grows and shrinks at its end by brk().",
  mmapped_chunk: "Large blocks that malloc() maps one by one.",
  thread_arena: "The heap of a thread other than the main one.",
  stack: "Local variables and return addresses.",
  file_private: "Code, constants and data of programs and libraries.",
  file_shared: "Files mapped for sharing.",
  shared_anonymous: "Anonymous memory shared between processes.",
  anonymous: "Anonymous memory of unknown origin.",
  hugetlb: "Huge pages reserved in advance.",
};

export const causes: Section<Report> = {
  id: "causes",
  title: "Faults by cause and memory",
  nav: "Causes",
  applies: (report) => report.findings.by_cause.length > 0 || report.findings.by_region.length > 0,
  intro: (report) =>
    `Why the pages faulted, and what they belonged to. Orange is avoidable. ${basis(report)}`,
  render: (report) =>
    h(
      "div",
      {},
      table(report, "By cause", report.findings.by_cause, report.labels.causes),
      table(report, "By kind of memory", report.findings.by_region, report.labels.regions),
      calls(report),
    ),
};

/** The basis of the figures. */
function basis(report: Report): string {
  const { samples, by_cause } = report.findings;
  if (samples === 0) return "";
  const isCounted = by_cause.every((share) => share.faults.low === share.faults.high);
  return isCounted ? "Every fault was recorded." : `Figures are scaled from ${count(samples)} samples to the exact total.`;
}

function table(report: Report, title: string, shares: Share[], labels: Record<string, string>): HTMLElement | null {
  if (shares.length === 0) return null;
  const total = shares.reduce((sum, share) => sum + share.faults.value, 0);
  const bars = shares.map((share) => {
    const label = labels[share.key] ?? share.key;
    const meaning = MEANINGS[share.key];
    return {
      name: [meaning ? term(label, meaning) : label],
      share: share.faults.value,
      figures: [count(share.faults.value), percent(total > 0 ? share.faults.value / total : 0), error(share), share.time === null ? "–" : nanos(share.time)],
      ink: report.churn_causes.includes(share.key) ? "churn" : "needed",
    };
  });
  return h("div", {}, h("h3", {}, title), barTable(title, [title.replace("By ", "").replace(/^./, (c) => c.toUpperCase()), "Faults", "Share", "95 % interval", "Time"], bars, ["95 % interval"]));
}

const error = (share: Share): string =>
  share.faults.low === share.faults.high ? "exact" : `${count(share.faults.low)} to ${count(share.faults.high)}`;

function calls(report: Report): HTMLElement | null {
  const { mm_calls, lock_wait, lock_waits } = report.findings.time;
  if (mm_calls.length === 0 && lock_waits === 0) return null;
  const most = Math.max(...mm_calls.map((call) => call.calls), 1);
  const bars = mm_calls.map((call) => ({
    name: [h("code", {}, `${call.call}()`)],
    share: call.calls / most,
    figures: [count(call.calls), bytes(call.bytes), call.time === null ? "–" : nanos(call.time)],
    ink: "kernel",
  }));
  return h(
    "div",
    {},
    h("h3", {}, "System calls on memory"),
    bars.length > 0 && barTable("System calls on memory", ["Call", "Calls", "Memory covered", "Time"], bars),
    lock_waits > 0 && h("p", { class: "faint" }, `Threads waited ${count(lock_waits)} times for the lock on the address space (mmap_lock)${lock_wait === null ? "" : `, ${nanos(lock_wait)} in all`}.`),
  );
}
