//! Processors, disks, NUMA nodes, memory errors.

use super::{Machine, Settings};
use crate::pseudo_file::{bracketed, names, setting, text};
use std::collections::BTreeSet;

fn cpuinfo(machine: &Machine) -> String {
    text(&machine.proc.path("cpuinfo"))
        .ok()
        .flatten()
        .unwrap_or_default()
}

/// First value of `key` in `/proc/cpuinfo`.
fn cpuinfo_value(cpuinfo: &str, key: &str) -> Option<String> {
    cpuinfo.lines().find_map(|line| {
        let (name, value) = line.split_once(':')?;
        (name.trim() == key).then(|| value.trim().to_string())
    })
}

/// Model name; on Arm, which has no model name, the implementer and part numbers.
pub(super) fn model(machine: &Machine) -> Option<String> {
    let cpuinfo = cpuinfo(machine);
    cpuinfo_value(&cpuinfo, "model name").or_else(|| {
        let implementer = cpuinfo_value(&cpuinfo, "CPU implementer")?;
        let part = cpuinfo_value(&cpuinfo, "CPU part")?;
        Some(format!("implementer {implementer} part {part}"))
    })
}

/// Whether a hypervisor shows itself: by CPUID on x86, on others in the device tree or in sysfs.
pub(super) fn is_guest(machine: &Machine) -> bool {
    let flags = cpuinfo_value(&cpuinfo(machine), "flags").unwrap_or_default();
    flags.split(' ').any(|flag| flag == "hypervisor")
        || machine.sys.join("hypervisor/type").exists()
        || machine.proc.path("device-tree/hypervisor").exists()
}

/// Processors online.
pub(super) fn online(machine: &Machine) -> u32 {
    let count = cpuinfo(machine)
        .lines()
        .filter(|line| line.split(':').next().map(str::trim) == Some("processor"))
        .count();
    u32::try_from(count).unwrap_or(u32::MAX)
}

pub(super) fn processors(machine: &Machine, settings: &mut Settings) {
    let folder = machine.sys.join("devices/system/cpu");
    let cpuinfo = cpuinfo(machine);
    settings.note("cpu.microcode", cpuinfo_value(&cpuinfo, "microcode"));
    settings.folder("mitigations", &folder.join("vulnerabilities"));
    let cores: Vec<String> = names(&folder)
        .into_iter()
        .filter(|name| name.starts_with("cpu") && name[3..].parse::<u32>().is_ok())
        .collect();
    for file in ["scaling_governor", "scaling_driver", "scaling_max_freq"] {
        let path = |core: &String| folder.join(core).join("cpufreq").join(file);
        let distinct: BTreeSet<String> = cores.iter().filter_map(|c| setting(&path(c))).collect();
        let joined: Vec<String> = distinct.into_iter().collect();
        let value = (!joined.is_empty()).then(|| joined.join(","));
        settings.note(format!("cpu.{file}"), value);
    }
    settings.note("cpu.smt", setting(&folder.join("smt/control")));
    settings.note(
        "cpu.no_turbo",
        setting(&folder.join("intel_pstate/no_turbo")),
    );
    settings.note("cpu.boost", setting(&folder.join("cpufreq/boost")));
    settings.note(
        "cpu.idle_driver",
        setting(&folder.join("cpuidle/current_driver")),
    );
    let clock = machine.sys.join("devices/system/clocksource/clocksource0");
    settings.note(
        "cpu.clocksource",
        setting(&clock.join("current_clocksource")),
    );
}

/// Queue settings that affect how long a major fault or a swap-in takes.
const QUEUE: [&str; 7] = [
    "io_poll",
    "io_poll_delay",
    "nr_requests",
    "read_ahead_kb",
    "rotational",
    "wbt_lat_usec",
    "write_cache",
];

pub(super) fn block_devices(machine: &Machine, settings: &mut Settings) {
    let folder = machine.sys.join("block");
    let holds =
        |device: &String| setting(&folder.join(device).join("size")).as_deref() != Some("0");
    // Loop devices exist before any file is attached to them; RAM disks have no queue settings.
    let devices = names(&folder).into_iter();
    for device in devices.filter(|name| !name.starts_with("ram") && holds(name)) {
        let queue = folder.join(&device).join("queue");
        let prefix = format!("block.{device}");
        settings.files(&prefix, &queue, &QUEUE);
        let line = setting(&queue.join("scheduler"));
        let scheduler = line.map(|line| bracketed(&line).unwrap_or(&line).to_string());
        settings.note(format!("{prefix}.scheduler"), scheduler);
    }
}

pub(super) fn numa(machine: &Machine, settings: &mut Settings) {
    let folder = machine.sys.join("devices/system/node");
    let nodes: Vec<String> = names(&folder)
        .into_iter()
        .filter(|name| {
            name.strip_prefix("node")
                .is_some_and(|n| n.parse::<u32>().is_ok())
        })
        .collect();
    settings.note(
        "numa.nodes",
        (!nodes.is_empty()).then(|| nodes.len().to_string()),
    );
    for node in nodes {
        let files = ["distance", "cpulist"];
        settings.files(&format!("numa.{node}"), &folder.join(&node), &files);
    }
}

/// Corrected and uncorrected memory errors: a host with many corrected errors is slow for no other
/// visible reason.
pub(super) fn memory_errors(machine: &Machine, settings: &mut Settings) {
    let folder = machine.sys.join("devices/system/edac/mc");
    for controller in names(&folder)
        .into_iter()
        .filter(|name| name.starts_with("mc"))
    {
        let files = ["mc_name", "ce_count", "ue_count"];
        settings.files(
            &format!("edac.{controller}"),
            &folder.join(&controller),
            &files,
        );
    }
}
