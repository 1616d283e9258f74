//! Paging itself, the core of the pager: what is resident, what is where, and how pages come and go.
//!
//! docs/PAGER-CORE.md describes the states of a page, the transitions between them, the order of
//! locks and the invariants that SAFETY comments refer to. A thread that holds a lock blocks
//! signals, so that no handler of the program runs meanwhile, and touches no managed memory
//! ([`rule`]).

pub mod adopt;
pub mod advise;
pub mod ahead;
mod batch;
pub mod budget;
mod cede;
pub mod choices;
mod cluster;
mod copies;
mod counting;
pub mod descriptors;
pub mod discard;
mod events;
pub mod evict;
pub mod fatal;
pub mod fetch_back;
pub mod file_pages;
pub mod files;
mod fill;
pub mod fork;
pub mod habits;
pub mod hold;
mod in_place;
mod kind;
pub mod limit;
mod move_down;
mod move_out;
pub mod numbers;
pub mod own_threads;
mod piece_note;
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
use adopt::Taking;
use ahead::Ahead;
use alloc::boxed::Box;
use budget::Budget;
use choices::Choices;
use core::sync::atomic::{AtomicBool, AtomicPtr, AtomicU32, AtomicU64, Ordering};
use descriptors::Uffds;
use file_pages::FilePages;
use files::Files;
use habits::Habits;
use limit::Measured;
use own_threads::OwnThreads;
use pagewise_policy::Policy;
use pagewise_wire::shared::Delivery;
use pins::Pins;
use probation::Probation;
use regions::{Region, Regions};
use scratch::Scratch;
use table::Table;
use tray::Tray;

/// The entire state of the pager. There is one per process, and it is never freed. Fields stand by what
/// keeps them consistent; docs/PAGER-CORE.md has the order of the locks.
#[derive(Debug)]
pub struct Pager {
    /// What the pager works with.
    equipment: Equipment,
    /// How it works here.
    pub choices: Choices,
    /// Which new memory it takes.
    pub taking: Taking,
    /// What the limit was computed from.
    pub measured: Measured,
    /// By what faults arrive.
    pub uffds: Uffds,

    // A page's word is its state and its lock. Who holds it may use the page's place in the tray or on
    // probation, its slot and its memory.
    /// Pages.
    pub table: Table,
    /// Room. A page counts from before it becomes resident until after it has left.
    pub budget: Budget,
    /// Memory in use by system calls: looked at once a page is locked.
    pub pins: Pins,

    // Changed with the regions' lock held, read without it.
    /// Ranges.
    pub regions: Regions,
    /// Mapped files.
    pub files: Files,

    // Changed with the eviction lock held, so by one thread at a time.
    /// Held during a batch of evictions, and by code that must exclude evictions.
    pub evictions: Lock,
    /// Where pages rest while they are being written.
    pub tray: Tray,
    /// Where pages are kept to detect their next use. Whoever holds a page's lock takes it out.
    pub probation: Probation,
    /// Where the next search for packed pages that are to go to disk starts.
    moving_from: AtomicU64,

    // Each with a lock of its own, or made of numbers of which each is right by itself.
    /// Pages of other mapped files that are resident.
    pub file_pages: FilePages,
    /// Calls by which the program replaces, moves or removes mappings, or changes their protection.
    pub changes: Changes,
    /// Buffers for reading.
    pub scratch: Scratch,
    /// Which regions are written soon after they are read.
    pub habits: Habits,
    /// The pager's own threads.
    pub own_threads: OwnThreads,
    /// Pages to be read before they are missed.
    pub ahead: Ahead,
    /// Closed while a fork is under way: no thread starts work on a page.
    pub gate: Gate,
    /// Pages that a fork shares.
    copies: copies::Copies,

    // Figures, which decide nothing.
    /// Counts.
    pub counters: Counters,
    /// How long pages stay evicted.
    pub distances: Distances,
    /// How soon pages are used again.
    pub heat: Heat,
    /// Faults by region.
    pub region_counts: RegionCounts,
}

/// What the pager works with: set once, before `started`, and never changed, so that whoever has seen
/// `started` may use it without a lock.
#[derive(Debug)]
struct Equipment {
    /// Set when everything else is ready.
    started: AtomicBool,
    /// The process described by this state: not a child of `vfork`. The child of a fork sets its own
    /// while it has one thread.
    process: AtomicU32,
    /// Address of a `&'static dyn Store`.
    store: AtomicPtr<&'static dyn Store>,
    /// Address of a `&'static dyn Policy`.
    policy: AtomicPtr<&'static dyn Policy>,
}

impl Equipment {
    const fn new() -> Self {
        Self {
            started: AtomicBool::new(false),
            process: AtomicU32::new(0),
            store: AtomicPtr::new(core::ptr::null_mut()),
            policy: AtomicPtr::new(core::ptr::null_mut()),
        }
    }
}

/// The pager of this process.
pub static PAGER: Pager = Pager::new();

impl Pager {
    const fn new() -> Self {
        Self {
            equipment: Equipment::new(),
            choices: Choices::new(),
            taking: Taking::new(),
            measured: Measured::new(),
            uffds: Uffds::new(),
            table: Table::new(),
            budget: Budget::new(),
            pins: Pins::new(),
            regions: Regions::new(),
            files: Files::new(),
            evictions: Lock::new(),
            tray: Tray::new(),
            probation: Probation::new(),
            moving_from: AtomicU64::new(0),
            file_pages: FilePages::new(),
            changes: Changes::new(),
            scratch: Scratch::new(),
            habits: Habits::new(),
            own_threads: OwnThreads::new(),
            ahead: Ahead::new(),
            gate: Gate::new(),
            copies: copies::Copies::new(),
            counters: Counters::new(),
            distances: Distances::new(),
            heat: Heat::new(),
            region_counts: RegionCounts::new(),
        }
    }

    /// Whether the pager works in this process.
    #[must_use]
    pub fn is_started(&self) -> bool {
        self.equipment.started.load(Ordering::Acquire)
    }

    /// Gives the pager its store and policy, once, before it starts.
    pub fn equip(&self, store: &'static dyn Store, policy: &'static dyn Policy) {
        let store = Box::into_raw(Box::new(store));
        let policy = Box::into_raw(Box::new(policy));
        self.equipment.store.store(store, Ordering::Release);
        self.equipment.policy.store(policy, Ordering::Release);
    }

    /// Everything is ready: other threads may use it.
    pub fn set_started(&self) {
        self.equipment.started.store(true, Ordering::Release);
    }

    /// The store. Only once the pager has started.
    #[must_use]
    pub fn store(&self) -> &'static dyn Store {
        // SAFETY: published: `equip` stored a reference that lives forever before `started` was
        // set.
        unsafe { *self.equipment.store.load(Ordering::Acquire) }
    }

    /// The policy. Only once the pager has started.
    #[must_use]
    pub fn policy(&self) -> &'static dyn Policy {
        // SAFETY: as in `store`.
        unsafe { *self.equipment.policy.load(Ordering::Acquire) }
    }

    /// The userfaultfd that receives the faults of `region`.
    #[must_use]
    pub fn uffd(&self, region: &Region) -> &Uffd {
        match region.kind.delivery {
            Delivery::Handler => &self.uffds.by_handler,
            Delivery::Signal => &self.uffds.by_signal,
        }
    }
}
