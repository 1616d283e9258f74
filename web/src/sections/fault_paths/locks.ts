/** Waits for locks, the tasks that held them, and the two paths of charging a page. */
import type { ChargePath, FaultPathsPage, Holder, LockWait } from "../../data/faultPaths";
import { h } from "../../dom";
import { latencyChart } from "../../draw/latency";
import { interval, count, counted, nanos, percent } from "../../format";
import { logAxis } from "../../layout/latency";
import type { Section } from "../section";
import { absent } from "./absent";

const LOCKS: Record<string, string> = { mmap: "mmap lock", vma: "VMA lock", rwsem: "rw semaphore", percpu_rwsem: "per-CPU rw semaphore", folio: "folio lock", mutex: "mutex" };

export const locks: Section<FaultPathsPage> = {
  id: "locks",
  title: "Lock waits and memory charges",
  nav: "Locks",
  applies: ({ findings }) => findings.faults > 0,
  intro: () => "Time to get the mmap lock and others around and inside faults, as traced, with who held it where the trace tells; and charging pages to the memory cgroup, from the CPU's stock or from the counters.",
  render: (report) => {
    const { lock_waits, charges } = report.findings;
    return h("div", {}, h("h3", {}, "Locks"), lockTable(lock_waits.locks), areaLocks(lock_waits.locks), holders(report, lock_waits.holders), h("h3", {}, "Charges"), chargeTable(charges));
  },
};

function lockTable(locks: LockWait[]): HTMLElement {
  if (locks.length === 0)
    return absent(
      "no function that takes a lock is among its calls",
      "Lock waits happen outside handle_mm_fault: trace the fault's entry or lock_mm_and_find_vma, down_read and lock_vma_under_rcu too (pagewise trace does).",
    );
  const heads = ["Calls", "Slow", "Median", "99th", "Longest", "Share of fault time"];
  return h(
    "div",
    { class: "scroll" },
    h(
      "table",
      { class: "bars plain" },
      h("caption", { class: "sr" }, "Locks"),
      h("thead", {}, h("tr", {}, h("th", {}, "Lock"), h("th", {}, "Taken by"), ...heads.map((head) => h("th", { class: "number" }, head)), h("th", { class: "lock-spark" }, "Distribution"))),
      h("tbody", {}, ...locks.map(lockRow)),
    ),
  );
}

/**
 * Faults that tried only the per-VMA lock (since 6.4); at most as many continued to the mmap lock
 * as got that lock.
 */
function areaLocks(locks: LockWait[]): HTMLElement | null {
  const gets = (lock: string) => locks.filter((wait) => wait.lock === lock && !wait.inside_fault).reduce((sum, wait) => sum + wait.latency.count, 0);
  const tries = gets("vma");
  if (tries === 0) return null;
  const enough = tries - Math.min(tries, gets("mmap"));
  return h("p", {}, `The per-VMA lock alone was enough in at least ${count(enough)} of ${counted(tries, "fault")} that tried it (${percent(enough / tries)}).`);
}

function lockRow(wait: LockWait): HTMLElement {
  const { latency } = wait;
  const figures = [count(latency.count), count(wait.slow), nanos(latency.p50_ns), nanos(latency.p99_ns), nanos(latency.max_ns), percent(wait.share)];
  const chart = latencyChart({ title: `${wait.function}, as traced`, axis: logAxis([latency]), series: [{ name: "calls", ink: "k4", buckets: latency.buckets }], modes: [], height: 84, unit: "calls" });
  return h("tr", {}, h("th", { scope: "row" }, LOCKS[wait.lock] ?? wait.lock), h("td", {}, h("code", {}, wait.function), h("div", { class: "faint" }, wait.inside_fault ? "inside faults" : "before faults")), ...figures.map((figure) => h("td", { class: "number" }, figure)), h("td", { class: "lock-spark" }, h("div", {}, chart)));
}

const HOLDS: Record<Holder["how"], string> = {
  writing: "held it for writing",
  reading: "held it for reading",
  queued: "was queued to write, before them",
};

function holders(report: FaultPathsPage, holders: Holder[]): HTMLElement | null {
  const { attributed, attributed_ns, locks } = report.findings.lock_waits;
  if (attributed[1] === 0) {
    if (locks.length === 0) return null;
    return h("p", { class: "absent" }, "No wait for the mmap lock of 0.1 ms or more, as its events tell it (mmap_lock_start_locking and those after it, which pagewise trace records): so no holder is named.");
  }
  const words = `The trace shows who was waited for in ${count(attributed[0])} of ${count(attributed[1])} waits for the mmap lock of 0.1 ms and more: ${nanos(attributed_ns[0])} of ${nanos(attributed_ns[1])}. In the rest, no traced task held it: the waiter was woken late or preempted, or an untraced task held it.`;
  const row = (holder: Holder) =>
    h("tr", {}, h("th", { scope: "row" }, `${holder.task} (${holder.pid})`), h("td", {}, HOLDS[holder.how]), h("td", { class: "value" }, holder.doing ?? "–"), ...[count(holder.waits), nanos(holder.wait_ns), nanos(holder.longest_hold_ns)].map((figure) => h("td", { class: "number" }, figure)));
  return h(
    "div",
    {},
    h("p", {}, words),
    holders.length > 0 && h("div", { class: "scroll" }, h("table", {}, h("caption", {}, "Who was waited for"), h("thead", {}, h("tr", {}, h("th", {}, "Task"), h("th", {}, "What it did"), h("th", {}, "While it held the lock"), ...["Waits", "Time waited", "Longest"].map((head) => h("th", { class: "number" }, head)))), h("tbody", {}, ...holders.slice(0, 10).map(row)))),
  );
}

const WAYS: Record<ChargePath["way"], string> = {
  stock_hit: "from the CPU's stock (consume_stock, or try_charge_memcg that asks no counter)",
  refill: "from the cgroup's counters (page_counter_try_charge, refill_stock)",
  reclaim: "limit met, memory reclaimed first",
  untold: "neither: the root cgroup, or inlined on this kernel",
};

function chargeTable(charges: ChargePath[]): HTMLElement {
  if (charges.length === 0) return absent("no fault charges a page to a memory cgroup, or the functions are not among those traced");
  const axis = logAxis(charges.flatMap((charge) => [charge.latency.raw, charge.latency.corrected]));
  const row = (charge: ChargePath, at: number) => {
    const { raw, corrected, bounds } = charge.latency;
    const chart = (which: "raw" | "corrected") => h("div", {}, latencyChart({ title: `${WAYS[charge.way]}, ${which}`, axis, series: [{ name: "faults", ink: at === 0 ? "k0" : "k1", buckets: charge.latency[which].buckets }], modes: [], height: 84, unit: "faults" }));
    return h("tr", {}, h("th", { scope: "row" }, WAYS[charge.way]), ...[count(charge.faults), percent(charge.share), nanos(raw.p50_ns), interval(corrected.p50_ns, bounds?.p50_ns), interval(corrected.p99_ns, bounds?.p99_ns)].map((figure) => h("td", { class: "number" }, figure)), h("td", { class: "lock-spark" }, chart("raw")), h("td", { class: "lock-spark" }, chart("corrected")));
  };
  return h(
    "div",
    { class: "scroll" },
    h("table", { class: "bars" }, h("caption", { class: "sr" }, "Charges"), h("thead", {}, h("tr", {}, h("th", {}, "How"), ...["Faults", "Share", "Median traced", "Median", "99th"].map((head) => h("th", { class: "number" }, head)), h("th", { class: "lock-spark" }, "as traced"), h("th", { class: "lock-spark" }, "corrected"))), h("tbody", {}, ...charges.map(row))),
  );
}
