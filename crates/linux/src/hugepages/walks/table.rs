//! Event tables and the choice among them.

use crate::proc::ProcRoot;
use serde::Deserialize;

/// The files, newest first within a vendor.
const FILES: [&str; 7] = [
    include_str!("golden-cove.toml"),
    include_str!("ice-lake.toml"),
    include_str!("skylake.toml"),
    include_str!("gracemont.toml"),
    include_str!("zen4.toml"),
    include_str!("zen2.toml"),
    include_str!("arm.toml"),
];

/// One raw event of the core's PMU.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Event {
    /// `perf_event_attr.config`: event in bits 0 to 7, umask in 8 to 15, cmask in 24 to 31 (x86).
    pub config: u64,
}

/// Events of one microarchitecture. An event that it lacks is an empty list; several are added up.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Name to display.
    pub name: String,
    /// Source of the event numbers.
    pub source: String,
    vendor: Option<String>,
    family: Option<u32>,
    #[serde(default)]
    families: Vec<u32>,
    #[serde(default)]
    models: Vec<u32>,
    #[serde(default)]
    implementers: Vec<u32>,
    /// PMU to use if the machine has several kinds of cores.
    pub pmu: Option<String>,
    /// Cycles in which a walk is in progress.
    #[serde(default)]
    pub active: Vec<Event>,
    /// Completed walks of data accesses.
    #[serde(default)]
    pub all: Vec<Event>,
    /// Those that ended at a base page.
    #[serde(default)]
    pub small: Vec<Event>,
    /// Those that ended at a huge page of PMD level.
    #[serde(default)]
    pub huge: Vec<Event>,
    /// A note for readers of the results.
    pub note: String,
}

/// What identifies a core.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Cpu {
    /// `vendor_id`.
    pub vendor: Option<String>,
    /// `cpu family`.
    pub family: Option<u32>,
    /// `model`.
    pub model: Option<u32>,
    /// `CPU implementer` (MIDR bits 24 to 31).
    pub implementer: Option<u32>,
    /// `CPU part` (MIDR bits 4 to 15).
    pub part: Option<u32>,
}

impl Cpu {
    /// This machine's.
    #[must_use]
    pub fn this() -> Self {
        let cpuinfo = std::fs::read_to_string(ProcRoot::default().path("cpuinfo"));
        Self::parse(&cpuinfo.unwrap_or_default())
    }

    /// From the text of `/proc/cpuinfo`.
    #[must_use]
    pub fn parse(cpuinfo: &str) -> Self {
        let value = |key: &str| {
            cpuinfo.lines().find_map(|line| {
                let (name, value) = line.split_once(':')?;
                (name.trim() == key).then(|| value.trim())
            })
        };
        let number = |key| {
            let text = value(key)?;
            match text.strip_prefix("0x") {
                Some(digits) => u32::from_str_radix(digits, 16).ok(),
                None => text.parse().ok(),
            }
        };
        Self {
            vendor: value("vendor_id").map(str::to_string),
            family: number("cpu family"),
            model: number("model"),
            implementer: number("CPU implementer"),
            part: number("CPU part"),
        }
    }
}

impl Table {
    /// Whether walks can be counted by page size.
    #[must_use]
    pub fn splits_sizes(&self) -> bool {
        !self.huge.is_empty() && (!self.small.is_empty() || !self.all.is_empty())
    }

    fn fits(&self, cpu: &Cpu) -> bool {
        if let Some(implementer) = cpu.implementer {
            return self.implementers.contains(&implementer);
        }
        let (Some(vendor), Some(family), Some(model)) = (&cpu.vendor, cpu.family, cpu.model) else {
            return false;
        };
        self.vendor.as_ref() == Some(vendor)
            && (self.family == Some(family) || self.families.contains(&family))
            && (self.models.is_empty() || self.models.contains(&model))
    }
}

/// All tables.
///
/// # Panics
/// Never: a test parses the files, which are embedded in this program.
#[must_use]
pub fn tables() -> Vec<Table> {
    FILES
        .iter()
        .filter_map(|text| toml::from_str(text).ok())
        .collect()
}

/// The table for a CPU; `None` if no table matches.
#[must_use]
pub fn table_for(cpu: &Cpu) -> Option<Table> {
    tables().into_iter().find(|table| table.fits(cpu))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_file_is_a_table_with_a_source() {
        for text in FILES {
            let table: Table = toml::from_str(text).unwrap();
            assert!(
                !table.source.is_empty() && !table.all.is_empty(),
                "{}",
                table.name
            );
        }
        assert_eq!(tables().len(), FILES.len());
    }

    #[test]
    fn cpus_find_their_events() {
        let x86 = |vendor: &str, family: u32, model: u32| {
            let text =
                format!("vendor_id : {vendor}\ncpu family\t: {family}\nmodel\t\t: {model}\n");
            table_for(&Cpu::parse(&text)).map(|table| table.name)
        };
        let name = |found: Option<String>| found.unwrap_or_default();
        assert_eq!(
            name(x86("GenuineIntel", 6, 0x8f)),
            "Intel Golden Cove and later"
        );
        assert_eq!(
            name(x86("GenuineIntel", 6, 0x55)),
            "Intel Skylake to Comet Lake"
        );
        assert_eq!(
            name(x86("GenuineIntel", 6, 0x6a)),
            "Intel Ice Lake and Tiger Lake"
        );
        assert_eq!(name(x86("AuthenticAMD", 0x19, 17)), "AMD Zen 3 to Zen 5");
        assert_eq!(x86("GenuineIntel", 6, 1), None);
        let arm = Cpu::parse("CPU implementer\t: 0x41\nCPU part\t: 0xd4f\n");
        assert_eq!(arm.part, Some(0xd4f));
        let table = table_for(&arm).unwrap();
        assert!(!table.splits_sizes(), "{}", table.name);
    }

    #[test]
    fn golden_cove_counts_as_its_manual_says() {
        let cpu = Cpu::parse("vendor_id: GenuineIntel\ncpu family: 6\nmodel: 143\n");
        let table = table_for(&cpu).unwrap();
        let configs = |events: &[Event]| events.iter().map(|e| e.config).collect::<Vec<_>>();
        // 0x12 loads, 0x13 stores; umask 04 for 2M/4M pages; cmask 1 of WALK_PENDING.
        assert_eq!(configs(&table.huge), [0x0412, 0x0413]);
        assert_eq!(configs(&table.active), [0x0100_1012, 0x0100_1013]);
        assert!(table.splits_sizes());
    }
}
