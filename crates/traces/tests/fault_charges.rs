//! The code paths of a charge to a limited memory cgroup, on captures of two kernels that contain
//! all of them.

use pagewise_formats::function_graph;
use pagewise_model::fault_paths::ChargeWay;
use pagewise_traces::fault_paths::{Collector, analyse, estimate};
use std::collections::BTreeMap;
use std::path::Path;

fn text(kernel: &str) -> Vec<u8> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/charges");
    let packed = std::fs::read(folder.join(format!("{kernel}.txt.zst"))).expect("a capture");
    zstd::decode_all(&packed[..]).expect("zstd")
}

/// The slowest path of each fault's charges, from the lines of each task with nothing but its open
/// calls. A fault may begin again before the previous one ended: the filters changed meanwhile.
fn naively(text: &[u8]) -> BTreeMap<ChargeWay, u64> {
    let mut found = BTreeMap::new();
    let mut tasks: BTreeMap<&str, (Vec<&str>, Vec<ChargeWay>)> = BTreeMap::new();
    let text = std::str::from_utf8(text).expect("plain text");
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        let columns: Vec<&str> = line.splitn(4, '|').collect();
        let &[_, task, _, call] = &columns[..] else {
            continue;
        };
        let task = task.trim().rsplit('-').next().expect("a process");
        let (open, ways) = tasks.entry(task).or_default();
        let call = call.trim();
        if let Some(name) = call.strip_suffix("() {").or(call.strip_suffix("();")) {
            if name == "handle_mm_fault" {
                open.clear();
                ways.clear();
            }
            open.push(name);
            let charge = open.iter().position(|open| *open == "__mem_cgroup_charge");
            if open.contains(&"handle_mm_fault") && charge.is_some_and(|at| at + 1 < open.len()) {
                ways.push(match name {
                    "try_to_free_mem_cgroup_pages" => ChargeWay::Reclaim,
                    "page_counter_try_charge" | "refill_stock" => ChargeWay::Refill,
                    "try_charge_memcg" => ChargeWay::StockHit,
                    _ => ChargeWay::Untold,
                });
            }
        }
        if (call.starts_with('}') || call.ends_with("();"))
            && open.pop() == Some("handle_mm_fault")
            && let Some(slowest) = std::mem::take(ways).into_iter().max()
        {
            *found.entry(slowest).or_default() += 1;
        }
    }
    found
}

#[test]
fn stock_and_reclaim_differ_with_consume_stock_inlined() {
    for kernel in ["6.1", "6.12"] {
        let text = text(kernel);
        let mut collector = Collector::default();
        let summary = function_graph::read(&text[..], &mut collector).expect("readable");
        let report = analyse(&collector, &summary, estimate(&collector));
        let ways = report.charges.iter().map(|c| (c.way, c.faults));
        let ways: BTreeMap<ChargeWay, u64> = ways.collect();
        assert_eq!(ways, naively(&text), "{kernel}");
        let all: u64 = ways.values().sum();
        for way in [
            ChargeWay::StockHit,
            ChargeWay::Refill,
            ChargeWay::Reclaim,
            // Before the program moved into the cgroup, it was in the root cgroup.
            ChargeWay::Untold,
        ] {
            assert!(ways[&way] >= 5, "{kernel}: {way:?} of {ways:?}");
        }
        // The stock has 64 pages, so most charges find it filled.
        assert!(
            ways[&ChargeWay::StockHit] > all * 4 / 5,
            "{kernel}: {ways:?}"
        );
        let median = |way: ChargeWay| {
            let found = report.charges.iter().find(|charge| charge.way == way);
            found.expect("met").latency.corrected.p50_ns
        };
        assert!(
            median(ChargeWay::StockHit) < median(ChargeWay::Refill),
            "{kernel}"
        );
        assert!(
            median(ChargeWay::Reclaim) > 100 * median(ChargeWay::Refill),
            "{kernel}"
        );
    }
}
