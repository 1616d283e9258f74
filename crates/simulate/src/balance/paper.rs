//! The controller of Zhu Chen et al., "Performance optimization of transparent huge pages in MIPS
//! VZ virtualization environment", section 4, as published.
//!
//! ```text
//!            share of refill time over threshold: C_L + 1, else C_L − 1 (not below 0)
//!  counter off ──────────── C_L ≥ 2560 ───────────▶ counter on, y = mean of 3 ticks
//!      ▲                                                  │
//!      │  y ≤ 20, or the sign turned: C_L = 0             ├─ huge overloaded: N_hl = N_hc − 1, again
//!      └──────────────────────────────────────────────────┤
//!         C_L = 0                                         └─ small overloaded: wait for khugepaged
//!                                                            where N_hc < N_hl, else N_hl + step
//! ```
//!
//! The paper leaves the threshold of the refill share and the growth step open; both are settings
//! here. It does not define y when no small page was refilled either: one refill is assumed
//! ([`super::Entries::imbalance`]).

use super::{Action, Controller, Entries, Gauge, Observation, Order, Reason, Victims};

/// Constants of the controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct PaperSettings {
    /// TLB entries by page size (64 and 2048 on the paper's machine).
    pub entries: Entries,
    /// Share of time in refills above which an interval counts as loaded. Not in the paper.
    pub loaded_share: f64,
    /// Loaded intervals before huge refills are counted (2560 ticks, 10 s, in the paper).
    pub gate: u32,
    /// Intervals over which y is averaged (3).
    pub samples: u32,
    /// y above which load counts as unbalanced (20).
    pub threshold: f64,
    /// Huge pages by which the limit grows. Not in the paper.
    pub growth: u64,
}

impl PaperSettings {
    /// The published constants, with 5 % and 1 for the unpublished ones.
    #[must_use]
    pub fn published(entries: Entries) -> Self {
        Self {
            entries,
            loaded_share: 0.05,
            gate: 2560,
            samples: 3,
            threshold: 20.0,
            growth: 1,
        }
    }
}

/// The published controller.
#[derive(Clone, Debug)]
pub struct Paper {
    settings: PaperSettings,
    load: u32,
    /// N_hl; `None` until the first observation shows how many huge pages memory can contain.
    limit: Option<u64>,
    counting: Option<Counting>,
    imbalance: Option<f64>,
}

/// State while huge refills are counted.
#[derive(Clone, Copy, Debug, Default)]
struct Counting {
    factors: f64,
    huge: u64,
    all: u64,
    samples: u32,
    /// Whether the limit has been lowered since counting started.
    shrinking: bool,
}

impl Paper {
    /// A controller at rest.
    #[must_use]
    pub fn new(settings: PaperSettings) -> Self {
        Self {
            settings,
            load: 0,
            limit: None,
            counting: None,
            imbalance: None,
        }
    }

    fn update_load(&mut self, seen: &Observation) {
        let loaded = seen
            .refill_share
            .is_some_and(|share| share > self.settings.loaded_share);
        self.load = if loaded {
            self.load.saturating_add(1)
        } else {
            self.load.saturating_sub(1)
        };
    }

    fn order_and_reset(&mut self, action: Action, reason: Reason) -> Order {
        self.counting = None;
        self.load = 0;
        Order {
            count_huge: false,
            action,
            reason,
        }
    }

    /// Adds a sample; decides once there are enough.
    fn compare(&mut self, mut counting: Counting, limit: u64, seen: &Observation) -> Order {
        let sample = seen.refills.and_then(|refills| {
            let imbalance = self.settings.entries.imbalance(refills)?;
            Some((refills, imbalance))
        });
        if let Some((refills, imbalance)) = sample {
            counting.factors += imbalance.factor;
            counting.huge += refills.huge.unwrap_or(0);
            counting.all += refills.all;
            counting.samples += 1;
        }
        if counting.samples < self.settings.samples {
            self.counting = Some(counting);
            return Order {
                count_huge: true,
                action: Action::Hold,
                reason: Reason::Comparing,
            };
        }
        self.judge(counting, limit, seen)
    }

    fn judge(&mut self, counting: Counting, limit: u64, seen: &Observation) -> Order {
        let mean = counting.factors / f64::from(counting.samples);
        self.imbalance = Some(mean);
        let sums = super::Refills {
            all: counting.all,
            huge: Some(counting.huge),
        };
        let on_huge = self
            .settings
            .entries
            .imbalance(sums)
            .is_some_and(|both| both.on_huge);
        let pages = seen.pages;
        if mean <= self.settings.threshold {
            return self.order_and_reset(Action::Hold, Reason::Balanced);
        }
        if on_huge {
            if pages.huge == 0 {
                return self.order_and_reset(Action::Hold, Reason::Balanced);
            }
            let fewer = pages.huge - 1;
            self.limit = Some(fewer);
            self.counting = Some(Counting {
                shrinking: true,
                ..Counting::default()
            });
            return Order {
                count_huge: true,
                action: Action::Limit(fewer),
                reason: Reason::HugeOverloaded(mean),
            };
        }
        if counting.shrinking {
            // The sign turned.
            return self.order_and_reset(Action::Hold, Reason::Balanced);
        }
        if pages.huge >= limit && limit < pages.possible {
            let more = limit
                .saturating_add(self.settings.growth)
                .min(pages.possible);
            self.limit = Some(more);
            return self.order_and_reset(Action::Limit(more), Reason::SmallOverloaded(mean));
        }
        self.order_and_reset(Action::Hold, Reason::SmallOverloaded(mean))
    }
}

impl Controller for Paper {
    fn name(&self) -> &'static str {
        "paper"
    }

    fn victims(&self) -> Victims {
        Victims::Random
    }

    fn decide(&mut self, seen: &Observation) -> Order {
        let limit = *self.limit.get_or_insert(seen.pages.possible);
        self.update_load(seen);
        if let Some(counting) = self.counting {
            return self.compare(counting, limit, seen);
        }
        if self.load >= self.settings.gate {
            self.counting = Some(Counting::default());
            return Order {
                count_huge: true,
                action: Action::Hold,
                reason: Reason::Comparing,
            };
        }
        Order {
            count_huge: false,
            action: Action::Hold,
            reason: Reason::Calm,
        }
    }

    fn gauge(&self) -> Gauge {
        Gauge {
            load: self.load,
            imbalance: self.imbalance,
        }
    }
}
