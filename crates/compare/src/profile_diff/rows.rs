//! The rows of a comparison: functions, stacks, the drawn tree, frames without a name, counters.

use super::Samples;
use super::chance::Tested;
use super::cuts::{Chosen, Cuts};
use super::union::Union;
use pagewise_model::answer::Subject;
use pagewise_model::profile::Profile;
use pagewise_model::profile_diff::{
    Change, CounterChange, DiffNode, StackChange, UnknownChange, Weighed,
};
use pagewise_model::profile_findings::CounterRate;
use pagewise_model::side::Side;
use pagewise_model::units::Nanos;
use pagewise_profile::weigh::Idle;

/// Nodes of the drawn tree have at least this share of the larger side.
const LEAST_DRAWN: f64 = 0.001;
/// Rows that are kept.
const MOST_ROWS: usize = 200;

pub(super) fn functions(
    union: &Union,
    cuts: &Cuts,
    chosen: &Chosen,
    tested: &[Tested],
) -> Vec<Change> {
    let (a, b) = (cuts.function(union, 0), cuts.function(union, 1));
    let mut changes: Vec<Change> = chosen
        .functions
        .iter()
        .zip(tested)
        .map(|(&at, tested)| {
            let frame = &union.frames[at];
            Change {
                name: frame.name.to_string(),
                module: frame.module.to_string(),
                kind: frame.kind,
                unnamed: frame.unnamed,
                a: a[at].1,
                b: b[at].1,
                own: (a[at].0, b[at].0),
                change: centred(tested, b[at].1 - a[at].1),
                p_adjusted: tested.p_adjusted,
                significant: tested.is_significant(),
            }
        })
        .collect();
    changes.sort_by(|x, y| {
        let size = |change: &Change| change.change.value.abs();
        // Frames without a name combine many functions: named ones are more informative.
        (y.significant.cmp(&x.significant))
            .then(x.unnamed.is_some().cmp(&y.unnamed.is_some()))
            .then(size(y).total_cmp(&size(x)))
    });
    changes.truncate(MOST_ROWS);
    changes
}

pub(super) fn stacks(
    union: &Union,
    cuts: &Cuts,
    chosen: &Chosen,
    tested: &[Tested],
) -> Vec<StackChange> {
    let mut changes: Vec<(bool, StackChange)> = chosen
        .nodes
        .iter()
        .zip(tested)
        .map(|(&at, tested)| {
            let (a, b) = (cuts.totals[0][at], cuts.totals[1][at]);
            let change = StackChange {
                frames: union.names(at),
                a,
                b,
                change: centred(tested, b - a),
                p_adjusted: tested.p_adjusted,
                significant: tested.is_significant(),
            };
            (union.ends_unnamed(at), change)
        })
        .collect();
    changes.sort_by(|(x_unnamed, x), (y_unnamed, y)| {
        let size = |change: &StackChange| change.change.value.abs();
        let deep = |change: &StackChange| change.frames.len();
        (y.significant.cmp(&x.significant))
            .then(x_unnamed.cmp(y_unnamed))
            .then(size(y).total_cmp(&size(x)))
            .then(deep(y).cmp(&deep(x)))
    });
    changes.truncate(MOST_ROWS);
    changes.into_iter().map(|(_, change)| change).collect()
}

/// Shares of samples that contain frames without a name on either side, from one in a hundred on.
pub(super) fn unknown(a: &Profile, b: &Profile) -> Vec<UnknownChange> {
    const LEAST: f64 = 0.01;
    let mut changes: Vec<UnknownChange> = Vec::new();
    for (is_b, profile) in [(false, a), (true, b)] {
        for cause in pagewise_profile::unknown::causes(profile, &Idle::new(profile)) {
            let known = changes
                .iter()
                .position(|known| known.reason == cause.reason && known.module == cause.module);
            let at = known.unwrap_or_else(|| {
                changes.push(UnknownChange {
                    reason: cause.reason,
                    module: cause.module,
                    a: 0.0,
                    b: 0.0,
                    remedy: cause.remedy,
                });
                changes.len() - 1
            });
            *(if is_b {
                &mut changes[at].b
            } else {
                &mut changes[at].a
            }) = cause.touched;
        }
    }
    changes.retain(|change| change.a.max(change.b) >= LEAST);
    changes.sort_by(|x, y| y.a.max(y.b).total_cmp(&x.a.max(x.b)));
    changes
}

/// The interval centred on the difference of the wholes; the remainder in the last block makes the
/// blocks' mean differ from it a little.
fn centred(tested: &Tested, value: f64) -> pagewise_model::units::Estimate {
    let shift = value - tested.change.value;
    pagewise_model::units::Estimate {
        value,
        low: tested.change.low + shift,
        high: tested.change.high + shift,
    }
}

pub(super) fn tree(union: &Union, cuts: &Cuts) -> Vec<DiffNode> {
    let least = LEAST_DRAWN * cuts.totals[0][0].max(cuts.totals[1][0]);
    let mut numbers = vec![None; union.tree.len()];
    let mut nodes = vec![DiffNode {
        parent: 0,
        name: "all".to_owned(),
        module: String::new(),
        a: cuts.totals[0][0],
        b: cuts.totals[1][0],
    }];
    numbers[0] = Some(0_u32);
    for (node, parent, frame) in union.tree.nodes() {
        let at = node.0 as usize;
        let (a, b) = (cuts.totals[0][at], cuts.totals[1][at]);
        let (Some(parent), true) = (numbers[parent.0 as usize], a.max(b) >= least) else {
            continue;
        };
        numbers[at] = u32::try_from(nodes.len()).ok();
        let frame = &union.frames[frame.0 as usize];
        nodes.push(DiffNode {
            parent,
            name: frame.name.to_string(),
            module: frame.module.to_string(),
            a,
            b,
        });
    }
    nodes
}

pub(super) fn side(samples: &Samples<'_>, name: &str, event: &str) -> Side<Weighed> {
    let known = samples
        .profile
        .events
        .iter()
        .find(|known| known.name == event);
    let sums = Weighed {
        samples: samples.count(),
        weight: samples.samples.iter().map(|sample| sample.weight).sum(),
        unit: known.map(|event| event.unit),
        span: Nanos(match samples.profile.has_times {
            true => samples.span,
            false => 0,
        }),
        cpus: samples.cpus,
    };
    Side {
        name: name.to_owned(),
        subject: Subject::of_command(samples.profile.command.clone()),
        host: samples.profile.host.hostname.clone(),
        sums,
    }
}

/// Counters and ratios that both have.
pub(super) fn counters(a: &Profile, b: &Profile) -> Vec<CounterChange> {
    let others = pagewise_profile::counters::rates(b);
    let pair = |rate: CounterRate| {
        let other = others.iter().find(|other| other.name == rate.name)?;
        Some(CounterChange {
            name: rate.name,
            a: rate.rate,
            b: other.rate,
        })
    };
    pagewise_profile::counters::rates(a)
        .into_iter()
        .filter_map(pair)
        .collect()
}
