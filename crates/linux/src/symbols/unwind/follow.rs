//! Unwinding along a recording: keeps track of what code each process has mapped.

use super::Unwinder;
use pagewise_model::address_space::{AddressSpace, Mapping};
use pagewise_model::event::{Event, Mmap, Sample};
use rustc_hash::FxHashMap;

/// Takes a recording's events in order and gives the full user stacks of those samples that carry
/// a copy of theirs.
pub struct StackFollower {
    unwinder: Option<Unwinder>,
    code: FxHashMap<i32, AddressSpace>,
}

impl StackFollower {
    /// A follower of a recording made on this architecture (`uname -m`). On one that cannot be
    /// unwound it gives no stacks, so the kernel's frame-pointer chains stay.
    #[must_use]
    pub fn new(architecture: &str) -> Self {
        Self {
            unwinder: Unwinder::for_architecture(architecture),
            code: FxHashMap::default(),
        }
    }

    /// Takes the next event. For a sample with a copy of its stack: the user frames, innermost
    /// first; `None` for all others and where unwinding got no further than the sample itself.
    pub fn take(&mut self, event: &Event<'_>) -> Option<Vec<u64>> {
        match event {
            Event::Sample(sample) => return self.unwind(sample),
            Event::Mmap(mmap) if mmap.executable => self.map(mmap),
            Event::Comm {
                pid, exec: true, ..
            } => self.forget(*pid),
            Event::Fork {
                pid, parent_pid, ..
            } if pid != parent_pid => {
                let inherited = self.code.get(parent_pid).cloned();
                self.forget(*pid);
                self.code.insert(*pid, inherited.unwrap_or_default());
            }
            Event::Exit { pid, tid, .. } if pid == tid => self.forget(*pid),
            _ => {}
        }
        None
    }

    fn unwind(&mut self, sample: &Sample<'_>) -> Option<Vec<u64>> {
        let stack = sample.user_stack?;
        let space = self.code.get(&sample.pid)?;
        let frames = self.unwinder.as_mut()?.unwind(sample.pid, space, stack);
        (frames.len() > 1).then_some(frames)
    }

    fn map(&mut self, mmap: &Mmap<'_>) {
        let space = self.code.entry(mmap.pid).or_default();
        space.map(Mapping {
            start: mmap.start,
            end: mmap.start.saturating_add(mmap.length),
            file_offset: mmap.file_offset,
            protection: mmap.protection,
            flags: mmap.flags,
            path: String::from_utf8_lossy(mmap.path).into(),
            build_id: None,
        });
    }

    fn forget(&mut self, pid: i32) {
        self.code.remove(&pid);
        if let Some(unwinder) = &mut self.unwinder {
            unwinder.forget(pid);
        }
    }
}
