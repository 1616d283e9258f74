use super::*;

const ENTRIES: Entries = Entries {
    huge: 64,
    small: 2048,
};

/// A process whose cost depends only on its huge pages.
struct World<F: Fn(u64) -> f64> {
    cost: F,
    pages: Pages,
    counting: bool,
    /// Time spent, as cost per unit of work summed over intervals.
    spent: f64,
    work: f64,
}

impl<F: Fn(u64) -> f64> World<F> {
    fn new(possible: u64, huge: u64, cost: F) -> Self {
        Self {
            cost,
            pages: Pages { huge, possible },
            counting: false,
            spent: 0.0,
            work: 0.0,
        }
    }

    fn step(&mut self, controller: &mut dyn Controller) -> Order {
        let cost = (self.cost)(self.pages.huge);
        self.spent += 1.0;
        self.work += 1.0 / cost;
        let order = controller.decide(&Observation {
            interval: Nanos(4_000_000),
            refills: Some(Refills {
                all: 10_000,
                huge: self
                    .counting
                    .then_some(if cost > 1.1 { 9_999 } else { 1_000 }),
            }),
            refill_share: Some(1.0 - 1.0 / cost),
            cost: Some(cost),
            pages: self.pages,
        });
        self.counting = order.count_huge;
        match order.action {
            Action::Hold => {}
            Action::Limit(limit) => self.pages.huge = self.pages.huge.min(limit),
            Action::Reach(huge) => self.pages.huge = huge,
        }
        order
    }
}

/// The paper's case: a cliff at ten huge pages, best at eight.
fn cliff(huge: u64) -> f64 {
    match huge {
        0..=7 => 1.10 - 0.005 * huge as f64,
        8..=9 => 1.05,
        _ => 1.6,
    }
}

fn paper() -> Paper {
    Paper::new(PaperSettings::published(ENTRIES))
}

fn min_cost(entries: Option<Entries>) -> MinCost {
    MinCost::new(MinCostSettings {
        entries,
        ..MinCostSettings::default()
    })
}

#[test]
fn the_paper_waits_2560_loaded_ticks_then_counts() {
    let mut world = World::new(52, 52, cliff);
    let mut controller = paper();
    for tick in 1..2560 {
        assert!(!world.step(&mut controller).count_huge, "tick {tick}");
    }
    assert!(world.step(&mut controller).count_huge);
    assert_eq!(controller.gauge().load, 2560);
}

#[test]
fn the_papers_limit_falls_every_three_ticks() {
    let mut world = World::new(52, 52, cliff);
    let mut controller = paper();
    let mut numbers = vec![52];
    for _ in 0..2560 + 3 * 60 {
        world.step(&mut controller);
        if numbers.last() != Some(&world.pages.huge) {
            numbers.push(world.pages.huge);
        }
    }
    let expected: Vec<u64> = (9..=52).rev().collect();
    assert_eq!(numbers, expected);
    assert!(!world.counting, "the counter is off again");
    assert!(controller.gauge().load < 2560);
}

#[test]
fn quiet_ticks_lower_the_papers_load_again() {
    let mut controller = paper();
    let mut seen = Observation {
        interval: Nanos(4_000_000),
        refills: None,
        refill_share: Some(0.5),
        cost: None,
        pages: Pages {
            huge: 4,
            possible: 4,
        },
    };
    for _ in 0..10 {
        controller.decide(&seen);
    }
    seen.refill_share = Some(0.01);
    for _ in 0..4 {
        controller.decide(&seen);
    }
    assert_eq!(controller.gauge().load, 6);
    for _ in 0..9 {
        controller.decide(&seen);
    }
    assert_eq!(controller.gauge().load, 0);
}

/// An observation with this many refills of huge and small pages.
fn counted(huge: u64, small: u64, pages: Pages) -> Observation {
    Observation {
        interval: Nanos(4_000_000),
        refills: Some(Refills {
            all: huge + small,
            huge: Some(huge),
        }),
        refill_share: Some(0.4),
        cost: None,
        pages,
    }
}

fn quick_paper() -> Paper {
    Paper::new(PaperSettings {
        gate: 1,
        ..PaperSettings::published(ENTRIES)
    })
}

#[test]
fn overloaded_entries_wait_or_raise_the_limit() {
    let pages = Pages {
        huge: 3,
        possible: 9,
    };
    let mut controller = quick_paper();
    let waits: Vec<Order> = (0..4)
        .map(|_| controller.decide(&counted(1, 1_000_000, pages)))
        .collect();
    assert_eq!(
        waits[3].action,
        Action::Hold,
        "N_hc < N_hl: khugepaged may build"
    );
    assert!(matches!(waits[3].reason, Reason::SmallOverloaded(_)));
    // Lower the limit to 2 first, then load small entries with N_hc = N_hl = 2.
    let mut controller = quick_paper();
    for _ in 0..4 {
        controller.decide(&counted(1_000_000, 1, pages));
    }
    let low = Pages { huge: 2, ..pages };
    let turned: Vec<Order> = (0..3)
        .map(|_| controller.decide(&counted(1, 1_000_000, low)))
        .collect();
    assert_eq!(turned[2].reason, Reason::Balanced, "the sign turned");
    let grown: Vec<Order> = (0..4)
        .map(|_| controller.decide(&counted(1, 1_000_000, low)))
        .collect();
    assert_eq!(grown[3].action, Action::Limit(3));
}

#[test]
fn imbalance_is_symmetric_and_finite() {
    let refills = |all, huge| Refills {
        all,
        huge: Some(huge),
    };
    let only_huge = ENTRIES.imbalance(refills(640, 640)).unwrap();
    assert!(only_huge.on_huge);
    assert!((only_huge.factor - 10.0 * 2048.0).abs() < 1e-9);
    let only_small = ENTRIES.imbalance(refills(20_480, 0)).unwrap();
    assert!(!only_small.on_huge);
    assert!((only_small.factor - 10.0 * 64.0).abs() < 1e-9);
    assert_eq!(ENTRIES.imbalance(refills(0, 0)).unwrap().factor, 1.0);
    assert_eq!(ENTRIES.imbalance(Refills { all: 5, huge: None }), None);
}

#[test]
fn min_cost_finds_the_best_number_behind_a_cliff() {
    for entries in [None, Some(ENTRIES)] {
        let mut world = World::new(52, 52, cliff);
        let mut controller = min_cost(entries);
        for _ in 0..2000 {
            world.step(&mut controller);
        }
        assert!(
            (8..=9).contains(&world.pages.huge),
            "{entries:?}: {}",
            world.pages.huge
        );
    }
}

#[test]
fn min_cost_builds_where_huge_pages_help() {
    let mut world = World::new(1024, 0, |huge| 2.0 - huge as f64 / 1024.0 * 0.7);
    let mut controller = min_cost(None);
    for _ in 0..3000 {
        world.step(&mut controller);
    }
    assert_eq!(world.pages.huge, 1024);
}

#[test]
fn min_cost_keeps_below_its_ceiling() {
    let mut world = World::new(1024, 0, |huge| 2.0 - huge as f64 / 1024.0 * 0.7);
    let mut controller = MinCost::new(MinCostSettings {
        ceiling: 300,
        ..MinCostSettings::default()
    });
    for _ in 0..3000 {
        world.step(&mut controller);
        assert!(world.pages.huge <= 300);
    }
    assert_eq!(world.pages.huge, 300);
}

#[test]
fn searching_in_vain_costs_less_than_its_allowance() {
    // All huge is best, anything less is up to three times as slow.
    let mut world = World::new(64, 64, |huge| 1.2 + (64 - huge) as f64 / 32.0);
    let mut controller = min_cost(None);
    for _ in 0..40_000 {
        world.step(&mut controller);
    }
    assert_eq!(world.pages.huge, 64);
    let loss = 1.0 - (world.work * 1.2) / world.spent;
    assert!(loss < 0.01, "{loss}");
}

#[test]
fn fixed_controllers_reach_their_number_and_rest() {
    let mut world = World::new(10, 4, |_| 1.0);
    world.step(&mut Fixed::always());
    assert_eq!(world.pages.huge, 10);
    world.step(&mut Fixed::oracle(7, Victims::Random));
    assert_eq!(world.pages.huge, 7);
    assert_eq!(
        world.step(&mut Fixed::oracle(7, Victims::Random)).action,
        Action::Hold
    );
    world.step(&mut Fixed::never());
    assert_eq!(world.pages.huge, 0);
}
