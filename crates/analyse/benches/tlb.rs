//! Accesses per second of CPU time of the engines, beside what the accesses were.
//!
//! `cargo bench -p pagewise-analyse --bench tlb [-- MACHINE…]`

use pagewise_analyse::tlb::workload::named;
use pagewise_analyse::tlb::{Engine, Exact, Machine, PageSize, Space};

const ACCESSES: usize = 1 << 24;

/// CPU seconds of this thread (proc_pid_schedstat(5)): other work on the machine does not count.
fn cpu_seconds() -> f64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("schedstat");
    let nanos = text
        .split(' ')
        .next()
        .and_then(|word| word.parse::<f64>().ok());
    nanos.expect("a number") / 1e9
}

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
                let start = cpu_seconds();
                engine.access(0, &accesses[ACCESSES / 4..]);
                let seconds = cpu_seconds() - start;
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
