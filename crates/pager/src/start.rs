//! How the pager starts: settings from the environment, kernel features, store and policy.

use crate::figures::{places, recorder};
use crate::handler;
use crate::inject::{self, takes_away};
use crate::page::PAGE_BYTES;
use crate::paging::descriptors::NO_KERNEL_FAULTS;
use crate::paging::numbers::MOST_PAGES;
use crate::paging::probation::Probation;
use crate::paging::{PAGER, Pager, discard, fatal};
use crate::store::{self, Place, ring};
use crate::sys::uffd::{self, feature};
use crate::sys::{self, call6, files, high, seccomp};
use alloc::boxed::Box;
use core::sync::atomic::{AtomicBool, Ordering};
use pagewise_policy as policy;
use pagewise_wire::settings::{Choice, Settings};
use pagewise_wire::shared::{self, Delivery, Run, Why, capability};

// Addresses of functions that only some programs have, 0 for those that this one lacks: what runtimes of
// sanitizers begin with, and what asynchronous I/O does. dlsym(3) would allocate for each that it does not
// find, and a program's own malloc may not work before `main`.
core::arch::global_asm!(
    ".weak __asan_init, __tsan_init, __msan_init, io_uring_queue_init, io_queue_init",
    ".pushsection .data.rel.ro.pagewise,\"aw\",@progbits",
    ".balign 8",
    ".hidden pagewise_sanitizers, pagewise_asynchronous",
    ".globl pagewise_sanitizers, pagewise_asynchronous",
    "pagewise_sanitizers: .quad __asan_init, __tsan_init, __msan_init",
    "pagewise_asynchronous: .quad io_uring_queue_init, io_queue_init",
    ".popsection",
);
unsafe extern "C" {
    #[link_name = "pagewise_sanitizers"]
    static SANITIZERS: [usize; 3];
    #[link_name = "pagewise_asynchronous"]
    static ASYNCHRONOUS: [usize; 2];
}

/// Why the pager does not work in a process.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The page size is different.
    PageSize,
    /// No userfaultfd.
    NoUserfaultfd(i32),
    /// No memory for tables.
    NoMemory,
    /// The store cannot be created, with this `errno`.
    Store(i32),
    /// The policy cannot be created.
    Policy,
    /// A sanitizer's runtime is in the process.
    Sanitizer,
}

impl Refusal {
    /// The reason in words, with what to do.
    #[must_use]
    pub const fn words(self) -> &'static str {
        match self {
            Self::PageSize => "pages are not 4 KiB here",
            Self::NoUserfaultfd(libc::EPERM) => {
                "userfaultfd is not permitted; run as root or: sudo sysctl \
                 vm.unprivileged_userfaultfd=1"
            }
            Self::NoUserfaultfd(libc::ENOSYS) => "this kernel has no userfaultfd",
            Self::NoUserfaultfd(_) => {
                "userfaultfd lacks what is needed (write protection: Linux 5.7)"
            }
            Self::NoMemory => {
                "there is no address space for its tables (ENOMEM); raise the limit (ulimit -v \
                 unlimited)"
            }
            Self::Store(errno) => pagewise_wire::store::refusal(errno),
            Self::Policy => "its policy cannot be created",
            Self::Sanitizer => {
                "a sanitizer manages this program's memory; build it without -fsanitize"
            }
        }
    }
}

/// Starts the pager in this process.
///
/// # Errors
/// When a prerequisite is missing. The program then runs as without the pager.
pub fn start(settings: &Settings) -> Result<(), Refusal> {
    let pager = &PAGER;
    check_host()?;
    probe(pager);
    choose_delivery(pager, settings)?;
    let probation = Probation::places_for(settings.memory / PAGE_BYTES as u64);
    let tables = pager.table.prepare()
        && pager.regions.prepare()
        && pager.region_counts.prepare()
        && pager.scratch.prepare()
        && pager.tray.prepare(probation)
        && pager.probation.prepare(probation);
    if !tables {
        return Err(Refusal::NoMemory);
    }
    equip(pager, settings)?;
    pager.own_threads.answer_to(&handler::ABOVE);
    pager
        .choices
        .when_full
        .store(settings.when_full as u32, Ordering::Relaxed);
    pager
        .choices
        .strict
        .store(settings.strict, Ordering::Relaxed);
    pager
        .taking
        .smallest
        .store(settings.smallest, Ordering::Relaxed);
    pager
        .taking
        .smallest_array
        .store(settings.smallest, Ordering::Relaxed);
    pager
        .taking
        .smallest_ever
        .store(settings.smallest_ever, Ordering::Relaxed);
    pager.files.least.store(settings.files, Ordering::Relaxed);
    pager
        .measured
        .total_bytes
        .store(settings.memory, Ordering::Relaxed);
    if is_first(settings) {
        say_what_is_not_covered(pager);
    }
    guard_asynchronous(pager);
    pager.count_as_process(0);
    pager.refresh_limit();
    record(settings);
    if pager.can(capability::MOVE) {
        pager.heat.prepare(settings.watch);
    }
    if !handler::signal::install() {
        return Err(Refusal::NoMemory);
    }
    handler::crash::install();
    pager.set_started();
    Ok(())
}

fn check_host() -> Result<(), Refusal> {
    // SAFETY: getauxval only reads what the kernel passed to the process.
    let page = unsafe { libc::getauxval(libc::AT_PAGESZ) };
    if page as usize != PAGE_BYTES {
        return Err(Refusal::PageSize);
    }
    // SAFETY: words that the dynamic linker has filled in.
    let found = unsafe { SANITIZERS }.iter().any(|address| *address != 0);
    match found {
        true => Err(Refusal::Sanitizer),
        false => Ok(()),
    }
}

/// Finds out which features the kernel has.
fn probe(pager: &Pager) {
    // For children that have dropped their privileges.
    if !takes_away("device") {
        uffd::prepare();
    }
    let features = uffd::features();
    let table = [
        (feature::SIGBUS, capability::SIGBUS),
        (feature::PAGEFAULT_FLAG_WP, capability::WRITE_PROTECT),
        (
            feature::WP_UNPOPULATED,
            capability::WRITE_PROTECT_UNPOPULATED,
        ),
        (feature::MOVE, capability::MOVE),
        (feature::WP_ASYNC, capability::WRITE_PROTECT_ASYNC),
        (feature::MINOR_SHMEM, capability::CONTINUE),
    ];
    let mut found = 0;
    for (offered, bit) in table {
        if features & offered != 0 {
            found |= bit;
        }
    }
    for (name, bit) in [("move", capability::MOVE), ("sigbus", capability::SIGBUS)] {
        if takes_away(name) {
            found &= !bit;
        }
    }
    NO_KERNEL_FAULTS.store(takes_away("kernel_faults"), Ordering::Relaxed);
    inject::prepare();
    discard::DENIED.store(takes_away("process_madvise"), Ordering::Relaxed);
    ring::DENIED.store(takes_away("io_uring"), Ordering::Relaxed);
    sys::files::DENIED.store(takes_away("direct_reads"), Ordering::Relaxed);
    pager.choices.capabilities.store(found, Ordering::Relaxed);
}

/// Decides how faults are delivered, and why.
fn choose_delivery(pager: &Pager, settings: &Settings) -> Result<(), Refusal> {
    let opened = pager.open_uffds();
    if !opened {
        return Err(Refusal::NoUserfaultfd(
            uffd::open(0, feature::PAGEFAULT_FLAG_WP)
                .err()
                .unwrap_or(libc::EINVAL),
        ));
    }
    let kernel_faults = pager.uffds.by_handler.is_open();
    let (delivery, why) = match settings.delivery {
        Choice::Signal if pager.uffds.by_signal.is_open() => (Delivery::Signal, Why::CommandLine),
        Choice::Handler if kernel_faults => (Delivery::Handler, Why::CommandLine),
        _ if kernel_faults => (Delivery::Handler, Why::Transparent),
        _ => (Delivery::Signal, Why::Unprivileged),
    };
    let choice = delivery as u32 | (why as u32) << 8;
    pager.choices.delivery.store(choice, Ordering::Relaxed);
    if kernel_faults {
        pager
            .choices
            .capabilities
            .fetch_or(capability::KERNEL_FAULTS, Ordering::Relaxed);
    }
    Ok(())
}

/// Where this user may not serve faults that the kernel takes, and has not chosen so: what that leaves out.
fn say_what_is_not_covered(pager: &Pager) {
    let unprivileged = Delivery::Signal as u32 | (Why::Unprivileged as u32) << 8;
    if pager.choices.delivery.load(Ordering::Relaxed) == unprivileged {
        fatal::say(format_args!(
            "this user may not serve the kernel's page faults, so faults raise SIGBUS (--delivery sigbus). Not covered: io_uring and kernel AIO (refused), debuggers and other processes that read evicted memory, signals on stacks of coroutines. Remedy: sudo sysctl vm.unprivileged_userfaultfd=1, or run as root"
        ));
    }
}

/// io_uring and kernel AIO keep references to memory between two calls. If faults raise SIGBUS they
/// fail on missing pages, and without `UFFDIO_MOVE` data written by a device meanwhile could be
/// lost: in these cases the program gets neither.
fn guard_asynchronous(pager: &Pager) {
    let first = pager.choices.delivery.load(Ordering::Relaxed) & 0xff;
    let safe = first == Delivery::Handler as u32 && pager.can(capability::MOVE);
    if safe {
        pager
            .choices
            .capabilities
            .fetch_or(capability::ASYNCHRONOUS_IO, Ordering::Relaxed);
    } else if seccomp::refuse_asynchronous() {
        // SAFETY: words that the dynamic linker has filled in.
        let used = unsafe { ASYNCHRONOUS }.iter().any(|address| *address != 0);
        if used {
            say_refused(pager);
        }
    } else {
        fatal::say(format_args!(
            "the kernel does not accept a system call filter: if this program uses io_uring or kernel AIO, its memory must not be paged here"
        ));
    }
}

/// Reports once why io_uring and kernel AIO answer ENOSYS.
pub fn say_refused(pager: &Pager) {
    static SAID: AtomicBool = AtomicBool::new(false);
    if pager.can(capability::ASYNCHRONOUS_IO) || SAID.swap(true, Ordering::Relaxed) {
        return;
    }
    let why = match pager.can(capability::MOVE) {
        true => "with --delivery sigbus they fail on evicted pages; --delivery fd serves them",
        false => "before Linux 6.8 (UFFDIO_MOVE) what they write could be lost",
    };
    fatal::say(format_args!(
        "io_uring and kernel AIO are refused (ENOSYS) here: {why}"
    ));
}

fn equip(pager: &Pager, settings: &Settings) -> Result<(), Refusal> {
    let file = high(open_store(&settings.store).map_err(Refusal::Store)?);
    if sys::is_in_memory(file) && is_first(settings) {
        fatal::say(format_args!(
            "the store is in memory (tmpfs): what is evicted leaves the budget, not the machine's memory; name a folder on a disk (--store)"
        ));
    }
    let limit = sys::largest_file().filter(|_| sys::is_regular(file));
    let file_bytes = settings.store_bytes.min(limit.unwrap_or(u64::MAX));
    let pages = file_bytes / PAGE_BYTES as u64;
    let tables = usize::try_from(store::shared_bytes(pages)).map_err(|_| Refusal::NoMemory)?;
    let shared = sys::map_shared(tables).ok_or(Refusal::NoMemory)?;
    let place = Place {
        file,
        file_bytes,
        shared,
    };
    let store = open_named_store(settings, place)?;
    let config = policy::Config {
        pages: MOST_PAGES,
        budget: u32::try_from(settings.memory / PAGE_BYTES as u64).unwrap_or(u32::MAX),
    };
    match policy::by_name(&settings.policy, &config, files::whole) {
        Ok(policy) => {
            pager.equip(store, Box::leak(policy));
            Ok(())
        }
        Err(error) => {
            fatal::say(format_args!("{error}"));
            Err(Refusal::Policy)
        }
    }
}

fn open_named_store(
    settings: &Settings,
    place: Place,
) -> Result<&'static dyn store::Store, Refusal> {
    let faults = inject::store_faults();
    let options = store::Options {
        processors: settings.processors,
        memory_bytes: settings.compressed_bytes,
        key: settings.encrypt.then(random_key),
        faults: faults.as_deref(),
    };
    // SAFETY: file and shared memory were created only for this store, and are never closed.
    match unsafe { store::open(&settings.store_kind, place, &options) } {
        Ok(store) => Ok(Box::leak(store)),
        Err(error) => {
            fatal::say(format_args!("{error}"));
            Err(Refusal::Store(libc::EIO))
        }
    }
}

/// A key for the lifetime of this process and its forks.
fn random_key() -> [u8; 32] {
    let mut key = [0_u8; 32];
    // SAFETY: the buffer lives through the call. 32 bytes are always returned completely
    // (getrandom(2)).
    let answer = unsafe { sys::call3(libc::SYS_getrandom, key.as_mut_ptr() as usize, 32, 0) };
    if answer != 32 {
        fatal::say(format_args!("the kernel gives no random key for the store"));
        sys::signals::die_by(libc::SIGABRT);
    }
    key
}

/// The store's file: without a name in a directory, or the given file or device itself. The `errno`
/// if it cannot be opened.
fn open_store(path: &core::ffi::CStr) -> Result<i32, i32> {
    let open = |flags: i32| {
        let answer = sys::open(path, flags);
        match i32::try_from(answer) {
            Ok(fd @ 0..) => Ok(fd),
            _ => Err(sys::errno(answer)),
        }
    };
    // SAFETY: zeros are a valid `stat`; it and the path live through the call.
    let (answer, mode) = unsafe {
        let mut status: libc::stat = core::mem::zeroed();
        let (path, status_at) = (path.as_ptr() as usize, &raw mut status as usize);
        let answer = sys::call3(libc::SYS_stat, path, status_at, 0);
        (answer, status.st_mode)
    };
    if answer < 0 {
        return Err(sys::errno(answer));
    }
    let flags = pagewise_wire::store::flags(mode)?;
    open(flags | libc::O_DIRECT).or_else(|_| open(flags))
}

/// Opens the file for recording, if requested.
fn record(settings: &Settings) {
    if settings.record.is_empty() {
        return;
    }
    let file = sys::open(&settings.record, libc::O_WRONLY | libc::O_APPEND);
    if let Ok(file @ 0..) = i32::try_from(file) {
        let pages = settings.memory / PAGE_BYTES as u64;
        recorder::prepare(high(file), pages);
    }
}

/// Whether this is the program that the run was started for, so that it must not run without a
/// budget; programs that it starts are only reported at the end.
#[must_use]
pub fn is_first(settings: &Settings) -> bool {
    // SAFETY: takes no arguments.
    let parent = unsafe { sys::call3(libc::SYS_getppid, 0, 0, 0) };
    u32::try_from(parent).is_ok_and(|parent| parent == settings.launcher) && !places::any_taken()
}

/// Maps the run's shared memory, if it is there and of this version.
pub fn attach(settings: &Settings) {
    let bytes = size_of::<Run>();
    // SAFETY: the path lives through the call; the mapping is at an address of the kernel's choice
    // and remains. A file that is too short is not mapped: its size is checked first.
    unsafe {
        let fd = libc::open(settings.shared.as_ptr(), libc::O_RDWR | libc::O_CLOEXEC);
        let mut status: libc::stat = core::mem::zeroed();
        let large =
            fd >= 0 && libc::fstat(fd, &raw mut status) == 0 && status.st_size as usize >= bytes;
        if large {
            let protection = libc::PROT_READ | libc::PROT_WRITE;
            let place = call6(
                libc::SYS_mmap,
                0,
                bytes,
                protection as usize,
                libc::MAP_SHARED as usize,
                fd as usize,
                0,
            );
            let run = place as *mut Run;
            let valid = place > 0
                && (*run).magic.load(Ordering::Acquire) == shared::MAGIC
                && (*run).version.load(Ordering::Acquire) == pagewise_wire::VERSION;
            if valid {
                places::use_run(&*run, high(fd));
                return;
            }
        }
        if fd >= 0 {
            libc::close(fd);
        }
    }
}

/// The process ends with the next system call of this thread: final figures, and its part of the
/// store is given up.
pub fn end() {
    if !PAGER.is_started() || !PAGER.is_own_process() {
        return;
    }
    // The kernel fills buffers on the stack, and this process's pages are given up: the pages of a
    // managed stack must remain until the end.
    let _stack = PAGER.keep_stack();
    finish();
    PAGER.release_at_end();
}

/// The process is about to exit normally: final figures.
pub fn finish() {
    if !PAGER.is_started() || !PAGER.is_own_process() {
        return;
    }
    let _stack = PAGER.keep_stack();
    PAGER.refresh_limit();
    // A program that never had memory under management has nothing to survey.
    if PAGER.own_threads.are_running() {
        crate::observe::survey::publish(&PAGER);
    }
    recorder::finish();
    if let Some(place) = PAGER.counters.place() {
        place.ended.store(1, Ordering::Release);
    }
}
