//! Unwinding along a recording: keeps track of each process's mapped code.

use super::Unwinder;
use pagewise_formats::perf_data::BuildId;
use pagewise_model::address_space::{AddressSpace, Mapping};
use pagewise_model::event::{Event, Mmap, PERF_CONTEXT_USER, Sample};
use rustc_hash::FxHashMap;

/// Takes a recording's events in order and returns the full user stacks of samples with a stack
/// copy.
pub struct StackFollower {
    unwinder: Option<Unwinder>,
    code: FxHashMap<i32, AddressSpace>,
    ever: FxHashMap<i32, AddressSpace>,
    /// Build ids by path, for mappings whose records have none.
    build_ids: FxHashMap<Box<str>, Box<[u8]>>,
    /// Whether callers that walks by frame pointers skip are put back.
    finds_skipped: bool,
    /// What the calls in front of return addresses lead to, by process and address.
    callees: FxHashMap<(i32, u64), Option<u64>>,
}

impl StackFollower {
    /// A follower of a recording made on this architecture (`uname -m`). If the architecture is not
    /// supported it returns no stacks, so the kernel's frame-pointer chains stay.
    #[must_use]
    pub fn new(architecture: &str) -> Self {
        Self {
            unwinder: Unwinder::for_architecture(architecture),
            code: FxHashMap::default(),
            ever: FxHashMap::default(),
            build_ids: FxHashMap::default(),
            finds_skipped: false,
            callees: FxHashMap::default(),
        }
    }

    /// The same, and it puts back the callers that walks by frame pointers skip: stacks then have
    /// a function that other readers of the file do not show.
    #[must_use]
    pub fn finding_skipped_callers(mut self) -> Self {
        self.finds_skipped = true;
        self
    }

    /// The same, with build ids that the recorder listed by path.
    #[must_use]
    pub fn with_build_ids(mut self, listed: &[BuildId]) -> Self {
        let user = listed.iter().filter(|entry| !entry.kernel);
        self.build_ids = user
            .map(|entry| (entry.path.as_str().into(), entry.id.as_slice().into()))
            .collect();
        self
    }

    /// All code that each process ever had mapped, the kernel's under -1, to name stacks of any
    /// time. A later mapping covers an earlier one, but `execve(2)` and exit remove nothing:
    /// address spaces are at random positions, so a stack from before `execve(2)` hardly ever falls
    /// into a file mapped after it.
    #[must_use]
    pub fn code_ever_mapped(&self) -> &FxHashMap<i32, AddressSpace> {
        &self.ever
    }

    /// Takes the next event. For a sample with a stack copy, or with a caller to put back, returns the
    /// user frames, innermost first; `None` for all others and if unwinding got no further than the
    /// sample itself.
    pub fn take(&mut self, event: &Event<'_>) -> Option<Vec<u64>> {
        match event {
            Event::Sample(sample) if sample.user_stack.is_none() => {
                return self.with_skipped(sample);
            }
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
                let inherited = self.ever.get(parent_pid).cloned();
                self.ever.insert(*pid, inherited.unwrap_or_default());
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
        let has_other = sample
            .callchain
            .words()
            .any(|word| word == PERF_CONTEXT_USER);
        let least = if has_other { 2 } else { 1 };
        (frames.len() >= least).then_some(frames)
    }

    /// The walk by frame pointers with the caller that it skipped between two files, as from a
    /// program into memset of the C library.
    fn with_skipped(&mut self, sample: &Sample<'_>) -> Option<Vec<u64>> {
        if !self.finds_skipped {
            return None;
        }
        let words = || sample.callchain.words();
        let mut user = words()
            .skip_while(|word| *word != PERF_CONTEXT_USER)
            .skip(1);
        let (innermost, returns_to) = (user.next()?, user.next()?);
        let space = self.code.get(&sample.pid)?;
        let caller = space.find(returns_to)?;
        if space.find(innermost)?.path == caller.path {
            return None;
        }
        let unwinder = self.unwinder.as_mut()?;
        let callee = *(self.callees)
            .entry((sample.pid, returns_to))
            .or_insert_with(|| unwinder.callee(caller, returns_to));
        // As a return address, which lies behind what it names.
        let skipped = callee? + 1;
        Some(
            [innermost, skipped, returns_to]
                .into_iter()
                .chain(user)
                .collect(),
        )
    }

    fn map(&mut self, mmap: &Mmap<'_>) {
        self.callees.clear();
        let path = String::from_utf8_lossy(mmap.path);
        let listed = || self.build_ids.get(&*path).cloned();
        let mapping = Mapping {
            start: mmap.start,
            end: mmap.start.saturating_add(mmap.length),
            file_offset: mmap.file_offset,
            protection: mmap.protection,
            flags: mmap.flags,
            build_id: mmap.build_id.map(Box::from).or_else(listed),
            file: mmap.file,
            path: path.into(),
        };
        let ever = self.ever.entry(mmap.pid).or_default();
        ever.map(mapping.clone());
        self.code.entry(mmap.pid).or_default().map(mapping);
    }

    fn forget(&mut self, pid: i32) {
        self.code.remove(&pid);
        self.callees.retain(|(of, _), _| *of != pid);
        if let Some(unwinder) = &mut self.unwinder {
            unwinder.forget(pid);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::units::Nanos;

    fn mmap(start: u64, path: &'static [u8]) -> Event<'static> {
        Event::Mmap(Mmap {
            pid: 5,
            tid: 5,
            time: Nanos(1),
            start,
            length: 0x1000,
            file_offset: 0,
            protection: 5,
            flags: 2,
            path,
            build_id: None,
            file: None,
            synthetic: false,
            executable: true,
        })
    }

    #[test]
    fn code_from_before_exec_is_still_known_by_name() {
        let mut follower = StackFollower::new("x86_64");
        let exec = Event::Comm {
            pid: 5,
            tid: 5,
            time: Nanos(2),
            name: b"program",
            exec: true,
        };
        let fork = Event::Fork {
            pid: 6,
            tid: 6,
            parent_pid: 5,
            parent_tid: 5,
            time: Nanos(3),
        };
        for event in [
            mmap(0x1000, b"/bin/sh"),
            exec,
            mmap(0x5000, b"/bin/program"),
            fork,
        ] {
            assert_eq!(follower.take(&event), None);
        }
        for pid in [5, 6] {
            let paths: Vec<_> = follower.code_ever_mapped()[&pid]
                .iter()
                .map(|m| &*m.path)
                .collect();
            assert_eq!(paths, ["/bin/sh", "/bin/program"]);
        }
        assert_eq!(follower.code[&6].iter().count(), 1);
    }
}
