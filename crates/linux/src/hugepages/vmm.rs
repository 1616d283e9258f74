//! Virtual machine monitors: which mapping is the guest's memory, and whether it is aligned so that
//! a huge page of the guest can also be one of the host (Zhu Chen et al., figure 4).

use crate::proc::ProcRoot;
use crate::pseudo_file;
use pagewise_model::huge_pages::HugeMap;
use pagewise_model::units::Bytes;

/// Guest memory in a monitor's address space.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct GuestMemory {
    /// First address.
    pub start: u64,
    /// Length.
    pub length: Bytes,
    /// Offset of the first address within a huge page. Guest memory starts at guest-physical
    /// addresses that are multiples of a huge page (0, and 4 GiB for memory above the PCI hole), so
    /// with any offset but 0 no huge page of the guest can be backed by one huge page of the host.
    pub misaligned_by: Bytes,
}

/// A virtual machine monitor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Monitor {
    /// Name of the program.
    pub comm: String,
    /// Its guest's memory, largest first.
    pub memory: Vec<GuestMemory>,
}

/// Names as the kernel truncates them (15 characters).
const NAMES: [&str; 6] = [
    "qemu-system",
    "firecracker",
    "cloud-hyperviso",
    "crosvm",
    "lkvm",
    "kvm",
];
/// Smaller mappings are ROMs, buffers and heaps, not guest memory.
const LEAST: u64 = 64 << 20;

/// The monitor in process `pid`, recognised by its name or by an open KVM virtual machine.
///
/// # Errors
/// [`pseudo_file::Error`] when `/proc/PID/stat` is unreadable.
pub fn monitor(
    proc: &ProcRoot,
    pid: i32,
    map: &HugeMap,
) -> Result<Option<Monitor>, pseudo_file::Error> {
    let Some(stat) = proc.stat(pid)? else {
        return Ok(None);
    };
    let known = NAMES.iter().any(|name| stat.comm.starts_with(name));
    if !known && !holds_a_virtual_machine(proc, pid) {
        return Ok(None);
    }
    let mut memory: Vec<GuestMemory> = map
        .areas
        .iter()
        .filter(|area| area.end - area.start >= LEAST)
        .map(|area| GuestMemory {
            start: area.start,
            length: Bytes(area.end - area.start),
            misaligned_by: Bytes(area.start % map.huge_page.0),
        })
        .collect();
    memory.sort_by_key(|memory| std::cmp::Reverse(memory.length));
    Ok(Some(Monitor {
        comm: stat.comm,
        memory,
    }))
}

/// Whether one of its descriptors is `anon_inode:kvm-vm`.
fn holds_a_virtual_machine(proc: &ProcRoot, pid: i32) -> bool {
    let descriptors = std::fs::read_dir(proc.process_path(pid, "fd"));
    let links = descriptors.into_iter().flatten().flatten();
    links
        .filter_map(|entry| std::fs::read_link(entry.path()).ok())
        .any(|link| link.to_string_lossy().contains("kvm-vm"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::findings::RegionKind;
    use pagewise_model::huge_pages::Area;

    fn area(start: u64, length: u64) -> Area {
        Area {
            start,
            end: start + length,
            region: RegionKind::Anonymous,
            path: "//anon".into(),
            advised: true,
            obstacle: None,
            first_slot: start.next_multiple_of(2 << 20),
            slots: Vec::new(),
        }
    }

    #[test]
    fn guest_memory_is_the_large_mappings_and_its_offset_is_told() {
        let folder = tempfile::tempdir().unwrap();
        let process = folder.path().join("9");
        std::fs::create_dir(&process).unwrap();
        let numbers = "0 ".repeat(40);
        let stat = format!("9 (qemu-system-x86) S 1 {numbers}\n");
        std::fs::write(process.join("stat"), stat).unwrap();
        let map = HugeMap {
            huge_page: Bytes(2 << 20),
            base_page: Bytes(4096),
            areas: vec![
                area(0x7f00_0000_0000, 4 << 20),
                area(0x7f10_0010_0000, 128 << 20),
                area(0x7f20_0000_0000, 1 << 30),
            ],
        };
        let found = monitor(&ProcRoot::at(folder.path()), 9, &map);
        let found = found.unwrap().unwrap();
        let offsets: Vec<u64> = found.memory.iter().map(|m| m.misaligned_by.0).collect();
        assert_eq!(offsets, [0, 1 << 20]);
        assert_eq!(found.memory[0].length, Bytes(1 << 30));
    }
}
