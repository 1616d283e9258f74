//! Accesses per second of the engines, on one core, beside what the accesses were.
//!
//! `cargo bench -p pagewise-analyse --bench tlb [-- MACHINE…]`

use pagewise_analyse::tlb::workload::named;
use pagewise_analyse::tlb::{Engine, Exact, Machine, PageSize, Space};
use std::time::Instant;

const ACCESSES: usize = 1 << 24;

fn main() {
    let arguments: Vec<String> = std::env::args()
        .skip(1)
        .filter(|a| a != "--bench")
        .collect();
    let machines = if arguments.is_empty() {
        vec!["golden-cove".to_owned(), "3a4000".to_owned()]
    } else {
        arguments
    };
    let spaces = [
        ("native small", Space::native(PageSize::Small)),
        ("native huge", Space::native(PageSize::Huge)),
        ("guest none", Space::guest(PageSize::Small, PageSize::Small)),
        ("guest first", Space::guest(PageSize::Huge, PageSize::Small)),
        (
            "guest second",
            Space::guest(PageSize::Small, PageSize::Huge),
        ),
        ("guest both", Space::guest(PageSize::Huge, PageSize::Huge)),
    ];
    let mut accesses = vec![0; ACCESSES];
    for machine in machines {
        let machine = Machine::named(&machine).expect("a shipped machine");
        println!("{}", machine.name);
        println!(
            "{:12} {:13} {:>8} {:>9} {:>9}",
            "workload", "pages", "M/s", "small/1k", "huge/1k"
        );
        for name in [
            "mcf",
            "mcf-sweep",
            "mcf-heap",
            "oltp",
            "key-value",
            "chase",
            "stream",
            "gups",
            "btree",
            "small",
        ] {
            let mut workload = named(name, None, 1).expect("a workload");
            workload.fill(&mut accesses);
            for (pages, space) in spaces {
                let mut engine = Exact::new(&machine);
                engine.add(space);
                engine.access(0, &accesses[..ACCESSES / 4]);
                let before = engine.counts();
                let start = Instant::now();
                engine.access(0, &accesses[ACCESSES / 4..]);
                let seconds = start.elapsed().as_secs_f64();
                let counts = engine.counts() - before;
                let per_thousand = |refills: u64| refills as f64 * 1e3 / counts.accesses as f64;
                println!(
                    "{name:12} {pages:13} {:8.1} {:9.3} {:9.3}",
                    counts.accesses as f64 / seconds / 1e6,
                    per_thousand(counts.small()),
                    per_thousand(counts.huge()),
                );
            }
        }
    }
}
