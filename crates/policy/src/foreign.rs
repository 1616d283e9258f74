//! Policies in shared objects: the C interface of `include/pagewise_pager.h`.
//!
//! The only unsafe code of this crate: it trusts the object's author as `LD_PRELOAD` does, and
//! checks what can be checked (version, size, required functions, returned counts).
#![allow(unsafe_code, reason = "calls through a C interface")]

use alloc::borrow::ToOwned;
use alloc::boxed::Box;
use alloc::ffi::CString;
use alloc::string::String;
use core::ffi::{CStr, c_char, c_void};
use core::sync::atomic::AtomicU64;

use thiserror::Error;

use crate::page::{Arrival, Fault, FaultKind, MAX_AHEAD, Page, Plan, Role, Span, Use};
use crate::policy::Policy;

/// Version of the interface.
const ABI: u32 = 1;

/// `struct pagewise_span`.
#[derive(Debug, Clone, Copy, Default)]
#[repr(C)]
struct ForeignSpan {
    first: u32,
    count: u32,
}

/// `struct pagewise_fault`.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
struct ForeignFault {
    page: u32,
    region: ForeignSpan,
    region_id: u32,
    thread: u32,
    kind: u32,
    write: u32,
}

type Me = *mut c_void;

/// `struct pagewise_policy`.
#[repr(C)]
struct Table {
    abi: u32,
    size: u32,
    name: *const c_char,
    bytes_per_page: u32,
    bytes_fixed: u32,
    create: Option<unsafe extern "C" fn(*mut c_void, u32, u32) -> Me>,
    faulted: Option<
        unsafe extern "C" fn(
            Me,
            *const ForeignFault,
            *mut ForeignSpan,
            *mut ForeignSpan,
            u32,
        ) -> u32,
    >,
    mapped: Option<unsafe extern "C" fn(Me, u32, u32)>,
    used: Option<unsafe extern "C" fn(Me, u32, u32)>,
    removed: Option<unsafe extern "C" fn(Me, ForeignSpan)>,
    victims: Option<unsafe extern "C" fn(Me, *mut u32, u32) -> u32>,
    kept: Option<unsafe extern "C" fn(Me, u32)>,
    soon: Option<unsafe extern "C" fn(Me, *mut u32, u32) -> u32>,
    watch: Option<unsafe extern "C" fn(Me, *mut u32, u32) -> u32>,
    hint: Option<unsafe extern "C" fn(Me, ForeignSpan, u32)>,
    forked: Option<unsafe extern "C" fn(Me)>,
}

const _: () = assert!(size_of::<ForeignFault>() == 28);
const _: () = assert!(size_of::<Table>() == 112);

/// A shared object cannot serve as a policy.
#[derive(Debug, Error, PartialEq, Eq)]
pub enum ForeignError {
    /// It cannot be loaded.
    #[error("cannot load {path}: {why}")]
    Load {
        /// Its path.
        path: String,
        /// The dynamic linker's message.
        why: String,
    },
    /// It exports no table.
    #[error("{0} exports no 'pagewise_policy' (see pagewise_pager.h)")]
    NoTable(String),
    /// It was built for another version of the interface.
    #[error("{path} was made for version {abi} of the policy interface, this is version {ABI}")]
    Version {
        /// Its path.
        path: String,
        /// Its version.
        abi: u32,
    },
    /// A required part is missing.
    #[error("{path} lacks {what}")]
    Lacks {
        /// Its path.
        path: String,
        /// The missing part.
        what: &'static str,
    },
    /// Its `create` function returned null.
    #[error("{0}: create returned NULL")]
    Refused(String),
}

/// A policy behind the C interface.
pub struct Foreign {
    name: String,
    table: &'static Table,
    me: Me,
    mapped: unsafe extern "C" fn(Me, u32, u32),
    removed: unsafe extern "C" fn(Me, ForeignSpan),
    victims: unsafe extern "C" fn(Me, *mut u32, u32) -> u32,
    kept: unsafe extern "C" fn(Me, u32),
    pages: u32,
    _memory: Box<[AtomicU64]>,
}

// SAFETY: the interface requires every function to be callable on any thread.
unsafe impl Send for Foreign {}
// SAFETY: as above.
unsafe impl Sync for Foreign {}

impl Foreign {
    /// Loads the policy in the shared object at `path`. It is never unloaded.
    ///
    /// # Errors
    /// When it is not a policy of this version, or refuses to be created.
    pub fn load(path: &str, pages: u32, budget: u32) -> Result<Self, ForeignError> {
        let table = table(path)?;
        let lacks = |what| ForeignError::Lacks {
            path: path.to_owned(),
            what,
        };
        let bytes =
            u64::from(table.bytes_per_page) * u64::from(pages) + u64::from(table.bytes_fixed);
        let words = usize::try_from(bytes / 8 + 1).map_err(|_| lacks("a sane size"))?;
        let memory: Box<[AtomicU64]> = bytemuck::allocation::zeroed_slice_box(words);
        let create = table.create.ok_or(lacks("create"))?;
        // SAFETY: the memory has the size that the table requires, and lives as long as the policy.
        let me = unsafe { create(memory.as_ptr().cast_mut().cast(), pages, budget) };
        if me.is_null() {
            return Err(ForeignError::Refused(path.to_owned()));
        }
        let name = match table.name.is_null() {
            true => path.to_owned(),
            // SAFETY: the interface requires a C string.
            false => unsafe { CStr::from_ptr(table.name) }
                .to_string_lossy()
                .into_owned(),
        };
        Ok(Foreign {
            name,
            me,
            mapped: table.mapped.ok_or(lacks("mapped"))?,
            removed: table.removed.ok_or(lacks("removed"))?,
            victims: table.victims.ok_or(lacks("victims"))?,
            kept: table.kept.ok_or(lacks("kept"))?,
            table,
            pages,
            _memory: memory,
        })
    }

    /// The pages that a function of the object returned; invalid page numbers are dropped.
    fn ask(
        &self,
        function: Option<unsafe extern "C" fn(Me, *mut u32, u32) -> u32>,
        out: &mut [Page],
    ) -> usize {
        let Some(function) = function else { return 0 };
        let room = u32::try_from(out.len()).unwrap_or(u32::MAX);
        // SAFETY: `out` has `room` places.
        let count = unsafe { function(self.me, out.as_mut_ptr(), room) }.min(room) as usize;
        let mut kept = 0;
        for place in 0..count {
            if out[place] < self.pages {
                out[kept] = out[place];
                kept += 1;
            }
        }
        kept
    }
}

fn table(path: &str) -> Result<&'static Table, ForeignError> {
    let name = CString::new(path).map_err(|_| ForeignError::NoTable(path.to_owned()))?;
    // SAFETY: loads the object that the user named; running its constructors is intended.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW | libc::RTLD_LOCAL) };
    if handle.is_null() {
        // SAFETY: dlerror returns a C string or null after a failure.
        let why = unsafe {
            let text = libc::dlerror();
            if text.is_null() {
                None
            } else {
                Some(CStr::from_ptr(text))
            }
        };
        let why = why.map_or_else(String::new, |why| why.to_string_lossy().into_owned());
        return Err(ForeignError::Load {
            path: path.to_owned(),
            why,
        });
    }
    // SAFETY: a valid handle and a C string.
    let table = unsafe { libc::dlsym(handle, c"pagewise_policy".as_ptr()) }.cast::<Table>();
    // SAFETY: the object exports a table under this name, which is never unloaded; version and size
    // come first and are checked before any other field is read.
    let (abi, size) = match unsafe { table.as_ref() } {
        Some(table) => (table.abi, table.size),
        None => return Err(ForeignError::NoTable(path.to_owned())),
    };
    if abi != ABI {
        return Err(ForeignError::Version {
            path: path.to_owned(),
            abi,
        });
    }
    if (size as usize) < size_of::<Table>() {
        return Err(ForeignError::Lacks {
            path: path.to_owned(),
            what: "fields: its table is too short",
        });
    }
    // SAFETY: as above, and large enough.
    Ok(unsafe { &*table })
}

const fn to_foreign(span: Span) -> ForeignSpan {
    ForeignSpan {
        first: span.first,
        count: span.count,
    }
}

const fn from_foreign(span: ForeignSpan) -> Span {
    Span {
        first: span.first,
        count: span.count,
    }
}

impl Policy for Foreign {
    fn name(&self) -> &str {
        &self.name
    }

    fn faulted(&self, fault: &Fault, plan: &mut Plan) {
        let Some(faulted) = self.table.faulted else {
            return;
        };
        let foreign = ForeignFault {
            page: fault.page,
            region: to_foreign(fault.region),
            region_id: u32::from(fault.region_id),
            thread: fault.thread,
            kind: u32::from(fault.kind == FaultKind::Refault),
            write: u32::from(fault.write),
        };
        let mut along = to_foreign(plan.along);
        let mut ahead = [ForeignSpan::default(); MAX_AHEAD];
        let room = u32::try_from(ahead.len()).unwrap_or(0);
        // SAFETY: all pointers are valid for the call, and `ahead` has `room` places.
        let count = unsafe {
            faulted(
                self.me,
                &raw const foreign,
                &raw mut along,
                ahead.as_mut_ptr(),
                room,
            )
        };
        let along = from_foreign(along).clipped(fault.region);
        if along.contains(fault.page) {
            plan.along = along;
        }
        for span in &ahead[..count.min(room) as usize] {
            plan.read_ahead(from_foreign(*span).clipped(fault.region));
        }
    }

    fn mapped(&self, page: Page, how: Arrival) {
        // SAFETY: `me` came from create.
        unsafe { (self.mapped)(self.me, page, u32::from(how == Arrival::Ahead)) }
    }

    fn used(&self, page: Page, how: Use) {
        if let Some(used) = self.table.used {
            // SAFETY: `me` came from create.
            unsafe { used(self.me, page, u32::from(how == Use::Write)) }
        }
    }

    fn removed(&self, pages: Span) {
        // SAFETY: `me` came from create.
        unsafe { (self.removed)(self.me, to_foreign(pages)) }
    }

    fn victims(&self, out: &mut [Page]) -> usize {
        self.ask(Some(self.victims), out)
    }

    fn kept(&self, page: Page) {
        // SAFETY: `me` came from create.
        unsafe { (self.kept)(self.me, page) }
    }

    fn soon(&self, out: &mut [Page]) -> usize {
        self.ask(self.table.soon, out)
    }

    fn watch(&self, out: &mut [Page]) -> usize {
        self.ask(self.table.watch, out)
    }

    fn hint(&self, pages: Span, role: Role) {
        if let Some(hint) = self.table.hint {
            // SAFETY: `me` came from create.
            unsafe { hint(self.me, to_foreign(pages), role.code()) }
        }
    }

    fn forked(&self) {
        if let Some(forked) = self.table.forked {
            // SAFETY: `me` came from create.
            unsafe { forked(self.me) }
        }
    }
}
