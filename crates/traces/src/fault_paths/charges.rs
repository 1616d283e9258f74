//! The code paths of a charge to the memory cgroup.
//!
//! A charge is taken from the CPU's stock of 64 pages (`consume_stock`) or from the counters of the
//! cgroup and its ancestors (`page_counter_try_charge`), which refills the stock (`refill_stock`)
//! unless the limit is near; at the limit, memory is reclaimed first. Source: `try_charge` in
//! `mm/memcontrol.c`. Compilers inline `consume_stock`: a `try_charge_memcg` without a counter call
//! found the stock filled. The root cgroup is charged without any of these calls.

use super::collector::Collector;
use super::corrected::{Group, latencies};
use super::layer::Layer;
use super::probe::Costs;
use super::shapes::{Shape, end_of};
use pagewise_formats::function_graph::{NameId, Names};
use pagewise_model::fault_paths::{ChargePath, ChargeWay, Latencies};
use std::collections::BTreeMap;

/// Charges by their path, the most frequent first; empty if the trace shows none, or nothing below
/// them.
pub(super) fn charges(collector: &Collector, names: &Names, costs: Costs<'_>) -> Vec<ChargePath> {
    let mut ways: BTreeMap<ChargeWay, Vec<Group<'_>>> = BTreeMap::new();
    for shape in &collector.shapes.all {
        if let Some((way, calls)) = way(shape, names) {
            let tally = &shape.latency[Layer::Charge as usize];
            ways.entry(way).or_default().push(Group {
                times: tally,
                calls,
                interrupts: 0.0,
                cost: costs.calibration(shape.source),
            });
        }
    }
    let latencies =
        |(way, charges): (ChargeWay, Vec<Group<'_>>)| (way, latencies(charges.into_iter()));
    let ways: Vec<(ChargeWay, Latencies)> = ways.into_iter().map(latencies).collect();
    let all: u64 = ways.iter().map(|(_, latency)| latency.raw.count).sum();
    let charge = |(way, latency): (ChargeWay, Latencies)| ChargePath {
        way,
        faults: latency.raw.count,
        share: super::figures::ratio(latency.raw.count, all),
        latency,
    };
    let mut found: Vec<ChargePath> = ways.into_iter().map(charge).collect();
    found.sort_by_key(|charge| std::cmp::Reverse(charge.faults));
    found
}

/// The slowest path of the charges of a shape, and the number of calls inside them.
fn way(shape: &Shape, names: &Names) -> Option<(ChargeWay, usize)> {
    let charges = shape
        .places
        .iter()
        .filter(|place| place.layer == Layer::Charge);
    let each = charges.map(|place| {
        let node = place.node as usize;
        let inside = &shape.tokens[node + 1..end_of(&shape.tokens, node)];
        let has = |wanted: &[&str]| {
            let name = |token: &super::shapes::Token| names.base(NameId(token.name()));
            inside.iter().any(|token| wanted.contains(&name(token)))
        };
        let way = if has(&["try_to_free_mem_cgroup_pages", "mem_cgroup_oom"]) {
            ChargeWay::Reclaim
        } else if has(&["page_counter_try_charge", "refill_stock"]) {
            ChargeWay::Refill
        } else if has(&["consume_stock", "try_charge", "try_charge_memcg"]) {
            ChargeWay::StockHit
        } else {
            ChargeWay::Untold
        };
        // A charge that is a leaf was not traced inside: its path is not known.
        (!inside.is_empty()).then_some((way, inside.len()))
    });
    each.flatten()
        .reduce(|(way, calls), (next, more)| (way.max(next), calls + more))
}
