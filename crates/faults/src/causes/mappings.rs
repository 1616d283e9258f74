//! Mapping records: the layout of memory, and what repeated mappings show if releases are not
//! recorded.

use super::Attributor;
use super::regions::{Anonymous, Region, is_private_anonymous};
use super::roles::Coverage;
use super::syscalls::{MAP_HUGETLB, MAP_SHARED, PROT_EXEC, PROT_WRITE};
use pagewise_model::address_space::Mapping;
use pagewise_model::event::Mmap;
use pagewise_model::findings::RegionKind;

/// Kind of memory by the path that the kernel gives to a mapping.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Named {
    Heap,
    Stack,
    PlainAnonymous,
    Fixed(RegionKind),
}

impl Attributor {
    pub(super) fn mmap(&mut self, mmap: &Mmap<'_>) {
        if mmap.pid < 0 || mmap.length == 0 {
            return;
        }
        let process = self.process(mmap.pid);
        self.processes[process].last_region = None;
        let end = mmap.start.saturating_add(mmap.length);
        let writable = mmap.protection == 0 && !mmap.synthetic && mmap.flags == 0
            || mmap.protection & PROT_WRITE != 0;
        let named = name(mmap);
        self.keep_for_symbols(process, mmap, end, named);
        match named {
            Named::Heap => self.heap_record(process, mmap, end),
            Named::Stack => {
                let regions = &mut self.processes[process].regions;
                regions.map(mmap.start, Region::new(end, RegionKind::Stack, true));
                regions.set_stack(mmap.start);
            }
            Named::PlainAnonymous => self.anonymous_record(process, mmap, end, writable),
            Named::Fixed(kind) => {
                let region = Region::new(end, kind, writable);
                self.processes[process].regions.map(
                    mmap.start,
                    Region {
                        inherited: mmap.synthetic,
                        ..region
                    },
                );
            }
        }
    }

    /// A record of the heap covers all of it. If its end is no higher than the last one, the heap
    /// shrank in between.
    fn heap_record(&mut self, process: usize, mmap: &Mmap<'_>, end: u64) {
        let held = &mut self.processes[process];
        let old = held.regions.heap_end.replace(end);
        let region = Region::new(end, RegionKind::Heap, true);
        held.regions.map(
            mmap.start,
            Region {
                inherited: mmap.synthetic,
                ..region
            },
        );
        if self.roles.sees_releases {
            return;
        }
        held.heap_epoch = (held.heap_epoch + 1) & super::pages::MARK_MAX;
        if let Some(old) = old {
            self.note_growth_record(RegionKind::Heap, end.saturating_sub(old), old >= end);
        }
    }

    /// A record of anonymous memory. The kernel merges neighbouring mappings and then records the
    /// merged one, so if the calls themselves are recorded, only those are used.
    fn anonymous_record(&mut self, process: usize, mmap: &Mmap<'_>, end: u64, writable: bool) {
        if self.roles.sees_releases && self.roles.sees_mmap && !mmap.synthetic {
            return;
        }
        let owner = self.managed_in(process).owner;
        let shift = self.page_shift;
        let held = &mut self.processes[process];
        let before = held
            .regions
            .find(mmap.start)
            .or_else(|| held.regions.find(end - 1));
        let new = Anonymous {
            start: mmap.start,
            end,
            writable,
            inherited: mmap.synthetic,
        };
        let kind = held.regions.map_anonymous(new, owner);
        if self.roles.sees_releases {
            return;
        }
        held.pages.renew(mmap.start >> shift, end >> shift);
        let brought = held
            .remaps
            .record((mmap.start, end), writable, before, shift);
        let (from, to) = brought.part;
        // A change of protection keeps what is there.
        if before.is_none_or(|(_, before)| before.writable == writable) {
            self.touches.returned(mmap.pid, (from, to), mmap.time);
        }
        let held = &mut self.processes[process];
        held.regions
            .change(mmap.start, end, |region| region.newest = (from, to));
        self.note_growth_record(kind, to.saturating_sub(from), brought.again);
    }

    fn note_growth_record(&mut self, kind: RegionKind, bytes: u64, again: bool) {
        let pages = bytes >> self.page_shift;
        if self.roles.coverage == Coverage::Sampled && again && is_private_anonymous(kind) {
            *self.tally.remapped.entry(kind).or_default() += pages;
        }
        if bytes > 0 {
            self.note_growth(kind, bytes, None);
        }
    }

    fn keep_for_symbols(&mut self, process: usize, mmap: &Mmap<'_>, end: u64, named: Named) {
        let is_code = mmap.executable || mmap.protection & PROT_EXEC != 0;
        let is_file = matches!(
            named,
            Named::Fixed(RegionKind::FilePrivate | RegionKind::FileShared)
        );
        let space = &mut self.processes[process].space;
        if is_code || is_file {
            space.map(Mapping {
                start: mmap.start,
                end,
                file_offset: mmap.file_offset,
                protection: mmap.protection,
                flags: mmap.flags,
                path: String::from_utf8_lossy(mmap.path).into(),
                build_id: mmap.build_id.map(Box::from),
                file: mmap.file,
            });
        }
    }
}

fn name(mmap: &Mmap<'_>) -> Named {
    let shared = u64::from(mmap.flags) & MAP_SHARED != 0;
    let path = mmap.path;
    if u64::from(mmap.flags) & MAP_HUGETLB != 0 || path.starts_with(b"/anon_hugepage") {
        return Named::Fixed(RegionKind::Hugetlb);
    }
    if path == b"[heap]" {
        return Named::Heap;
    }
    if path.starts_with(b"[stack") {
        return Named::Stack;
    }
    if is_shared_memory(path) && shared {
        return Named::Fixed(RegionKind::SharedAnonymous);
    }
    if path.is_empty() || path.starts_with(b"//anon") || path.starts_with(b"[anon") {
        let kind = Named::Fixed(RegionKind::SharedAnonymous);
        return if shared { kind } else { Named::PlainAnonymous };
    }
    if path.starts_with(b"[") {
        return Named::Fixed(RegionKind::Unknown);
    }
    Named::Fixed(if shared {
        RegionKind::FileShared
    } else {
        RegionKind::FilePrivate
    })
}

/// Files that are memory: names that the kernel passes to `shmem_kernel_file_setup`, and tmpfs for
/// `shm_open(3)`.
fn is_shared_memory(path: &[u8]) -> bool {
    [&b"/dev/zero"[..], b"/memfd:", b"/dev/shm/", b"/SYSV"]
        .iter()
        .any(|prefix| path.starts_with(prefix))
}
