//! Policies: which pages go, which come along, which are fetched ahead.
//!
//! The core owns mechanism (what is resident, locks, I/O) and asks a policy at each turn. All
//! methods but [`Policy::chunk_added`] and [`Policy::hint`] run in fault handlers, on several
//! threads at a time, with all signals blocked: no allocation, no lock of std, no thread-local
//! storage, no panic. [`Policy::victims`] and [`Policy::samples`] run on one thread at a time.
//!
//! Metadata: the core takes 4 bytes for each managed page; policy and store together have 4 more,
//! so that the sum is at most 8.

use crate::page::Page;

/// What a fault wanted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// A read, or an access of unknown kind.
    Read,
    /// A write.
    Write,
}

/// Where a page stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PageState {
    /// Not managed, or never touched: no contents.
    Empty,
    /// Resident and as the store has it.
    Clean,
    /// Resident and different from the store, or not in it.
    Dirty,
    /// Only in the store.
    Evicted,
    /// Being worked at: to be left alone for now.
    Busy,
}

/// A look at pages. Answers may be out of date when they arrive.
pub trait Pages {
    /// Where `page` stands.
    fn state(&self, page: Page) -> PageState;
    /// Chunks in use: all [`Page::chunk`] are below.
    fn chunks(&self) -> u32;
    /// Whether reading the evicted pages `first` and `second` together costs about as much as
    /// reading one.
    fn together(&self, first: Page, second: Page) -> bool;
}

/// One fault.
#[derive(Clone, Copy, Debug)]
pub struct Fault {
    /// The page.
    pub page: Page,
    /// What the program wanted of it.
    pub access: Access,
    /// Whether its contents are in the store; otherwise it was never touched.
    pub refault: bool,
}

/// What a policy wants brought in at a fault.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ReadPlan {
    /// Pages before the faulting one to bring in with it. The faulting thread waits for them; the
    /// core takes those that are evicted (or, at a first touch, empty), unbroken from the faulting
    /// page on, up to [`MAX_CLUSTER`] in all.
    pub before: u16,
    /// The same for pages behind it.
    pub after: u16,
    /// First page to bring in without anyone waiting.
    pub ahead: Option<Page>,
    /// Number of pages to bring in from [`ReadPlan::ahead`] on; those not evicted are passed over.
    pub ahead_count: u16,
}

/// Most pages that come in with one fault.
pub const MAX_CLUSTER: usize = 64;
/// Most pages that are evicted in one batch.
pub const MAX_BATCH: usize = 256;

/// How a page became resident.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Arrival {
    /// First touch.
    First,
    /// A fault on the evicted page.
    Refault,
    /// It came along with a fault, or ahead of any.
    Prefetch,
    /// It was chosen as a victim but could not go (pinned, in use, dirtied meanwhile).
    Kept,
    /// It was resident when its memory came under management.
    Found,
}

/// Pages chosen, at most [`MAX_BATCH`].
#[derive(Debug)]
pub struct Batch {
    pages: [Page; MAX_BATCH],
    count: usize,
}

impl Batch {
    /// No pages.
    #[must_use]
    pub const fn new() -> Self {
        Self {
            pages: [Page(0); MAX_BATCH],
            count: 0,
        }
    }

    /// Adds a page; `false` when the batch is full.
    pub fn push(&mut self, page: Page) -> bool {
        match self.pages.get_mut(self.count) {
            Some(place) => {
                *place = page;
                self.count += 1;
                true
            }
            None => false,
        }
    }

    /// The pages.
    #[must_use]
    pub fn pages(&self) -> &[Page] {
        self.pages.get(..self.count).unwrap_or(&[])
    }

    /// The pages, to put them in order.
    pub fn pages_mut(&mut self) -> &mut [Page] {
        self.pages.get_mut(..self.count).unwrap_or(&mut [])
    }

    /// Forgets all.
    pub fn clear(&mut self) {
        self.count = 0;
    }
}

impl Default for Batch {
    fn default() -> Self {
        Self::new()
    }
}

/// What the program says about a range of its memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum Role {
    /// Nothing known.
    None = 0,
    /// Used all the time: keep.
    Hot = 1,
    /// Read or written in order, each page once.
    Stream = 2,
    /// No order: fetch single pages.
    Random = 3,
    /// Offsets of a compressed sparse row graph.
    CsrOffsets = 4,
    /// Edges of such a graph.
    CsrEdges = 5,
}

/// A replacement and prefetch policy.
pub trait Policy: Sync {
    /// Its name, as given to `--policy`.
    fn name(&self) -> &str;

    /// Chunk number `chunk` comes into use. The only place to take memory for metadata.
    fn chunk_added(&self, chunk: u32);

    /// A fault is about to be resolved: what shall come in with it?
    fn fault(&self, fault: Fault, pages: &dyn Pages) -> ReadPlan;

    /// `page` is now resident.
    fn inserted(&self, page: Page, how: Arrival);

    /// An access to the resident `page` was observed (first write, or a sample was touched).
    fn accessed(&self, page: Page, access: Access);

    /// `page` is no longer resident because it was evicted as chosen.
    fn evicted(&self, page: Page);

    /// The program gave `page` back: forget it.
    fn removed(&self, page: Page);

    /// Chooses up to `wanted` pages to evict, best first. A chosen page belongs to the core until
    /// it comes back by [`Policy::inserted`], [`Policy::evicted`] or [`Policy::removed`]. Pages
    /// that turn out not to be resident are passed over without a word.
    fn victims(&self, wanted: usize, pages: &dyn Pages, victims: &mut Batch);

    /// Chooses up to `wanted` pages that will go soon, to be written ahead of need. They stay with
    /// the policy.
    fn soon(&self, wanted: usize, pages: &dyn Pages, soon: &mut Batch);

    /// Chooses pages whose next access is to be observed.
    fn samples(&self, _wanted: usize, _pages: &dyn Pages, _samples: &mut Batch) {}

    /// The program declares the role of `count` pages from `first` on (never beyond a chunk).
    fn hint(&self, _first: Page, _count: u32, _role: Role) {}

    /// A policy may need to put itself in order in the child of a fork: other threads are gone, and
    /// a lock they held stays held. No method runs at the same time.
    fn forked(&self) {}
}

/// The built-in policy called `name`, ready for a budget of `frames` pages. Called once, at start.
#[must_use]
pub fn built_in(_name: &str, _frames: u64) -> Option<&'static dyn Policy> {
    None
}
