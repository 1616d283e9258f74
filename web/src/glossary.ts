/** Words that a reader may not know, explained where they occur. */
import { h, type Child } from "./dom";

export const GLOSSARY: { word: string; match: RegExp; text: string }[] = [
  {
    word: "page fault",
    match: /page faults?/i,
    text: "The program touches memory that it may use but that has no real memory behind it yet. The processor stops the program, the kernel finds a page (usually 4 KiB), clears or loads it, and lets the program continue. One fault costs about a microsecond; millions cost seconds.",
  },
  {
    word: "minor fault",
    match: /minor (page )?faults?/i,
    text: "A page fault that the kernel handles from memory, without reading a disk.",
  },
  {
    word: "major fault",
    match: /major (page )?faults?/i,
    text: "A page fault for which the kernel must first read from a disk. It costs some hundred times as much as a minor one.",
  },
  {
    word: "churn",
    match: /churn/i,
    text: "Memory that a program returns to the kernel and soon requests again. Each time, every page of it must be zeroed and faulted in anew: work that keeping the memory avoids.",
  },
  {
    word: "resident memory",
    match: /resident memory|\bRSS\b/i,
    text: "The program's memory that is actually in the machine's RAM (RSS: resident set size).",
  },
  {
    word: "virtual size",
    match: /virtual size|\bvsize\b/i,
    text: "All addresses that the program has reserved, whether or not there is memory behind them.",
  },
  {
    word: "heap",
    match: /\bheap\b/i,
    text: "The area from which malloc() hands out small and medium pieces. It grows and shrinks at its upper end by the system call brk().",
  },
  {
    word: "allocator",
    match: /allocators?/i,
    text: "The part of a program that hands out memory piece by piece (malloc and free) and requests memory from the kernel in large pieces. The C library contains one; jemalloc, tcmalloc and mimalloc are others.",
  },
  {
    word: "system time",
    match: /system time/i,
    text: "CPU time that the kernel spent on behalf of the program, such as handling page faults.",
  },
  {
    word: "refault ratio",
    match: /refault ratio/i,
    text: "The share of page faults that hit a page which had been there before. 0 means every page faulted once; 0.99 means each faulted about a hundred times.",
  },
  {
    word: "95 % interval",
    match: /95\s%\sinterval/i,
    text: "Measurements scatter. The interval is chosen so that the true value lies inside it in 95 of 100 such experiments. The narrower, the more certain.",
  },
  {
    word: "copy on write",
    match: /copy on write/i,
    text: "After fork(), parent and child share their memory. The first write to a shared page copies it, in a page fault.",
  },
  {
    word: "first touch",
    match: /first touch/i,
    text: "A fault on a page that was never used before. Every program needs these: once for each page.",
  },
  {
    word: "huge page",
    match: /huge pages?/i,
    text: "A page of 2 MiB (on x86-64) instead of 512 small ones. One TLB entry then covers more, and one fault fills more, including memory that is not used.",
  },
  {
    word: "TLB",
    match: /\bTLBs?\b/,
    text: "Translation lookaside buffer: the processor's cache of where pages lie. On a miss, the processor looks the page up in the page tables (a page walk); on some processors, the kernel does (a refill).",
  },
  {
    word: "refault",
    match: /refault(s|ed)?\b(?! ratio)/i,
    text: "A fault on a page that had been evicted before: it must be read back.",
  },
  {
    word: "evicted",
    match: /evict(ed|s|ions?)\b/i,
    text: "Removed from memory to make room, after being written to the store if it had changed.",
  },
  {
    word: "flame graph",
    match: /flame graph/i,
    text: "Call stacks drawn as boxes, each as wide as its share of the whole, next to what it called. The order from left to right is not time.",
  },
  {
    word: "off-cpu",
    match: /off-cpu/i,
    text: "Time in which a thread did not run: it waited for something (blocked) or for a CPU (runnable).",
  },
  {
    word: "as traced",
    match: /as traced/i,
    text: "Including the time that tracing itself added to each call. Corrected figures exclude it.",
  },
];

/**
 * The text as nodes; the first mention of each word of the glossary shows its meaning on request.
 */
export function explained(text: string): Child[] {
  let parts: Child[] = [text];
  const ordered = [...GLOSSARY].sort((a, b) => b.word.length - a.word.length);
  for (const entry of ordered) {
    for (let at = 0; at < parts.length; at += 1) {
      const part = parts[at];
      if (typeof part !== "string") continue;
      const match = entry.match.exec(part);
      if (!match) continue;
      const before = part.slice(0, match.index);
      const after = part.slice(match.index + match[0].length);
      parts = [...parts.slice(0, at), before, term(match[0], entry.text), after, ...parts.slice(at + 1)];
      break;
    }
  }
  return parts;
}

/** A word with its meaning on hover and focus. */
export function term(word: string, meaning: string): HTMLElement {
  return h("button", { type: "button", class: "term", "data-meaning": meaning, "aria-description": meaning }, word);
}
