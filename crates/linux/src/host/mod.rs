//! A snapshot of the machine's settings, so that a report can be understood later and two hosts
//! can be compared.
//!
//! What cannot be read is left out: a snapshot never fails. Names are stable and dotted, values
//! are the kernel's own words.

mod cpu_limit;
mod hardware;
mod memory;
mod program;

use crate::proc::ProcRoot;
use crate::pseudo_file::{names, setting};
use crate::sys::machine;
use pagewise_model::host::HostSnapshot;
use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Settings of this machine.
#[must_use]
pub fn snapshot() -> HostSnapshot {
    snapshot_at(Path::new("/"))
}

/// The same with the settings of process `pid`: variables that allocators and runtimes read, and
/// limits.
#[must_use]
pub fn snapshot_with(pid: i32) -> HostSnapshot {
    let mut snapshot = snapshot();
    let own = program::settings(&ProcRoot::default(), pid);
    snapshot.settings.extend(own);
    snapshot
}

/// Settings of the machine whose root folder is `root`.
#[must_use]
pub fn snapshot_at(root: &Path) -> HostSnapshot {
    let machine = Machine::at(root);
    let mut settings = Settings::default();
    kernel(&machine, &mut settings);
    hardware::processors(&machine, &mut settings);
    hardware::block_devices(&machine, &mut settings);
    hardware::numa(&machine, &mut settings);
    hardware::memory_errors(&machine, &mut settings);
    memory::virtual_memory(&machine, &mut settings);
    memory::huge_pages(&machine, &mut settings);
    memory::cgroup(&machine, &mut settings);
    cpu_limit::cpu_limit(&machine, &mut settings);
    memory::swap(&machine, &mut settings);
    memory::c_library(&machine, &mut settings);
    HostSnapshot {
        cpu: hardware::model(&machine).unwrap_or_default(),
        cpus: hardware::online(&machine),
        memory_bytes: memory::total(&machine),
        page_size: machine::page_size(),
        settings: settings.settings,
        counters: settings.counters,
        ..named(&machine)
    }
}

/// Name, kernel and architecture of this machine, and nothing else.
#[must_use]
pub fn identity() -> HostSnapshot {
    named(&Machine::at(Path::new("/")))
}

fn named(machine: &Machine) -> HostSnapshot {
    let kernel_text = |name: &str| setting(&machine.proc.path(&format!("sys/kernel/{name}")));
    HostSnapshot {
        hostname: kernel_text("hostname").unwrap_or_default(),
        kernel: kernel_text("osrelease").unwrap_or_default(),
        architecture: kernel_text("arch").unwrap_or_else(|| std::env::consts::ARCH.to_string()),
        ..HostSnapshot::default()
    }
}

/// The processor's model; `None` if the kernel does not name it.
#[must_use]
pub fn cpu_model() -> Option<String> {
    hardware::model(&Machine::at(Path::new("/")))
}

/// Whether this is a virtual machine, as far as its hypervisor says so.
#[must_use]
pub fn is_guest() -> bool {
    hardware::is_guest(&Machine::at(Path::new("/")))
}

/// Where the machine's pseudo file systems are.
struct Machine {
    proc: ProcRoot,
    sys: PathBuf,
    root: PathBuf,
}

impl Machine {
    fn at(root: &Path) -> Self {
        Self {
            proc: ProcRoot::at(root.join("proc")),
            sys: root.join("sys"),
            root: root.to_path_buf(),
        }
    }
}

/// Settings by dotted name, and values that are not settings.
#[derive(Default)]
struct Settings {
    settings: BTreeMap<String, String>,
    counters: BTreeMap<String, String>,
}

impl Settings {
    /// Notes `value` if there is one.
    fn note(&mut self, name: impl Into<String>, value: Option<impl Into<String>>) {
        if let Some(value) = value {
            self.settings.insert(name.into(), value.into());
        }
    }

    /// Notes the content of each of `files` in `folder` as `prefix.file`.
    fn files(&mut self, prefix: &str, folder: &Path, files: &[&str]) {
        for file in files {
            self.note(format!("{prefix}.{file}"), setting(&folder.join(file)));
        }
    }

    /// Notes a counter or a current state, which was not set by anyone.
    fn count(&mut self, name: impl Into<String>, value: Option<impl Into<String>>) {
        if let Some(value) = value {
            self.counters.insert(name.into(), value.into());
        }
    }

    /// Notes every readable file in a folder of kernel settings as `prefix.file`. A writable file
    /// is a setting; a file that no one can write is a value that the kernel itself counts.
    fn folder(&mut self, prefix: &str, folder: &Path) {
        let files = names(folder).into_iter();
        for file in files.filter(|file| !TRIGGERS.contains(&&**file)) {
            let (name, path) = (format!("{prefix}.{file}"), folder.join(&file));
            match is_writable(&path) {
                true => self.note(name, setting(&path)),
                false => self.count(name, setting(&path)),
            }
        }
    }
}

/// Files that do something when they are read, and have no value: adding up the counters of all CPUs
/// (`vmstat_refresh`, mm/vmstat.c).
const TRIGGERS: [&str; 1] = ["stat_refresh"];

/// Whether the file's mode lets anyone write it; opening it is no test, as root may open any.
fn is_writable(path: &Path) -> bool {
    path.metadata()
        .is_ok_and(|found| found.permissions().mode() & 0o222 != 0)
}

/// Settings of the kernel that affect how programs run or what can be observed.
const KERNEL: [&str; 10] = [
    "kptr_restrict",
    "numa_balancing",
    "perf_cpu_time_max_percent",
    "perf_event_max_sample_rate",
    "perf_event_max_stack",
    "perf_event_mlock_kb",
    "perf_event_paranoid",
    "randomize_va_space",
    "sched_autogroup_enabled",
    "version",
];

fn kernel(machine: &Machine, settings: &mut Settings) {
    settings.note("kernel.cmdline", setting(&machine.proc.path("cmdline")));
    settings.files("kernel", &machine.proc.path("sys/kernel"), &KERNEL);
    let release = setting(&machine.root.join("etc/os-release")).unwrap_or_default();
    let name = release
        .lines()
        .find_map(|line| line.strip_prefix("PRETTY_NAME="));
    settings.note("os.name", name.map(|name| name.trim_matches('"')));
}

#[cfg(test)]
mod tests {
    use super::*;

    fn write(root: &Path, path: &str, text: &str) {
        let path = root.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    #[test]
    fn an_empty_machine_gives_an_empty_snapshot() {
        let folder = tempfile::tempdir().unwrap();
        let found = snapshot_at(folder.path());
        assert_eq!((found.hostname.as_str(), found.cpus), ("", 0));
        assert_eq!(found.settings, BTreeMap::new());
    }

    #[test]
    fn a_hypervisor_shows_in_flags_device_tree_or_sysfs() {
        for (file, text, is_guest) in [
            ("proc/cpuinfo", "flags\t\t: fpu hypervisor lm\n", true),
            ("proc/cpuinfo", "flags\t\t: fpu lm\n", false),
            ("proc/device-tree/hypervisor/compatible", "linux,kvm", true),
            ("sys/hypervisor/type", "xen\n", true),
        ] {
            let folder = tempfile::tempdir().unwrap();
            write(folder.path(), file, text);
            let machine = Machine::at(folder.path());
            assert_eq!(hardware::is_guest(&machine), is_guest, "{file}: {text}");
        }
    }

    #[test]
    fn notes_what_the_files_say() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        write(root, "proc/sys/kernel/osrelease", "6.18.0\n");
        write(root, "proc/cmdline", "quiet mitigations=off\n");
        write(
            root,
            "etc/os-release",
            "ID=x\nPRETTY_NAME=\"Some Linux 1\"\n",
        );
        write(root, "proc/sys/vm/swappiness", "60\n");
        write(root, "proc/sys/vm/stat_refresh", "");
        write(root, "proc/meminfo", "MemTotal:  8 kB\nSwapTotal: 0 kB\n");
        let cpu = "processor : 0\nmodel name : A CPU\nmicrocode : 0xf\n\nprocessor : 1\n";
        write(root, "proc/cpuinfo", cpu);
        write(
            root,
            "sys/devices/system/cpu/vulnerabilities/meltdown",
            "Not affected\n",
        );
        write(
            root,
            "sys/block/vda/queue/scheduler",
            "[none] mq-deadline\n",
        );
        write(root, "sys/block/vda/queue/io_poll", "0\n");
        write(root, "sys/block/loop0/queue/io_poll", "0\n");
        write(root, "sys/block/loop0/size", "0\n");
        write(root, "sys/block/loop1/queue/scheduler", "none [kyber]\n");
        write(root, "sys/block/loop1/size", "524288\n");
        write(root, "sys/devices/system/edac/mc/mc0/ce_count", "2\n");
        write(root, "sys/devices/system/node/node0/distance", "10\n");
        write(
            root,
            "proc/swaps",
            "Filename Type Size Used Priority\n/dev/sdb partition 2048 0 -2\n",
        );
        let found = snapshot_at(root);
        assert_eq!((found.cpu.as_str(), found.cpus), ("A CPU", 2));
        assert_eq!(
            (found.memory_bytes, found.kernel.as_str()),
            (8192, "6.18.0")
        );
        let expected = [
            ("block.loop1.scheduler", "kyber"),
            ("block.vda.io_poll", "0"),
            ("block.vda.scheduler", "none"),
            ("cpu.microcode", "0xf"),
            ("edac.mc0.ce_count", "2"),
            ("kernel.cmdline", "quiet mitigations=off"),
            ("mitigations.meltdown", "Not affected"),
            ("numa.node0.distance", "10"),
            ("numa.nodes", "1"),
            ("os.name", "Some Linux 1"),
            ("swap./dev/sdb", "partition, 2.00 MiB, priority -2"),
            ("vm.swappiness", "60"),
        ];
        let expected = expected.map(|(name, value)| (name.to_string(), value.to_string()));
        assert_eq!(found.settings, BTreeMap::from(expected));
    }

    #[test]
    fn what_nobody_can_write_is_a_counter_and_no_setting() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        let mm = "sys/kernel/mm";
        let counters = [
            ("ksm", "full_scans", "ksm.full_scans"),
            (
                "ksm",
                "a_name_of_a_later_kernel",
                "ksm.a_name_of_a_later_kernel",
            ),
            (
                "transparent_hugepage/khugepaged",
                "full_scans",
                "thp.khugepaged.full_scans",
            ),
        ];
        for (group, file, _) in counters {
            let path = format!("{mm}/{group}/{file}");
            write(root, &path, "17\n");
            let read_only = std::fs::Permissions::from_mode(0o444);
            std::fs::set_permissions(root.join(path), read_only).unwrap();
        }
        write(root, &format!("{mm}/ksm/run"), "0\n");
        let thp = format!("{mm}/transparent_hugepage");
        write(root, &format!("{thp}/enabled"), "always [madvise] never\n");
        write(root, &format!("{thp}/khugepaged/defrag"), "1\n");
        let found = snapshot_at(root);
        for (.., name) in counters {
            assert_eq!(
                found.counters.get(name).map(String::as_str),
                Some("17"),
                "{name}"
            );
            assert!(!found.settings.contains_key(name), "{name}");
        }
        for name in ["ksm.run", "thp.khugepaged.defrag", "thp.enabled"] {
            assert!(found.settings.contains_key(name), "{name}");
        }
    }

    #[test]
    fn knows_this_machine() {
        let found = snapshot();
        assert!(found.cpus > 0 && found.memory_bytes > 0 && !found.kernel.is_empty());
        assert!(found.settings.contains_key("vm.swappiness"));
    }
}
