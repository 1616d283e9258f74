//! The kernel's own mapping takes over: the pages are the file's, so nothing is lost.

use super::{CONDEMNED, GOOD, Pager};
use crate::page::PAGE_BYTES;
use crate::paging::fatal;
use crate::paging::regions::Region;
use crate::sys::{self, files as file, signals};
use core::sync::atomic::{Ordering, fence};

/// Prefault only what is touched (`mlock2`).
const MLOCK_ONFAULT: usize = 1;

impl Pager {
    /// Before a call that memory in the place of a file would answer differently: hands the managed
    /// files in `[start, end)` to the kernel. Holds no lock before or afterwards.
    pub fn give_back_files(&self, start: u64, end: u64) {
        if !self.files.are_in_use() || !self.has_file(start, end) {
            return;
        }
        let _quiet = self.quiet();
        self.give_back(start, end, None);
        self.close_unused_files();
    }

    /// Whether a managed file is in `[start, end)`. Takes no lock.
    #[must_use]
    pub fn has_file(&self, start: u64, end: u64) -> bool {
        let mut managed = self.regions.managed(start, end);
        self.files.are_in_use() && managed.any(|region| region.kind.file != 0)
    }

    /// Hands the files over whose leases must end, or that cannot be read. The watcher's work each
    /// time it is woken.
    pub fn follow_files(&self) {
        let _quiet = self.undisturbed();
        let _adopting = self.files.adopting.hold();
        for (number, entry) in self.files.numbered() {
            if entry.is(GOOD) && !file::is_leased(entry.file()) {
                self.files.condemn(number);
            }
            if entry.is(CONDEMNED) {
                let _quiet = self.quiet();
                self.give_back(0, u64::MAX, Some(number));
                // What the program has unmapped meanwhile may have closed it.
                if entry.is(CONDEMNED) {
                    self.files.close(entry);
                }
                sys::futex_wake(&entry.state, i32::MAX);
                self.counters.add(|all| &all.files_changed, 1);
            }
        }
    }

    /// Frees the entries whose regions are gone. Under the regions' lock.
    pub(in crate::paging) fn close_unused_files(&self) {
        if !self.files.are_in_use() {
            return;
        }
        for (number, entry) in self.files.numbered() {
            let used =
                || (0..self.regions.len()).any(|at| self.regions.get(at).kind.file == number);
            if (entry.is(GOOD) || entry.is(CONDEMNED)) && !used() {
                self.files.close(entry);
            }
        }
    }

    /// In the child of a fork: its parent has the leases, and is the one to be told.
    pub(in crate::paging) fn leave_files_to_kernel(&self) {
        if self.files.are_in_use() {
            // What the child does not have is not mapped there either.
            self.change_kind(0, u64::MAX, |kind| {
                if kind.not_forked {
                    kind.file = 0;
                }
            });
            self.give_back(0, u64::MAX, None);
        }
        self.files.forked();
    }

    /// From now on nothing more is read for the managed files in `[start, end)`, and what was being
    /// read has arrived. Under the locks of [`Pager::quiet`].
    pub(in crate::paging) fn retire_files(&self, start: u64, end: u64) {
        if !self.has_file(start, end) {
            return;
        }
        self.change_kind(start, end, |kind| kind.ceded |= kind.file != 0);
        let all = self.regions.managed(start, end);
        all.filter(|region| region.kind.file != 0)
            .for_each(|region| self.outlast_work(region.start, region.end));
    }

    /// They stay after all.
    pub(in crate::paging) fn reinstate_files(&self, start: u64, end: u64) {
        if self.has_file(start, end) {
            self.change_kind(start, end, |kind| kind.ceded &= kind.file == 0);
        }
    }

    /// Waits until no thread works on a page of `[start, end)` that has not seen what this thread
    /// has changed before: who locks a page looks at its region afterwards.
    pub(super) fn outlast_work(&self, start: u64, end: u64) {
        fence(Ordering::SeqCst);
        for address in (start..end).step_by(PAGE_BYTES) {
            let Some(page) = self.table.page_at(address) else {
                continue;
            };
            let mut word = self.table.word(page);
            while word.is_busy() {
                word = self.table.sleep(page, word);
            }
        }
    }

    /// Hands the managed files in `[start, end)`, or only the file `number` there, to the kernel.
    /// Under the locks of [`Pager::quiet`].
    fn give_back(&self, start: u64, end: u64, number: Option<u16>) {
        let mut from = start;
        loop {
            let mut managed = self.regions.managed(from, end);
            let wanted = |file: u16| file != 0 && number.is_none_or(|number| number == file);
            let Some(region) = managed.find(|region| wanted(region.kind.file)) else {
                return;
            };
            self.give_back_part(&region);
            from = region.end;
        }
    }

    fn give_back_part(&self, region: &Region) {
        let &Region { start, end, kind } = region;
        self.retire_files(start, end);
        self.lock_pages(start, end);
        if !self.files.entry(kind.file).map_again(start, end) {
            fatal::say(format_args!(
                "the kernel does not map a file again ({start:#x}); the program cannot continue without it and ends with SIGBUS"
            ));
            signals::die_by(libc::SIGBUS);
        }
        let bytes = (end - start) as usize;
        // SAFETY: the mapping gets what the program had asked for, which changes no contents.
        unsafe {
            if kind.not_forked {
                sys::advise(start, end, libc::MADV_DONTFORK);
            }
            if kind.locked {
                sys::call3(libc::SYS_mlock2, start as usize, bytes, MLOCK_ONFAULT);
            }
        }
        self.clear_pages(start, end);
        self.forget_managed(start, end);
        self.change_kind(start, end, |kind| {
            kind.managed = false;
            kind.ceded = true;
            kind.file = 0;
        });
        // Threads whose faults were not answered try again.
        self.uffd(region).wake(start, end);
    }

    /// Corrects the counts of managed bytes for `[start, end)`, which is about to leave. Under the
    /// regions' lock.
    pub(in crate::paging) fn forget_managed(&self, start: u64, end: u64) {
        let (mut all, mut files) = (0, 0);
        for region in self.regions.managed(start, end) {
            let bytes = region.end - region.start;
            all += bytes;
            files += if region.kind.file != 0 { bytes } else { 0 };
        }
        if let Some(place) = self.counters.place() {
            place.managed_bytes.fetch_sub(all, Ordering::Relaxed);
            place.file_bytes.fetch_sub(files, Ordering::Relaxed);
        }
    }
}
