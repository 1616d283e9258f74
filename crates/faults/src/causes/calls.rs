//! Memory system calls: what they free and allocate, and their cost.

use super::Attributor;
use super::mappers::Mapper;
use super::pages::{PageState, Route};
use super::process::CallUnderWay;
use super::regions::{Anonymous, HugeWish, Region, is_private_anonymous};
use super::roles::Coverage;
use super::syscalls::{
    self, MADV_DONTNEED, MADV_DONTNEED_LOCKED, MADV_FREE, MADV_HUGEPAGE, MADV_NOHUGEPAGE,
    MADV_PAGEOUT, MADV_POPULATE_READ, MADV_POPULATE_WRITE, MADV_REMOVE, MAP_ANONYMOUS, MAP_FIXED,
    MAP_HUGETLB, MAP_POPULATE, MAP_SHARED, MAP_STACK, MmCall, PROT_WRITE,
};
use pagewise_model::event::Sample;
use pagewise_model::findings::RegionKind;
use pagewise_model::loss::LossKind;
use pagewise_model::stack::StackId;

/// A range of addresses of one process.
#[derive(Clone, Copy)]
struct Range {
    process: usize,
    start: u64,
    end: u64,
}

impl Attributor {
    /// A system call begins. Memory that it frees is removed here: if this happened at the call's
    /// return, another thread might have mapped and touched the same addresses in between.
    pub(super) fn enter(
        &mut self,
        sample: &Sample<'_>,
        call: MmCall,
        has_chain: bool,
        unwound: Option<&[u64]>,
    ) {
        let Some(mut args) = syscalls::arguments(sample.raw) else {
            self.losses.add(LossKind::MalformedRecord, 1);
            return;
        };
        let thread = self.thread(sample.pid, sample.tid);
        let process = self.process(sample.pid);
        // A copy of only the first words of the stack shows the caller and nothing above it.
        let full = unwound.filter(|_| !sample.user_stack.is_some_and(|stack| stack.is_head()));
        let stack =
            (has_chain || full.is_some()).then(|| self.intern(sample.pid, sample.callchain, full));
        let mapper = match (call, unwound) {
            (MmCall::Mmap, Some(&[at, caller, ..])) => self.mapper(process, at, caller),
            _ => Mapper::Unknown,
        };
        self.settle(thread, true);
        let bytes = self.apply_entry(process, call, &mut args, stack);
        let gives_back = match call {
            MmCall::Munmap => true,
            MmCall::Mmap => args[3] & MAP_FIXED != 0,
            MmCall::Madvise => matches!(args[2], MADV_DONTNEED | MADV_DONTNEED_LOCKED),
            MmCall::Brk | MmCall::Mprotect | MmCall::Mremap => false,
        };
        if gives_back {
            let Range { start, end, .. } = self.range(process, args[0], args[1]);
            self.touches.returned(sample.pid, (start, end), sample.time);
        }
        let totals = self.tally.calls.entry(call).or_default();
        totals.calls += sample.period.max(1);
        totals.bytes = totals.bytes.saturating_add(bytes);
        self.threads[thread].call = Some(CallUnderWay {
            call,
            args,
            begun: sample.time,
            stack,
            mapper,
        });
        self.processes[process].last_region = None;
    }

    /// Applies a call's effects at its entry; returns the number of bytes concerned.
    fn apply_entry(
        &mut self,
        process: usize,
        call: MmCall,
        args: &mut [u64; 6],
        stack: Option<StackId>,
    ) -> u64 {
        let range = self.range(process, args[0], args[1]);
        match call {
            MmCall::Munmap => {
                self.release(range, Route::Munmap, stack);
                self.forget(range);
            }
            MmCall::Mmap if args[3] & MAP_FIXED != 0 => {
                self.release(range, Route::Munmap, stack);
                self.forget(range);
            }
            MmCall::Brk => return self.enter_brk(process, args, stack),
            MmCall::Madvise => self.advise(range, args[2], stack),
            MmCall::Mprotect => self.protect(range, args[2]),
            MmCall::Mmap | MmCall::Mremap => {}
        }
        range.end - range.start
    }

    /// Forgets an unmapped range, unless calls are recorded only part of the time: then the range
    /// may be reused unseen, and its former kind is the best guess.
    fn forget(&mut self, range: Range) {
        if self.roles.sees_releases {
            self.processes[range.process]
                .regions
                .unmap(range.start, range.end);
        }
    }

    /// `brk(2)`: stores the old end in the third argument for the return.
    fn enter_brk(&mut self, process: usize, args: &mut [u64; 6], stack: Option<StackId>) -> u64 {
        let old = self.processes[process].regions.heap_end.unwrap_or(0);
        let wanted = args[0];
        args[2] = old;
        if wanted == 0 || old == 0 {
            return 0;
        }
        if wanted < old {
            let from = self.page_up(wanted);
            let range = Range {
                process,
                start: from,
                end: self.page_up(old).max(from),
            };
            self.release(range, Route::Brk, stack);
            self.forget(range);
        }
        wanted.abs_diff(old)
    }

    /// Attributes the memory that a sampled system call frees or allocates to its caller.
    pub(super) fn blame(&mut self, sample: &Sample<'_>, call: MmCall, unwound: Option<&[u64]>) {
        let Some(args) = syscalls::arguments(sample.raw) else {
            self.losses.add(LossKind::MalformedRecord, 1);
            return;
        };
        let stack = self.intern(sample.pid, sample.callchain, unwound);
        let process = self.process(sample.pid);
        let heap_end = self.processes[process].regions.heap_end.unwrap_or(0);
        let pages = |bytes: u64| (bytes >> self.page_shift) as f64 * sample.period.max(1) as f64;
        let anonymous = call == MmCall::Mmap && args[3] & MAP_ANONYMOUS != 0;
        let writable = args[2] & u64::from(PROT_WRITE) != 0;
        // Runtimes uncommit memory by mapping it anew without access.
        let uncommits = anonymous && args[2] == 0 && args[3] & MAP_FIXED != 0;
        let released = match call {
            MmCall::Munmap => Some((Route::Munmap, pages(args[1]))),
            MmCall::Mmap if uncommits => Some((Route::Munmap, pages(args[1]))),
            MmCall::Brk if args[0] != 0 && args[0] < heap_end => {
                Some((Route::Brk, pages(heap_end - args[0])))
            }
            MmCall::Madvise => released_by_advice(args[2]).map(|route| (route, pages(args[1]))),
            _ => None,
        };
        let grown = match call {
            // Memory without access is only reserved.
            MmCall::Mmap if anonymous && writable => pages(args[1]),
            MmCall::Brk if heap_end != 0 => pages(args[0].saturating_sub(heap_end)),
            _ => 0.0,
        };
        if let Some((route, pages)) = released {
            *self.tally.release_stacks.entry((stack, route)).or_default() += pages;
        }
        if grown > 0.0 {
            *self.tally.growth_stacks.entry(stack).or_default() += grown;
        }
    }

    /// A system call returns.
    pub(super) fn exit(&mut self, sample: &Sample<'_>, call: MmCall) {
        let Some(result) = syscalls::result(sample.raw) else {
            self.losses.add(LossKind::MalformedRecord, 1);
            return;
        };
        let thread = self.thread(sample.pid, sample.tid);
        let Some(under_way) = self.threads[thread].call.take_if(|held| held.call == call) else {
            return;
        };
        let totals = self.tally.calls.entry(call).or_default();
        totals.timed += 1;
        totals.time += sample.time - under_way.begun;
        let process = self.process(sample.pid);
        self.processes[process].last_region = None;
        let Ok(value) = u64::try_from(result) else {
            return;
        };
        match call {
            MmCall::Mmap => self.mapped(process, value, &under_way),
            MmCall::Brk => self.heap_moved(process, value, &under_way),
            MmCall::Mremap => self.moved(process, value, &under_way),
            MmCall::Munmap | MmCall::Madvise | MmCall::Mprotect => {}
        }
    }

    fn mapped(&mut self, process: usize, start: u64, call: &CallUnderWay) {
        let flags = call.args[3];
        let range = self.range(process, start, call.args[1]);
        if flags & MAP_POPULATE != 0 {
            self.tally.populate_requested += range.end.saturating_sub(range.start);
        }
        if flags & MAP_ANONYMOUS == 0 || range.start >= range.end {
            return;
        }
        let writable = call.args[2] & u64::from(PROT_WRITE) != 0;
        let kind = self.anonymous_kind(range, flags, writable);
        if call.mapper != Mapper::Unknown {
            self.processes[process]
                .regions
                .change(range.start, range.end, |region| region.mapper = call.mapper);
        }
        if flags & MAP_POPULATE != 0 {
            self.populate(range, writable);
        }
        if is_private_anonymous(kind) && writable {
            self.note_growth(kind, range.end - range.start, call.stack);
        }
    }

    fn anonymous_kind(&mut self, range: Range, flags: u64, writable: bool) -> RegionKind {
        let owner = self.managed_in(range.process).owner;
        let regions = &mut self.processes[range.process].regions;
        let fixed = if flags & MAP_SHARED != 0 {
            Some(RegionKind::SharedAnonymous)
        } else if flags & MAP_HUGETLB != 0 {
            Some(RegionKind::Hugetlb)
        } else if flags & MAP_STACK != 0 {
            Some(RegionKind::Stack)
        } else {
            None
        };
        let Some(kind) = fixed else {
            let new = Anonymous {
                start: range.start,
                end: range.end,
                writable,
                inherited: false,
            };
            return regions.map_anonymous(new, owner);
        };
        regions.map(range.start, Region::new(range.end, kind, writable));
        kind
    }

    fn heap_moved(&mut self, process: usize, end: u64, call: &CallUnderWay) {
        let old = call.args[2];
        let regions = &mut self.processes[process].regions;
        regions.heap_end = Some(end);
        if old != 0 && end > old {
            let (from, to) = (self.page_down(old), self.page_up(end));
            self.processes[process]
                .regions
                .map(from, Region::new(to, RegionKind::Heap, true));
            self.note_growth(RegionKind::Heap, end - old, call.stack);
        }
    }

    /// `mremap(2)` moves page tables along with the mapping, so nothing faults again; the part that
    /// was cut off is freed.
    fn moved(&mut self, process: usize, to: u64, call: &CallUnderWay) {
        let [from, old_length, new_length, ..] = call.args;
        let old = self.range(process, from, old_length);
        let new = self.range(process, to, new_length);
        let kept = (old.end - old.start).min(new.end - new.start);
        let tail = Range {
            start: old.start + kept,
            ..old
        };
        self.release(tail, Route::Munmap, call.stack);
        let shift = self.page_shift;
        let process = &mut self.processes[process];
        let region = process.regions.find(from).map(|(_, region)| region);
        if to != from {
            process
                .pages
                .relocate(old.start >> shift, (old.start + kept) >> shift, to >> shift);
        }
        process.regions.unmap(old.start, old.end);
        let region = region.unwrap_or(Region::new(0, RegionKind::Anonymous, true));
        process.regions.map(
            to,
            Region {
                end: new.end,
                ..region
            },
        );
        if new_length > old_length {
            self.note_growth(region.kind, new_length - old_length, call.stack);
        }
    }

    fn advise(&mut self, range: Range, advice: u64, stack: Option<StackId>) {
        let process = range.process;
        if let Some(route) = released_by_advice(advice) {
            self.release(range, route, stack);
        }
        match advice {
            MADV_PAGEOUT => self.page_out(range),
            MADV_POPULATE_READ => self.populate(range, false),
            MADV_POPULATE_WRITE => self.populate(range, true),
            MADV_HUGEPAGE | MADV_NOHUGEPAGE => {
                let wish = if advice == MADV_HUGEPAGE {
                    HugeWish::Wanted
                } else {
                    HugeWish::Refused
                };
                self.processes[process]
                    .regions
                    .change(range.start, range.end, |region| region.huge = wish);
            }
            _ => {}
        }
    }

    fn page_out(&mut self, range: Range) {
        let (first, end) = (range.start >> self.page_shift, range.end >> self.page_shift);
        self.processes[range.process]
            .pages
            .map_held(first, end, |state| match state {
                // A freed page is not written out: it is dropped.
                freed @ PageState::Released(_) => freed,
                _ => PageState::Swapped,
            });
    }

    /// Pages that a call brings in without a fault event.
    fn populate(&mut self, range: Range, written: bool) {
        let state = if written {
            PageState::Written
        } else {
            PageState::ReadOnly
        };
        let (first, end) = (range.start >> self.page_shift, range.end >> self.page_shift);
        self.processes[range.process]
            .pages
            .overwrite(first, end, state);
    }

    fn protect(&mut self, range: Range, protection: u64) {
        let writable = protection & u64::from(PROT_WRITE) != 0;
        let owner = self.managed_in(range.process).owner;
        let regions = &mut self.processes[range.process].regions;
        for (start, region) in regions.overlapping(range.start, range.end) {
            let reserved = region.kind == RegionKind::Anonymous && !region.writable;
            if reserved && writable {
                let new = Anonymous {
                    start,
                    end: region.end,
                    writable,
                    inherited: region.inherited,
                };
                regions.map_anonymous(new, owner);
            } else {
                regions.change(start, region.end, |region| region.writable = writable);
            }
        }
    }

    /// Frees a range.
    fn release(&mut self, range: Range, route: Route, stack: Option<StackId>) {
        if range.start >= range.end {
            return;
        }
        let pieces = self.processes[range.process]
            .regions
            .overlapping(range.start, range.end);
        if pieces.is_empty() {
            let unknown = Region::new(range.end, RegionKind::Anonymous, true);
            self.release_piece(range, unknown, route, stack);
        }
        for (start, region) in pieces {
            let piece = Range {
                start,
                end: region.end,
                ..range
            };
            self.release_piece(piece, region, route, stack);
        }
    }

    fn release_piece(
        &mut self,
        piece: Range,
        region: Region,
        route: Route,
        stack: Option<StackId>,
    ) {
        let (first, end) = (piece.start >> self.page_shift, piece.end >> self.page_shift);
        let process = &mut self.processes[piece.process];
        if !is_private_anonymous(region.kind) {
            process.pages.overwrite(first, end, PageState::Untouched);
            return;
        }
        let pages = match self.roles.coverage {
            Coverage::Every => process.pages.release_held(first, end, route).held_pages,
            Coverage::Sampled if !self.roles.sees_releases => end - first,
            Coverage::Sampled if region.writable => {
                process.pages.release_all(first, end, route);
                process.density.released(end - first);
                end - first
            }
            Coverage::Sampled => 0,
        };
        if pages > 0 {
            self.note_release((route, region.kind), piece.end - piece.start, pages, stack);
            if (route, region.kind) == (Route::Munmap, RegionKind::MmappedChunk) {
                self.tally.mapped_by.add(region.mapper, pages);
            }
        }
    }

    fn note_release(
        &mut self,
        key: (Route, RegionKind),
        bytes: u64,
        pages: u64,
        stack: Option<StackId>,
    ) {
        let totals = self.tally.releases.entry(key).or_default();
        totals.sizes.record(bytes);
        totals.pages += pages;
        if let Some(stack) = stack {
            *self.tally.release_stacks.entry((stack, key.0)).or_default() += pages as f64;
        }
    }

    pub(super) fn note_growth(&mut self, kind: RegionKind, bytes: u64, stack: Option<StackId>) {
        self.tally
            .growth_sizes
            .entry(kind)
            .or_default()
            .record(bytes);
        if let Some(stack) = stack {
            let pages = (bytes >> self.page_shift) as f64;
            *self.tally.growth_stacks.entry(stack).or_default() += pages;
        }
    }

    /// Whole pages; none where the kernel refuses the call, since its address is inside a page or its end beyond
    /// the address space (mm/mmap.c, `do_vmi_munmap`; mm/madvise.c, `do_madvise`; Linux 6.18).
    fn range(&self, process: usize, start: u64, length: u64) -> Range {
        let end = match start.checked_add(length) {
            Some(end) if end <= ADDRESS_SPACE && start == self.page_down(start) => {
                self.page_up(end)
            }
            _ => start,
        };
        Range {
            process,
            start,
            end: end.max(start),
        }
    }

    fn page_down(&self, address: u64) -> u64 {
        address >> self.page_shift << self.page_shift
    }

    fn page_up(&self, address: u64) -> u64 {
        let mask = (1 << self.page_shift) - 1;
        address.saturating_add(mask) & !mask
    }
}

/// More than any process can address: five levels of page tables span 2⁵⁶ bytes (x86-64, AArch64 less).
const ADDRESS_SPACE: u64 = 1 << 56;

/// The route by which an advice frees memory, if it does.
fn released_by_advice(advice: u64) -> Option<Route> {
    match advice {
        MADV_DONTNEED | MADV_DONTNEED_LOCKED | MADV_REMOVE => Some(Route::Dontneed),
        MADV_FREE => Some(Route::Free),
        _ => None,
    }
}
