//! A profile as folded stacks: `thread;outermost;innermost weight`, one per line, in byte order, as
//! `stackcollapse-perf.pl` and `inferno-collapse-perf` write them.
//!
//! Stacks are walked by thread and merged by name while they are written: a table of merged stacks
//! would take more memory and time than the lines do.

use super::thread_stacks::{ItemNumber, ThreadStacks};
use pagewise_model::profile::Profile;
use std::cmp::Reverse;
use std::io::{self, Write};

/// Writes the stacks of one event whose weight is not zero.
///
/// # Errors
/// When `out` can't be written.
pub fn write(profile: &Profile, event: u16, out: &mut impl Write) -> io::Result<()> {
    let stacks = ThreadStacks::new(profile, event);
    let mut walk = Walk::new(&stacks);
    walk.open(&[Member::new(ThreadStacks::ROOT)], 0);
    let mut path: Vec<u8> = Vec::new();
    let mut same = Vec::new();
    while let Some(entry) = walk.entries.pop() {
        path.truncate(entry.prefix);
        if entry.prefix > 0 {
            path.push(b';');
        }
        path.extend_from_slice(stacks.name(entry.name).as_bytes());
        match entry.what {
            What::Line { weight } => {
                writeln!(path, " {weight}")?;
                out.write_all(&path)?;
            }
            What::Callees { from } => {
                same.clear();
                same.extend(walk.members.drain(from..));
                walk.open(&same, path.len());
            }
        }
    }
    Ok(())
}

/// A place in the tree of stacks: at one of an item's names (most items have one name).
#[derive(Clone, Copy)]
struct Member {
    item: ItemNumber,
    name: u32,
}

impl Member {
    fn new(item: ItemNumber) -> Self {
        Self { item, name: 0 }
    }
}

/// A line, or all lines of stacks that continue below a name. In byte order, `main` comes before
/// `main-loop`, and that before `main;work`.
struct Entry {
    rank: u32,
    name: u32,
    /// Length of the caller's path.
    prefix: usize,
    what: What,
}

enum What {
    /// Stacks that end here.
    Line { weight: u64 },
    /// Places with this name whose callees follow: those in [`Walk::members`] from this index on.
    Callees { from: usize },
}

/// The entries still to be written, the next on top.
struct Walk<'a> {
    stacks: &'a ThreadStacks,
    entries: Vec<Entry>,
    members: Vec<Member>,
    /// Callees of one path with the ranks of their names.
    callees: Vec<(u32, Member)>,
}

impl<'a> Walk<'a> {
    fn new(stacks: &'a ThreadStacks) -> Self {
        Self {
            stacks,
            entries: Vec::new(),
            members: Vec::new(),
            callees: Vec::new(),
        }
    }

    /// Pushes what follows these places, which have the same path.
    fn open(&mut self, places: &[Member], prefix: usize) {
        self.callees.clear();
        for place in places {
            let behind = Member {
                name: place.name + 1,
                ..*place
            };
            if self.stacks.name_of(behind.item, behind.name).is_some() {
                self.add_callee(behind);
            } else {
                for item in self.stacks.callees(place.item) {
                    self.add_callee(Member::new(item));
                }
            }
        }
        // In reverse order, so that the members of the top entry are the last ones.
        self.callees
            .sort_unstable_by_key(|callee| Reverse(callee.0));
        let from = self.entries.len();
        let mut callees = std::mem::take(&mut self.callees);
        for same in callees.chunk_by(|a, b| a.0 == b.0) {
            self.push(same, prefix);
        }
        callees.clear();
        self.callees = callees;
        self.entries[from..].sort_unstable_by_key(|entry| Reverse(entry.rank));
    }

    fn add_callee(&mut self, member: Member) {
        if let Some(name) = self.stacks.name_of(member.item, member.name) {
            self.callees
                .push((self.stacks.ranks(name).before_callees, member));
        }
    }

    /// Pushes places of one name: the line of stacks that end there, and the stacks that continue.
    fn push(&mut self, same: &[(u32, Member)], prefix: usize) {
        let first = same[0].1;
        let Some(name) = self.stacks.name_of(first.item, first.name) else {
            return;
        };
        let ranks = self.stacks.ranks(name);
        let from = self.members.len();
        let mut weight = 0_u64;
        for &(_, member) in same {
            let ends = self.stacks.name_of(member.item, member.name + 1).is_none();
            if ends {
                weight = weight.saturating_add(self.stacks.own(member.item));
            }
            if !ends || self.stacks.callees(member.item).next().is_some() {
                self.members.push(member);
            }
        }
        if weight > 0 {
            self.entries.push(Entry {
                rank: ranks.alone,
                name,
                prefix,
                what: What::Line { weight },
            });
        }
        if self.members.len() > from {
            self.entries.push(Entry {
                rank: ranks.before_callees,
                name,
                prefix,
                what: What::Callees { from },
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::stacks::Stacks;
    use super::*;
    use pagewise_formats::{folded, perf_script};
    use pagewise_model::profile::{Frame, FrameId, FrameKind, ProfileSample, ProfileThread};
    use std::collections::BTreeMap;

    fn folded_of(text: &str) -> String {
        let profile = perf_script::read(text.as_bytes()).expect("memory is readable");
        let mut out = Vec::new();
        write(&profile, 0, &mut out).expect("memory is writable");
        String::from_utf8(out).expect("names are UTF-8")
    }

    #[test]
    fn lines_are_in_the_order_of_bytes() {
        let text = "main 3\nmain;b 1\nmain-x;c 2\nmain;a;b 5\nmain;a 4\n";
        let profile = folded::read(text.as_bytes()).expect("memory is readable");
        let mut out = Vec::new();
        write(&profile, 0, &mut out).expect("memory is writable");
        let out = String::from_utf8(out).expect("names are UTF-8");
        let mut lines: Vec<&str> = text.lines().collect();
        // The weight is not part of the order.
        lines.sort_by_key(|line| line.rsplit_once(' ').map(|(stack, _)| stack));
        assert_eq!(out.lines().collect::<Vec<_>>(), lines);
    }

    #[test]
    fn frames_are_named_as_by_stackcollapse() {
        let text = "V8 Worker 12/13 [000] 1.000000: 5 cycles:u: \n\
            \tffffffff81000001 do_work+0x1 ([kernel.kallsyms])\n\
            \t    7f0000000001 f(int)+0x1 (/usr/bin/x)\n\
            \t    7f0000000002 [unknown] (/usr/lib/libc.so.6)\n\
            \t    7f0000000003 [unknown] ([unknown])\n\n\
            V8 Worker 12/13 [000] 2.000000: 7 cycles:u: \n\n\
            V8 Worker 12/13 [000] 2.000000: 9 faults: \n\
            \t    7f0000000001 f(int)+0x1 (/usr/bin/x)\n\n";
        assert_eq!(
            folded_of(text),
            "V8_Worker 7\nV8_Worker;[unknown];[libc.so.6];f;do_work 5\n"
        );
    }

    /// The same weights from the merged stacks that flame graphs are drawn from.
    fn merged(stacks: &Stacks) -> BTreeMap<String, u64> {
        let mut paths = vec![String::new(); stacks.len()];
        let mut sums = BTreeMap::new();
        let children = stacks.children();
        for at in 0..stacks.len() {
            for &child in &children[at] {
                let name = stacks.place(child).map_or("", |place| place.name);
                paths[child] = match &*paths[at] {
                    "" => name.to_owned(),
                    path => format!("{path};{name}"),
                };
                if stacks.own(child)[0] > 0 {
                    sums.insert(paths[child].clone(), stacks.own(child)[0]);
                }
            }
        }
        sums
    }

    #[test]
    fn mixed_threads_and_names_merge_as_in_flame_graphs() {
        let frame = |name: &str, module: &str, kind| Frame {
            name: name.into(),
            module: module.into(),
            kind,
            unnamed: None,
        };
        let mut profile = Profile {
            frames: vec![
                frame("a", "x", FrameKind::User),
                frame("a(int)", "y", FrameKind::User),
                frame("a-b", "", FrameKind::Kernel),
                frame("La/b;->a->c", "", FrameKind::Jit),
                frame("La/b;", "", FrameKind::Jit),
                frame("t", "", FrameKind::User),
            ],
            ..Profile::default()
        };
        for (comm, tid) in [("t", 1), ("t", 2), ("", -1), ("", 7), ("java", 8), ("a", 9)] {
            profile.threads.push(ProfileThread {
                pid: 1,
                tid,
                comm: comm.into(),
                cgroup: Box::default(),
            });
        }
        let mut random = 7_u32;
        let mut below = |limit: u32| {
            random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            (random >> 8) % limit
        };
        for _ in 0..4000 {
            let frames: Vec<FrameId> = (0..below(5)).map(|_| FrameId(below(6))).collect();
            profile.samples.push(ProfileSample {
                time: 0,
                thread: below(6),
                cpu: 0,
                event: u16::from(below(4) == 0),
                weight: u64::from(below(3)),
                stack: profile.stacks.intern(frames),
            });
        }
        for event in 0..2 {
            let mut out = Vec::new();
            write(&profile, event, &mut out).expect("memory is writable");
            let out = String::from_utf8(out).expect("names are UTF-8");
            let lines: Vec<(&str, u64)> = out
                .lines()
                .filter_map(|line| {
                    let (stack, weight) = line.rsplit_once(' ')?;
                    Some((stack, weight.parse().ok()?))
                })
                .collect();
            let expected = merged(&Stacks::new(&profile, event));
            let expected: Vec<(&str, u64)> = expected
                .iter()
                .map(|(stack, &weight)| (&**stack, weight))
                .collect();
            assert_eq!(lines, expected);
            assert!(lines.len() > 300, "{}", lines.len());
        }
    }

    #[test]
    fn a_stack_ten_thousand_deep_is_written() {
        let frames: String = (0..10_000).map(|at| format!("\tff f{at} (x)\n")).collect();
        let text = format!("x 1 [000] 1.000000: 5 cycles: \n{frames}\n");
        let line = folded_of(&text);
        assert!(line.starts_with("x;f9999;f9998;") && line.ends_with(";f0 5\n"));
    }
}
