/* Made by types.mjs from docs/schema/schema.json: change the Rust types, not this file. */

/**
 * Every JSON document that Pagewise writes; `kind` says which.
 */
export type Document = Document1;
/**
 * How sure the rule is that nothing else gets worse.
 */
export type Risk = "low" | "medium" | "high";
/**
 * A size in bytes.
 */
export type Bytes = number;
/**
 * One setting that a launcher can apply without touching the program.
 */
export type Setting =
  | {
      kind: "env";
      /**
       * Its name.
       */
      name: string;
      /**
       * Its value.
       */
      value: string;
    }
  | {
      kind: "glibc_tunable";
      /**
       * Its name, such as `glibc.malloc.trim_threshold`.
       */
      name: string;
      /**
       * Its value in bytes or as a number.
       */
      value: string;
    }
  | {
      kind: "preload";
      /**
       * Path of the library.
       */
      path: string;
    }
  | {
      kind: "thp";
      /**
       * `never`.
       */
      mode: string;
    }
  | {
      kind: "unset";
      /**
       * Its name.
       */
      name: string;
    }
  | {
      kind: "numa";
      /**
       * Its options: `--cpunodebind=1 --membind=1`, `--interleave=all`, `--localalloc`.
       */
      options: string;
    };
/**
 * Settings that are tried or advised together.
 */
export type Settings = Setting[];
/**
 * How serious a diagnosis is.
 */
export type Severity = "healthy" | "note" | "costly" | "severe";
/**
 * State of one capability.
 */
export type Availability = "available" | "limited" | "missing";
/**
 * What resolves a fault.
 */
export type Way = "kernel" | "fd" | "sigbus";
/**
 * Where a calibration comes from.
 */
export type Source = "root_only" | "own_trace" | "several" | "nothing" | "withdrawn";
/**
 * Signs that one cost for every call does not fit a trace.
 */
export type Misfit =
  | {
      clamped: number;
    }
  | {
      unbalanced: number;
    }
  | {
      uneven: number;
    };
/**
 * The kind of a fault, with the same meaning on every kernel.
 */
export type Class =
  | "anonymous"
  | "zero_page"
  | "anonymous_huge"
  | "map_around"
  | "file_read"
  | "file_read_major"
  | "file_cow"
  | "file_shared"
  | "write_reuse"
  | "write_copy"
  | "write_zero_page"
  | "write_huge"
  | "swap_in"
  | "numa_hint"
  | "userfault"
  | "hugetlb"
  | "stack_growth"
  | "spurious"
  | "retry"
  | "error"
  | "unclassified";
/**
 * A part of the work of a fault.
 */
export type Layer =
  | "fault"
  | "mm_fault"
  | "handler"
  | "lock"
  | "allocation"
  | "zeroing"
  | "copying"
  | "charge"
  | "lru"
  | "rmap"
  | "map_around"
  | "file_fetch"
  | "swap_in"
  | "tlb_flush"
  | "page_table"
  | "wait";
/**
 * What kind of thing differs.
 */
export type Subject2 =
  | "rate"
  | "class_share"
  | "mean"
  | "quantile"
  | "same_path"
  | "same_path_tail"
  | "layer"
  | "wait"
  | "path_share"
  | "function_time"
  | "function_calls"
  | "function_slow_calls";
/**
 * What a figure counts.
 */
export type Unit = "ns" | "share" | "per_fault" | "per_second" | "ratio";
/**
 * Why a mean differs.
 */
export type PartCause = "mix" | "function" | "runnable" | "blocked" | "off_cpu" | "lock_before" | "rest";
/**
 * The answer to a question.
 */
export type Answer = "differs" | "negligible" | "differs_in_phases" | "not_found" | "within_correction";
/**
 * How a page was charged.
 */
export type ChargeWay = "untold" | "stock_hit" | "refill" | "reclaim";
/**
 * A task's relation to a lock that others waited for.
 */
export type Hold = "writing" | "reading" | "queued";
/**
 * A lock of memory management.
 */
export type Lock = "mmap" | "vma" | "rwsem" | "percpu_rwsem" | "folio" | "mutex";
/**
 * Whether durations include time asleep (the tracer's option `sleep-time`).
 */
export type SleepTime = "assumed" | "included" | "excluded";
/**
 * What changed at a moment.
 */
export type Changed = "rate" | "mix" | "median" | "tail";
/**
 * Why a fault happened.
 */
export type Cause =
  | "first_touch"
  | "refault_after_munmap"
  | "refault_after_brk"
  | "refault_after_dontneed"
  | "refault_after_free"
  | "copy_on_write"
  | "write_after_read"
  | "file_minor"
  | "file_major"
  | "file_copy"
  | "shared"
  | "swap_in"
  | "write_protect"
  | "stack_growth"
  | "huge_page"
  | "unknown";
/**
 * What is compared with an allowance.
 */
export type Metric = "faults" | "major_faults" | "peak_memory" | "system_time" | "cpu_time" | "elapsed_time";
/**
 * The outcome for one figure.
 */
export type GateVerdict = "grown" | "within" | "unsure" | "not_judged";
/**
 * A duration or a point on the recording's clock, in nanoseconds.
 */
export type Nanos = number;
/**
 * Where a verdict comes from.
 */
export type Basis = "interleaved" | "measured" | "walks" | "probe" | "none";
/**
 * Whether huge pages pay.
 */
export type Effect = "help" | "hurt" | "no_measurable_effect" | "unknown";
/**
 * Whether the host of a virtual machine maps its memory with huge pages.
 */
export type HostPages = "huge" | "small" | "mixed" | "unknown";
/**
 * What a part of the resident memory is.
 */
export type MemoryKind =
  | "live"
  | "cached"
  | "freed_kept"
  | "pinned"
  | "reserve"
  | "huge_bloat"
  | "bookkeeping"
  | "stacks"
  | "program"
  | "files"
  | "shared"
  | "special"
  | "not_readable";
/**
 * Families of allocators that have settings of their own.
 */
export type AllocatorKind =
  | "glibc"
  | "musl"
  | "jemalloc"
  | "tcmalloc"
  | "mimalloc"
  | "go"
  | "jvm"
  | "v8"
  | "cpython"
  | "php"
  | "ruby"
  | "r"
  | "dotnet"
  | "ocaml"
  | "guile"
  | "erlang"
  | "pypy"
  | "sbcl"
  | "luajit"
  | "haskell"
  | "unknown";
/**
 * What would help.
 */
export type MemoryFix =
  | "trim"
  | "trim_threshold"
  | "fixed_mmap_threshold"
  | "fewer_arenas"
  | "other_allocator"
  | "no_huge_pages"
  | "jemalloc_decay"
  | "mimalloc_purge"
  | "tcmalloc_decommit"
  | "go_memory_limit"
  | "larger_limit";
/**
 * What the largest part of the memory that could be saved is.
 */
export type MemoryVerdict =
  | "all_in_use"
  | "growth"
  | "leak"
  | "retention"
  | "fragmentation"
  | "bloat"
  | "freed_to_end"
  | "cache"
  | "limit_too_small"
  | "cannot_tell";
/**
 * When it was looked.
 */
export type MemoryWhen = "before" | "now" | "peak" | "running" | "end";
/**
 * A part of an allocator with rows of its own.
 */
export type HeapPart = "main" | "threads" | "mapped" | "arenas";
/**
 * What shows that a heap was read right.
 */
export type HeapCheck = "counter" | "filled";
/**
 * Why leaks could not be searched for.
 */
export type LeaksUnknown = "not_allowed" | "swapped" | "in_kernel" | "unreadable" | "too_many" | "no_heap";
/**
 * Why memory could not be read.
 */
export type Unread = "no_known_allocator" | "not_allowed" | "changed" | "swapped" | "other_layout";
/**
 * How it was measured for which part of the time tasks waited for memory.
 */
export type StallMeasure = "pressure" | "delays" | "time";
/**
 * How a run under a limit went.
 */
export type LimitOutcome = "fits" | "stalled" | "killed" | "failed" | "endless";
/**
 * How a program ended.
 */
export type Ending =
  | {
      exited: number;
    }
  | {
      killed: number;
    }
  | "running";
/**
 * What kind of code a frame is.
 */
export type FrameKind = "kernel" | "user" | "inlined" | "jit" | "task";
/**
 * What one unit of an event's weight is.
 */
export type WeightUnit = "nanoseconds" | "events" | "samples";
/**
 * Why an address has no name.
 */
export type Unnamed = "no_mapping" | "no_symbol" | "no_file" | "other_file" | "guest" | "kernel_hidden" | "jit";
/**
 * The meaning of an amount.
 */
export type Measure = "share_of_busy" | "cpus_in_use" | "per_second" | "cpu_seconds_per_run" | "events_per_run";
/**
 * What a figure of a run counts.
 */
export type Quantity =
  "cpu_time" | "elapsed_time" | "faults" | "major_faults" | "peak_memory" | "refaults" | "pages_written";
/**
 * Kind of memory that a fault touched.
 */
export type RegionKind =
  | "heap"
  | "mmapped_chunk"
  | "thread_arena"
  | "stack"
  | "file_private"
  | "file_shared"
  | "shared_anonymous"
  | "anonymous"
  | "hugetlb"
  | "unknown";
/**
 * Which clock a claim is based on.
 */
export type Clock = "elapsed" | "cpu";
/**
 * The verdict on one arm compared with the baseline.
 */
export type Verdict =
  "faster" | "no_difference" | "slower" | "too_much_memory" | "undecided" | "not_reached" | "tried_once";
/**
 * Kinds of documents, each with a schema of its own (`docs/schema`).
 */
export type Kind =
  | "run"
  | "tuning"
  | "huge_balance"
  | "huge_probe"
  | "huge_simulation"
  | "profile"
  | "fault_paths"
  | "fault_diff"
  | "profile_diff"
  | "run_diff"
  | "gate"
  | "gate_baseline"
  | "paged_run"
  | "paging_timeline"
  | "paging_simulation"
  | "check"
  | "allocator_bench"
  | "fault_bench"
  | "mined"
  | "huge_undo"
  | "memory"
  | "memory_limit"
  | "watch";

/**
 * What a command found.
 */
export interface Document1 {
  /**
   * What to change, best first; absent where there is nothing to gain.
   */
  advice?: Advice[];
  /**
   * What is wrong: what the verdict is about, then most serious first.
   */
  diagnoses?: Diagnosis[];
  evidence: Evidence;
  host?: HostSnapshot;
  kind: Kind;
  losses?: Losses;
  /**
   * What a reader should know.
   */
  notes?: string[];
  proof?: Proof;
  /**
   * `SCHEMA_VERSION`.
   */
  schema_version: 6;
  subject?: Subject;
  /**
   * The answer in a sentence or two; absent where there are only figures.
   */
  verdict?: string;
}
/**
 * One piece of advice.
 */
export interface Advice {
  /**
   * What can go wrong, in words.
   */
  caveat: string | null;
  /**
   * Diagnoses that it resolves, by their ids, costliest first.
   */
  cures: string[];
  /**
   * Faults expected to vanish, as a share of all (0 to 1).
   */
  faults_avoided: number;
  /**
   * One sentence: what to do.
   */
  headline: string;
  /**
   * What to do by hand, where settings alone do not suffice (a configuration file, a flag, a
   * relink).
   */
  manual: string | null;
  predicted_speedup: Estimate;
  /**
   * Why this should help, in plain words with the numbers that led here.
   */
  reason: string;
  risk: Risk;
  rss_price: Bytes;
  /**
   * Stable name of the rule that gave it.
   */
  rule: string;
  settings: Settings;
}
/**
 * A value with its 95 % confidence interval.
 */
export interface Estimate {
  /**
   * Upper end of the 95 % interval.
   */
  high: number;
  /**
   * Lower end of the 95 % interval.
   */
  low: number;
  /**
   * The best single figure.
   */
  value: number;
}
/**
 * One thing that is wrong (or right), with the evidence for it.
 */
export interface Diagnosis {
  /**
   * Measured facts that show it, each a short sentence with numbers.
   */
  evidence: string[];
  /**
   * What happens, in two or three sentences.
   */
  explanation: string;
  /**
   * One plain sentence that a person without background understands.
   */
  headline: string;
  /**
   * Stable name: `churn.brk`, `first_touch`, `cow.fork`, `healthy`…
   */
  id: string;
  severity: Severity;
  /**
   * Share of CPU time lost to it (0 to 1).
   */
  share_of_cpu: Estimate | null;
  share_of_elapsed?: Estimate;
}
/**
 * What it rests on: the part that has the name of the document's kind.
 */
export interface Evidence {
  allocator_bench?: AllocatorBench;
  check?: Check;
  fault_bench?: FaultBench;
  fault_diff?: FaultDiff;
  fault_paths?: TracedFaults;
  gate?: Gate;
  gate_baseline?: Baseline;
  huge_balance?: Balance;
  huge_probe?: Probe;
  huge_simulation?: HugeSimulation;
  huge_undo?: HugeUndo;
  memory?: Memory;
  memory_limit?: MemoryLimit;
  mined?: Mined;
  paged_run?: PagedRun;
  paging_simulation?: PagingSimulation;
  paging_timeline?: PagingTimeline;
  profile?: ProfileSummary;
  profile_diff?: ProfileDiff;
  run?: Run;
  run_diff?: RunDiff;
  /**
   * Next to fault_paths, with --sums: the sums that pagewise report adds up when it merges reports.
   */
  sums?: {};
  tuning?: Tuning;
  watch?: Row;
}
/**
 * What allocators cost by size of block.
 */
export interface AllocatorBench {
  /**
   * The system's allocator first.
   */
  allocators: Measured[];
  /**
   * Version of the system's glibc; none with another C library.
   */
  glibc: string | null;
  page_bytes: Bytes;
}
/**
 * One allocator's figures.
 */
export interface Measured {
  /**
   * Short name.
   */
  name: string;
  settings: Settings;
  /**
   * Single blocks.
   */
  single: AllocatorRow[];
  /**
   * Smallest block (to the KiB) that comes fresh from the kernel in each round; absent where no
   * block up to 64 MiB does.
   */
  threshold_bytes: Bytes | null;
  /**
   * Small blocks given back together.
   */
  together: AllocatorRow[];
}
/**
 * One size.
 */
export interface AllocatorRow {
  block_bytes: Bytes;
  bytes: Bytes;
  /**
   * Memory system calls by name; absent where they cannot be counted.
   */
  calls: {
    [k: string]: number;
  } | null;
  /**
   * CPU time in nanoseconds, touching included.
   */
  cpu_ns: number;
  /**
   * Faults.
   */
  faults: number;
}
/**
 * What a machine allows.
 */
export interface Check {
  /**
   * Most important for `doctor` first.
   */
  capabilities: Capability[];
  /**
   * Release of the running kernel.
   */
  kernel: string;
}
/**
 * One thing that Pagewise can use.
 */
export interface Capability {
  /**
   * What Pagewise uses it for, or does instead.
   */
  consequence: string;
  /**
   * What was tried and found, with the kernel's own words where there are any.
   */
  finding: string;
  /**
   * Stable name: `perf.software`, `tracepoints.syscalls`, `proc.smaps_rollup`…
   */
  name: string;
  /**
   * The exact command or setting that enables it, where there is one.
   */
  remedy: string | null;
  state: Availability;
}
/**
 * What page faults cost by what resolves them.
 */
export interface FaultBench {
  /**
   * By what resolves them, then by number of threads.
   */
  rows: FaultRow[];
  /**
   * Number of fresh processes; each figure is their median.
   */
  runs: number;
}
/**
 * Faults of a number of threads, resolved one way.
 */
export interface FaultRow {
  /**
   * Mean of pages one after the other, ns.
   */
  in_order_ns: number;
  /**
   * Median of scattered pages, ns.
   */
  p50_ns: number;
  /**
   * 99th percentile of scattered pages, ns.
   */
  p99_ns: number;
  /**
   * Threads that fault at the same time.
   */
  threads: number;
  way: Way;
}
/**
 * Everything that was compared.
 */
export interface FaultDiff {
  a: TracedSide;
  b: TracedSide;
  /**
   * Kinds of faults, the most frequent of both first.
   */
  classes: ClassChange[];
  /**
   * Functions found in only one of the inputs.
   */
  extra: ExtraFunction[];
  /**
   * What differs beyond chance and by enough to matter, in sentences: first the answers to the
   * questions, then what explains them, the largest part of the difference first. Empty if
   * nothing differs so.
   */
  findings: Finding[];
  /**
   * Functions by kind of fault: the largest change of time first.
   */
  functions: FunctionChange[];
  /**
   * Layers over all faults and by kind.
   */
  layers: LayerChange[];
  mean: Explanation;
  method: Method;
  /**
   * Paths: the most different share first.
   */
  paths: PathChange[];
  /**
   * Differences between these recordings, beyond chance and by enough to matter, that are
   * confined to few of their phases: another recording may differ.
   */
  phases: Finding[];
  /**
   * The few questions that were tested first, with their answers.
   */
  questions: Question[];
  /**
   * Differences that could be chance (three standard errors, but not certain), and differences
   * that the error of the correction for the tracer's cost could explain entirely.
   */
  suspicions: Finding[];
  tail: Explanation;
  whole: Shift;
}
/**
 * One of two recordings, traces or runs, with its sums.
 */
export interface TracedSide {
  /**
   * Correlation of neighbouring blocks' mean whole time: near 0 where blocks are long enough.
   */
  block_correlation: number;
  /**
   * Stretches of the trace that were resampled as units; 0 where the input has none.
   */
  blocks: number;
  calibration: Calibration;
  /**
   * Whether the correction is more than half of the mean latency.
   */
  correction_exceeds_signal: boolean;
  /**
   * Different paths.
   */
  distinct_paths: number;
  /**
   * From the first to the last complete call.
   */
  duration_ns: number | null;
  /**
   * Complete faults.
   */
  faults: number;
  /**
   * The host; absent if unknown.
   */
  host?: string;
  /**
   * Its name in sentences.
   */
  label: string;
  losses?: Losses;
  /**
   * Its name in this comparison.
   */
  name: string;
  subject?: Subject;
}
/**
 * The tracer's cost for one call.
 *
 * A figure from which the cost of `calls` was subtracted is off by up to `Calibration::error` of
 * that many calls. The errors of all figures of one trace have the same sign, so a comparison of
 * figures from two traces must allow for both traces' errors.
 */
export interface Calibration {
  /**
   * Half the width of the 95 % confidence interval of `per_call_ns`, and at least the sum of the
   * errors of the two parts.
   */
  error_ns: number;
  /**
   * The part of that which falls inside the call itself.
   */
  inside_ns: number;
  /**
   * Nanoseconds that a call adds to everything around it.
   */
  per_call_ns: number;
  source: Source;
  /**
   * Why nothing is corrected, where a cost was found that does not fit.
   */
  withdrawn: Withdrawal | null;
}
/**
 * A cost that was found, and why it was not used.
 */
export interface Withdrawal {
  misfit: Misfit;
  /**
   * The cost that was found, ns per call.
   */
  per_call_ns: number;
}
/**
 * Counted losses, mergeable.
 */
export interface Losses {
  [k: string]: number;
}
/**
 * What was observed.
 */
export interface Subject {
  /**
   * The command with its arguments; absent where running processes were observed.
   */
  command?: string[];
  /**
   * The process that the command became, or those that were already running, each with its
   * children; absent where it is not known.
   */
  pids?: number[];
}
/**
 * A kind of fault in both.
 */
export interface ClassChange {
  change: Estimate;
  class: Class;
  /**
   * Faults.
   *
   * @minItems 2
   * @maxItems 2
   */
  faults: [number, number];
  share: Pair;
  /**
   * The test of the share of faults.
   */
  test: Test | null;
  time_share: Pairs;
  whole: Shift;
}
/**
 * A figure of both inputs.
 */
export interface Pair {
  /**
   * In A.
   */
  a: number;
  /**
   * In B.
   */
  b: number;
}
/**
 * The outcome of one test.
 */
export interface Test {
  /**
   * Adjusted for all tests of the comparison.
   */
  p_adjusted: number;
  /**
   * The change in standard errors.
   */
  score: number;
  /**
   * Whether `p_adjusted` is within the level.
   */
  significant: boolean;
}
/**
 * The same figure as traced and corrected.
 */
export interface Pairs {
  corrected: Pair;
  raw: Pair;
}
/**
 * A distribution of both inputs.
 */
export interface Shift {
  a: Latency;
  a_raw: Latency;
  b: Latency;
  b_raw: Latency;
  mean: Estimate;
  /**
   * The test of the mean.
   */
  mean_test: Test | null;
  /**
   * From the fastest to the slowest.
   */
  quantiles: QuantileShift[];
}
/**
 * A distribution in figures.
 */
export interface Latency {
  /**
   * First value, first value past it and count of each filled bucket, ns: 128 per doubling, in
   * JSON 32.
   */
  buckets: [number, number, number][];
  /**
   * Values.
   */
  count: number;
  /**
   * Largest, ns.
   */
  max_ns: number;
  /**
   * Arithmetic mean, ns.
   */
  mean_ns: number;
  /**
   * Smallest, ns.
   */
  min_ns: number;
  /**
   * Peaks, from fast to slow.
   */
  modes: Mode[];
  /**
   * Median, ns.
   */
  p50_ns: number;
  /**
   * 90th percentile, ns.
   */
  p90_ns: number;
  /**
   * 99th percentile, ns.
   */
  p99_ns: number;
  /**
   * Sum, ns.
   */
  sum_ns: number;
}
/**
 * One peak.
 */
export interface Mode {
  /**
   * Its upper end.
   */
  high_ns: number;
  /**
   * Lower end of the interval with the middle nine tenths of the mode's values, ns.
   */
  low_ns: number;
  /**
   * The most frequent latency, ns.
   */
  peak_ns: number;
  /**
   * The share of all values that belongs to the mode.
   */
  share: number;
}
/**
 * How far a quantile moved.
 */
export interface QuantileShift {
  change: Estimate;
  ns: Pairs;
  /**
   * 0 to 1.
   */
  quantile: number;
  /**
   * For the quantiles that are tested: 0.5, 0.9, 0.99.
   */
  test: Test | null;
}
/**
 * A function found in only one input.
 */
export interface ExtraFunction {
  /**
   * Calls in faults.
   */
  calls: number;
  /**
   * Faults that call it.
   */
  faults: number;
  /**
   * The function.
   */
  function: string;
  /**
   * Whether B has it rather than A.
   */
  in_b: boolean;
  /**
   * Share of the faults.
   */
  share: number;
  /**
   * Own time, corrected, as a share of the whole time.
   */
  time_share: number;
}
/**
 * Something that differs beyond chance.
 */
export interface Finding {
  change: Estimate;
  /**
   * The kind of fault concerned; `None`: all faults.
   */
  class: Class | null;
  /**
   * The tracer's cost differs between the inputs by more than this change, or its error is
   * larger than the change: the finding may be an artefact of the tracer.
   */
  correction_exceeds_signal: boolean;
  figures: Pairs;
  /**
   * The layer, for layers.
   */
  layer: Layer | null;
  /**
   * Its part of the difference of the mean whole times, ns per fault; 0 for what takes no time.
   */
  mean_ns: number;
  /**
   * The function or path, for functions and paths.
   */
  name: string | null;
  /**
   * The sentence.
   */
  sentence: string;
  subject: Subject2;
  test: Test;
  unit: Unit;
}
/**
 * A function's own work in faults of a kind.
 */
export interface FunctionChange {
  calls: Pair;
  /**
   * Test of calls per fault.
   */
  calls_test: Test | null;
  change: Estimate;
  class: Class;
  /**
   * The function, without suffixes of compiler clones.
   */
  function: string;
  own_ns: Pairs;
  /**
   * Slow calls, where they were compared.
   */
  slow: SlowCalls | null;
  /**
   * Test of own time per fault.
   */
  time_test: Test | null;
}
/**
 * Calls whose own time exceeds a bound that few calls of both inputs exceed.
 */
export interface SlowCalls {
  /**
   * The bound on own time, as traced, ns.
   */
  above_ns: number;
  per_fault: Pair;
  slow_ns: Pair;
  test: Test;
  usual_ns: Pair;
}
/**
 * A layer in both.
 */
export interface LayerChange {
  /**
   * The kind of fault; `None`: all.
   */
  class: Class | null;
  layer: Layer;
  shift: Shift;
  time_share: Pairs;
}
/**
 * A difference in parts that add up to it.
 */
export interface Explanation {
  /**
   * B minus A, corrected, ns per fault.
   */
  change_ns: number;
  figures: Pairs;
  /**
   * Parts, the largest first; the last one may be the sum of all small ones.
   */
  parts: Part[];
  /**
   * The parts as sentences.
   */
  sentences: string[];
}
/**
 * A part of a difference.
 */
export interface Part {
  cause: PartCause;
  /**
   * The kind of fault; `None` where it is about all.
   */
  class: Class | null;
  figures: Pair;
  /**
   * The function, for functions.
   */
  function: string | null;
  /**
   * Its part of the change, corrected, ns per fault.
   */
  ns: number;
  /**
   * Its part as traced, ns per fault.
   */
  raw_ns: number;
}
/**
 * How the tests were made.
 */
export interface Method {
  /**
   * The chance that anything at all is found in two traces of the same behaviour.
   */
  level: number;
  /**
   * Why nothing was tested, where nothing was.
   */
  not_tested: string | null;
  /**
   * Random exchanges of blocks between the inputs.
   */
  permutations: number;
  /**
   * Of these, the figures behind the questions.
   */
  questions: number;
  /**
   * Resamples of blocks behind each interval.
   */
  resamples: number;
  /**
   * The seed of both.
   */
  seed: number;
  /**
   * Figures tested; what explains a difference is tested only where there is one.
   */
  tests: number;
}
/**
 * A path in both: functions to the third level, adjacent repeats merged.
 */
export interface PathChange {
  change: Estimate;
  class: Class;
  /**
   * Faults.
   *
   * @minItems 2
   * @maxItems 2
   */
  faults: [number, number];
  mean_ns: Pairs;
  /**
   * As in `crate::fault_paths::Path::outline`.
   */
  outline: string;
  share: Pair;
  /**
   * Its test.
   */
  test: Test | null;
}
/**
 * A question about the faults as a whole.
 */
export interface Question {
  answer: Answer;
  change: Estimate;
  /**
   * The kind of fault, for shares of kinds.
   */
  class: Class | null;
  figures: Pairs;
  /**
   * The quantile, for quantiles.
   */
  name: string | null;
  subject: Subject2;
  test: Test;
  unit: Unit;
}
/**
 * Everything about the faults of one trace.
 */
export interface TracedFaults {
  /**
   * Ends of calls without a beginning, by function: the only content with `tracing_thresh`.
   */
  bare_ends: OtherCalls[];
  calibration: Calibration;
  call_map: CallMap;
  /**
   * The share of calls whose own time, raw, is below 1 µs.
   */
  calls_below_1us: number;
  /**
   * Charges to the memory cgroup by path.
   */
  charges: ChargePath[];
  /**
   * By kind, the most frequent first.
   */
  classes: ClassFindings[];
  conservation: Conservation;
  /**
   * What sets the slowest faults apart, overall and by kind.
   */
  contrasts: Contrast[];
  /**
   * Functions by their share of fault time, the largest first.
   */
  contributors: Contributor[];
  /**
   * Whether the correction is more than half of the mean latency: differences between paths are
   * then mostly differences in their number of calls.
   */
  correction_exceeds_signal: boolean;
  /**
   * The part of the faults that was examined, from the outside in; empty: all of each fault.
   */
  descent: DescentStep[];
  /**
   * Different paths in all.
   */
  distinct_paths: number;
  /**
   * From the first to the last complete call, ns; where the trace has times.
   */
  duration_ns: number | null;
  elapsed: Latency;
  /**
   * Complete faults, on which all figures are based.
   */
  faults: number;
  latency: Latencies;
  /**
   * Over all faults, in the order of `Layer::ALL`.
   */
  layers: LayerFindings[];
  lock_waits: LockWaits;
  /**
   * Calls at the top level that are not faults, such as lock helpers, the most frequent first.
   */
  other_calls: OtherCalls[];
  /**
   * The most frequent paths; see `Path`.
   */
  paths: Path[];
  reading: Reading;
  split: TimeSplit;
  timeline: TraceTimeline;
  /**
   * Calls with everything below them, repeats merged, by their share of time.
   */
  trees: TreePattern[];
  /**
   * Further such trees that are as frequent, or take as much time.
   */
  trees_left_out: number;
}
/**
 * Calls of one function outside faults.
 */
export interface OtherCalls {
  /**
   * The function.
   */
  function: string;
  latency: Latency;
}
/**
 * The call paths of the faults of a trace.
 */
export interface CallMap {
  /**
   * Names that nodes refer to.
   */
  functions: string[];
  /**
   * Callers before what they call. Those without a caller are the outermost functions, one
   * for each kind of fault and entry.
   */
  nodes: CallNode[];
  /**
   * Nodes left out because they are small, with everything below them.
   */
  nodes_left_out: number;
  /**
   * Their own time, as traced, ns.
   */
  self_ns_left_out: number;
  /**
   * Faults whose single calls are in `CallNode::times`; sums are over all faults.
   */
  timed_faults: number;
}
/**
 * A call path that ends in a function.
 */
export interface CallNode {
  /**
   * Calls on this path.
   */
  calls: number;
  /**
   * Traced calls below it, in all.
   */
  calls_inside: number;
  class: Class;
  /**
   * The same without the tracer's cost, ns.
   */
  corrected_self_ns: number;
  /**
   * The same without the tracer's cost.
   */
  corrected_times: [number, number, number][];
  /**
   * The same without the tracer's cost, ns.
   */
  corrected_total_ns: number;
  /**
   * How far that may be off, either way: the error of a call's cost, counted once for each call
   * whose cost was taken off, ns.
   */
  error_ns: number;
  /**
   * Faults that take this path.
   */
  faults: number;
  /**
   * Index in `CallMap::functions`.
   */
  function: number;
  /**
   * The part of a fault's work that the function's name stands for, if any.
   */
  layer: Layer | null;
  /**
   * Index of the caller in `CallMap::nodes`.
   */
  parent: number | null;
  /**
   * Own time of the calls, as traced, ns.
   */
  self_ns: number;
  /**
   * Durations of single calls, as traced, in coarse buckets (eight per doubling): first
   * value, first value past the bucket, count. A sample where there are many faults.
   */
  times: [number, number, number][];
  /**
   * Sum over the calls of total time times the latency of their fault, both as traced, ns²: with
   * the sums of each it gives their covariance over any set of faults.
   */
  total_by_latency: number;
  /**
   * Time of the calls with all that they called, as traced, ns.
   */
  total_ns: number;
}
/**
 * Charges to the memory cgroup by path.
 */
export interface ChargePath {
  /**
   * Faults.
   */
  faults: number;
  latency: Latencies;
  /**
   * Share of the faults that charge.
   */
  share: number;
  way: ChargeWay;
}
/**
 * As traced, and without the tracer's cost.
 */
export interface Latencies {
  /**
   * Bounds of the corrected figures; absent where nothing is corrected.
   */
  bounds: Bounds | null;
  corrected: Latency;
  raw: Latency;
}
/**
 * The interval of a corrected figure, from the error of the tracer's cost. It need not include the
 * figure as traced, which has no error of this kind.
 */
export interface Bounds {
  /**
   * Of the mean, ns: lowest and highest.
   *
   * @minItems 2
   * @maxItems 2
   */
  mean_ns: [number, number];
  /**
   * Of the median, ns.
   *
   * @minItems 2
   * @maxItems 2
   */
  p50_ns: [number, number];
  /**
   * Of the 90th percentile, ns.
   *
   * @minItems 2
   * @maxItems 2
   */
  p90_ns: [number, number];
  /**
   * Of the 99th percentile, ns.
   *
   * @minItems 2
   * @maxItems 2
   */
  p99_ns: [number, number];
}
/**
 * Faults of one kind.
 */
export interface ClassFindings {
  class: Class;
  /**
   * Functions by their share of time.
   */
  contributors: Contributor[];
  /**
   * How many.
   */
  faults: number;
  latency: Latencies;
  /**
   * Latency by layer.
   */
  layers: LayerFindings[];
  /**
   * Waits for the mmap lock or the area's lock before the fault, found by task.
   */
  lock_before: Latency | null;
  /**
   * Different paths.
   */
  paths: number;
  /**
   * Share of all faults.
   */
  share: number;
  split: TimeSplit;
  /**
   * Share of the time of all faults, corrected.
   */
  time_share: number;
}
/**
 * A function's part of the time and of its variance. The parts of all functions add up to one.
 */
export interface Contributor {
  /**
   * Calls.
   */
  calls: number;
  /**
   * Own time without the tracer's cost, ns; not below zero.
   */
  corrected_self_ns: number;
  /**
   * The same share, corrected.
   */
  corrected_time_share: number;
  /**
   * How far the corrected time may be off, either way, ns.
   */
  error_ns: number;
  /**
   * The function.
   */
  function: string;
  /**
   * Own time, raw, ns.
   */
  self_ns: number;
  /**
   * Share of the faults' time on the CPU, raw.
   */
  time_share: number;
  /**
   * Share of the variance of the faults' latency: the covariance of the function's own time
   * with it. Negative where the function is shorter in slow faults.
   */
  variance_share: number;
}
/**
 * A layer's time per fault that has it.
 */
export interface LayerFindings {
  latency: Latencies;
  layer: Layer;
  /**
   * The functions that stand for the handler on this kernel, most frequent first; empty for
   * other layers.
   */
  stood_for_by: string[];
}
/**
 * Where time went; the parts add up to the total.
 */
export interface TimeSplit {
  /**
   * Asleep, ns.
   */
  blocked_ns: number;
  /**
   * In what it called, on the CPU, ns.
   */
  children_ns: number;
  /**
   * In interrupts, softirqs and NMIs, ns.
   */
  interrupts_ns: number;
  /**
   * Off the CPU for an unknown reason (no `sched_switch` events), ns.
   */
  off_cpu_ns: number;
  /**
   * Runnable, while another task ran, ns.
   */
  runnable_ns: number;
  /**
   * In the outermost function itself, ns.
   */
  self_ns: number;
  /**
   * From begin to end, ns.
   */
  total_ns: number;
}
/**
 * Whether self + children + interrupts + off-CPU = total, for every call of every fault.
 */
export interface Conservation {
  /**
   * Faults checked.
   */
  faults: number;
  /**
   * Calls in which the parts exceed the whole by more than the printed precision.
   */
  violations: number;
  /**
   * Faults without a duration for every call: their times come from the time column.
   */
  without_durations: number;
}
/**
 * The slowest faults compared with the others. Latency here is the whole time, waits and the lock
 * before the fault included, without the tracer's cost.
 */
export interface Contrast {
  /**
   * The other faults.
   */
  body: number;
  /**
   * Mean whole time of the others, ns.
   */
  body_mean_ns: number;
  /**
   * The kind of fault; `None`: all.
   */
  class: Class | null;
  /**
   * How far the two means may be off because of errors in the correction, either way but both
   * the same way, ns.
   *
   * @minItems 2
   * @maxItems 2
   */
  error_ns: [number, number];
  /**
   * What the extra time of the tail consists of, the largest first; the parts of all
   * functions and waits add up to `tail_mean_ns - body_mean_ns`.
   */
  excess: Excess[];
  /**
   * Functions more frequent in the tail beyond chance, the strongest first.
   */
  functions: Overrepresented[];
  /**
   * The same for paths.
   */
  paths: Overrepresented[];
  /**
   * 0.99 for the slowest hundredth.
   */
  quantile: number;
  /**
   * Faults in the tail.
   */
  tail: number;
  /**
   * Mean whole time in the tail, ns.
   */
  tail_mean_ns: number;
  /**
   * Hypotheses tested together; 0 where the trace is too short.
   */
  tests: number;
  /**
   * Faults beyond this are the tail, ns.
   */
  threshold_ns: number;
}
/**
 * A part of the extra time of slow faults.
 */
export interface Excess {
  /**
   * Mean in the others, ns, corrected.
   */
  body_ns: number;
  /**
   * How far that may be off because of errors in the correction, either way, ns.
   */
  error_ns: number;
  /**
   * The function, or what was waited for.
   */
  name: string;
  /**
   * Mean in the tail less mean in the others, ns, corrected.
   */
  ns: number;
  /**
   * Share of the whole difference.
   */
  share: number;
  /**
   * Mean in the tail, ns, corrected.
   */
  tail_ns: number;
  /**
   * Whether it is a wait.
   */
  wait: boolean;
}
/**
 * Something found more often in slow faults.
 */
export interface Overrepresented {
  /**
   * Functions found in exactly the same faults.
   */
  along: string[];
  /**
   * Other faults that have it.
   */
  body: number;
  /**
   * Share of the others.
   */
  body_share: number;
  /**
   * The kind of the path's faults.
   */
  class: Class | null;
  /**
   * The function, or the path's outline.
   */
  name: string;
  /**
   * Adjusted for all tests of the contrast.
   */
  p_adjusted: number;
  /**
   * Slow faults that have it.
   */
  tail: number;
  /**
   * Share of the slow faults.
   */
  tail_share: number;
}
/**
 * One step of a descent: the calls of a function or layer inside the calls of the step above.
 */
export interface DescentStep {
  /**
   * Of these, calls within the class and the range.
   */
  calls: number;
  /**
   * Only faults of this kind.
   */
  class: Class | null;
  /**
   * Only calls that take at least this long (ns, corrected)…
   */
  from_ns: number | null;
  /**
   * Calls found inside those of the step above.
   */
  met: number;
  /**
   * The function or layer.
   */
  name: string;
  /**
   * Their time on the CPU, corrected, ns.
   */
  time_ns: number;
  /**
   * … and less than that.
   */
  to_ns: number | null;
}
/**
 * Waits for locks around and inside faults.
 */
export interface LockWaits {
  /**
   * Waits of 0.1 ms and more for the mmap lock, for reading or writing, that are attributed to a
   * task, and all such waits.
   *
   * @minItems 2
   * @maxItems 2
   */
  attributed: [number, number];
  /**
   * The time of both, ns.
   *
   * @minItems 2
   * @maxItems 2
   */
  attributed_ns: [number, number];
  /**
   * The tasks that held the mmap lock, or queued for it earlier, while others waited for it; the
   * longest waits first.
   */
  holders: Holder[];
  /**
   * By lock and function.
   */
  locks: LockWait[];
}
/**
 * A task that kept others waiting for the mmap lock.
 */
export interface Holder {
  /**
   * What it ran meanwhile, as far as it was traced.
   */
  doing: string | null;
  how: Hold;
  /**
   * The longest time that it held the lock, or was queued for it, while another task waited, ns.
   */
  longest_hold_ns: number;
  /**
   * The task.
   */
  pid: number;
  /**
   * Its name, as far as the trace prints it.
   */
  task: string;
  /**
   * Their time attributed to it, ns.
   */
  wait_ns: number;
  /**
   * Waits in which it was involved.
   */
  waits: number;
}
/**
 * Getting a lock.
 */
export interface LockWait {
  /**
   * The function that gets it; `mmap_lock events` where those events show the wait.
   */
  function: string;
  /**
   * Whether it is inside faults, not before them.
   */
  inside_fault: boolean;
  latency: Latency;
  lock: Lock;
  /**
   * Share of the whole time of all faults, as traced.
   */
  share: number;
  /**
   * Of these, calls that reached the slow path or slept.
   */
  slow: number;
}
/**
 * A path: the functions of a fault down to the third level, adjacent repeats merged.
 */
export interface Path {
  class: Class;
  /**
   * Faults.
   */
  faults: number;
  latency: Latencies;
  /**
   * Calls inside, on average.
   */
  mean_calls: number;
  /**
   * Functions with `{` and `}` around what they called, `×n` behind repeats.
   */
  outline: string;
  /**
   * Share of all faults.
   */
  share: number;
  /**
   * Complete trees merged into this outline.
   */
  trees: number;
}
/**
 * What was assumed in reading a trace.
 */
export interface Reading {
  /**
   * The deepest level traced, if the trace appears to be cut there (`max_graph_depth`): calls
   * below it cost time that no correction covers.
   */
  depth_limit: number | null;
  /**
   * Calls attributed to an interrupt by their position (one level too deep), not by name.
   */
  interrupts_by_place: number;
  sleep_time: SleepTime;
  /**
   * Different call trees beyond those that fit the fast look-up.
   */
  trees_beyond_limit: number;
}
/**
 * Faults in the order in which they ended.
 */
export interface TraceTimeline {
  /**
   * Consecutive blocks of about equal numbers of faults.
   */
  blocks: TimeBlock[];
  /**
   * Where they changed, in order of time.
   */
  changes: ChangePoint[];
  /**
   * Only one in this many faults is in `blocks`: long traces are thinned evenly.
   */
  every: number;
}
/**
 * Faults of one stretch of time.
 */
export interface TimeBlock {
  /**
   * Faults, whole time raw (ns) and calls inside, by kind.
   */
  classes: [Class, number, number, number][];
  /**
   * To the last fault's end.
   */
  end_ns: number | null;
  /**
   * How far that may be off because of errors in the correction, either way, ns.
   */
  error_ns: number;
  /**
   * Faults.
   */
  faults: number;
  /**
   * Mean whole time, corrected, ns.
   */
  mean_ns: number;
  /**
   * Median of the whole time.
   */
  p50_ns: number;
  /**
   * 90th percentile.
   */
  p90_ns: number;
  /**
   * 99th percentile.
   */
  p99_ns: number;
  /**
   * From the trace's first call, ns; `None` without times.
   */
  start_ns: number | null;
}
/**
 * A moment at which the faults changed.
 */
export interface ChangePoint {
  /**
   * Between this change and the next.
   */
  after: number;
  /**
   * From the trace's first call, ns; `None` without times.
   */
  at_ns: number | null;
  /**
   * Between the change before and this one: faults per second, a share, or ns.
   */
  before: number;
  /**
   * The kind of fault whose share changed.
   */
  class: Class | null;
  /**
   * Faults before it in the trace.
   */
  faults_before: number;
  /**
   * Adjusted for all series searched.
   */
  p_adjusted: number;
  what: Changed;
}
/**
 * A call with everything below it, repeats merged: a tree that many faults share, or a few slow
 * ones. It is closed: its occurrences do not all lie inside one larger tree.
 */
export interface TreePattern {
  /**
   * Calls inside an occurrence, at least and at most.
   *
   * @minItems 2
   * @maxItems 2
   */
  calls: [number, number];
  /**
   * The kind of the faults that have it, if there is only one.
   */
  class: Class | null;
  /**
   * Whether it is a whole fault, from its entry on.
   */
  complete: boolean;
  /**
   * The same, corrected.
   */
  corrected_self_ns: number;
  /**
   * The same, corrected.
   */
  corrected_time_share: number;
  /**
   * The same, corrected.
   */
  corrected_total_ns: number;
  /**
   * How far the corrected mean, median and percentile may be off, either way, ns.
   */
  error_ns: number;
  /**
   * Faults that have it: its support.
   */
  faults: number;
  /**
   * The same, corrected.
   */
  mean_ns: number;
  /**
   * Occurrences in these faults.
   */
  occurrences: number;
  /**
   * The tree as text: `root { a b ×3–15 { c } ( d e ) ×2 }`. For a large tree, only the first
   * calls.
   */
  outline: string;
  /**
   * Median time of an occurrence, corrected, ns.
   */
  p50_ns: number;
  /**
   * 99th percentile, corrected, ns.
   */
  p99_ns: number;
  /**
   * Mean time of an occurrence, as traced, ns.
   */
  raw_mean_ns: number;
  /**
   * How often the calls of its outermost function repeat.
   */
  repeats: Repeat[];
  /**
   * Its outermost function.
   */
  root: string;
  /**
   * Own time of its outermost function in these occurrences, as traced, ns.
   */
  self_ns: number;
  /**
   * Its time on the CPU as a share of all faults', raw.
   */
  time_share: number;
  /**
   * Occurrences behind the median and the percentile: a sample where there are many faults.
   */
  timed: number;
  /**
   * Time of all its occurrences, as traced, ns.
   */
  total_ns: number;
}
/**
 * Calls that a tree repeats.
 */
export interface Repeat {
  /**
   * Number of repetitions in a row, ascending, and how many rows have that number.
   */
  counts: [number, number][];
  /**
   * The function, or the functions of a loop, separated by blanks.
   */
  function: string;
}
/**
 * The answer.
 */
export interface Gate {
  /**
   * Number of runs per measurement.
   */
  batch: number;
  /**
   * The causes of the growth.
   */
  culprit: Culprit | null;
  /**
   * Each figure.
   */
  figures: Judged[];
  /**
   * Allowed chance of a false alarm per figure: 5 % over all that are judged.
   */
  level: number;
  /**
   * Largest number of runs of each side.
   */
  most_pairs: number;
  new: GateSide;
  old: GateSide;
  /**
   * Whether no figure is certainly beyond its allowance.
   */
  passed: boolean;
  /**
   * Seed of the order of runs.
   */
  seed: number;
}
/**
 * The causes of the growth, from one more run of each side under observation.
 */
export interface Culprit {
  /**
   * Causes of faults that grew, the one that grew most first.
   */
  causes: CauseChange[];
  /**
   * Functions that take more CPU time, where time grew.
   */
  functions: FunctionGrowth[];
  /**
   * Why the analysis cannot go further, and what would help.
   */
  missing: string[];
  /**
   * Stacks that grew, the one that grew most first.
   */
  stacks: StackGrowth[];
}
/**
 * Faults of one cause in both runs.
 */
export interface CauseChange {
  a: Estimate;
  b: Estimate;
  cause: Cause;
  /**
   * Whether the intervals are apart, and the change is a tenth or more of the faults.
   */
  differs: boolean;
  /**
   * Its name for display.
   */
  label: string;
}
/**
 * A function that takes more CPU time.
 */
export interface FunctionGrowth {
  /**
   * The file that contains it.
   */
  module: string;
  /**
   * Its name.
   */
  name: string;
  /**
   * Seconds in the new run.
   */
  new_s: number;
  /**
   * Seconds in the old run, callees included.
   */
  old_s: number;
}
/**
 * A stack whose faults grew.
 */
export interface StackGrowth {
  cause: Cause;
  /**
   * The function that a reader should look at.
   */
  culprit: string;
  /**
   * Display name of that cause.
   */
  label: string;
  /**
   * Faults in the new run.
   */
  new: number;
  /**
   * Faults in the old run, at most; scaled from samples. If the old program had no such stack,
   * old and new are the faults of the culprit in any stack.
   */
  old: number;
  /**
   * Functions, outermost first.
   */
  stack: string[];
}
/**
 * One figure of both sides.
 */
export interface Judged {
  /**
   * Growth that is allowed; `None` where any is.
   */
  allowed: number | null;
  /**
   * Growth of the median as a fraction of the old one; `None` where that is zero or unknown.
   */
  growth: number | null;
  metric: Metric;
  /**
   * Median of the new side.
   */
  new: number | null;
  /**
   * Median of the old side, in the metric's unit.
   */
  old: number | null;
  /**
   * Why it is not judged, otherwise empty.
   */
  reason: string;
  /**
   * Growth that is certain at `Gate::level`: more than this; `None` with too few runs.
   */
  surely_more_than: number | null;
  verdict: GateVerdict;
}
/**
 * One side of the gate.
 */
export interface GateSide {
  /**
   * The file that its runs were read from, if any.
   */
  baseline: string | null;
  /**
   * The command.
   */
  command: string[];
  /**
   * Its runs, in the order in which they ran.
   */
  runs: GateRun[];
}
/**
 * One run; for a command that ends within milliseconds, the mean of a few.
 */
export interface GateRun {
  cost: RunCost;
  /**
   * Largest resident memory of the tree: `ru_maxrss`, or the sum over several processes if that
   * was seen to be more. `None` where the program stayed below the peak that it inherited from
   * us at its start, since `ru_maxrss` is never less than that.
   */
  peak: Bytes | null;
}
/**
 * Resources of one finished or observed run, children that were waited for included.
 */
export interface RunCost {
  /**
   * Involuntary context switches.
   */
  involuntary_switches: number;
  /**
   * Faults that needed I/O (`ru_majflt`).
   */
  major_faults: number;
  max_rss: Bytes;
  /**
   * Faults that needed no I/O (`ru_minflt`).
   */
  minor_faults: number;
  system: Nanos;
  user: Nanos;
  /**
   * Voluntary context switches.
   */
  voluntary_switches: number;
  wall: Nanos;
}
/**
 * What `pagewise gate --save` writes.
 */
export interface Baseline {
  /**
   * Number of runs per measurement.
   */
  batch: number;
  /**
   * How much the CPUs were shared meanwhile (0 to 1).
   */
  contended: number | null;
  /**
   * Where the program faults; `None` where that could not be recorded.
   */
  faults: FaultsSeen | null;
  host: GateHost;
  /**
   * Unix time in milliseconds.
   */
  made_unix_ms: number;
  /**
   * Each measurement.
   */
  runs: GateRun[];
}
/**
 * The faults of one observed run, to find out later which of them are new.
 */
export interface FaultsSeen {
  /**
   * By cause.
   */
  by_cause: CauseShare[];
  /**
   * Heaviest stacks.
   */
  sites: Site[];
}
/**
 * One line of a breakdown: how many faults, with what confidence, how much time.
 */
export interface CauseShare {
  faults: Estimate;
  key: Cause;
  /**
   * Kernel time of these faults, where latencies were measured or modelled.
   */
  time: Nanos | null;
}
/**
 * A function with its faults.
 */
export interface Site {
  /**
   * The frame that a reader should look at: the innermost one outside libc and the allocator.
   */
  culprit: string;
  /**
   * Faults, scaled to the exact total.
   */
  faults: number;
  main_cause: Cause;
  /**
   * Call stack, outermost function first, as readable names.
   */
  stack: string[];
}
/**
 * The facts that decide which figures of two machines can be compared.
 */
export interface GateHost {
  /**
   * Architecture.
   */
  architecture: string;
  /**
   * Version of the C library.
   */
  c_library: string | null;
  /**
   * Processor.
   */
  cpu: string;
  /**
   * CPUs online.
   */
  cpus: number;
  /**
   * Host name.
   */
  hostname: string;
  /**
   * `/sys/kernel/mm/transparent_hugepage/enabled`.
   */
  huge_pages: string | null;
  /**
   * Kernel release.
   */
  kernel: string;
  /**
   * Page size, bytes.
   */
  page_size: number;
}
/**
 * Everything about one run of the controller.
 */
export interface Balance {
  after: PageState;
  /**
   * Whether page sizes were changed; false for a dry run.
   */
  applied: boolean;
  before: PageState;
  built: Changes;
  /**
   * Controller.
   */
  controller: string;
  controller_cpu: Nanos;
  elapsed: Nanos;
  /**
   * Slots that the kernel or the program changed back.
   */
  fights: number;
  huge_page: Bytes;
  /**
   * Journals by which `--undo` takes the changes back.
   */
  journals: string[];
  /**
   * Limit that was set on resident memory.
   */
  max_rss: Bytes | null;
  /**
   * Why hardware counters were not used.
   */
  no_counters: string | null;
  peak_rss: Bytes;
  /**
   * Intervals.
   */
  points: BalancePoint[];
  /**
   * Processes at the start.
   */
  processes: BalancedProcess[];
  /**
   * What was left as it was.
   */
  refused: Refused[];
  /**
   * What the cost of work was measured by.
   */
  signal: string;
  split: Changes;
  verdict: HugeVerdict;
  /**
   * Table of events in use, where the machine counts page walks.
   */
  walk_events: string | null;
}
/**
 * Page sizes and memory at one moment.
 */
export interface PageState {
  /**
   * Populated slots left unchanged (locked, `MADV_NOHUGEPAGE`, userfaultfd, files…).
   */
  blocked: number;
  growth: Bytes;
  /**
   * Huge pages.
   */
  huge: number;
  rss: Bytes;
  /**
   * Slots of base pages that could be huge.
   */
  small: number;
}
/**
 * Changes of one kind.
 */
export interface Changes {
  /**
   * How many.
   */
  count: number;
  /**
   * Median time of the call; `None` if there were none.
   */
  median: Nanos | null;
  /**
   * Time that 95 % of the calls stayed below.
   */
  p95: Nanos | null;
}
/**
 * One interval.
 */
export interface BalancePoint {
  /**
   * Slots that were changed in this interval, which disturbs its figures.
   */
  changes: number;
  /**
   * CPU nanoseconds per unit of work; `None` where no work was seen.
   */
  cost_ns: number | null;
  cpu: Nanos;
  /**
   * Huge pages at its end.
   */
  huge: number;
  /**
   * Page walks of huge pages per second, where they are counted by size.
   */
  huge_walks_per_s: number | null;
  /**
   * Factor by which one kind of TLB entry is under more load, when last computed (y).
   */
  imbalance: number | null;
  /**
   * For how many intervals walks have been taking much time (C_L).
   */
  load: number;
  /**
   * Largest possible number of them within the memory limit.
   */
  possible: number;
  /**
   * Why the controller did what it did.
   */
  reason: string;
  rss: Bytes;
  /**
   * Page walks of base pages per second, where they are counted by size.
   */
  small_walks_per_s: number | null;
  time: Nanos;
  /**
   * Share of cycles with a page walk under way.
   */
  walk_share: number | null;
}
/**
 * One process.
 */
export interface BalancedProcess {
  /**
   * Name.
   */
  comm: string;
  /**
   * Memory of the guest that it runs, where it is a virtual machine monitor.
   */
  guest_memory: GuestRange[];
  map: HugeMap;
  /**
   * Process id.
   */
  pid: number;
}
/**
 * Guest memory in a monitor.
 */
export interface GuestRange {
  length: Bytes;
  misaligned_by: Bytes;
  /**
   * First address, hexadecimal.
   */
  start: string;
}
/**
 * Huge pages by address and time.
 */
export interface HugeMap {
  /**
   * Bytes of a row.
   */
  row_bytes: number;
  /**
   * A string for each row, a character for each moment: `#` all huge, `.` all small, `1` to `9`
   * tenths that are huge, a blank where there was no memory. Moments are equal stretches of
   * time.
   */
  rows: string[];
  /**
   * First address of each row, hexadecimal, ascending.
   */
  starts: string[];
  until: Nanos;
}
/**
 * Slots that were left as they were.
 */
export interface Refused {
  /**
   * How many attempts.
   */
  count: number;
  /**
   * Why.
   */
  reason: string;
}
/**
 * The answer in figures.
 */
export interface HugeVerdict {
  basis: Basis;
  /**
   * Change of CPU time for a unit of work from base to huge pages: −0.3 is 30 % less.
   */
  cpu_change: Estimate | null;
  effect: Effect;
  rss_growth: Bytes;
}
/**
 * Everything that was found.
 */
export interface Probe {
  /**
   * The cost of changing page sizes.
   */
  actuators: ActuatorFinding[];
  /**
   * CPU model.
   */
  cpu: string;
  /**
   * The underlying curves.
   */
  curves: Curve[];
  /**
   * Effect of huge pages on a chase.
   */
  effect: EffectPoint[];
  effect_memory: Bytes;
  elapsed: Nanos;
  host: HostFinding;
  /**
   * Levels by page size, first level first.
   */
  levels: TlbLevel[];
  /**
   * Why hardware counters were not used.
   */
  no_counters: string | null;
  /**
   * How often each point was measured, in shuffled rounds.
   */
  rounds: number;
  /**
   * Table of events in use, where the machine counts page walks.
   */
  walk_events: string | null;
  /**
   * Nanoseconds that a step takes when every translation misses, beyond the data itself.
   */
  walk_ns: Estimate | null;
}
/**
 * Changing page sizes of another process.
 */
export interface ActuatorFinding {
  /**
   * How it is done.
   */
  call: string;
  /**
   * `collapse` or `split`.
   */
  change: string;
  /**
   * Median time of a call; `None` where it does not work here.
   */
  median: Nanos | null;
}
/**
 * Cost of a step by the number of stretches that are visited.
 */
export interface Curve {
  page: Bytes;
  /**
   * By number of stretches.
   */
  points: CurvePoint[];
  stride: Bytes;
}
/**
 * One point of a curve.
 */
export interface CurvePoint {
  extra_ns: Estimate;
  /**
   * Distinct stretches that are visited in turn.
   */
  pages: number;
}
/**
 * A random chase with some of its memory in huge pages.
 */
export interface EffectPoint {
  change: Estimate;
  /**
   * Share of the memory that huge pages map, 0 to 1.
   */
  huge_share: number;
  step_ns: Estimate;
  /**
   * Page walks per step, to base and to huge pages, where the machine counts them.
   *
   * @minItems 2
   * @maxItems 2
   */
  walks: [number, number] | null;
}
/**
 * What was found about the host.
 */
export interface HostFinding {
  /**
   * Whether this is a virtual machine at all.
   */
  is_guest: boolean;
  /**
   * Share of the TLB misses of base pages that the same chase has over huge pages, 0 to 1.
   */
  missed_share: Estimate | null;
  pages: HostPages;
  /**
   * The same in a sentence.
   */
  sentence: string;
}
/**
 * One level of the TLB as measured.
 */
export interface TlbLevel {
  entries: Estimate;
  /**
   * 1 for the first.
   */
  level: number;
  miss_ns: Estimate;
  page: Bytes;
}
/**
 * The result of `pagewise huge simulate`.
 */
export interface HugeSimulation {
  /**
   * Page sizes compared, without a controller.
   */
  configurations: Configuration[];
  /**
   * Runs with controllers, a run for each program.
   */
  controlled: Controlled[];
  /**
   * The machine's name.
   */
  machine: string;
  /**
   * Reach of each machine's TLBs, for the curves.
   */
  reaches: Reach[];
  /**
   * Misses of fully associative LRU TLBs of all sizes.
   */
  reuse: ReuseCurve[];
  /**
   * Cost by number of huge pages, if requested.
   */
  sweep: SweepPoint[];
  /**
   * The programs, in order.
   */
  workloads: string[];
}
/**
 * A program under fixed page sizes.
 */
export interface Configuration {
  /**
   * Refills of huge pages per 1000 accesses.
   */
  huge_per_1000: number;
  /**
   * Page sizes in words.
   */
  name: string;
  /**
   * Nanoseconds per access, everything included.
   */
  ns_per_access: number;
  /**
   * Share of time in refills.
   */
  refill_share: number;
  /**
   * Refills of small pages per 1000 accesses.
   */
  small_per_1000: number;
  /**
   * Speed relative to the first configuration of the program.
   */
  speed: number;
  /**
   * The program.
   */
  workload: string;
}
/**
 * A program with a controller.
 */
export interface Controlled {
  /**
   * Speed at the end relative to running alone, where several programs share the TLB.
   */
  against_alone: number | null;
  /**
   * Huge pages built.
   */
  built: number;
  /**
   * The controller.
   */
  controller: string;
  /**
   * Speed at the end relative to the same page sizes without a controller.
   */
  gain: number;
  /**
   * The same over the whole run.
   */
  gain_whole: number;
  /**
   * Huge pages at the end.
   */
  huge: number;
  map: HugeMap;
  /**
   * Nanoseconds per access at the end.
   */
  ns_per_access: number;
  /**
   * Largest possible number in its memory.
   */
  possible: number;
  /**
   * What the controller decided last, in words.
   */
  reason: string | null;
  /**
   * Huge pages split.
   */
  split: number;
  /**
   * Over time.
   */
  timeline: Moment[];
  /**
   * The program.
   */
  workload: string;
}
/**
 * A point of a timeline: means since the last point.
 */
export interface Moment {
  /**
   * Simulated seconds.
   */
  at_s: number;
  /**
   * Huge pages (N_h).
   */
  huge: number;
  /**
   * Refills of huge pages per second.
   */
  huge_per_s: number;
  /**
   * Imbalance when last computed (y).
   */
  imbalance: number | null;
  /**
   * Loaded intervals in a row, less quiet ones (C_L).
   */
  load: number;
  /**
   * Nanoseconds per access.
   */
  ns_per_access: number;
  /**
   * Refills of small pages per second.
   */
  small_per_s: number;
}
/**
 * How much memory a machine's last TLB level maps.
 */
export interface Reach {
  /**
   * Entries for pages of that size.
   */
  entries: number;
  /**
   * The machine.
   */
  machine: string;
  /**
   * Bytes of a page.
   */
  page_bytes: number;
}
/**
 * Miss ratio by number of entries, at one page size.
 */
export interface ReuseCurve {
  /**
   * Largest expected error from sampling (95 %), in miss ratio.
   */
  error: number;
  /**
   * Bytes of a page.
   */
  page_bytes: number;
  /**
   * Number of entries, and the share of accesses that miss with that many.
   */
  points: [number, number][];
  /**
   * Share of pages that were sampled.
   */
  sampled: number;
  /**
   * The program.
   */
  workload: string;
}
/**
 * Cost at a fixed number of huge pages.
 */
export interface SweepPoint {
  /**
   * Huge pages.
   */
  huge: number;
  /**
   * Refills of huge pages per 1000 accesses.
   */
  huge_per_1000: number;
  /**
   * Nanoseconds per access.
   */
  ns_per_access: number;
  /**
   * Refills of small pages per 1000 accesses.
   */
  small_per_1000: number;
}
/**
 * What was undone.
 */
export interface HugeUndo {
  /**
   * Each process that a controller had changed.
   */
  processes: Undone[];
}
/**
 * The result for one process.
 */
export interface Undone {
  /**
   * Its name.
   */
  comm: string;
  /**
   * Slots that the program has given back or unmapped since.
   */
  gone: number;
  /**
   * Process id.
   */
  pid: number;
  /**
   * Slots that could not be changed back.
   */
  refused: number;
  /**
   * Slots that have their original page size again, through us or otherwise.
   */
  restored: number;
  /**
   * Whether the process is still the one in the journal.
   */
  running: boolean;
  /**
   * Settings of the machine that are as they were.
   */
  settings: number;
  /**
   * Settings that another process has written since; they are left as they are.
   */
  settings_left: number;
}
/**
 * The account of one or more processes, at one or more moments.
 */
export interface Memory {
  /**
   * The sums of all looks at a run, in order of time.
   */
  course?: MemoryPoint[];
  finding: MemoryFinding;
  growth?: Growth;
  holders?: Holders;
  /**
   * In order of time.
   */
  moments: MemoryMoment[];
  /**
   * Who touched it first, by process, where page faults were recorded; the process with the most first.
   */
  touched?: TouchedMemory[];
}
/**
 * The sums of one look.
 */
export interface MemoryPoint {
  /**
   * Time from the start of the program to the end of the look.
   */
  elapsed_ns: number;
  /**
   * What it is, by kind; kinds without bytes are left out.
   */
  layers: MemoryLayer[];
  resident: Bytes;
}
/**
 * Resident memory of one kind.
 */
export interface MemoryLayer {
  bytes: Bytes;
  kind: MemoryKind;
}
/**
 * What the account says.
 */
export interface MemoryFinding {
  allocator?: AllocatorKind;
  bytes: Bytes;
  /**
   * What would help.
   */
  fixes?: MemoryFix[];
  not_readable: Bytes;
  returnable?: ByteRange;
  verdict: MemoryVerdict;
  when: MemoryWhen;
}
/**
 * Bytes between two bounds.
 */
export interface ByteRange {
  high: Bytes;
  low: Bytes;
}
/**
 * What differs between two looks: at one process, or at two runs.
 */
export interface Growth {
  /**
   * Groups of blocks that grew beyond the error of the draws, the one that grew most first.
   */
  blocks?: BlockChange[];
  /**
   * Time between the starts of the two looks; absent where they are at two runs.
   */
  elapsed_ns?: number;
  /**
   * Bytes of blocks in use that were added; negative where they shrank.
   */
  live: number;
  /**
   * Rows whose size differs, the one that grew most first.
   */
  rows: RowChange[];
  /**
   * Call stacks that hold more or less than before, where allocations of both runs were sampled; the one
   * that grew most first.
   */
  stacks?: StackChange[];
}
/**
 * A group of blocks at two moments.
 */
export interface BlockChange {
  added: Estimate;
  group: BlockGroup;
}
/**
 * Blocks in use of one type, or of about one size where no type can be seen.
 */
export interface BlockGroup {
  allocator: AllocatorKind;
  bytes: Estimate;
  /**
   * Number of blocks; of those that pin pages, the number of these pages. An estimate like the bytes.
   */
  count: number;
  /**
   * Class (C++) or type (Python) of the object at their start.
   */
  object?: string;
  size: ByteRange;
}
/**
 * A row at two moments.
 */
export interface RowChange {
  after: Bytes;
  allocator?: AllocatorKind;
  before: Bytes;
  kind: MemoryKind;
  part?: HeapPart;
}
/**
 * What blocks from one stack hold, in two runs.
 */
export interface StackChange {
  added: Estimate;
  after: Estimate;
  before: Estimate;
  /**
   * Its functions, innermost first.
   */
  frames: HolderFunction[];
  /**
   * The program that allocated them.
   */
  program: string;
}
/**
 * A function of a stack.
 */
export interface HolderFunction {
  /**
   * Whether the compiler inlined it into its caller.
   */
  inlined?: boolean;
  /**
   * Short name of the file that contains it; empty where not known.
   */
  module?: string;
  /**
   * Its name, `[unknown]` if it has none.
   */
  name: string;
}
/**
 * What was sampled of a program's allocations.
 */
export interface Holders {
  period: Bytes;
  /**
   * Processes whose allocations were seen, that with the highest peak first.
   */
  processes: ProcessHolders[];
  /**
   * Processes that were not sampled because there was no room for them.
   */
  refused?: number;
}
/**
 * The stacks of one process. A forked process has those of what it allocated itself.
 */
export interface ProcessHolders {
  allocated: Held;
  /**
   * Whether the allocator brings C++'s operators with it: what `new` allocates is then missing.
   */
  bypassed?: boolean;
  /**
   * Samples that count for the stack without frames because there was no room for theirs.
   */
  crowded?: number;
  /**
   * Samples whose stack lacks its outermost frames.
   */
  cut?: number;
  end: Held;
  /**
   * Functions of the stacks.
   */
  functions: HolderFunction[];
  /**
   * The process that forked it with the same program, if one did.
   */
  parent?: number;
  peak: Held;
  /**
   * Time from the first allocation to the peak of live bytes.
   */
  peak_ns: number;
  /**
   * Process id.
   */
  pid: number;
  /**
   * Its program.
   */
  program: string;
  /**
   * Number of samples.
   */
  samples: number;
  /**
   * Stacks, the one that held most at the peak first.
   */
  stacks: HeldStack[];
  /**
   * Samples that are missing because there was no room to follow their blocks.
   */
  untracked?: number;
}
/**
 * Blocks.
 */
export interface Held {
  blocks: Estimate;
  bytes: Estimate;
}
/**
 * What blocks from one stack add up to.
 */
export interface HeldStack {
  allocated: Held;
  end: Held;
  /**
   * Numbers of functions, innermost first.
   */
  frames: number[];
  peak: Held;
}
/**
 * One look at all processes.
 */
export interface MemoryMoment {
  /**
   * When the look began, in milliseconds since 1970.
   */
  began_unix_ms?: number;
  cgroup?: CgroupMemory;
  /**
   * Time since the program started, where Pagewise started it.
   */
  elapsed_ns?: number;
  /**
   * How long the look took.
   */
  look_ns: number;
  /**
   * The processes, parents before children.
   */
  processes: ProcessMemory[];
  /**
   * Processes that could not be read.
   */
  refused?: RefusedProcess[];
  when: MemoryWhen;
}
/**
 * A memory cgroup, as the kernel counts it.
 */
export interface CgroupMemory {
  anonymous: Bytes;
  charged: Bytes;
  kernel?: Bytes;
  limit?: Bytes;
  page_cache: Bytes;
  page_cache_before?: Bytes;
  shared: Bytes;
  /**
   * Share of the last 10 seconds in which at least one of its tasks waited for memory.
   */
  stalled?: number;
  swapped?: Bytes;
}
/**
 * The account of one process.
 */
export interface ProcessMemory {
  /**
   * Resident blocks in use (those in caches, too) by what they hold, or by size where that cannot be
   * seen, the largest group first. Groups of less than a thousandth of them are left out.
   */
  blocks?: BlockGroup[];
  /**
   * The heaps that were read.
   */
  heaps?: Heap[];
  huge_unsearched?: Bytes;
  leaks?: LeakCheck;
  /**
   * Its name.
   */
  name: string;
  page_tables: Bytes;
  peak_resident?: Bytes;
  /**
   * Process id.
   */
  pid: number;
  /**
   * The blocks that hold pages with free space: each page counts for the smallest block in use on it.
   */
  pins?: BlockGroup[];
  proportional: Bytes;
  resident: Bytes;
  /**
   * Resident memory by smaps, less the sum of the rows: what changed between the two readings.
   */
  residue: number;
  /**
   * What the resident memory is. The rows add up to `resident`, but for `residue`.
   */
  rows: MemoryRow[];
  /**
   * For how long it was stopped, because its heaps changed too fast to be read while it ran.
   */
  stopped_ns?: number;
  swapped: Bytes;
}
/**
 * A heap that was read, in the allocator's own terms: sizes are address space, resident or not.
 */
export interface Heap {
  allocator: AllocatorKind;
  /**
   * Number of these blocks.
   */
  blocks: number;
  /**
   * Fastbins that could not be followed to their end: the rest of their blocks counts as in use.
   */
  broken_lists?: number;
  cached: Bytes;
  changed?: Bytes;
  check: HeapCheck;
  /**
   * Arenas, or for blocks with mappings of their own, these blocks.
   */
  count: number;
  free: Bytes;
  /**
   * Number of these blocks.
   */
  free_blocks: number;
  in_fastbins: Bytes;
  in_use: Bytes;
  large_free: Bytes;
  part: HeapPart;
  raised_mmap_threshold?: Bytes;
  reserve: Bytes;
  returnable: Bytes;
  size: Bytes;
}
/**
 * What a search for leaked blocks found in a process.
 */
export interface LeakCheck {
  /**
   * Number of these blocks.
   */
  blocks: number;
  /**
   * The leaked blocks by what they hold, or by size where that cannot be seen, the largest group
   * first.
   */
  groups?: BlockGroup[];
  leaked: ByteRange;
  /**
   * Number of blocks to which no pointer leads.
   */
  leaked_blocks: number;
  searched: Bytes;
  /**
   * Snapshots that agree; of a process that ran on, a block is leaked only if it is in all of them.
   */
  snapshots: number;
  unknown?: LeaksUnknown;
  /**
   * Whether it was stopped for the snapshot, or about to exit.
   */
  was_stopped: boolean;
}
/**
 * Part of the resident memory.
 */
export interface MemoryRow {
  allocator?: AllocatorKind;
  kind: MemoryKind;
  part?: HeapPart;
  proportional: Bytes;
  resident: Bytes;
  swapped: Bytes;
  unread?: Unread;
}
/**
 * A process of the tree that could not be read.
 */
export interface RefusedProcess {
  /**
   * Process id.
   */
  pid: number;
  /**
   * Why.
   */
  reason: string;
}
/**
 * The private memory of a process at a look, by the call stack of the page fault that made each page.
 */
export interface TouchedMemory {
  elapsed_ns: Nanos;
  /**
   * Functions of the stacks.
   */
  functions: HolderFunction[];
  /**
   * Whether the look was at the peak of the run, not later.
   */
  is_peak: boolean;
  /**
   * Its name.
   */
  name: string;
  other: Bytes;
  /**
   * Process id.
   */
  pid: number;
  resident: Bytes;
  /**
   * Recorded faults that made pages which were in memory at the look.
   */
  samples: number;
  /**
   * Stacks, the one with the most memory first. Those of less than a two-thousandth of it are in `other`.
   */
  stacks: TouchedStack[];
  unseen: Bytes;
}
/**
 * A stack, and the resident pages that it made.
 */
export interface TouchedStack {
  bytes: Estimate;
  /**
   * The innermost function that does not only allocate or copy for its caller.
   */
  culprit: string;
  /**
   * Numbers of functions, innermost first.
   */
  frames: number[];
}
/**
 * Runs of a program under memory limits, and the smallest that it fits into.
 */
export interface MemoryLimit {
  measure: StallMeasure;
  /**
   * All runs in order; the first had no limit of its own.
   */
  runs: LimitRun[];
  smallest?: Bytes;
  /**
   * Share of the elapsed time that a run that fits may wait for memory.
   */
  stall_allowed: number;
  too_small?: Bytes;
}
/**
 * One run.
 */
export interface LimitRun {
  /**
   * Elapsed time.
   */
  elapsed_ns: number;
  limit?: Bytes;
  outcome: LimitOutcome;
  peak?: Bytes;
  /**
   * Share of the elapsed time that tasks waited for memory; with several tasks it can exceed 1.
   */
  stalled?: number;
}
/**
 * What was found in a database of sequences: patterns, or the sequences projected on one.
 */
export interface Mined {
  /**
   * Frequent patterns in the order of their items.
   */
  patterns?: MinedPattern[];
  /**
   * With `--projection`: the sequences of the projected database.
   */
  sequences?: string[][];
}
/**
 * One pattern.
 */
export interface MinedPattern {
  /**
   * Its items; for a tree its functions, with braces around what they call.
   */
  items: string[];
  /**
   * Sequences that contain it; occurrences for the algorithm "suffixes", faults for "trees".
   */
  support: number;
  tree?: TreePattern;
}
/**
 * A finished run.
 */
export interface PagedRun {
  cost: RunCost;
  ending: Ending;
  kernel?: KernelPaging;
  /**
   * The budget in bytes.
   */
  memory_bytes: number;
  /**
   * Whether each process had a budget of its own.
   */
  memory_is_each: boolean;
  others: OtherProcesses;
  /**
   * Name of the policy.
   */
  policy: string;
  /**
   * Processes with figures of their own.
   */
  processes: PagedProcess[];
  /**
   * Programs that managed memory: each fork, and each exec.
   */
  processes_total: number;
  refault_distances: RefaultDistances;
  /**
   * Kind of the store.
   */
  store: string;
  /**
   * Peak of the resident memory of all processes together, shared pages counted once.
   */
  together_peak_bytes: number | null;
}
/**
 * A run that the kernel paged, in a memory cgroup of its own.
 */
export interface KernelPaging {
  /**
   * Version of the cgroup, 1 or 2.
   */
  cgroup_version: number;
  /**
   * Pages of files that did.
   */
  file_refaults: number | null;
  /**
   * Processes that the kernel killed, as neither memory nor swap had room.
   */
  killed: number | null;
  /**
   * Times that the group met its limit.
   */
  limit_hits: number | null;
  /**
   * Faults that waited for a disk.
   */
  major_faults: number | null;
  /**
   * Peak of the memory charged to the group, page cache included.
   */
  peak_bytes: number | null;
  /**
   * Anonymous pages that came back soon after they had left, read ahead or missed
   * (`workingset_refault_anon`).
   */
  refaults: number | null;
  /**
   * The most that was seen in swap at a time, read every tenth of a second.
   */
  swap_peak_bytes: number | null;
  /**
   * When the kernel took over from the pager (`--engine auto`), in nanoseconds from the start; absent
   * where it paged the run from the start.
   */
  took_over_ns?: number;
}
/**
 * Processes without figures of their own: together with the others they add up to the whole.
 */
export interface OtherProcesses {
  /**
   * Processes that ended and whose slot was needed by a later one.
   */
  ended: number;
  faults: PagingFaults;
  files: FilesPaged;
  latency: FaultLatency;
  pages: PagesMoved;
  /**
   * Processes that never had a slot, because too many others were alive.
   */
  unplaced: number;
}
/**
 * Faults by kind and by how they arrived.
 */
export interface PagingFaults {
  /**
   * Served by handler threads.
   */
  by_handler: number;
  /**
   * Served by SIGBUS in the faulting thread.
   */
  by_signal: number;
  /**
   * On pages that another fault was already bringing in.
   */
  collisions: number;
  /**
   * On pages that were never touched.
   */
  first_touches: number;
  /**
   * First writes to pages that were read back.
   */
  first_writes: number;
  /**
   * On pages in the store.
   */
  refaults: number;
  /**
   * On pages that were resident.
   */
  spurious: number;
  /**
   * That waited for room.
   */
  throttled: number;
  /**
   * How long these waited, in nanoseconds.
   */
  throttled_ns: number;
}
/**
 * Mapped files. Pages of those that are managed (`--files`) are read from the files themselves, and
 * are not counted among those of the store. Of the others, the kernel is asked to page out what is
 * in the way of the budget.
 */
export interface FilesPaged {
  /**
   * Of these, pages that came back within the time for which they were followed.
   */
  came_back: number;
  /**
   * Mappings that the kernel took over while they were in use: somebody opened their file for
   * writing or truncated it, or it could not be read.
   */
  changed: number;
  /**
   * Pages that stayed when all were last asked to go: in private mappings that may be written, of
   * files that other processes map or that belong to another user.
   */
  kept: number;
  /**
   * Mappings that are large enough, and stayed the kernel's.
   */
  left: number;
  /**
   * Bytes of files that are mapped and managed: part of `managed_bytes`.
   */
  managed_bytes: number;
  /**
   * Pages of files that are not managed, which were paged out, or unmapped, because they were in the way.
   */
  paged_out: number;
  /**
   * Pages read from files.
   */
  pages_read: number;
  /**
   * Faults on pages that had been evicted.
   */
  refaults: number;
}
/**
 * Time inside the pager.
 */
export interface FaultLatency {
  with_io: Quantiles;
  without_io: Quantiles;
}
/**
 * Quantiles of a latency, accurate to one bucket (half a power of two).
 */
export interface Quantiles {
  /**
   * Faults.
   */
  count: number;
  /**
   * Median in nanoseconds.
   */
  p50_ns: number;
  /**
   * 99th percentile in nanoseconds.
   */
  p99_ns: number;
}
/**
 * Pages moved.
 */
export interface PagesMoved {
  /**
   * Dropped, because the store already had them.
   */
  dropped_clean: number;
  /**
   * Evicted in all.
   */
  evicted: number;
  /**
   * Number of eviction batches.
   */
  eviction_batches: number;
  /**
   * Of these, before they were needed.
   */
  prefetched: number;
  /**
   * From the store.
   */
  read: number;
  /**
   * That the kernel refused to evict: pinned, or being removed.
   */
  refused: number;
  /**
   * Given back by the program.
   */
  removed: number;
  /**
   * Of these, pages that were used.
   */
  seen_used: number;
  /**
   * Reads and writes of the store that failed.
   */
  store_errors: number;
  /**
   * Pages watched for their next use.
   */
  watched: number;
  /**
   * To the store.
   */
  written: number;
  /**
   * Of these, before they had to be evicted.
   */
  written_early: number;
}
/**
 * One process.
 */
export interface PagedProcess {
  /**
   * Its limit on resident bytes; its last share if processes share a budget.
   */
  budget_bytes: number;
  /**
   * Features that the kernel allowed the pager to use.
   */
  capabilities: string[];
  /**
   * If it is not alive: whether it exited by itself. Otherwise it was killed, or became another
   * program through exec.
   */
  ended_in_order: boolean;
  faults: PagingFaults;
  files: FilesPaged;
  /**
   * How soon its pages are used again, over the whole run.
   */
  heat: Heat | null;
  latency: FaultLatency;
  /**
   * Its limit on resident bytes of managed pages.
   */
  limit_bytes: number;
  /**
   * Whether it is still alive.
   */
  living: boolean;
  /**
   * Managed address space in bytes.
   */
  managed_bytes: number;
  /**
   * Smallest size that is managed now: `--min-region`, or less while much memory is in smaller
   * pieces.
   */
  min_region_bytes: number;
  /**
   * Name of its program.
   */
  name: string;
  pages: PagesMoved;
  /**
   * Peak of the resident managed bytes.
   */
  peak_managed_bytes: number;
  /**
   * Process id.
   */
  pid: number;
  refault_distances: RefaultDistances;
  /**
   * Managed mappings, the largest first.
   */
  regions: PagedRegion[];
  /**
   * Number of its regions; not all have figures.
   */
  regions_total: number;
  /**
   * Managed bytes that are resident.
   */
  resident_bytes: number;
  /**
   * Bytes of that store on disk, for all processes that share it.
   */
  store_disk_bytes: number;
  /**
   * Memory that the store takes in this process, in bytes.
   */
  store_memory_bytes: number;
  /**
   * Number of its store: forks share their parent's.
   */
  store_number: number;
  /**
   * Time that surveys of the regions have taken, in nanoseconds.
   */
  survey_ns: number;
  /**
   * Resident bytes that are not managed: code, stacks, small mappings.
   */
  unmanaged_bytes: number;
}
/**
 * How soon resident pages are used again, estimated from random pages that were watched until
 * their next use.
 */
export interface Heat {
  /**
   * Share that was not used within eight seconds.
   */
  cold: Estimate | null;
  hot: Estimate;
  /**
   * Share that was used later, within eight seconds; `None` until a page was watched that long.
   */
  warm: Estimate | null;
  /**
   * Pages that were watched for a second.
   */
  watched: number;
  written: Estimate;
}
/**
 * How many pages were evicted between a page's eviction and its return. Counts are estimates from
 * a sample of pages, exact if all pages were followed.
 */
export interface RefaultDistances {
  /**
   * Non-empty buckets, ascending.
   */
  buckets: DistanceBucket[];
  /**
   * What more memory would have avoided, if the sample is large enough.
   */
  larger_budget: LargerBudget | null;
  /**
   * Pages of the sample that came back.
   */
  sampled_pages: number;
  /**
   * Refaults of the sample.
   */
  samples: number;
}
/**
 * Returns after this many evictions.
 */
export interface DistanceBucket {
  /**
   * Returns by read-ahead, before a fault.
   */
  ahead: number;
  /**
   * Least distance.
   */
  from_pages: number;
  /**
   * Returns that a fault waited for.
   */
  refaults: number;
  /**
   * First distance beyond the bucket.
   */
  to_pages: number;
}
/**
 * A larger budget for one process, for policies that evict roughly in order of use. A lower bound:
 * a page that is evicted twice meanwhile counts twice, but takes room only once.
 */
export interface LargerBudget {
  /**
   * Additional bytes.
   */
  more_bytes: number;
  spared: Estimate;
}
/**
 * A managed mapping: the sum of its parts that are managed in the same way.
 */
export interface PagedRegion {
  /**
   * Size of its parts.
   */
  bytes: number;
  /**
   * How faults arrive: `fd` or `sigbus`.
   */
  delivery: string;
  /**
   * Of these, changed since they were read.
   */
  dirty_pages: number;
  /**
   * Pages in the store.
   */
  evicted_pages: number;
  /**
   * Faults on all its parts.
   */
  faults: number;
  /**
   * How soon pages are used again, from the last ones that were watched.
   */
  heat: Heat | null;
  /**
   * Number of the mapping.
   */
  number: number;
  /**
   * Parts that do not adjoin.
   */
  parts: number;
  /**
   * Of these, on pages in the store.
   */
  refaults: number;
  /**
   * Pages that are resident.
   */
  resident_pages: number;
  /**
   * The number from the program's hint; 0 without one.
   */
  role: number;
  /**
   * Address of its first part.
   */
  start: string;
  /**
   * Why.
   */
  why: string;
}
/**
 * What each policy would have done.
 */
export interface PagingSimulation {
  bound: PolicyOutcome;
  /**
   * Memory, in pages.
   */
  memory_pages: number;
  /**
   * In the requested order.
   */
  policies: PolicyOutcome[];
  trace: UsesOfPages;
}
/**
 * One policy's figures, in pages.
 */
export interface PolicyOutcome {
  /**
   * Pages evicted.
   */
  evictions: number;
  /**
   * Whether it replayed the very run that is simulated, and so knew what comes: no other run has that.
   */
  knew_the_run?: boolean;
  /**
   * Read from the store.
   */
  pages_read: number;
  /**
   * Written to the store.
   */
  pages_written: number;
  /**
   * Its name.
   */
  policy: string;
  /**
   * Of these, before they were needed.
   */
  read_early: number;
  /**
   * Read early and never used.
   */
  read_in_vain: number;
  /**
   * Faults that waited for the store.
   */
  refaults: number;
  /**
   * Faults on pages that were in memory.
   */
  soft_faults: number;
}
/**
 * The contents of a trace of a paged run.
 */
export interface UsesOfPages {
  /**
   * Bytes at the end that do not form a complete record.
   */
  cut_bytes: number;
  /**
   * Different pages.
   */
  footprint_pages: number;
  /**
   * Size of a page.
   */
  page_bytes: number;
  /**
   * Pages read early in the recorded run, counted as uses.
   */
  presumed_uses: number;
  /**
   * Memory of the recorded run, in pages.
   */
  recorded_with_pages: number;
  /**
   * Records of kinds that this version does not know.
   */
  unknown_records: number;
  /**
   * Uses.
   */
  uses: number;
}
/**
 * The course of one run of `pagewise run`.
 */
export interface PagingTimeline {
  ending: Ending;
  interval: Nanos;
  /**
   * The budget in bytes.
   */
  memory_bytes: number;
  /**
   * Whether each process had that budget, rather than all together.
   */
  memory_is_each: boolean;
  /**
   * Readings, oldest first; the last one is from the end of the run.
   */
  points: PagingPoint[];
  /**
   * The policy's name.
   */
  policy: string;
  refault_distances: RefaultDistances;
  /**
   * The store's kind.
   */
  store: string;
}
/**
 * One reading, summed over the processes of the run. Counters are cumulative.
 */
export interface PagingPoint {
  /**
   * Faults on pages without contents.
   */
  first_touches: number;
  /**
   * Limit on that memory.
   */
  limit_bytes: number;
  /**
   * Pages that left memory.
   */
  pages_evicted: number;
  /**
   * Pages read from the store.
   */
  pages_read: number;
  /**
   * Of these, before they were needed.
   */
  pages_read_ahead: number;
  /**
   * Pages written to the store.
   */
  pages_written: number;
  /**
   * Processes that have managed memory so far.
   */
  processes: number;
  /**
   * Faults that waited for the store.
   */
  refaults: number;
  /**
   * Managed memory that is resident.
   */
  resident_bytes: number;
  /**
   * Uses of watched pages that were seen.
   */
  seen_used: number;
  /**
   * Contents of the stores, on disk and packed in memory.
   */
  store_bytes: number;
  /**
   * Nanoseconds that faults waited for room.
   */
  throttled_ns: number;
  time: Nanos;
  /**
   * Resident memory that is not managed.
   */
  unmanaged_bytes: number;
  /**
   * Of these, those that were used.
   */
  used_later: number;
  /**
   * Of these, those that were used.
   */
  used_soon: number;
  /**
   * Pages that were watched for eight seconds for their next use.
   */
  watched_later: number;
  /**
   * Resident pages that were watched for a second for their next use.
   */
  watched_soon: number;
  /**
   * Of these, those that were written.
   */
  written_soon: number;
}
/**
 * What a profile shows.
 */
export interface ProfileSummary {
  /**
   * Counters and ratios of them; counters that the machine does not have are absent.
   */
  counters: CounterRate[];
  /**
   * Each event's sums; the most important one first.
   */
  events: EventProfile[];
  /**
   * Estimated nanoseconds that recording itself cost, if the recorder reports it.
   */
  own_cost: Nanos | null;
  span: Nanos;
  /**
   * Frames without a name, by cause, largest share first.
   */
  unknown: UnknownShare[];
}
/**
 * A counter over the whole time, or a ratio of two.
 */
export interface CounterRate {
  /**
   * Share of the time in which it was actually counted; values are scaled up accordingly.
   */
  counted: number;
  /**
   * perf's name for it; `instructions per cycle`, `cache misses per reference` for ratios.
   */
  name: string;
  /**
   * Count per second, or the ratio.
   */
  rate: number;
  /**
   * Count; `None` for ratios.
   */
  total: number | null;
}
/**
 * Sums of one event. Weights are in `unit`; those of idle CPUs are only in `idle`.
 */
export interface EventProfile {
  /**
   * The stretch of time that stands out most.
   */
  burst: Burst | null;
  /**
   * Control groups, heaviest first; empty where none were recorded.
   */
  cgroups: CgroupShare[];
  /**
   * CPUs by number; empty where the input has none.
   */
  cpus: CpuShare[];
  /**
   * Samples per second that were requested, if chosen by frequency.
   */
  frequency: number | null;
  /**
   * Functions, largest own weight first.
   */
  functions: FunctionShare[];
  /**
   * Weight of samples that found a CPU idle.
   */
  idle: number;
  /**
   * perf's name of the event.
   */
  name: string;
  /**
   * Processes, heaviest first.
   */
  processes: ProcessShare[];
  /**
   * Samples.
   */
  samples: number;
  /**
   * Stacks, heaviest first.
   */
  stacks: StackShare[];
  unit: WeightUnit;
  /**
   * Sum of their weights, without idle time.
   */
  weight: number;
}
/**
 * A stretch of time in which far more happened than usual.
 */
export interface Burst {
  from: Nanos;
  /**
   * The function whose total weight grew most compared with the rest of the time.
   */
  function: string;
  /**
   * That function's share of the burst's weight (0 to 1).
   */
  share: number;
  /**
   * Its share at other times.
   */
  share_elsewhere: number;
  to: Nanos;
  /**
   * Usual weight of a stretch of the same length (the median).
   */
  usual: number;
  /**
   * Weight in it.
   */
  weight: number;
}
/**
 * One control group's part, without those below it.
 */
export interface CgroupShare {
  /**
   * Path from the root of its hierarchy.
   */
  path: string;
  /**
   * Its weight.
   */
  weight: number;
}
/**
 * One CPU's part.
 */
export interface CpuShare {
  /**
   * Its number.
   */
  cpu: number;
  /**
   * Weight without idle time.
   */
  weight: number;
}
/**
 * One function's part.
 */
export interface FunctionShare {
  kind: FrameKind;
  /**
   * The file that contains it; empty where not known.
   */
  module: string;
  /**
   * Its name.
   */
  name: string;
  /**
   * Weight of samples in the function itself.
   */
  own: number;
  /**
   * Weight of samples in it or in what it called; a recursive function counts once per sample.
   */
  total: number;
}
/**
 * One process's part.
 */
export interface ProcessShare {
  /**
   * Name of its heaviest thread.
   */
  comm: string;
  /**
   * Process id; -1 where not known.
   */
  pid: number;
  /**
   * Threads that were sampled.
   */
  threads: number;
  /**
   * Its weight.
   */
  weight: number;
}
/**
 * One stack's part.
 */
export interface StackShare {
  /**
   * Functions, outermost first.
   */
  frames: string[];
  /**
   * Its weight.
   */
  weight: number;
}
/**
 * Frames without a name for one reason.
 */
export interface UnknownShare {
  /**
   * The file, where one is known.
   */
  module: string;
  /**
   * Share of its weight whose stack ends in such a frame.
   */
  own: number;
  reason: Unnamed;
  /**
   * What it means and what to do.
   */
  remedy: string;
  /**
   * Share of the leading event's weight whose stack has such a frame (0 to 1).
   */
  touched: number;
}
/**
 * How profile B differs from profile A.
 *
 * All amounts are comparable even though the two were recorded for different times, on different
 * numbers of CPUs and at different rates: see `Measure`.
 */
export interface ProfileDiff {
  a: WeighedSide;
  b: WeighedSide;
  block: Nanos;
  /**
   * Blocks of A and of B.
   *
   * @minItems 2
   * @maxItems 2
   */
  blocks: [number, number];
  /**
   * Counters side by side, as rates.
   */
  counters: CounterChange[];
  /**
   * Size of change that would have been found in four of five such comparisons, for a function
   * of median size: the limit of what "nothing significant" means here.
   */
  detectable: number;
  /**
   * The event that is compared.
   */
  event: string;
  /**
   * Functions by how much they changed in total: significant ones first, of these the ones that
   * have a name.
   */
  functions: Change[];
  measure: Measure;
  run?: RunDiff;
  /**
   * Settings in which the hosts differ; those that affect what grew come first.
   */
  settings: SettingChange[];
  /**
   * For whole runs: the factor by which B took longer in everything, as on a busier machine. B's
   * amounts are divided by it.
   */
  slowdown: number | null;
  /**
   * Whole stacks by how much they changed.
   */
  stacks: StackChange2[];
  /**
   * Both trees laid over each other, for a differential flame graph. Parents come first; node 0
   * is the whole.
   */
  tree: DiffNode[];
  /**
   * Frames without a name on either side, by cause, largest share first. Where the two differ
   * much, so do the stacks that end in such frames, regardless of what the programs did.
   */
  unknown: UnknownChange[];
}
/**
 * One of two recordings, traces or runs, with its sums.
 */
export interface WeighedSide {
  /**
   * CPUs that it covers.
   */
  cpus: number;
  /**
   * The host; absent if unknown.
   */
  host?: string;
  /**
   * Its name in this comparison.
   */
  name: string;
  /**
   * Samples of the event, idle ones left out.
   */
  samples: number;
  span: Nanos;
  subject?: Subject;
  /**
   * Unit of the weight.
   */
  unit: WeightUnit | null;
  /**
   * Their weight.
   */
  weight: number;
}
/**
 * A counter in both.
 */
export interface CounterChange {
  /**
   * Rate per second (or ratio) in A.
   */
  a: number;
  /**
   * The same in B.
   */
  b: number;
  /**
   * Its name, or a ratio's (`IPC`, `cache-miss ratio`).
   */
  name: string;
}
/**
 * One function's change.
 */
export interface Change {
  /**
   * Amount in A, callees included.
   */
  a: number;
  /**
   * Amount in B, callees included.
   */
  b: number;
  change: Estimate;
  kind: FrameKind;
  /**
   * The file that contains it.
   */
  module: string;
  /**
   * Its name.
   */
  name: string;
  /**
   * Its own amounts in A and B, without callees.
   *
   * @minItems 2
   * @maxItems 2
   */
  own: [number, number];
  /**
   * Probability of such a large change anywhere among all functions and stacks compared, if
   * nothing differed.
   */
  p_adjusted: number;
  /**
   * Whether that probability is below 5 %.
   */
  significant: boolean;
  /**
   * Why it has no name, if it has none.
   */
  unnamed: Unnamed | null;
}
/**
 * How run B differs from run A.
 */
export interface RunDiff {
  a: RunCostSide;
  b: RunCostSide;
  /**
   * Faults by cause, the largest change first.
   */
  causes: CauseChange[];
  /**
   * Time, faults and memory.
   */
  figures: FigureChange[];
  /**
   * Settings that differ, those of the program first.
   */
  settings: SettingChange[];
}
/**
 * One of two recordings, traces or runs, with its sums.
 */
export interface RunCostSide {
  /**
   * The host; absent if unknown.
   */
  host?: string;
  /**
   * Involuntary context switches.
   */
  involuntary_switches: number;
  /**
   * Faults that needed I/O (`ru_majflt`).
   */
  major_faults: number;
  max_rss: Bytes;
  /**
   * Faults that needed no I/O (`ru_minflt`).
   */
  minor_faults: number;
  /**
   * Its name in this comparison.
   */
  name: string;
  subject?: Subject;
  system: Nanos;
  user: Nanos;
  /**
   * Voluntary context switches.
   */
  voluntary_switches: number;
  wall: Nanos;
}
/**
 * A figure of both runs.
 */
export interface FigureChange {
  /**
   * In A.
   */
  a: number;
  /**
   * In B.
   */
  b: number;
  /**
   * Whether they differ by more than two runs of the same program on one machine do.
   */
  differs: boolean;
  quantity: Quantity;
}
/**
 * A setting that differs.
 */
export interface SettingChange {
  /**
   * Value on A's host; `None` where it does not exist.
   */
  a: string | null;
  /**
   * Value on B's host.
   */
  b: string | null;
  /**
   * Its name.
   */
  name: string;
  /**
   * How it affects them; empty if no effect is known.
   */
  reason: string;
  /**
   * Functions that changed significantly and that this setting is known to affect.
   */
  touches: string[];
}
/**
 * One stack's change.
 */
export interface StackChange2 {
  /**
   * Amount in A of all stacks that begin with these functions.
   */
  a: number;
  /**
   * Amount in B.
   */
  b: number;
  change: Estimate;
  /**
   * Functions, outermost first.
   */
  frames: string[];
  /**
   * As for a function.
   */
  p_adjusted: number;
  /**
   * As for a function.
   */
  significant: boolean;
}
/**
 * A node of both trees.
 */
export interface DiffNode {
  /**
   * Amount in A.
   */
  a: number;
  /**
   * Amount in B.
   */
  b: number;
  /**
   * Module.
   */
  module: string;
  /**
   * Function; `all` for the root.
   */
  name: string;
  /**
   * Its parent; the root's is itself.
   */
  parent: number;
}
/**
 * Frames without a name for one reason, in both profiles.
 */
export interface UnknownChange {
  /**
   * Share of A's samples whose stack has such a frame (0 to 1).
   */
  a: number;
  /**
   * The same for B.
   */
  b: number;
  /**
   * The file, where one is known.
   */
  module: string;
  reason: Unnamed;
  /**
   * What it means and what to do.
   */
  remedy: string;
}
/**
 * The evidence of one observed run.
 */
export interface Run {
  account: Account;
  /**
   * Allocators in use.
   */
  allocators: Allocator[];
  /**
   * Faults by cause, most first.
   */
  by_cause: CauseShare[];
  /**
   * Faults by kind of memory, most first.
   */
  by_region: RegionKindShare[];
  /**
   * Faults by thread, most first.
   */
  by_thread: ThreadShare[];
  churn: Churn;
  collection: Collection;
  cost: RunCost;
  ending: Ending;
  fault_map: FaultMap;
  /**
   * Mapped files whose pages threads waited for, most waits first.
   */
  file_reads?: FileReads[];
  flame: FlameNode;
  /**
   * Huge pages seen in the program's memory.
   */
  huge_pages: HugePageUse | null;
  /**
   * Kernel threads of the machine that managed memory meanwhile.
   */
  kernel_threads?: KernelThread[];
  memory?: Memory;
  numa?: MemoryNodes;
  profile?: ProfileSummary;
  /**
   * Fault samples seen.
   */
  samples: number;
  /**
   * Heaviest stacks.
   */
  sites: Site[];
  /**
   * Unix time in milliseconds when observation began.
   */
  started_unix_ms: number;
  time: FaultTime;
  timeline: Timeline;
}
/**
 * What the CPU time of a run went into. Sums to the exact CPU time that the run used.
 */
export interface Account {
  /**
   * CPU time by what it was spent on, most first: the program's own code, the allocator's, each
   * of the kernel's entries, and what is unexplained. Adds up to the CPU time of the run. Empty
   * where the kernel's stacks could not be seen.
   */
  cpu?: TimePart[];
  delays?: Delays;
  /**
   * Elapsed time by what the program did or waited for, most first. Adds up to the elapsed time
   * of the run. Empty where too few samples were taken.
   */
  elapsed?: TimePart[];
  /**
   * The kernel's time by why it was entered, most first. Empty where the kernel's stacks could
   * not be seen.
   */
  entries: KernelEntry[];
  /**
   * Time of page faults, most first: `zeroing` and `copying` page contents, and `handling` the
   * fault apart from that. Adds up to the entry `fault`; empty where the kernel's stacks do not
   * show it.
   */
  faults?: TimePart[];
  kernel: Estimate;
  /**
   * Samples of CPU time behind it, as many of equal weight as would be as precise; 0 where none
   * could be taken.
   */
  samples: number;
  tasks?: Tasks;
  unexplained: Estimate;
  /**
   * Nanoseconds in the kernel by the work done, whatever the entry: reclaim, zeroing of huge
   * pages… Parts of the entries; they do not add up to a whole.
   */
  work: KernelWork[];
}
/**
 * CPU time that went into one thing, or elapsed time in which the program did or waited for one
 * thing.
 */
export interface TimePart {
  /**
   * Stable name. Of CPU time: `own`, `allocator`, `collector`, `unexplained`, or the name of a
   * `KernelEntry`; of elapsed time: `cpu`, `ready` (no CPU was free), `unseen`, or a kind of
   * waiting: `sleep`, `disk`, `network`…
   */
  id: string;
  /**
   * Display name: `waiting for a disk`.
   */
  label: string;
  /**
   * What to do next to find out more, if anything.
   */
  next?: string;
  /**
   * Functions that most of it was spent in, or waited in, most first.
   */
  places: string[];
  /**
   * Share of the CPU time that each of `places` takes; empty where that is not reported.
   */
  shares?: number[];
  time: Estimate;
  /**
   * Names of the processes that waited, most first; empty for parts that are not waits.
   */
  who?: string[];
}
/**
 * Waits of all tasks of a program that ended while it was observed, as counted by the kernel
 * (Documentation/accounting/delay-accounting.rst). A kind that the kernel does not count, or
 * counted wrongly for one of the tasks, is absent.
 */
export interface Delays {
  compaction?: Delay;
  copying?: Delay;
  disk?: Delay;
  ready?: Delay;
  reclaim?: Delay;
  swap?: Delay;
  /**
   * Tasks (threads) that were counted.
   */
  tasks: number;
  thrashing?: Delay;
}
/**
 * Waits of one kind.
 */
export interface Delay {
  /**
   * How many.
   */
  count: number;
  time: Nanos;
}
/**
 * One reason for which the kernel was entered.
 */
export interface KernelEntry {
  /**
   * Kernel functions in which most of it was spent, most first.
   */
  functions: string[];
  /**
   * Stable name: `fault`, `interrupt`, or `call.` and the system call's family.
   */
  id: string;
  /**
   * Display name: `reading (pread64)`.
   */
  label: string;
  time: Estimate;
}
/**
 * Time by process and thread.
 */
export interface Tasks {
  elsewhere: Nanos;
  others?: TaskSum;
  /**
   * Processes, most CPU time first.
   */
  processes: ProcessTime[];
  unseen?: TaskSum;
}
/**
 * Time of one or more threads.
 */
export interface TaskSum {
  lifetime: Nanos;
  /**
   * What they did or waited for in that time, most first: `cpu`, `ready`, kinds of waiting as in
   * `Account::elapsed`, and `unexplained`. Adds up to the lifetimes.
   */
  parts: TimePart[];
  /**
   * How many threads.
   */
  threads: number;
}
/**
 * Time of a process.
 */
export interface ProcessTime {
  all: TaskSum;
  began: Nanos;
  lifetime: Nanos;
  /**
   * Name of its first thread.
   */
  name: string;
  others?: TaskSum;
  /**
   * Its parent, as last seen.
   */
  parent: number;
  /**
   * Process id.
   */
  pid: number;
  /**
   * Its threads, most CPU time first.
   */
  threads: ThreadTime[];
}
/**
 * Time of a thread.
 */
export interface ThreadTime {
  all: TaskSum;
  began: Nanos;
  delays?: Delays;
  /**
   * Name.
   */
  name: string;
  /**
   * Thread id.
   */
  tid: number;
}
/**
 * One thing that the kernel did.
 */
export interface KernelWork {
  /**
   * Stable name: `huge`, `copy`, `reclaim`…
   */
  id: string;
  in_faults: Estimate;
  time: Estimate;
}
/**
 * An allocator found in a process.
 */
export interface Allocator {
  /**
   * How it was recognised: a mapped file, a symbol.
   */
  evidence: string;
  /**
   * The name of the file that contains it beside other code, of the program or of a library.
   */
  inside?: string;
  /**
   * Whether it was linked statically: preloading another one then has no effect.
   */
  is_static: boolean;
  kind: AllocatorKind;
  /**
   * Settings in force when the program started, by their environment or tunable name.
   */
  settings: {
    [k: string]: string;
  };
  /**
   * The variable that this build reads, where it is not the usual one of its family.
   */
  variable?: string;
  /**
   * Version, such as `2.36` for glibc, where it could be determined.
   */
  version: string | null;
}
/**
 * One line of a breakdown: how many faults, with what confidence, how much time.
 */
export interface RegionKindShare {
  faults: Estimate;
  key: RegionKind;
  /**
   * Kernel time of these faults, where latencies were measured or modelled.
   */
  time: Nanos | null;
}
/**
 * One thread's part.
 */
export interface ThreadShare {
  /**
   * Name.
   */
  comm: string;
  /**
   * Faults, scaled.
   */
  faults: number;
  /**
   * Process id.
   */
  pid: number;
  /**
   * Thread id.
   */
  tid: number;
}
/**
 * Memory that is given back to the kernel and faulted in again.
 */
export interface Churn {
  /**
   * Share (0 to 1) of the separately mapped blocks that an allocator maps, by the code that calls
   * `mmap(2)` or writes the first bytes, where that was seen: 0 means that the program maps them
   * itself.
   */
  allocator_blocks: number | null;
  bytes: Bytes;
  /**
   * Faults by churn, all routes together.
   */
  faults: Estimate | null;
  /**
   * 1 − distinct pages / faults over anonymous memory: 0 is none, 0.99 means each page
   * faulted a hundred times.
   */
  refault_ratio: Estimate | null;
  /**
   * Where it was touched again.
   */
  refault_sites: Site[];
  /**
   * Where it was obtained again (`sysmalloc` ← `malloc` ← caller).
   */
  regrow_sites: Site[];
  /**
   * Where memory was given back (`systrim` ← `free` ← caller), heaviest first.
   */
  release_sites: Site[];
  released_sizes: Histogram;
  /**
   * Single routes, most faults first.
   */
  routes: ChurnRoute[];
}
/**
 * Counts of values by logarithmic bucket.
 */
export interface Histogram {
  /**
   * Bucket index to count; see `bucket_of`.
   */
  buckets: {
    /**
     * This interface was referenced by `undefined`'s JSON-Schema definition
     * via the `patternProperty` "^\d+$".
     */
    [k: string]: number;
  };
  count: number;
  max: number;
  min: number;
  sum: number;
}
/**
 * One route by which memory is given back and faulted in again: how it is released, and what kind
 * of memory it is.
 */
export interface ChurnRoute {
  cause: Cause;
  /**
   * Faults, scaled to the exact total.
   */
  faults: number;
  region: RegionKind;
  released_sizes: Histogram;
}
/**
 * How events were collected, so that an analysis can take into account what may be missing.
 */
export interface Collection {
  /**
   * Whether an already running process was observed.
   */
  attached: boolean;
  /**
   * Windows during which each memory system call was recorded, on the events' clock. Empty
   * when none was.
   */
  call_windows: [Nanos, Nanos][];
  /**
   * Windows during which faults were recorded, on the events' clock; between them they were not,
   * to burden the program less. A fault in a window also stands for its share of the adjacent
   * pauses. Empty when faults were recorded all the time.
   */
  fault_windows: [Nanos, Nanos][];
  /**
   * Windows during which each fault was recorded with begin and end, on the events' clock.
   */
  latency_windows: [Nanos, Nanos][];
  /**
   * Windows during which each new mapping of data was recorded, on the events' clock. Empty
   * when none was.
   */
  mapping_windows: [Nanos, Nanos][];
  /**
   * Name of the mode: `sampled` or `full`.
   */
  mode: string;
  /**
   * What was requested but not available, in words for the user, each with its remedy.
   */
  notes: string[];
  own_cost: Nanos;
  /**
   * Whether every process of the machine was observed; the cost is then that of the machine, and
   * the command only determines the duration.
   */
  whole_machine: boolean;
}
/**
 * Faults by address and time, binned for drawing.
 */
export interface FaultMap {
  /**
   * Filled cells.
   */
  cells: FaultMapCell[];
  /**
   * Number of time bins.
   */
  columns: number;
  /**
   * Address rows, lowest first: only stretches that were touched are kept, so rows are not
   * evenly spaced.
   */
  rows: FaultMapRow[];
  time_step: Nanos;
}
/**
 * One cell of a `FaultMap`.
 */
export interface FaultMapCell {
  /**
   * Share of them that is churn.
   */
  churn: number;
  /**
   * Index of the time bin.
   */
  column: number;
  /**
   * Faults.
   */
  faults: number;
  /**
   * Index of the row.
   */
  row: number;
}
/**
 * One row of a `FaultMap`.
 */
export interface FaultMapRow {
  length: Bytes;
  region: RegionKind;
  /**
   * First address, as hexadecimal text (JSON numbers have only 53 bits).
   */
  start: string;
}
/**
 * Reads of one mapped file that threads waited for.
 */
export interface FileReads {
  /**
   * Share of the reads that continue from the thread's last one: forward by at most 32 MiB and
   * an eighth of the file. `None` for a single read.
   */
  in_order: number | null;
  /**
   * Whether it was mapped to be executed: a program or a library.
   */
  is_code: boolean;
  mapped: Bytes;
  /**
   * Its path.
   */
  path: string;
  /**
   * Major faults on it.
   */
  reads: number;
}
/**
 * Node of a flame graph, weights including the children's.
 */
export interface FlameNode {
  /**
   * Callees, heaviest first.
   */
  children: FlameNode[];
  /**
   * Module, empty where unknown.
   */
  module: string;
  /**
   * Function name.
   */
  name: string;
  /**
   * Weight of this frame and everything it called.
   */
  total: number;
}
/**
 * Huge pages seen in processes, and how much of them was in use.
 */
export interface HugePageUse {
  held: Bytes;
  /**
   * Share (0 to 1) of their base pages that contained only zeros; `None` where that could not be
   * read.
   */
  zeros: number | null;
}
/**
 * What one of them used while a program was observed, whatever it worked for.
 */
export interface KernelThread {
  cpu: Nanos;
  /**
   * Its name: `khugepaged`, `ksmd`, `kswapd0`, `kcompactd0`…
   */
  name: string;
}
/**
 * What was seen of them. There is none where at most one node has memory.
 */
export interface MemoryNodes {
  /**
   * Growth of the kernel's counters of NUMA balancing meanwhile, over the whole machine
   * (`numa_*` of `/proc/vmstat`); those that it lacks are absent.
   */
  balancing: {
    [k: string]: number;
  };
  /**
   * The nodes, by number.
   */
  nodes: MemoryNode[];
  /**
   * Whether a launcher may set the policy of the program's memory (set_mempolicy(2)): containers
   * often may not.
   */
  policy_can_be_set: boolean;
  /**
   * Processes whose memory was looked at, the largest first.
   */
  processes?: ProcessOnNodes[];
}
/**
 * A node of the machine.
 */
export interface MemoryNode {
  /**
   * Growth of its counters meanwhile, over all programs (`numastat`).
   */
  counters: {
    [k: string]: number;
  };
  /**
   * Its CPUs; a node of memory alone has none.
   */
  cpus: number[];
  /**
   * Its number.
   */
  id: number;
  /**
   * Its memory; 0 for a node of CPUs alone. `None` if it could not be read.
   */
  memory: Bytes | null;
}
/**
 * Where the memory of a process was, and where it ran.
 */
export interface ProcessOnNodes {
  misplaced?: Estimate;
  /**
   * Its name.
   */
  name: string;
  /**
   * Node by node.
   */
  nodes: OnNode[];
  /**
   * Its id.
   */
  pid: number;
  /**
   * Policy of most of its memory, as in `numa_maps`: `default`, `bind:0`, `interleave:0-1`…
   */
  policy: string;
  /**
   * Its share of the program's CPU time; `None` without samples.
   */
  share_of_cpu?: number;
}
/**
 * What a process has and does on one node.
 */
export interface OnNode {
  files: Bytes;
  memory: Bytes;
  /**
   * The node.
   */
  node: number;
  time?: Estimate;
}
/**
 * Time that faults cost.
 */
export interface FaultTime {
  /**
   * The same by cause.
   */
  by_cause: [Cause, Histogram][];
  /**
   * Processes that the program forked.
   */
  forks: number;
  /**
   * Time that threads waited for `mmap_lock`, where it could be seen.
   */
  lock_wait: Nanos | null;
  /**
   * Number of those waits.
   */
  lock_waits: number;
  /**
   * Latencies measured from begin and end events (nanoseconds), the recorder's own cost
   * subtracted.
   */
  measured: Histogram | null;
  /**
   * How `total_ns` was found: `measured` by single faults, `modelled`, `sampled` by CPU time.
   */
  method: string;
  /**
   * System calls on memory.
   */
  mm_calls: MmCallCost[];
  populate_requested: Bytes;
  /**
   * Share of CPU time (0 to 1).
   */
  share_of_cpu: Estimate | null;
  /**
   * Share of wall time of the busiest thread (0 to 1).
   */
  share_of_wall: Estimate | null;
  /**
   * Those of them that executed another program.
   */
  spawned: number;
  /**
   * All faults together, in nanoseconds, entry and exit of the exception included.
   */
  total_ns: Estimate | null;
}
/**
 * One system call that changes the address space, summed up.
 */
export interface MmCallCost {
  bytes: Bytes;
  /**
   * `mmap`, `munmap`, `brk`, `madvise`, `mremap`, `mprotect`; `fork`, which covers no bytes.
   */
  call: string;
  /**
   * How often.
   */
  calls: number;
  /**
   * Time inside the call, where entry and exit were recorded.
   */
  time: Nanos | null;
}
/**
 * Readings in time order.
 */
export interface Timeline {
  /**
   * Points that are missing because a reading failed or came after the next was due.
   */
  gaps: number;
  interval: Nanos;
  /**
   * What the sampler changed or could not read, in words for the user.
   */
  notes?: string[];
  /**
   * Of the process tree.
   */
  points: TimelinePoint[];
  /**
   * Of the machine and cgroup.
   */
  pressure: PressurePoint[];
}
/**
 * One reading of a process tree. Counters are cumulative since observation began.
 */
export interface TimelinePoint {
  /**
   * Processes whose main thread was running, or waiting only for a CPU or a disk, at that
   * moment; `None` if this was not checked.
   */
  active?: number;
  /**
   * Major faults in total.
   */
  major_faults: number;
  /**
   * Minor faults in total.
   */
  minor_faults: number;
  /**
   * Processes alive.
   */
  processes: number;
  /**
   * Proportional set size, where it was read (it is costly, so not at every point).
   */
  pss: Bytes | null;
  rss: Bytes;
  swap: Bytes;
  system: Nanos;
  /**
   * Threads alive.
   */
  threads: number;
  time: Nanos;
  user: Nanos;
  vsize: Bytes;
}
/**
 * One reading of the machine's or the cgroup's memory pressure. Counters are cumulative since
 * observation began.
 */
export interface PressurePoint {
  /**
   * How often the cgroup hit its limit (`memory.failcnt` or `memory.events` `max`).
   */
  cgroup_limit_hits: number | null;
  /**
   * Memory of the cgroup, where it could be read.
   */
  cgroup_usage: Bytes | null;
  /**
   * Direct compaction stalls (`compact_stall`).
   */
  compact_stalls: number;
  /**
   * Pages that direct reclaim scanned (`pgscan_direct*`).
   */
  direct_scanned: number;
  /**
   * Pages that kswapd scanned (`pgscan_kswapd*`).
   */
  kswapd_scanned: number;
  /**
   * Anonymous pages refaulted soon after eviction (`workingset_refault_anon`).
   */
  refaults_anon: number;
  /**
   * File pages refaulted soon after eviction (`workingset_refault_file`).
   */
  refaults_file: number;
  /**
   * Time in which all tasks were stalled on memory (PSI `full`), where PSI is on.
   */
  stall_full: Nanos | null;
  /**
   * Time in which some task was stalled on memory (PSI `some`), where PSI is on.
   */
  stall_some: Nanos | null;
  /**
   * Pages swapped in (`pswpin`).
   */
  swap_in: number;
  /**
   * Pages swapped out (`pswpout`).
   */
  swap_out: number;
  /**
   * Huge pages built by khugepaged (`thp_collapse_alloc`).
   */
  thp_collapse: number;
  /**
   * Huge pages allocated at fault time (`thp_fault_alloc`).
   */
  thp_fault_alloc: number;
  /**
   * Huge pages requested at fault time but not available (`thp_fault_fallback`).
   */
  thp_fault_fallback: number;
  /**
   * Huge pages split (`thp_split_page`).
   */
  thp_split: number;
  time: Nanos;
}
/**
 * Everything that was tried, and the best of it.
 */
export interface Tuning {
  /**
   * Baseline first.
   */
  arms: Arm[];
  clock: Clock;
  /**
   * Each arm that was not rejected, compared with the baseline.
   */
  comparisons: Comparison[];
  /**
   * Whether the best setting did no better than a placebo of the same length.
   */
  luck: boolean;
  /**
   * Time against memory, the baseline included.
   */
  time_and_memory: Point[];
  /**
   * The best setting, if fresh runs show with certainty that it is faster.
   */
  winner: Winner | null;
}
/**
 * One way of running the command.
 */
export interface Arm {
  /**
   * How the command failed with these settings, if it did: such settings are not a remedy.
   */
  failed?: string;
  /**
   * Short name: `baseline`, `both knobs`, `jemalloc`.
   */
  name: string;
  /**
   * Each run's cost in the order in which the rounds ran.
   */
  runs: RunCost[];
  settings: Settings;
}
/**
 * Baseline compared with one arm, over pairs of runs.
 */
export interface Comparison {
  /**
   * Name of the arm.
   */
  arm: string;
  cpu_speedup: Estimate;
  fault_ratio: Estimate;
  /**
   * p-value of "no change in CPU time", adjusted for the number of arms (Holm).
   */
  p_adjusted: number;
  /**
   * Number of pairs.
   */
  pairs: number;
  /**
   * Arm minus baseline of peak resident bytes, median (negative: less memory).
   */
  rss_change_bytes: number;
  verdict: Verdict;
  wall_speedup: Estimate;
}
/**
 * One setting's position.
 */
export interface Point {
  /**
   * Arm.
   */
  arm: string;
  /**
   * Whether it differs and no other such setting is better in one figure and no worse in the
   * other.
   */
  on_front: boolean;
  /**
   * Peak resident bytes, typical.
   */
  peak_bytes: number;
  /**
   * Seconds, typical.
   */
  seconds: number;
  /**
   * Whether it differs from the baseline with certainty, or is the baseline. Others are noise.
   */
  told_apart: boolean;
}
/**
 * The setting to use.
 */
export interface Winner {
  confirmation: Comparison;
  /**
   * The settings for a shell, systemd, Docker and Kubernetes, by label.
   */
  exports: {
    [k: string]: string;
  };
  /**
   * Its name.
   */
  name: string;
  /**
   * What it costs, in words.
   */
  price: string;
  settings: Settings;
  /**
   * The smallest value that is as good.
   */
  smallest_sufficient_value: Bytes | null;
  /**
   * What fresh runs showed, in a sentence.
   */
  summary: string;
  /**
   * The value that won.
   */
  won_at_value: Bytes | null;
}
/**
 * One row. Counters are cumulative; rates are since the row before.
 */
export interface Row {
  /**
   * Major faults in total.
   */
  major_faults: number;
  /**
   * Major faults per second.
   */
  major_faults_per_s: number;
  /**
   * Minor faults in total.
   */
  minor_faults: number;
  /**
   * Minor faults per second.
   */
  minor_faults_per_s: number;
  /**
   * Processes alive.
   */
  processes: number;
  /**
   * Proportional set size in bytes; absent where it was not read at this point, since it is costly.
   */
  pss_bytes: number | null;
  /**
   * Resident memory in bytes.
   */
  rss_bytes: number;
  /**
   * Swapped out, in bytes.
   */
  swap_bytes: number;
  /**
   * System CPU seconds so far.
   */
  system_s: number;
  /**
   * Threads alive.
   */
  threads: number;
  /**
   * Seconds since watching began.
   */
  time_s: number;
  /**
   * User CPU seconds so far.
   */
  user_s: number;
  /**
   * Virtual size in bytes.
   */
  vsize_bytes: number;
}
/**
 * Settings of the machine that recorded, each under a stable dotted name.
 */
export interface HostSnapshot {
  /**
   * Architecture, as `uname -m`.
   */
  architecture: string;
  /**
   * Counters and current amounts of the machine, next to its settings: `ksm.pages_shared`,
   * `hugetlb.2048kB.free`… They differ between any two moments and are no sign of a change.
   */
  counters?: {
    [k: string]: string;
  };
  /**
   * CPU model name.
   */
  cpu: string;
  /**
   * CPUs online.
   */
  cpus: number;
  /**
   * Host name.
   */
  hostname: string;
  /**
   * Kernel release, as `uname -r`.
   */
  kernel: string;
  /**
   * Physical memory in bytes.
   */
  memory_bytes: number;
  /**
   * Base page size in bytes.
   */
  page_size: number;
  /**
   * Everything else: `vm.swappiness`, `thp.enabled`, `mitigations.meltdown`,
   * `block.vda.scheduler`, `cgroup.memory.limit`…; for the observed program,
   * `environment.GLIBC_TUNABLES`, `limit.stack`… Absent where unreadable.
   */
  settings: {
    [k: string]: string;
  };
}
/**
 * A finished experiment.
 */
export interface Proof {
  /**
   * All arms, the baseline first.
   */
  arms: Arm[];
  /**
   * Each arm except the first, compared with the first.
   */
  comparisons: Comparison[];
  /**
   * A fresh comparison of the winner alone, with runs that were not used to choose it.
   */
  confirmation: Comparison | null;
  /**
   * Things a reader should know: noisy machine, failed runs, early end.
   */
  notes: string[];
  /**
   * Verdict in words.
   */
  summary: string;
  /**
   * The chosen arm, if any.
   */
  winner: string | null;
}
