//! From a block that is due to its record: its stack, its site, its place among the live ones.

use crate::VARIABLE;
use crate::cfi::Rule;
use crate::draw::Weight;
use crate::layout::{FRAMES, SEGMENT_BYTES, SITES, Segment};
use crate::live::{Block, Live, Locked};
use crate::objects;
use crate::segment;
use crate::sys;
use crate::thread;
use crate::unwind::{self, Rules, here};
use core::ffi::{CStr, c_char};
use core::mem::size_of;
use core::ops::Range;
use core::ptr::{NonNull, null_mut};
use core::sync::atomic::Ordering::{Acquire, Relaxed, Release};
use core::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64};

/// What describes this process; all zeros in a child that gets a copy of its memory.
#[repr(C, align(4096))]
struct State {
    live: Live,
    rules: Rules,
    index: segment::Index,
    /// [`NEW`] and the others.
    stage: AtomicU32,
    segment: AtomicPtr<Segment>,
}

/// Nothing was tried.
const NEW: u32 = 0;
/// A thread looks for a segment.
const STARTING: u32 = 1;
/// There is a segment.
const ON: u32 = 2;
/// There is none.
const OFF: u32 = 3;

static STATE: State = State {
    live: Live::new(),
    rules: Rules::new(),
    index: [const { AtomicU32::new(0) }; SITES * 2],
    stage: AtomicU32::new(NEW),
    segment: AtomicPtr::new(null_mut()),
};

/// Whether C++'s operators go past `malloc`.
static BYPASSED: AtomicU32 = AtomicU32::new(0);

/// To be called once, with the real `malloc`, before the first block is passed on: the segment may be there.
pub fn prepare(malloc: u64) {
    objects::prepare();
    BYPASSED.store(objects::brings_operators(malloc).into(), Relaxed);
    if let Some(segment) = segment() {
        segment.head.bypassed.store(BYPASSED.load(Relaxed), Relaxed);
    }
}

/// What a child keeps from the process that it was forked from.
static PERIOD: AtomicU64 = AtomicU64::new(1 << 19);
static SEED: AtomicU64 = AtomicU64::new(0);
static THREADS: AtomicU64 = AtomicU64::new(0);
static PROCESS: AtomicU32 = AtomicU32::new(0);
static MAPPED: AtomicPtr<Segment> = AtomicPtr::new(null_mut());

/// Whether a block at this address may be a sampled one.
#[inline(always)]
pub fn may_hold(address: u64) -> bool {
    STATE.live.may_hold(address)
}

/// Decides about allocated bytes that may be due. The first call of a process looks for its segment.
pub fn is_chosen(bytes: usize) -> bool {
    if segment().is_none() {
        return false;
    }
    let period = PERIOD.load(Relaxed);
    thread::chosen(bytes, period, || match SEED.load(Relaxed) {
        0 => sys::random(),
        // The same draws in each run, others in each thread.
        seed => seed.wrapping_add(THREADS.fetch_add(1, Relaxed) << 32),
    })
}

/// Records a block that was chosen: of its bytes, so many are new.
#[inline(never)]
pub fn record(address: u64, size: usize, new: usize) {
    let Some(segment) = segment() else { return };
    let mut frames = [0; FRAMES + OWN_FRAMES];
    let frames = callers(segment, &mut frames);
    let live = STATE.live.lock();
    // An address that the allocator gives out again was freed on a way that was not seen.
    forget_in(&live, segment, address);
    let site = segment.site_of(frames, &STATE.index);
    let block = Block {
        size: size as u64,
        site,
    };
    if add(&live, segment, address, block) {
        segment.head.samples.fetch_add(1, Relaxed);
        segment.allocated(site, weight(new as u64));
    }
}

fn add(live: &Locked<'_>, segment: &Segment, address: u64, block: Block) -> bool {
    let is_tracked = live.insert(address, block);
    match is_tracked {
        true => segment.lives(block.site, weight(block.size)),
        false => drop(segment.head.untracked.fetch_add(1, Relaxed)),
    }
    is_tracked
}

/// Forgets the block at this address, if it was sampled, before it is freed: after, another thread may
/// have it.
pub fn forget(address: u64) -> Option<Block> {
    let segment = segment()?;
    if !STATE.live.holds(address) {
        return None;
    }
    forget_in(&STATE.live.lock(), segment, address)
}

fn forget_in(live: &Locked<'_>, segment: &Segment, address: u64) -> Option<Block> {
    let block = live.remove(address)?;
    segment.head.freed.fetch_add(1, Relaxed);
    segment.dies(block.site, weight(block.size));
    Some(block)
}

/// Takes back [`forget`] for a block that has this size and address now. One that shrank stays sampled
/// with the chance of a block of its size.
pub fn keep(address: u64, block: Block, size: usize) {
    let Some(segment) = segment() else { return };
    let size = size as u64;
    if size < block.size {
        let stays = weight(block.size).blocks / weight(size).blocks;
        let drawn = (thread::random() >> 11) as f64 / (1_u64 << 53) as f64;
        if drawn >= stays {
            return;
        }
    }
    let live = STATE.live.lock();
    forget_in(&live, segment, address);
    if add(&live, segment, address, Block { size, ..block }) {
        segment.head.freed.fetch_sub(1, Relaxed);
    }
}

/// A library was closed: its addresses may become another one's.
#[cfg_attr(
    not(feature = "preload"),
    allow(dead_code, reason = "called by the hooks")
)]
pub fn library_closed() {
    STATE.rules.forget();
}

fn weight(size: u64) -> Weight {
    Weight::new(size, PERIOD.load(Relaxed))
}

/// Frames of this library between a hook and [`callers`], at most.
const OWN_FRAMES: usize = 8;

/// The callers outside this library. Their code is noted in the segment where it is new.
fn callers<'a>(segment: &Segment, frames: &'a mut [u64]) -> &'a [u64] {
    let find = |code| rule(segment, code);
    let (count, is_whole) = unwind::walk(here(), &STATE.rules, find, frames);
    let own = own_code();
    let found = frames.get(..count).unwrap_or_default();
    let first = found.iter().position(|frame| !own.contains(frame));
    let outside = found.get(first.unwrap_or(count)..).unwrap_or_default();
    if !is_whole || outside.len() > FRAMES {
        segment.head.deep.fetch_add(1, Relaxed);
    }
    outside.get(..FRAMES).unwrap_or(outside)
}

fn rule(segment: &Segment, code: u64) -> Option<Rule> {
    let object = objects::holding(code)?;
    // SAFETY: its code is on this thread's stack, so it is not closed.
    let (path, tables) = unsafe { (object.path(), object.tables()) };
    let live = STATE.live.lock();
    segment.note(object.code, object.build_id(), path);
    drop(live);
    tables?.rule(code)
}

/// The addresses of this library's code.
fn own_code() -> Range<u64> {
    static START: AtomicU64 = AtomicU64::new(0);
    static END: AtomicU64 = AtomicU64::new(0);
    let known = START.load(Acquire)..END.load(Relaxed);
    if known.start != 0 {
        return known;
    }
    let Some(object) = objects::holding(here().ip) else {
        return 0..0;
    };
    END.store(object.code.end, Relaxed);
    START.store(object.code.start, Release);
    object.code.start..object.code.end
}

/// This process's segment.
#[inline]
fn segment() -> Option<&'static Segment> {
    if STATE.stage.load(Acquire) == NEW {
        start();
    }
    // SAFETY: mapped by `start` for as long as the process lives, of values that are all valid.
    unsafe { STATE.segment.load(Acquire).as_ref() }
}

#[cold]
fn start() {
    if (STATE.stage)
        .compare_exchange(NEW, STARTING, Acquire, Relaxed)
        .is_err()
    {
        return;
    }
    let at = (&raw const STATE).cast();
    let claimed = match sys::wipe_on_fork(at, size_of::<State>()) {
        true => claim(),
        false => None,
    };
    let stage = match claimed {
        Some(segment) => {
            STATE.segment.store(segment.as_ptr(), Release);
            ON
        }
        None => OFF,
    };
    STATE.stage.store(stage, Release);
}

/// Takes a segment of the file that the environment names, in place of that of the parent process.
fn claim() -> Option<NonNull<Segment>> {
    let (found, settings) = segment::claim(shared_file()?)?;
    PERIOD.store(settings.period, Relaxed);
    SEED.store(settings.seed, Relaxed);
    let before = MAPPED.swap(found.as_ptr(), Relaxed);
    if !before.is_null() {
        // SAFETY: the parent's, which only the state that was wiped referred to.
        unsafe { sys::unmap(before.cast(), SEGMENT_BYTES) };
    }
    let parent = PROCESS.swap(sys::process(), Relaxed);
    // SAFETY: just mapped.
    let segment = unsafe { found.as_ref() };
    let live = STATE.live.lock();
    segment.begin(parent);
    segment.head.bypassed.store(BYPASSED.load(Relaxed), Relaxed);
    drop(live);
    Some(found)
}

unsafe extern "C" {
    static environ: *const *const c_char;
}

/// The value of [`VARIABLE`].
fn shared_file() -> Option<&'static CStr> {
    // SAFETY: libc's variable; the first allocation of a process comes before its program changes it.
    let mut at = unsafe { environ };
    while !at.is_null() {
        // SAFETY: the list ends with a null pointer.
        let entry = unsafe { *at };
        if entry.is_null() {
            break;
        }
        // SAFETY: an entry is a string.
        let entry = unsafe { CStr::from_ptr(entry) };
        let value = entry.to_bytes().strip_prefix(VARIABLE.as_bytes());
        if value.is_some_and(|value| value.first() == Some(&b'=')) {
            return CStr::from_bytes_with_nul(&entry.to_bytes_with_nul()[VARIABLE.len() + 1..])
                .ok();
        }
        // SAFETY: before the end.
        at = unsafe { at.add(1) };
    }
    None
}
