//! From sampled return addresses to named stacks and their sums.

use pagewise_linux::symbols::Symbolizer;
use pagewise_model::address_space::{AddressSpace, FileId, Mapping};
use pagewise_model::event::CpuMode;
use pagewise_model::memory::{Held, HeldStack, HolderFunction, ProcessHolders};
use pagewise_model::stack::FrameKey;
use pagewise_model::symbol::{Name, SymbolTable};
use pagewise_model::units::Estimate;
use pagewise_sampler::reading::{Code, Holder, Process, Total};
use pagewise_stats::weighted;
use rustix::fs::{major, minor};
use std::collections::{BTreeMap, HashMap};
use std::os::unix::fs::MetadataExt;
use std::time::{Duration, SystemTime};

/// What a process's samples add up to. Stacks of the same functions are one. The run began at `began`.
pub(super) fn holders(
    process: Process,
    symbolizer: &mut Symbolizer,
    began: SystemTime,
) -> ProcessHolders {
    let pid = i32::try_from(process.pid).unwrap_or(0);
    let mut functions = Functions::default();
    let mut sums: BTreeMap<Vec<u32>, Sums> = BTreeMap::new();
    for (sites, space) in eras(&process.sites, &process.modules, began) {
        let addresses = sites.iter().flat_map(|site| &site.frames);
        let keys = addresses.map(|&address| key(pid, address));
        let spaces = HashMap::from([(pid, space)]);
        let names = symbolizer.resolve(keys, &spaces);
        for site in sites {
            let frames = functions.numbers(pid, &site.frames, &names);
            sums.entry(frames).or_default().add(site);
        }
    }
    let mut all = Sums::default();
    process.sites.iter().for_each(|site| all.add(site));
    let mut stacks: Vec<HeldStack> = sums
        .into_iter()
        .filter(|(_, sums)| sums.allocated.bytes > 0.0)
        .map(|(frames, sums)| HeldStack {
            frames,
            peak: held(sums.peak),
            end: held(sums.end),
            allocated: held(sums.allocated),
        })
        .collect();
    let order = |stack: &HeldStack| (stack.peak.bytes.value, stack.allocated.bytes.value);
    stacks.sort_by(|a, b| {
        let (a, b) = (order(a), order(b));
        b.0.total_cmp(&a.0).then(b.1.total_cmp(&a.1))
    });
    ProcessHolders {
        pid,
        program: process.program,
        parent: process.parent.and_then(|parent| i32::try_from(parent).ok()),
        bypassed: process.bypassed,
        samples: process.counts.samples,
        untracked: process.counts.untracked,
        crowded: process.counts.crowded,
        cut: process.counts.deep,
        peak_ns: process.peaked_ns.saturating_sub(process.began_ns),
        peak: held(all.peak),
        end: held(all.end),
        allocated: held(all.allocated),
        functions: functions.list,
        stacks,
    }
}

/// The call before a return address.
fn key(pid: i32, address: u64) -> FrameKey {
    FrameKey {
        pid,
        mode: CpuMode::User,
        address: address.saturating_sub(1),
    }
}

/// The sites in parts, each with the code that was there for all of them: a library that was closed may
/// have made room for another one.
fn eras<'a>(
    sites: &'a [Holder],
    modules: &[Code],
    began: SystemTime,
) -> Vec<(&'a [Holder], AddressSpace)> {
    let mut eras = Vec::new();
    let mut space = AddressSpace::default();
    let mut first = 0;
    for module in modules {
        let start = usize::try_from(module.first_site).unwrap_or(usize::MAX);
        let start = start.clamp(first, sites.len());
        let is_taken = space
            .iter()
            .any(|known| known.start < module.end && module.start < known.end);
        if is_taken && start > first {
            eras.push((&sites[first..start], space.clone()));
            first = start;
        }
        space.map(mapping(module, began));
    }
    eras.push((&sites[first..], space));
    eras
}

fn mapping(module: &Code, began: SystemTime) -> Mapping {
    const READ_AND_EXECUTE: u32 = 5;
    Mapping {
        start: module.start,
        end: module.end,
        file_offset: module.offset,
        protection: READ_AND_EXECUTE,
        flags: 0,
        path: module.path.as_str().into(),
        build_id: (!module.build_id.is_empty()).then(|| module.build_id.as_slice().into()),
        file: unchanged(&module.path, began),
    }
}

/// The file at a path, for one without a build id: if it is still the one of when the run began.
fn unchanged(path: &str, began: SystemTime) -> Option<FileId> {
    let file = std::fs::metadata(path).ok()?;
    let changed = Duration::new(u64::try_from(file.ctime()).ok()?, 0);
    let is_old = SystemTime::UNIX_EPOCH + changed < began;
    is_old.then(|| FileId {
        device: (major(file.dev()), minor(file.dev())),
        inode: file.ino(),
    })
}

/// Functions, each once.
#[derive(Default)]
struct Functions {
    list: Vec<HolderFunction>,
    numbers: HashMap<(String, String, bool), u32>,
}

impl Functions {
    /// The numbers of a stack's functions, innermost first.
    fn numbers(&mut self, pid: i32, addresses: &[u64], names: &SymbolTable) -> Vec<u32> {
        let mut frames = Vec::with_capacity(addresses.len());
        for &address in addresses {
            match names.get(&key(pid, address)) {
                Some(Name::Known { functions, module }) => {
                    let outermost = functions.len().saturating_sub(1);
                    for (at, function) in functions.iter().enumerate() {
                        frames.push(self.number(function, module, at < outermost));
                    }
                }
                Some(Name::Unknown { module, .. }) => {
                    frames.push(self.number("[unknown]", module, false));
                }
                None => frames.push(self.number("[unknown]", "", false)),
            }
        }
        frames
    }

    fn number(&mut self, name: &str, module: &str, inlined: bool) -> u32 {
        let key = (name.to_owned(), module.to_owned(), inlined);
        let next = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(key).or_insert(next);
        if number == next {
            self.list.push(HolderFunction {
                name: name.to_owned(),
                module: module.to_owned(),
                inlined,
            });
        }
        number
    }
}

#[derive(Default)]
struct Sums {
    peak: Total,
    end: Total,
    allocated: Total,
}

impl Sums {
    fn add(&mut self, site: &Holder) {
        let parts = [
            (&mut self.peak, site.peak),
            (&mut self.end, site.end),
            (&mut self.allocated, site.allocated),
        ];
        for (sum, part) in parts {
            sum.bytes += part.bytes;
            sum.bytes_variance += part.bytes_variance;
            sum.blocks += part.blocks;
            sum.blocks_variance += part.blocks_variance;
        }
    }
}

fn held(total: Total) -> Held {
    Held {
        bytes: estimate(total.bytes, total.bytes_variance),
        blocks: estimate(total.blocks, total.blocks_variance),
    }
}

fn estimate(value: f64, variance: f64) -> Estimate {
    let (low, high) = weighted::interval(value, variance);
    Estimate { value, low, high }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn site(address: u64, bytes: f64) -> Holder {
        let total = Total {
            bytes,
            blocks: 1.0,
            ..Total::default()
        };
        Holder {
            frames: vec![address],
            peak: total,
            end: Total::default(),
            allocated: total,
        }
    }

    fn code(start: u64, path: &str, first_site: u64) -> Code {
        Code {
            start,
            end: start + 0x1000,
            offset: 0,
            path: path.to_owned(),
            build_id: Vec::new(),
            first_site,
        }
    }

    #[test]
    fn sites_have_the_code_that_was_there_in_their_time() {
        let sites = [1, 2, 3, 4].map(|at| site(0x1000 + at, 1.0));
        let modules = [
            code(0x1000, "/a", 0),
            code(0x9000, "/b", 1),
            code(0x1800, "/c", 2),
        ];
        let eras = eras(&sites, &modules, SystemTime::now());
        let found: Vec<_> = eras
            .iter()
            .map(|(sites, space)| (sites.len(), space.find(0x1900).map(|one| &*one.path)))
            .collect();
        assert_eq!(found, [(2, Some("/a")), (2, Some("/c"))]);
    }

    #[test]
    fn stacks_of_the_same_functions_are_one() {
        let process = Process {
            pid: 7,
            sites: vec![site(0x1100, 2.0), site(0x1200, 3.0), site(0x9000, 4.0)],
            modules: vec![code(0x1000, "/does/not/exist", 0)],
            ..Process::default()
        };
        let mut symbolizer = Symbolizer::with_root(std::path::Path::new("/does/not/exist"));
        let holders = holders(process, &mut symbolizer, SystemTime::now());
        let found: Vec<_> = holders
            .stacks
            .iter()
            .map(|stack| {
                let function = &holders.functions[stack.frames[0] as usize];
                (function.module.as_str(), stack.peak.bytes.value)
            })
            .collect();
        assert_eq!(found, [("exist", 5.0), ("", 4.0)]);
        assert_eq!(holders.peak.bytes, Estimate::exact(9.0));
    }
}
