//! Paging itself, the core of the pager: what is resident, what is where, and how pages come and go.
//!
//! docs/PAGER-CORE.md describes the states of a page, the transitions between them, the order of
//! locks and the invariants that SAFETY comments refer to. A thread that holds a lock blocks
//! signals, so that no handler of the program runs meanwhile, and touches no managed memory
//! ([`rule`]).

pub mod adopt;
pub mod advise;
pub mod ahead;
pub mod budget;
mod cede;
mod cluster;
mod copies;
mod counting;
pub mod descriptors;
pub mod discard;
mod events;
pub mod evict;
pub mod fatal;
pub mod file_pages;
pub mod files;
mod fill;
pub mod fork;
pub mod habits;
pub mod hold;
mod in_place;
pub mod limit;
mod move_down;
pub mod numbers;
pub mod own_threads;
pub mod pins;
pub mod probation;
pub mod range;
pub mod read_ahead;
pub mod regions;
pub mod remap;
pub mod resolve;
mod rings;
#[cfg(debug_assertions)]
pub mod rule;
pub mod scan;
pub mod scratch;
pub mod table;
pub mod tray;
mod unmap;

use crate::figures::counters::Counters;
use crate::figures::distances::Distances;
use crate::figures::heat::Heat;
use crate::figures::region_counts::RegionCounts;
use crate::store::Store;
use crate::sync::{Changes, Gate, Lock};
use crate::sys::uffd::Uffd;
use ahead::Ahead;
use alloc::boxed::Box;
use budget::Budget;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use file_pages::FilePages;
use files::Files;
use habits::Habits;
use own_threads::OwnThreads;
use pagewise_policy::Policy;
use pagewise_wire::shared::Delivery;
use pins::Pins;
use probation::Probation;
use regions::{Region, Regions};
use scratch::Scratch;
use table::Table;
use tray::Tray;

/// The entire state of the pager. There is one per process, and it is never freed.
#[derive(Debug)]
pub struct Pager {
    /// Set when everything below is ready.
    pub started: AtomicBool,
    /// The process described by this state: not a child of `vfork`.
    pub process: AtomicU32,
    /// Pages.
    pub table: Table,
    /// Ranges.
    pub regions: Regions,
    /// Mapped files.
    pub files: Files,
    /// Pages of other mapped files that are resident.
    pub file_pages: FilePages,
    /// Calls by which the program replaces, moves or removes mappings, or changes their protection.
    pub changes: Changes,
    /// Room.
    pub budget: Budget,
    /// Where pages rest while they are being written.
    pub tray: Tray,
    /// Where pages are kept to detect their next use.
    pub probation: Probation,
    /// Buffers for reading.
    pub scratch: Scratch,
    /// Which regions are written soon after they are read.
    pub habits: Habits,
    /// Memory in use by system calls.
    pub pins: Pins,
    /// Faults that handler threads read.
    pub by_handler: Uffd,
    /// Faults that raise SIGBUS.
    pub by_signal: Uffd,
    /// The tray's own.
    pub for_tray: Uffd,
    /// The pager's own threads.
    pub own_threads: OwnThreads,
    /// Pages to be read before they are missed.
    pub ahead: Ahead,
    /// Held during a batch of evictions, and by code that must exclude evictions.
    pub evictions: Lock,
    /// Where the next search for packed pages that are to go to disk starts.
    moving_from: AtomicU64,
    /// Closed while a fork is under way: no thread starts work on a page.
    pub gate: Gate,
    /// Figures.
    pub counters: Counters,
    /// How long pages stay evicted.
    pub distances: Distances,
    /// How soon pages are used again.
    pub heat: Heat,
    /// Faults by region.
    pub region_counts: RegionCounts,
    /// Bits of [`pagewise_wire::shared::capability`].
    pub capabilities: AtomicU64,
    /// How regions' faults are delivered, as [`Delivery`] in bits 0 to 7 and
    /// [`pagewise_wire::shared::Why`] above.
    pub delivery: AtomicU32,
    /// Whether any region's faults raise SIGBUS.
    pub signals_used: AtomicBool,
    /// Smallest region to manage, bytes.
    pub smallest: AtomicU64,
    /// Smallest region that may count as an array, bytes.
    pub smallest_array: AtomicU64,
    /// The lower limit of [`Pager::smallest`], bytes.
    pub smallest_ever: AtomicU64,
    /// Bytes that the whole process may keep resident.
    pub total_bytes: AtomicU64,
    /// The share of the run's budget from which the limit was set.
    share_seen: AtomicU64,
    /// Pages that have freed no memory since then when they were evicted, as other processes still have
    /// them, or that took more when they were copied.
    shared_gone: AtomicU64,
    /// Pages that a fork shares.
    copies: copies::Copies,
    /// Whether all pages are kept in memory, for an external reader.
    holding: AtomicBool,
    /// What to do if the store is full: [`crate::settings::WhenFull`] as a number.
    pub when_full: AtomicU32,
    /// Whether programs that cannot be managed are refused.
    pub strict: AtomicBool,
    /// Whether the program has ever reserved address space.
    has_reserved: AtomicBool,
    /// Bytes of reservations that it has made accessible before they were managed.
    opened: AtomicU64,
    /// Bytes that were left out when the limit was set.
    left_out_seen: AtomicU64,
    /// Pages of memory that the store had when the limit was set.
    store_pages: AtomicU64,
    /// Address of a `&'static dyn Store`.
    store: AtomicPtr<&'static dyn Store>,
    /// Address of a `&'static dyn Policy`.
    policy: AtomicPtr<&'static dyn Policy>,
}

/// The pager of this process.
pub static PAGER: Pager = Pager::new();

impl Pager {
    const fn new() -> Self {
        Self {
            started: AtomicBool::new(false),
            process: AtomicU32::new(0),
            table: Table::new(),
            regions: Regions::new(),
            files: Files::new(),
            file_pages: FilePages::new(),
            changes: Changes::new(),
            budget: Budget::new(),
            tray: Tray::new(),
            probation: Probation::new(),
            scratch: Scratch::new(),
            habits: Habits::new(),
            pins: Pins::new(),
            by_handler: Uffd::none(),
            by_signal: Uffd::none(),
            for_tray: Uffd::none(),
            own_threads: OwnThreads::new(),
            ahead: Ahead::new(),
            evictions: Lock::new(),
            moving_from: AtomicU64::new(0),
            gate: Gate::new(),
            counters: Counters::new(),
            distances: Distances::new(),
            heat: Heat::new(),
            region_counts: RegionCounts::new(),
            capabilities: AtomicU64::new(0),
            delivery: AtomicU32::new(0),
            signals_used: AtomicBool::new(false),
            smallest: AtomicU64::new(64 << 20),
            smallest_array: AtomicU64::new(64 << 20),
            smallest_ever: AtomicU64::new(64 << 20),
            total_bytes: AtomicU64::new(0),
            share_seen: AtomicU64::new(0),
            shared_gone: AtomicU64::new(0),
            copies: copies::Copies::new(),
            holding: AtomicBool::new(false),
            when_full: AtomicU32::new(0),
            strict: AtomicBool::new(false),
            has_reserved: AtomicBool::new(false),
            opened: AtomicU64::new(0),
            left_out_seen: AtomicU64::new(0),
            store_pages: AtomicU64::new(0),
            store: AtomicPtr::new(core::ptr::null_mut()),
            policy: AtomicPtr::new(core::ptr::null_mut()),
        }
    }

    /// Whether the pager works in this process.
    #[must_use]
    pub fn is_started(&self) -> bool {
        self.started.load(Ordering::Acquire)
    }

    /// Gives the pager its store and policy, once, before it starts.
    pub fn equip(&self, store: &'static dyn Store, policy: &'static dyn Policy) {
        let store = Box::into_raw(Box::new(store));
        let policy = Box::into_raw(Box::new(policy));
        self.store.store(store, Ordering::Release);
        self.policy.store(policy, Ordering::Release);
    }

    /// The store. Only once the pager has started.
    #[must_use]
    pub fn store(&self) -> &'static dyn Store {
        // SAFETY: published: `equip` stored a reference that lives forever before `started` was
        // set.
        unsafe { *self.store.load(Ordering::Acquire) }
    }

    /// The policy. Only once the pager has started.
    #[must_use]
    pub fn policy(&self) -> &'static dyn Policy {
        // SAFETY: as in `store`.
        unsafe { *self.policy.load(Ordering::Acquire) }
    }

    /// The userfaultfd that receives the faults of `region`.
    #[must_use]
    pub fn uffd(&self, region: &Region) -> &Uffd {
        match region.kind.delivery {
            Delivery::Handler => &self.by_handler,
            Delivery::Signal => &self.by_signal,
        }
    }

    /// Whether the kernel has the capability.
    #[must_use]
    pub fn can(&self, capability: u64) -> bool {
        self.capabilities.load(Ordering::Relaxed) & capability != 0
    }
}
