//! Folded stacks: a line for each stack, `main;work;leaf 12`, outermost function first.
//!
//! The count is the last word. Suffixes that stackcollapse and inferno append to a function
//! (`_[k]`, `_[j]`, `_[i]`) mark the kind of code. There are no times, threads or CPUs.

use super::profile_text::{Spellings, Stacks, lines, plain};
use memchr::memrchr;
use pagewise_model::loss::{LossKind, Losses};
use pagewise_model::outliers::WeightSum;
use pagewise_model::profile::{
    Frame, FrameKind, NO_CPU, Profile, ProfileEvent, ProfileSample, ProfileThread, Samples,
    WeightUnit,
};
use pagewise_model::symbol::Unnamed;
use std::io::{self, Read};

/// Reads a whole text.
///
/// # Errors
/// When reading fails. Lines without a stack or a count are counted among the profile's losses.
pub fn read(input: impl Read) -> io::Result<Profile> {
    let mut spellings = Spellings::default();
    let mut stacks = Stacks::default();
    let mut samples = Samples::default();
    let mut losses = Losses::default();
    let mut weights = WeightSum::default();
    lines(input, &mut losses, |line, losses| {
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            return;
        }
        let Some((stack, weight)) = parse(line) else {
            return losses.add(LossKind::MalformedRecord, 1);
        };
        if !weights.admits(weight) {
            return losses.add(LossKind::ImpossibleWeight, 1);
        }
        let frames = stack.split(|&b| b == b';');
        samples.push(ProfileSample {
            time: 0,
            thread: 0,
            cpu: NO_CPU,
            event: 0,
            weight,
            stack: stacks.intern(frames.map(|text| spellings.frame(text, frame))),
        });
    })?;
    Ok(Profile {
        frames: spellings.table.into_frames(),
        stacks: stacks.tree,
        threads: vec![ProfileThread {
            pid: -1,
            tid: -1,
            comm: "".into(),
            cgroup: Box::default(),
        }],
        events: vec![ProfileEvent {
            name: "samples".to_owned(),
            unit: WeightUnit::Samples,
            frequency: None,
        }],
        samples,
        losses,
        ..Profile::default()
    })
}

/// Whether the beginning of a file looks like this text.
#[must_use]
pub fn looks_like(head: &[u8]) -> bool {
    // The last line may be incomplete.
    let end = memrchr(b'\n', head).unwrap_or(head.len());
    let lines = head[..end].split(|&b| b == b'\n').map(<[u8]>::trim_ascii);
    let (mut stacks, mut deep, mut others) = (0_usize, 0_usize, 0_usize);
    for line in lines.filter(|line| !line.is_empty() && !line.starts_with(b"#")) {
        match parse(line) {
            Some((stack, _)) => {
                stacks += 1;
                deep += usize::from(stack.contains(&b';'));
            }
            None => others += 1,
        }
    }
    deep > 0 && deep * 2 >= stacks && others * 10 <= stacks
}

/// The stack and its count. Two counts side by side, of two profiles, are not a stack of one.
fn parse(line: &[u8]) -> Option<(&[u8], u64)> {
    let blank = memrchr(b' ', line)?;
    let weight = std::str::from_utf8(&line[blank + 1..]).ok()?.parse().ok()?;
    let stack = line[..blank].trim_ascii_end();
    let last = stack.rsplit(|&b| b == b' ').next()?;
    let is_second = last.len() < stack.len() && last.iter().all(u8::is_ascii_digit);
    (!stack.is_empty() && !is_second).then_some((stack, weight))
}

fn frame(text: &[u8]) -> Frame {
    let (name, kind) = match text {
        [name @ .., b'_', b'[', b'k', b']'] => (name, FrameKind::Kernel),
        [name @ .., b'_', b'[', b'j', b']'] => (name, FrameKind::Jit),
        [name @ .., b'_', b'[', b'i', b']'] => (name, FrameKind::Inlined),
        name => (name, FrameKind::User),
    };
    let is_unnamed = name.is_empty() || name == b"[unknown]";
    Frame {
        name: if is_unnamed {
            "[unknown]".into()
        } else {
            plain(name)
        },
        module: "".into(),
        kind,
        unnamed: is_unnamed.then_some(Unnamed::NoSymbol),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn stacks_and_their_counts() {
        let text =
            "main;work;leaf_[k] 12\nmain;work 3\r\n\n# remark\nmain;a b 4\nbad\nmain;x 1 2\nlast 5";
        let profile = read(text.as_bytes()).expect("memory is readable");
        assert!(looks_like(b"main;work;leaf 12\nmain;work 3\nma"));
        assert!(!looks_like(b"1 -1 2 -1 -2\n"));
        assert_eq!(profile.samples.weights, [12, 3, 4, 5]);
        assert_eq!(profile.losses.of(LossKind::MalformedRecord), 2);
        let leaf = profile
            .frame_of(profile.samples.stacks.at(0))
            .expect("a frame");
        assert_eq!((&*leaf.name, leaf.kind), ("leaf", FrameKind::Kernel));
        assert_eq!(
            profile.stacks.parent(profile.samples.stacks.at(0)),
            profile.samples.stacks.at(1)
        );
        assert!(!profile.has_times);
        assert_eq!((profile.threads.len(), profile.events.len()), (1, 1));
    }
}
