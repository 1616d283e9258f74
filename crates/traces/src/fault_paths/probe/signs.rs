//! What single calls show about the tracer's cost.

use rustc_hash::FxHashMap;

/// Values kept of a group; if there are more, every second one is dropped, so that the kept ones
/// are spread over the whole trace.
const MOST_VALUES: usize = 512;
/// Groups kept: functions by their number of direct calls. Later ones are ignored.
const MOST_GROUPS: usize = 1 << 14;
/// Callers with more direct calls than this add no information.
const MOST_DIRECT_CALLS: u32 = 64;

/// Self times by function and number of direct calls.
#[derive(Clone, Debug, Default)]
pub(in super::super) struct ProbeSigns {
    groups: FxHashMap<(u32, u32), Group>,
}

/// Self times of one function's calls that made the same number of calls: a sample, ns.
#[derive(Clone, Debug)]
struct Group {
    values: Vec<u32>,
    until_next: u32,
    stride: u32,
}

/// A group in figures, ns.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Own {
    pub function: u32,
    pub direct_calls: u32,
    pub p10: f64,
    pub p50: f64,
    pub p90: f64,
}

impl ProbeSigns {
    #[inline]
    pub(in super::super) fn record(&mut self, function: u32, direct_calls: u32, own_ns: u64) {
        let Ok(own_ns) = u32::try_from(own_ns) else {
            return;
        };
        if direct_calls > MOST_DIRECT_CALLS {
            return;
        }
        let full = self.groups.len() >= MOST_GROUPS;
        let key = (function, direct_calls);
        match self.groups.get_mut(&key) {
            Some(group) => group.record(own_ns),
            None if full => {}
            None => {
                self.groups.insert(key, Group::new(own_ns));
            }
        }
    }

    /// The groups with at least `least` values.
    pub(super) fn groups(&self, least: usize) -> Vec<Own> {
        let enough = self.groups.iter().filter(|(_, g)| g.values.len() >= least);
        let mut found: Vec<Own> = enough.map(|(&key, group)| group.figures(key)).collect();
        found.sort_by_key(|own| (own.function, own.direct_calls));
        found
    }
}

impl Group {
    fn new(value: u32) -> Self {
        Self {
            values: vec![value],
            until_next: 0,
            stride: 1,
        }
    }

    fn record(&mut self, value: u32) {
        if self.until_next > 0 {
            self.until_next -= 1;
            return;
        }
        self.values.push(value);
        if self.values.len() >= MOST_VALUES {
            let mut at = 0;
            self.values.retain(|_| {
                at += 1;
                at % 2 == 1
            });
            self.stride = self.stride.saturating_mul(2);
        }
        self.until_next = self.stride - 1;
    }

    fn figures(&self, (function, direct_calls): (u32, u32)) -> Own {
        let mut sorted = self.values.clone();
        sorted.sort_unstable();
        let at = |percent: usize| f64::from(sorted[(sorted.len() - 1) * percent / 100]);
        Own {
            function,
            direct_calls,
            p10: at(10),
            p50: at(50),
            p90: at(90),
        }
    }
}
