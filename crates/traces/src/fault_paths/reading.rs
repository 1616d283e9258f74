//! The assumptions made in reading a trace, and signs that they were right.

use super::collector::Collector;
use super::layer::Layer;
use super::roles::Roles;
use super::shapes::{Shape, end_of};
use super::signature::Signs;
use pagewise_model::fault_paths::{Reading, SleepTime};

/// The signs of a trace.
pub(super) fn reading(collector: &Collector) -> Reading {
    let sleep_time = match collector.sleep_signs {
        (0, 0) => SleepTime::Assumed,
        (shorter, longer) if longer > shorter => SleepTime::Excluded,
        _ => SleepTime::Included,
    };
    Reading {
        sleep_time,
        depth_limit: depth_limit(collector),
        interrupts_by_place: collector.by_place,
        trees_beyond_limit: collector.shapes.beyond_limit,
    }
}

/// The deepest level, if most faults that reach it end there in calls that normally call others
/// (`max_graph_depth`).
fn depth_limit(collector: &Collector) -> Option<u16> {
    let depth = |shape: &Shape| shape.tokens.iter().map(|token| token.depth()).max();
    let shapes = &collector.shapes.all;
    let deepest = shapes
        .iter()
        .filter_map(depth)
        .max()
        .filter(|&depth| depth > 0)?;
    let (mut reach, mut cut) = (0, 0);
    for shape in shapes.iter().filter(|shape| depth(shape) == Some(deepest)) {
        let faults = shape.latency[Layer::Fault as usize].count;
        reach += faults;
        if ends_too_early(shape, deepest, &collector.roles) {
            cut += faults;
        }
    }
    (cut * 2 > reach).then_some(deepest)
}

/// Whether a call at this level makes no calls although it should.
fn ends_too_early(shape: &Shape, level: u16, roles: &Roles) -> bool {
    let tokens = shape.tokens.iter().enumerate();
    tokens
        .filter(|(_, token)| token.depth() == level)
        .any(|(node, token)| {
            let role = roles.role(token.name());
            let calls_others = role.signs.has(Signs::FRAME)
                || matches!(
                    role.layer,
                    Some(Layer::MmFault | Layer::Handler | Layer::Allocation)
                );
            calls_others && end_of(&shape.tokens, node) == node + 1
        })
}
