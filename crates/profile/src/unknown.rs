//! Why frames have no names, how many samples are affected, and how to fix it.

use super::weigh::{Idle, is_cpu};
use pagewise_model::profile::{NodeId, Profile};
use pagewise_model::profile_findings::UnknownShare;
use pagewise_model::symbol::Unnamed;
use rustc_hash::FxHashMap;

/// Shares below this are left out: they do not matter.
const LEAST: f64 = 0.001;

/// Each cause with its share of the leading event's samples, by weight, largest first. Weights of
/// different events cannot be added, and others may lack chains: those of single faults do.
pub fn causes(profile: &Profile, idle: &Idle) -> Vec<UnknownShare> {
    let mut groups: FxHashMap<(Unnamed, &str), usize> = FxHashMap::default();
    let mut keys: Vec<(Unnamed, &str)> = Vec::new();
    let group_of: Vec<Option<usize>> = profile
        .frames
        .iter()
        .map(|frame| {
            let key = (frame.unnamed?, &*frame.module);
            let next = keys.len();
            let at = *groups.entry(key).or_insert(next);
            if at == next {
                keys.push(key);
            }
            Some(at)
        })
        .collect();
    let mut touched = vec![0_u64; keys.len()];
    let mut own = vec![0_u64; keys.len()];
    let mut in_chains = vec![false; keys.len()];
    let mut all = 0;
    let mut weights = vec![0_u64; profile.stacks.len()];
    let leading = leading_event(profile);
    for sample in profile.samples.iter() {
        if Some(sample.event) == leading && !idle.is(sample.stack) {
            weights[sample.stack.0 as usize] += sample.weight;
            all += sample.weight;
        }
    }
    let mut seen = Vec::new();
    for (at, &weight) in weights
        .iter()
        .enumerate()
        .filter(|&(_, &weight)| weight > 0)
    {
        let node = NodeId(u32::try_from(at).unwrap_or(u32::MAX));
        seen.clear();
        for (depth, frame) in profile.stacks.frames(node).enumerate() {
            let Some(group) = group_of[frame.0 as usize] else {
                continue;
            };
            if depth == 0 {
                own[group] += weight;
            }
            in_chains[group] |= depth > 0 || profile.stacks.parent(node) != NodeId::ROOT;
            if !seen.contains(&group) {
                seen.push(group);
                touched[group] += weight;
            }
        }
    }
    let share = |count: u64| count as f64 / all.max(1) as f64;
    let mut causes: Vec<UnknownShare> = keys
        .iter()
        .enumerate()
        .map(|(at, &(reason, module))| UnknownShare {
            reason,
            module: module.to_owned(),
            touched: share(touched[at]),
            own: share(own[at]),
            remedy: remedy(reason, module, in_chains[at]),
        })
        .filter(|cause| cause.touched >= LEAST)
        .collect();
    causes.sort_by(|a, b| b.touched.total_cmp(&a.touched));
    causes
}

/// CPU time; else the event with most samples.
fn leading_event(profile: &Profile) -> Option<u16> {
    let mut samples = vec![0_u64; profile.events.len()];
    for event in profile.samples.events.iter() {
        samples[usize::from(event)] += 1;
    }
    (0_u16..)
        .zip(samples)
        .filter(|&(_, samples)| samples > 0)
        .max_by_key(|&(event, samples)| {
            let name = &profile.events[usize::from(event)].name;
            (is_cpu(name), samples)
        })
        .map(|(event, _)| event)
}

/// What it means and what to do. `in_chains` if some of the frames are part of a call chain.
fn remedy(reason: Unnamed, module: &str, in_chains: bool) -> String {
    match reason {
        Unnamed::NoMapping if !in_chains => "The address lies in no mapping of the recording: the \
             code was mapped before it began, or at run time. No call chain was recorded; -g shows \
             the callers."
            .to_owned(),
        Unnamed::NoMapping => "The address lies in no mapping: the chain of frame pointers broke, \
             in code built without them (most C libraries). Record with --call-graph dwarf, or \
             build with -fno-omit-frame-pointer."
            .to_owned(),
        Unnamed::NoSymbol if module == "[vdso]" => {
            "Code of the kernel's vdso, such as clock_gettime. It has names under the kernel that \
             was recorded, where root reads its symbols: report on that machine, as root."
                .to_owned()
        }
        Unnamed::NoSymbol if module.is_empty() => {
            "The input has no name for these frames, and no file.".to_owned()
        }
        Unnamed::NoSymbol => format!(
            "{module} is stripped. Install its debug symbols (Debian: find-dbgsym-packages, \
             package NAME-dbgsym; Fedora: dnf debuginfo-install), name a server that has them \
             (export DEBUGINFOD_URLS=https://debuginfod.debian.net), or build without -s."
        ),
        Unnamed::OtherFile if module == "[kernel]" => "Recorded under another kernel than the one \
             that runs now. Report on the machine that recorded."
            .to_owned(),
        Unnamed::NoFile if module == "[kernel]" => "/proc/kallsyms, where the kernel lists its \
             functions, cannot be read."
            .to_owned(),
        Unnamed::OtherFile => format!(
            "Another file is where {module} was recorded: its build id, or device and inode, \
             differ. Report on the machine that recorded, before updating, or name a server that \
             has the file (DEBUGINFOD_URLS)."
        ),
        Unnamed::Guest => "Code of a virtual machine or its hypervisor. perf kvm names it.".to_owned(),
        Unnamed::NoFile => format!(
            "{module} as it was recorded is not here: it was removed, cannot be read, or lies in \
             another container. Report on the machine that \
             recorded, before updating, or name a server that has it (DEBUGINFOD_URLS)."
        ),
        Unnamed::KernelHidden => "The kernel hides its addresses. As root, or after sudo sysctl \
             kernel.kptr_restrict=0, they have names."
            .to_owned(),
        Unnamed::Jit => "Code generated at run time, without a map of it. Let the runtime write /tmp/perf-PID.map: java -XX:+UnlockDiagnosticVMOptions -XX:+DumpPerfMapAtExit or \
             perf-map-agent, node --perf-basic-prof, python3 -X perf (3.12), and run the report while the file exists."
            .to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::made::Maker;

    #[test]
    fn each_cause_has_its_share_and_its_cure() {
        let mut maker = Maker::default();
        maker.samples("main;work", 5);
        maker.samples("?;work", 3);
        maker.samples("main;?libz.so.1", 2);
        let profile = maker.finish();
        let causes = causes(&profile, &Idle::new(&profile));
        let short: Vec<_> = causes
            .iter()
            .map(|cause| (cause.reason, cause.touched, cause.own))
            .collect();
        assert_eq!(
            short,
            [
                (Unnamed::NoMapping, 0.3, 0.0),
                (Unnamed::NoSymbol, 0.2, 0.2)
            ]
        );
        assert!(causes[0].remedy.contains("--call-graph dwarf"));
        assert!(causes[1].remedy.contains("libz.so.1 is stripped"));
    }
}
