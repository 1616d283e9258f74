//! Which calls a reader of traces attributes to interrupts: `cargo run -p pagewise-model --example
//! interrupts -- TRACE.txt…` lists the outermost ones by name, with how many were marked because of
//! their position and how often the same name occurs elsewhere as an ordinary call.

use pagewise_formats::function_graph::{CallTree, Names, is_interrupt, read};
use std::collections::BTreeMap;
use std::fs::File;
use std::io;

#[derive(Default)]
struct Met {
    interrupts: u64,
    others: u64,
}

fn main() -> io::Result<()> {
    for path in std::env::args().skip(1) {
        let mut found: BTreeMap<String, Met> = BTreeMap::new();
        let mut count = |tree: &CallTree, names: &Names| {
            let mut at = 0;
            while let Some(node) = tree.nodes.get(at) {
                let place = u32::try_from(at).unwrap_or(u32::MAX);
                let is_marked = tree.interrupts.binary_search(&place).is_ok();
                let is = is_marked || is_interrupt(names.base(node.name()));
                let met = found.entry(names.text(node.name()).to_owned()).or_default();
                match is {
                    true => met.interrupts += 1,
                    false => met.others += 1,
                }
                at = if is { node.end as usize } else { at + 1 };
            }
        };
        read(File::open(&path)?, &mut count)?;
        println!("{path}");
        for (name, met) in found.iter().filter(|(_, met)| met.interrupts > 0) {
            let listed = if is_interrupt(name) {
                "listed"
            } else {
                "learned"
            };
            println!(
                "  {name:<44} {:>6} {listed}, {:>6} others",
                met.interrupts, met.others
            );
        }
    }
    Ok(())
}
