//! The tracer's cost by source of the calls: merged reports may come from several kernels.

use pagewise_model::fault_paths::{Calibration, Source};

/// The cost of each source of a collector's calls.
#[derive(Clone, Copy)]
pub(in super::super) struct Costs<'a> {
    one: &'a Calibration,
    several: &'a [Calibration],
}

impl<'a> Costs<'a> {
    /// Where sources have separate costs, these; otherwise all sources have this cost.
    pub(in super::super) fn new(several: &'a [Calibration], one: &'a Calibration) -> Self {
        Self { one, several }
    }

    /// The cost of one source, as numbered in shapes and contexts.
    pub(in super::super) fn calibration(&self, source: u16) -> &'a Calibration {
        self.several.get(usize::from(source)).unwrap_or(self.one)
    }

    /// Whether any figure is corrected.
    pub(in super::super) fn corrects(&self) -> bool {
        match self.several.is_empty() {
            true => self.one.corrects(),
            false => self.several.iter().any(Calibration::corrects),
        }
    }
}

/// Merges the costs that agree within their errors. The result does not depend on their order.
pub(in super::super) fn pooled(costs: &[Calibration]) -> Vec<Calibration> {
    let mut sorted: Vec<Calibration> = costs.to_vec();
    sorted.sort_by(|a, b| {
        let by_cost = a.per_call_ns.total_cmp(&b.per_call_ns);
        by_cost.then(a.inside_ns.total_cmp(&b.inside_ns))
    });
    let mut pools: Vec<Vec<Calibration>> = Vec::new();
    for cost in sorted {
        match pools.last_mut() {
            Some(pool) if agree(&pool[0], &cost) => pool.push(cost),
            _ => pools.push(vec![cost]),
        }
    }
    pools.iter().map(|pool| pool_of(pool)).collect()
}

/// The position of a cost among the pooled ones. A source without a cost of its own gets that of
/// the others, if these agree.
pub(in super::super) fn place(pools: &[Calibration], cost: &Calibration) -> Option<usize> {
    let correcting = || (0..pools.len()).filter(|&at| pools[at].corrects());
    if cost.source == Source::Nothing && correcting().count() == 1 {
        return correcting().next();
    }
    let alike = (0..pools.len()).filter(|&at| agree(&pools[at], cost));
    alike.min_by(|&a, &b| {
        let apart = |at: usize| (pools[at].per_call_ns - cost.per_call_ns).abs();
        apart(a).total_cmp(&apart(b))
    })
}

fn agree(a: &Calibration, b: &Calibration) -> bool {
    let error = a.error_ns.min(b.error_ns);
    let near = |a: f64, b: f64| (a - b).abs() <= error;
    let same_kind = match (a.corrects(), b.corrects()) {
        (false, false) => a.source == b.source,
        (a, b) => a && b,
    };
    same_kind && near(a.per_call_ns, b.per_call_ns) && near(a.inside_ns, b.inside_ns)
}

fn pool_of(pool: &[Calibration]) -> Calibration {
    let mean = |of: fn(&Calibration) -> f64| pool.iter().map(of).sum::<f64>() / pool.len() as f64;
    let per_call_ns = mean(|cost| cost.per_call_ns);
    let error = |cost: &Calibration| (cost.per_call_ns - per_call_ns).abs().max(cost.error_ns);
    let measured = pool.iter().all(|cost| cost.source == pool[0].source);
    Calibration {
        per_call_ns,
        inside_ns: mean(|cost| cost.inside_ns),
        error_ns: pool.iter().map(error).fold(0.0, f64::max),
        source: if measured {
            pool[0].source
        } else {
            Source::Several
        },
        withdrawn: pool[0].withdrawn,
    }
}

/// The figures for several sources together: the mean by the number of calls, and the largest
/// error.
pub(in super::super) fn together(sources: &[Calibration], calls: &[u64]) -> Calibration {
    let Some(first) = sources.first() else {
        return Calibration::nothing();
    };
    let correcting = || {
        sources
            .iter()
            .zip(calls)
            .filter(|(cost, _)| cost.corrects())
    };
    if sources.len() == 1 || correcting().next().is_none() {
        return *first;
    }
    let all: u64 = correcting().map(|(_, calls)| calls).sum();
    let mean = |of: fn(&Calibration) -> f64| {
        let sum: f64 = correcting()
            .map(|(cost, calls)| of(cost) * *calls as f64)
            .sum();
        sum / all.max(1) as f64
    };
    Calibration {
        per_call_ns: mean(|cost| cost.per_call_ns),
        inside_ns: mean(|cost| cost.inside_ns),
        error_ns: correcting()
            .map(|(cost, _)| cost.error_ns)
            .fold(0.0, f64::max),
        source: Source::Several,
        withdrawn: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn cost(per_call_ns: f64, error_ns: f64) -> Calibration {
        Calibration {
            per_call_ns,
            inside_ns: per_call_ns / 2.0,
            error_ns,
            source: Source::OwnTrace,
            withdrawn: None,
        }
    }

    #[test]
    fn costs_of_one_kernel_are_one_and_of_two_are_two() {
        let pools = pooled(&[cost(1720.0, 15.0), cost(1338.0, 12.0), cost(1344.0, 12.0)]);
        let found: Vec<f64> = pools.iter().map(|cost| cost.per_call_ns).collect();
        assert_eq!(found, [1341.0, 1720.0]);
        assert_eq!(place(&pools, &cost(1338.0, 12.0)), Some(0));
        assert_eq!(place(&pools, &cost(1720.0, 15.0)), Some(1));
        assert_eq!(place(&pools, &Calibration::nothing()), None);
        assert_eq!(place(&pools[..1], &Calibration::nothing()), Some(0));
    }

    proptest! {
        #[test]
        fn order_does_not_matter_and_each_has_a_place(costs in prop::collection::vec((1.0..5000.0, 0.1..50.0), 1..20)) {
            let costs: Vec<Calibration> = costs.into_iter().map(|(ns, error)| cost(ns, error)).collect();
            let mut turned = costs.clone();
            turned.reverse();
            let pools = pooled(&costs);
            prop_assert_eq!(&pools, &pooled(&turned));
            for cost in &costs {
                let held = pools.iter().any(|pool| (pool.per_call_ns - cost.per_call_ns).abs() <= pool.error_ns + 1e-9);
                prop_assert!(held);
            }
        }
    }
}
