//! Faults on pages of mapped files.

use super::Pager;
use crate::page::{PAGE_BYTES, Page};
use crate::paging::cluster::{Cluster, Reach};
use crate::paging::regions::Kind;
use crate::paging::resolve::{Did, Work};
use crate::paging::{fatal, scan};
use crate::sync::{State, Word};
use crate::sys::{signals, uffd};
use pagewise_policy::{FaultKind, Plan, Span};
use pagewise_wire::shared::Delivery;

impl Work<'_> {
    /// The page is missing and locked; there is room for it.
    pub(in crate::paging) fn read_file(&self, word: Word) -> Did {
        let kind = match word.state() {
            State::Left => FaultKind::Refault,
            _ => FaultKind::FirstTouch,
        };
        let plan = self.plan_for_file(kind);
        let room = self.room_along(plan.along);
        let cluster = self.gather(self.page, word, plan.along, room, Reach::Any);
        self.send_ahead(&plan);
        if !self.bring_in(&cluster) {
            return Did::Nothing;
        }
        match kind {
            FaultKind::Refault => {
                self.pager.counters.add(|all| &all.file_refaults, 1);
                Did::ReadAgain
            }
            FaultKind::FirstTouch => {
                self.pager.counters.add(|all| &all.first_touches, 1);
                Did::Read
            }
        }
    }

    /// The same without a thread that waits. Returns the number of pages.
    pub(in crate::paging) fn read_file_ahead(&self, word: Word, span: Span, room: u64) -> u32 {
        let cluster = self.gather(self.page, word, span, room, Reach::Any);
        let nobody = Work {
            page: Page::MAX,
            ..*self
        };
        nobody.bring_in(&cluster);
        cluster.count as u32
    }

    /// Whether the page, which is locked, is still what it was when its region was looked up: of the
    /// same file, or of none. From here on that stays so, because whoever changes it waits for the
    /// page ([`Pager::retire_files`], [`Pager::manage_file`]).
    pub(in crate::paging) fn is_current(&self) -> bool {
        let file = self.region.kind.file;
        let asked = file != 0 || self.pager.files.are_in_use();
        !asked || self.is_of(file, self.address(), self.address() + PAGE_BYTES as u64)
    }

    fn is_of(&self, file: u16, start: u64, end: u64) -> bool {
        let now = self.pager.regions.find(start);
        now.is_some_and(|now| {
            let Kind { managed, ceded, .. } = now.kind;
            managed && !ceded && now.kind.file == file && now.end >= end
        })
    }

    /// Lets go of the other pages of the cluster if that is not true of them.
    pub(in crate::paging) fn keep_current(&self, cluster: &mut Cluster) {
        let file = self.region.kind.file;
        let table = &self.pager.table;
        let start = table.address_of(cluster.first);
        let end = start + (cluster.count * PAGE_BYTES) as u64;
        let asked = file != 0 || self.pager.files.are_in_use();
        if !asked || cluster.count == 1 || self.is_of(file, start, end) {
            return;
        }
        let own = (self.page - cluster.first) as usize;
        for (place, (page, word)) in cluster.pages().enumerate() {
            if place != own {
                table.unlock(page, word);
                self.pager.budget.release(1);
            }
        }
        cluster.words[0] = cluster.words[own];
        (cluster.first, cluster.count) = (self.page, 1);
    }

    /// What to read: for a policy every page of a file is one that was evicted.
    fn plan_for_file(&self, kind: FaultKind) -> Plan {
        self.pager.faulted(&self.for_policy(kind));
        let mut plan = Plan::only(self.page);
        let fault = self.for_policy(FaultKind::Refault);
        self.pager.policy().faulted(&fault, &mut plan);
        plan
    }

    /// Reads and maps the locked pages of the cluster. If they cannot be had, the kernel's mapping
    /// of the file takes over.
    fn bring_in(&self, cluster: &Cluster) -> bool {
        let mut buffer = self.pager.scratch.take();
        let bytes = buffer.bytes(cluster.count);
        let address = self.pager.table.address_of(cluster.first);
        let number = self.region.kind.file;
        let well = self.pager.files.entry(number).read(address, bytes);
        if well {
            let counters = &self.pager.counters;
            counters.add(|all| &all.file_pages_read, cluster.count as u64);
            if !self.map_file(cluster, bytes) && self.page != Page::MAX {
                self.wake();
            }
            return true;
        }
        drop(buffer);
        for (page, word) in cluster.pages() {
            self.pager.table.unlock(page, word);
            self.pager.budget.release(1);
        }
        self.pager.files.condemn(number);
        // A thread that waits for a handler is woken by the change; any other comes again.
        if self.region.kind.delivery == Delivery::Signal || self.fault.thread == 0 {
            self.pager.files.await_end(number);
        }
        false
    }

    /// Maps what was read. Returns whether the kernel accepted everything, and thus woke a waiting
    /// thread.
    fn map_file(&self, cluster: &Cluster, bytes: &[u8]) -> bool {
        let mut well = true;
        let mut done = 0;
        while done < cluster.count {
            let start = self.pager.table.address_of(cluster.first + done as Page);
            let rest = &bytes[done * PAGE_BYTES..cluster.count * PAGE_BYTES];
            let (from, count) = (rest.as_ptr() as u64, rest.len() as u64);
            let progress = self.uffd().copy(start, from, count, uffd::COPY_MODE_WP);
            let next = done + progress.bytes as usize / PAGE_BYTES;
            (done..next).for_each(|place| self.arrive(cluster, place, Word::new(State::File, 0)));
            done = next;
            well &= progress.errno == 0;
            done += match progress.errno {
                0 | libc::EAGAIN => 0,
                _ => {
                    self.give_up(cluster, done);
                    1
                }
            };
        }
        well
    }

    /// A page that should be present. If the program has dropped it past libc, it is read again.
    pub(in crate::paging) fn heal_file(&self, word: Word) {
        let there = scan::is_present(self.address());
        if !there {
            self.pager.policy().removed(Span {
                first: self.page,
                count: 1,
            });
            self.pager.budget.release(1);
        }
        let next = match there {
            true => word,
            false => Word::new(State::Left, 0),
        };
        self.pager.table.unlock(self.page, next);
        self.pager.counters.add(|all| &all.spurious, 1);
        self.wake();
    }

    /// The program has write access past libc, or a debugger writes: the bytes would be lost with
    /// the page, or be missing in the file.
    pub(in crate::paging) fn refuse_writing(&self) -> ! {
        let address = self.address();
        fatal::say(format_args!(
            "the page at {address:#x} of a mapped file is written although it was mapped to be read, by a system call that went past libc; the program ends with SIGBUS. Run it without --files."
        ));
        signals::die_by(libc::SIGBUS)
    }
}

impl Pager {
    /// Whether the page in the state `word` at `address` is to be read from a file.
    #[inline]
    pub(in crate::paging) fn is_in_file(&self, word: Word, address: u64) -> bool {
        match word.state() {
            State::Left => true,
            State::Empty => self.is_of_file(address),
            _ => false,
        }
    }
}
