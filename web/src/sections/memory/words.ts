/** Names of what memory is, as the text has them (`crates/report/src/text/memory`). */
import type { AllocatorKind, BlockGroup, Estimate, HeapPart, MemoryKind, Unread } from "../../data/schema";
import { bytes } from "../../format";

const KINDS: Record<MemoryKind, string> = {
  live: "in use",
  cached: "freed, in caches",
  freed_kept: "freed and kept",
  pinned: "free, pinned by blocks in use",
  reserve: "end of the heap, in reserve",
  huge_bloat: "zeros in huge pages",
  bookkeeping: "the allocator's own data",
  stacks: "stacks",
  program: "program and libraries",
  files: "mapped files",
  shared: "shared memory",
  special: "the kernel's mappings",
  not_readable: "not readable",
};

export const MEANINGS: Partial<Record<MemoryKind, string>> = {
  live: "Blocks that the program has not freed.",
  cached: "Blocks that the program freed and a thread keeps for its next requests.",
  freed_kept: "Whole pages inside freed blocks: the allocator could return them.",
  pinned: "Free space on pages that also hold a block in use: it cannot be returned.",
  reserve: "Pages behind the last block.",
  huge_bloat: "Pages that hold only zeros, resident because a huge page is.",
  not_readable: "Memory of an allocator that Pagewise does not read, or of none.",
};

/** Names that differ from the words of the documents. */
const ALLOCATORS: Partial<Record<AllocatorKind, string>> = {
  go: "Go",
  jvm: "JVM",
  v8: "V8",
  cpython: "Python",
  php: "PHP",
  ruby: "Ruby",
  r: "R",
  dotnet: ".NET",
  ocaml: "OCaml",
  guile: "Guile",
  erlang: "Erlang",
  pypy: "PyPy",
  sbcl: "SBCL",
  luajit: "LuaJIT",
  haskell: "Haskell",
  unknown: "an allocator",
};

const PARTS: Record<HeapPart, string> = { main: "main heap", threads: "thread arenas", mapped: "mapped blocks", arenas: "arenas" };

const REASONS: Record<Unread, string> = {
  no_known_allocator: "of no allocator known here",
  not_allowed: "not allowed (ptrace)",
  changed: "it changed during the look",
  swapped: "swapped out",
  other_layout: "unknown layout",
};

const allocatorName = (allocator: AllocatorKind): string => ALLOCATORS[allocator] ?? allocator;

export const partName = (allocator: AllocatorKind, part: HeapPart): string => `${allocatorName(allocator)} ${PARTS[part]}`;

/** A part of the resident memory, at one moment or at two. */
export interface Part {
  kind: MemoryKind;
  allocator?: AllocatorKind;
  part?: HeapPart;
  unread?: Unread;
}

export function partTitle({ kind, allocator, part, unread }: Part): string {
  if (kind === "not_readable") return unreadTitle(unread, allocator);
  return allocator === undefined || part === undefined ? KINDS[kind] : `${KINDS[kind]}: ${partName(allocator, part)}`;
}

function unreadTitle(unread: Unread = "no_known_allocator", allocator?: AllocatorKind): string {
  if (allocator === undefined) return `not readable: ${REASONS[unread]}`;
  if (unread === "changed") return `changed during the look: ${allocatorName(allocator)}`;
  const owner = unread === "no_known_allocator" ? `${allocatorName(allocator)}, or mappings of the program` : REASONS[unread];
  return `not readable: ${owner}`;
}

/** A group by its type, or by the size of its blocks. */
export function groupName({ allocator, object, size: { low, high } }: BlockGroup): string {
  const size = low === high ? bytes(low) : `${bytes(low)}–${bytes(high)}`;
  return object === undefined ? `${allocatorName(allocator)}, ${size}` : `${object} (${allocatorName(allocator)}, ${size})`;
}

export const signedBytes = (value: number): string => `${value < 0 ? "−" : "+"}${bytes(Math.abs(value))}`;

/** Half of the 95 % interval. */
export const margin = ({ low, high }: Estimate): string => bytes((high - low) / 2);
