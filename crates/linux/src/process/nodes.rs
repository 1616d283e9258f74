//! Options of numactl(8) that a launcher applies itself: the program need not be installed.

use super::Error;
use crate::numa::{cpus_of, nodes_with_memory};
use crate::sys::numa::{Nodes, Policy};
use pagewise_model::numa::numbers;
use std::path::Path;

/// What to do: these are all.
const KNOWN: &str =
    "expected --cpunodebind=NODES, --membind=NODES, --interleave=NODES (or 'all') or --localalloc";
/// Nodes that this machine does not have.
const NO_SUCH_NODE: &str = "this machine has no such NUMA nodes";

/// Options, read.
#[derive(Debug, Default, PartialEq)]
pub(super) struct Wish {
    run_on: Option<Vec<u32>>,
    memory: Option<(Policy, Of)>,
}

/// Nodes.
#[derive(Debug, PartialEq)]
enum Of {
    All,
    These(Vec<u32>),
}

impl Wish {
    /// Reads options; the error says what is wrong with them.
    pub(super) fn parse(options: &str) -> Result<Self, &'static str> {
        let mut wish = Self::default();
        let listed = |nodes: &str| {
            let nodes = numbers(nodes).filter(|nodes| !nodes.is_empty());
            nodes.ok_or(KNOWN)
        };
        for option in options.split_whitespace() {
            let memory = match option.split_once('=').unwrap_or((option, "")) {
                ("--cpunodebind", nodes) => {
                    wish.run_on = Some(listed(nodes)?);
                    continue;
                }
                ("--membind", nodes) => (Policy::Bind, Of::These(listed(nodes)?)),
                ("--interleave", "all") => (Policy::Interleave, Of::All),
                ("--interleave", nodes) => (Policy::Interleave, Of::These(listed(nodes)?)),
                ("--localalloc", "") => (Policy::Local, Of::These(Vec::new())),
                _ => return Err(KNOWN),
            };
            if wish.memory.replace(memory).is_some() {
                return Err("memory has one policy only");
            }
        }
        match wish == Self::default() {
            true => Err(KNOWN),
            false => Ok(wish),
        }
    }

    /// The masks for it on the machine whose sysfs this is.
    pub(super) fn on_machine(&self, sys: &Path) -> Result<Nodes, &'static str> {
        let mut cpus = Vec::new();
        for node in self.run_on.iter().flatten() {
            let found = cpus_of(sys, *node).ok().flatten();
            cpus.extend(found.filter(|cpus| !cpus.is_empty()).ok_or(NO_SUCH_NODE)?);
        }
        let memory = self.memory.as_ref().map(|(policy, nodes)| {
            let has = nodes_with_memory(sys).ok().flatten().ok_or(NO_SUCH_NODE)?;
            let nodes = match nodes {
                Of::All => &has,
                Of::These(nodes) => nodes,
            };
            match nodes.iter().all(|node| has.contains(node)) {
                true => Ok((*policy, mask(nodes))),
                false => Err(NO_SUCH_NODE),
            }
        });
        Ok(Nodes {
            cpus: mask(&cpus),
            memory: memory.transpose()?,
        })
    }
}

fn mask(numbers: &[u32]) -> Vec<u64> {
    let mut words: Vec<u64> = Vec::new();
    for &number in numbers {
        let at = number as usize / 64;
        words.resize(words.len().max(at + 1), 0);
        words[at] |= 1 << (number % 64);
    }
    words
}

/// Masks for options on this machine.
pub(super) fn parse(options: &str) -> Result<Nodes, Error> {
    Wish::parse(options)
        .and_then(|wish| wish.on_machine(Path::new("/sys")))
        .map_err(|problem| Error::InvalidSetting {
            setting: format!("numactl {options}"),
            problem,
        })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn options_become_masks_of_cpus_and_nodes() {
        let sys = tempfile::tempdir().unwrap();
        let nodes = sys.path().join("devices/system/node");
        for (node, cpus) in [(0, "0-3,64"), (1, "4-7"), (2, "")] {
            let folder = nodes.join(format!("node{node}"));
            fs::create_dir_all(&folder).unwrap();
            fs::write(folder.join("cpulist"), format!("{cpus}\n")).unwrap();
        }
        fs::write(nodes.join("has_memory"), "0-2\n").unwrap();
        let of = |options: &str| Wish::parse(options)?.on_machine(sys.path());
        let nodes = |cpus: &[u64], memory| Nodes {
            cpus: cpus.to_vec(),
            memory,
        };
        let bound = Some((Policy::Bind, vec![0b10]));
        assert_eq!(of("--cpunodebind=1 --membind=1"), Ok(nodes(&[0xf0], bound)));
        assert_eq!(of("--cpunodebind=0,1"), Ok(nodes(&[0xff, 1], None)));
        let all = Some((Policy::Interleave, vec![0b111]));
        assert_eq!(of("--interleave=all"), Ok(nodes(&[], all)));
        let local = Some((Policy::Local, vec![]));
        assert_eq!(of("--localalloc"), Ok(nodes(&[], local)));
        // A node without CPUs, and one that is not there.
        for missing in ["--cpunodebind=2", "--cpunodebind=3", "--membind=3"] {
            assert_eq!(of(missing), Err(NO_SUCH_NODE), "{missing}");
        }
        for wrong in [
            "",
            "--membind=",
            "--membind=all",
            "--preferred=1",
            "--localalloc=1",
        ] {
            assert_eq!(of(wrong), Err(KNOWN), "{wrong}");
        }
        assert!(of("--membind=0 --localalloc").is_err());
    }
}
