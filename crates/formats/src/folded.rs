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
    let mut counted = Counted::default();
    let (mut number, mut bad) = (0_u64, None);
    lines(input, &mut losses, |line, losses| {
        number += 1;
        let line = line.trim_ascii();
        if line.is_empty() || line.starts_with(b"#") {
            return;
        }
        let Some((stack, weight)) = parse(line) else {
            bad.get_or_insert_with(|| (number, plain(&line[..line.len().min(60)])));
            return losses.add(LossKind::MalformedRecord, 1);
        };
        let weight = counted.weight(weight);
        if !weights.admits(weight) {
            return losses.add(LossKind::ImpossibleWeight, 1);
        }
        // heaptrack_print ends each stack by one more semicolon.
        let frames = stack.strip_suffix(b";").unwrap_or(stack);
        let frames = frames.split(|&b| b == b';');
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
        notes: notes(&losses, bad, counted),
        losses,
        ..Profile::default()
    })
}

/// Counts, which are whole numbers of samples; a tool that scaled them wrote decimals.
#[derive(Clone, Copy, Default)]
struct Counted {
    /// What was cut off decimals and not added to a later line.
    left: f64,
    has_decimals: bool,
}

impl Counted {
    /// The whole samples of a line. Fractions are carried to the next lines, so that the sum is
    /// that of the file.
    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a fraction of 0 to 1.5 is rounded"
    )]
    fn weight(&mut self, Count { whole, fraction }: Count) -> u64 {
        let Some(fraction) = fraction else {
            return whole;
        };
        self.has_decimals = true;
        self.left += fraction;
        let carried = self.left.round().max(0.0);
        self.left -= carried;
        whole.saturating_add(carried as u64)
    }
}

/// A count as written.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Count {
    whole: u64,
    /// The part after a decimal point, if there is one.
    fraction: Option<f64>,
}

/// What the figures alone do not show.
fn notes(losses: &Losses, bad: Option<(u64, Box<str>)>, counted: Counted) -> Vec<String> {
    let mut notes = Vec::new();
    if let Some((number, text)) = bad {
        let count = losses.count(LossKind::MalformedRecord);
        let lines = if count == 1 { "line is" } else { "lines are" };
        notes.push(format!(
            "{count} {lines} not a stack with a count; the first is line {number}: {text}"
        ));
    }
    if counted.has_decimals {
        notes.push(
            "The counts have decimals, so the file was scaled; they are shown as whole samples."
                .to_owned(),
        );
    }
    notes
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
    // One odd line in a short file is no other format.
    let few = others <= ODD.min(stacks) || others * 10 <= stacks;
    deep > 0 && deep * 2 >= stacks && few
}

/// Lines that may be something else, however short the file.
const ODD: usize = 2;

/// The stack and its count. Two counts side by side, of two profiles, are not a stack of one.
fn parse(line: &[u8]) -> Option<(&[u8], Count)> {
    let blank = memchr::memrchr2(b' ', b'\t', line)?;
    let weight = count(&line[blank + 1..])?;
    let stack = line[..blank].trim_ascii_end();
    let last = stack.rsplit(|&b| b == b' ' || b == b'\t').next()?;
    let is_second = last.len() < stack.len() && count(last).is_some();
    (!stack.is_empty() && !is_second).then_some((stack, weight))
}

/// `12`, `12.5` or `12.`
fn count(text: &[u8]) -> Option<Count> {
    let text = std::str::from_utf8(text).ok()?;
    if !text.bytes().all(|b| b.is_ascii_digit() || b == b'.') {
        return None;
    }
    let Some((whole, fraction)) = text.split_once('.') else {
        let whole = text.parse().ok()?;
        return Some(Count {
            whole,
            fraction: None,
        });
    };
    if fraction.contains('.') {
        return None;
    }
    Some(Count {
        whole: whole.parse().ok()?,
        fraction: Some(format!("0.{fraction}").parse().ok()?),
    })
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
        assert_eq!(profile.losses.count(LossKind::MalformedRecord), 2);
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

    #[test]
    fn a_semicolon_behind_the_last_function_is_no_function() {
        let profile = read(&b"main (wl.c);fill (wl.c); 6399\nmain (wl.c);fill (wl.c) 1\n"[..]);
        let profile = profile.expect("memory is readable");
        let leaf = profile.frame_of(profile.samples.stacks.at(0));
        assert_eq!(&*leaf.expect("a frame").name, "fill (wl.c)");
        assert_eq!(profile.samples.stacks.at(0), profile.samples.stacks.at(1));
    }

    #[test]
    fn decimals_keep_their_sum() {
        let text = "a;b 31.23\na;c 6.1\nd 19.0\na;[T; _]::default 8.\na;e 0.67\n";
        assert!(looks_like(text.as_bytes()));
        let profile = read(text.as_bytes()).expect("memory is readable");
        assert_eq!(profile.samples.weights.iter().sum::<u64>(), 65);
        assert!(profile.losses.is_empty());
        assert!(profile.notes[0].contains("decimals"), "{:?}", profile.notes);
    }

    #[test]
    fn one_bad_line_refuses_no_file_and_is_named() {
        let text = "a;b 3\nTHIS IS A BAD LINE\na;c\t6\n";
        assert!(looks_like(text.as_bytes()));
        let profile = read(text.as_bytes()).expect("memory is readable");
        assert_eq!(profile.samples.weights, [3, 6]);
        assert_eq!(profile.losses.count(LossKind::MalformedRecord), 1);
        let note = &profile.notes[0];
        assert!(note.contains("line 2: THIS IS A BAD LINE"), "{note}");
    }
}
