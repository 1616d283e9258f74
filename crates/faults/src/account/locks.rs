//! CPU time of user code that takes and releases locks, by the function that asks for the lock.

use pagewise_model::profile::{Frame, FrameKind, NodeId, Profile};

/// Who asks for a lock.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Asks<'a> {
    /// The C library's allocator, for its own lock.
    Allocator,
    /// This function.
    Function(&'a str),
    /// A function that the stack does not show: a chain of frame pointers may end at the lock.
    Unknown,
}

/// Functions that take or release a lock, without leading underscores: glibc (nptl), Rust's std,
/// parking_lot, Go's sync, Abseil. A `*` at the end matches any rest.
const LOCKS: &[&str] = &[
    "pthread_mutex_lock*",
    "pthread_mutex_timedlock*",
    "pthread_mutex_trylock*",
    "pthread_mutex_unlock*",
    "pthread_spin_lock",
    "pthread_rwlock_*",
    "lll_mutex_lock_optimized",
    "lll_mutex_unlock_optimized",
    "lll_lock_w*",
    "std::sys::sync::mutex::futex::Mutex::*",
    "std::sys::sync::rwlock::futex::RwLock::*",
    "parking_lot::raw_mutex::RawMutex::*",
    "parking_lot::raw_rwlock::RawRwLock::*",
    "sync.(*Mutex).*",
    "sync.(*RWMutex).*",
    "internal/sync.(*Mutex).*",
    "absl::Mutex::*",
];

/// Functions around these that ask for no lock of their own: wrappers, and what spins and sleeps.
const AROUND: &[&str] = &[
    "futex_wait",
    "futex_wake",
    "syscall",
    "syscall.Syscall*",
    "gthread_mutex_*",
    "std::mutex::*",
    "std::recursive_mutex::*",
    "std::shared_mutex::*",
    "std::shared_mutex_pthread::*",
    "std::lock_guard<*",
    "std::scoped_lock<*",
    "std::shared_lock<*",
    "std::unique_lock<*",
    "std::sync::mutex::*",
    "std::sync::poison::*",
    "std::sys::pal::unix::futex::*",
    "lock_api::*",
    "runtime.futex*",
    "runtime.lock2",
    "runtime.procyield*",
    "runtime.sem*",
    "sync.runtime_*",
    "internal/sync.runtime_*",
];

/// The lock inside musl, which malloc and free take (src/thread/__lock.c); stdio has one of another name.
const OF_MUSL: [&str; 2] = ["__lock", "__unlock"];

/// Who asks for the lock that the innermost user code of a stack takes or releases, if it does so.
pub(super) fn asking(profile: &Profile, stack: NodeId) -> Option<Asks<'_>> {
    let frames = profile.stacks.frames(stack);
    let frames = frames.filter_map(|id| profile.frames.get(id.0 as usize));
    asking_of(frames.skip_while(|frame| frame.kind == FrameKind::Kernel))
}

fn asking_of<'a>(frames: impl Iterator<Item = &'a Frame>) -> Option<Asks<'a>> {
    let mut takes = false;
    for frame in frames {
        let name = plain(&frame.name);
        match frame.unnamed.is_none() {
            true if OF_MUSL.contains(&&*frame.name) => return Some(Asks::Allocator),
            true if is_one_of(LOCKS, name) => takes = true,
            true if is_one_of(AROUND, name) => {}
            true => return takes.then_some(Asks::Function(&frame.name)),
            false => break,
        }
    }
    takes.then_some(Asks::Unknown)
}

/// `pthread_mutex_lock` of `___pthread_mutex_lock` and `__GI___pthread_mutex_lock`.
fn plain(name: &str) -> &str {
    let name = name.trim_start_matches('_');
    name.strip_prefix("GI_")
        .map_or(name, |rest| rest.trim_start_matches('_'))
}

fn is_one_of(known: &[&str], name: &str) -> bool {
    known.iter().any(|known| match known.strip_suffix('*') {
        Some(beginning) => name.starts_with(beginning),
        None => name == *known,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asks(innermost_first: &[&str]) -> Option<String> {
        let frame = |name: &&str| Frame {
            name: (*name).into(),
            module: "a.out".into(),
            kind: FrameKind::User,
            unnamed: None,
        };
        let frames: Vec<Frame> = innermost_first.iter().map(frame).collect();
        asking_of(frames.iter()).map(|asks| match asks {
            Asks::Allocator => "the allocator".to_owned(),
            Asks::Function(name) => name.to_owned(),
            Asks::Unknown => "?".to_owned(),
        })
    }

    #[test]
    fn a_lock_is_named_by_the_function_that_asks_for_it() {
        let taking = ["lll_mutex_lock_optimized", "___pthread_mutex_lock", "serve"];
        assert_eq!(asks(&taking).as_deref(), Some("serve"));
        let sleeping = [
            "futex_wait",
            "__GI___lll_lock_wait",
            "___pthread_mutex_lock",
            "__gthread_mutex_lock",
            "std::mutex::lock()",
            "std::lock_guard<std::mutex>::lock_guard(std::mutex&)",
            "work(int)",
        ];
        assert_eq!(asks(&sleeping).as_deref(), Some("work(int)"));
        let of_go = [
            "runtime.procyield",
            "sync.runtime_doSpin",
            "internal/sync.(*Mutex).lockSlow",
            "main.worker",
        ];
        assert_eq!(asks(&of_go).as_deref(), Some("main.worker"));
        assert_eq!(asks(&["__lock"]).as_deref(), Some("the allocator"));
    }

    #[test]
    fn sleeping_elsewhere_is_no_lock_and_callers_may_be_unseen() {
        assert_eq!(asks(&["futex_wait", "pthread_cond_wait", "pool"]), None);
        assert_eq!(asks(&["runtime.futex", "runtime.mPark"]), None);
        assert_eq!(asks(&["___pthread_mutex_lock"]).as_deref(), Some("?"));
        assert_eq!(asks(&["main", "__libc_start_main"]), None);
    }
}
