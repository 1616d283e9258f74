//! The text of `perf script`: samples with their call chains, in every mixture of columns.
//!
//! One pass; memory is the profile. A sample is a first line ([`header`]) and the frames behind
//! it, innermost first, up to a blank line or the next first line.

mod frame;
mod header;

use super::profile_text::{Numbers, Spellings, Stacks, lines, plain};
use crate::loss::{LossKind, Losses};
use crate::profile::{
    FrameId, NO_CPU, NodeId, Profile, ProfileEvent, ProfileSample, ProfileThread, Samples,
    WeightUnit,
};
use crate::units::Nanos;
use header::Header;
use std::io::{self, Read};

/// Kinds of events that a profile tells apart.
const MOST_EVENTS: u32 = 255;

/// Reads a whole text.
///
/// # Errors
/// When reading fails. Lines that make no sense are counted among the profile's losses.
pub fn read(input: impl Read) -> io::Result<Profile> {
    let mut reader = Reader::default();
    let mut losses = Losses::default();
    lines(input, &mut losses, |line, losses| reader.line(line, losses))?;
    reader.end_of_sample();
    Ok(reader.finish(losses))
}

/// Whether the beginning of a file looks like this text.
#[must_use]
pub fn looks_like(head: &[u8]) -> bool {
    let (mut samples, mut frames, mut others) = (0_usize, 0_usize, 0_usize);
    for line in head.split(|&b| b == b'\n').take(200) {
        match line {
            [] | [b'#', ..] => {}
            [b'\t', ..] => frames += 1,
            _ if header::parse(line).is_some() => samples += 1,
            _ => others += 1,
        }
    }
    samples > 0 && others * 4 <= samples + frames
}

#[derive(Default)]
struct Reader {
    spellings: Spellings,
    stacks: Stacks,
    threads: Numbers<ProfileThread>,
    events: Numbers<ProfileEvent>,
    samples: Samples,
    /// The sample whose frames are being read, and they.
    open: Option<ProfileSample>,
    chain: Vec<FrameId>,
    has_times: bool,
    /// In the lines of a sample that can't be kept.
    skipping: bool,
}

impl Reader {
    #[inline]
    fn line(&mut self, line: &[u8], losses: &mut Losses) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        match line.first() {
            Some(b'\t') => self.frame(line, losses),
            None => {
                self.end_of_sample();
                self.skipping = false;
            }
            Some(b'#') if self.open.is_none() => {}
            Some(_) => self.first_line_or_frame(line, losses),
        }
    }

    #[inline]
    fn frame(&mut self, line: &[u8], losses: &mut Losses) {
        if self.open.is_some() {
            let text = frame::text(line);
            self.chain.push(self.spellings.frame(text, frame::read));
        } else if !self.skipping && !line.trim_ascii().is_empty() {
            losses.add(LossKind::MalformedRecord, 1);
        }
    }

    fn first_line_or_frame(&mut self, line: &[u8], losses: &mut Losses) {
        let text = line.trim_ascii();
        if text.is_empty() {
            return self.end_of_sample();
        }
        if let Some(header) = header::parse(line) {
            self.end_of_sample();
            return self.begin(&header, losses);
        }
        let is_indented = line[0] == b' ';
        let word = text.split(|&b| b == b' ').next().unwrap_or_default();
        if self.open.is_some() && is_indented && frame::is_address(word) {
            return self.frame(line, losses);
        }
        if !self.skipping {
            losses.add(LossKind::MalformedRecord, 1);
        }
    }

    fn begin(&mut self, header: &Header<'_>, losses: &mut Losses) {
        let name = header.event.unwrap_or(b"samples");
        let event = self.events.of(name, |name| event(name, header.period));
        if event >= MOST_EVENTS {
            losses.add(LossKind::UnknownRecord, 1);
            self.skipping = true;
            return;
        }
        self.skipping = false;
        self.has_times |= header.time.is_some();
        self.open = Some(ProfileSample {
            time: header.time.unwrap_or(0),
            thread: self.threads.of(header.task, thread),
            cpu: header.cpu.unwrap_or(NO_CPU),
            event: u8::try_from(event).unwrap_or(u8::MAX),
            weight: header.period.unwrap_or(1),
            stack: NodeId::ROOT,
        });
        // Without a call chain, the function stands on the first line.
        let word = header.rest.split(|&b| b == b' ').next().unwrap_or_default();
        if word.len() >= 6 && frame::is_address(word) && header.rest.ends_with(b")") {
            let text = frame::text(header.rest);
            self.chain.push(self.spellings.frame(text, frame::read));
        }
    }

    #[inline]
    fn end_of_sample(&mut self) {
        if let Some(mut sample) = self.open.take() {
            sample.stack = self.stacks.intern(self.chain.iter().rev().copied());
            self.samples.push(sample);
            self.chain.clear();
        }
    }

    fn finish(mut self, losses: Losses) -> Profile {
        let times = self.samples.times.iter();
        let start = times.clone().copied().filter(|&time| time > 0).min();
        let start = start.unwrap_or(0);
        let end = times.copied().max().unwrap_or(0);
        for time in &mut self.samples.times {
            *time = time.saturating_sub(start);
        }
        self.samples.sort_by_time();
        Profile {
            frames: self.spellings.table.into_frames(),
            stacks: self.stacks.tree,
            threads: self.threads.values,
            events: self.events.values,
            samples: self.samples,
            start: Nanos(start),
            span: Nanos(end.saturating_sub(start)),
            has_times: self.has_times,
            losses,
            ..Profile::default()
        }
    }
}

fn event(name: &[u8], period: Option<u64>) -> ProfileEvent {
    let text = plain(name);
    let is_clock = text.starts_with("cpu-clock") || text.starts_with("task-clock");
    ProfileEvent {
        name: text.into(),
        unit: match period {
            None => WeightUnit::Samples,
            Some(_) if is_clock => WeightUnit::Nanoseconds,
            Some(_) => WeightUnit::Events,
        },
        frequency: None,
    }
}

/// `comm 12`, `comm 12/13`, `comm 12 13`, or the ids alone.
fn thread(task: &[u8]) -> ProfileThread {
    let number = |text: &[u8]| std::str::from_utf8(text).ok()?.parse::<i32>().ok();
    let blank = task.iter().rposition(|&b| b == b' ' || b == b'\t');
    let (comm, ids) = task.split_at(blank.map_or(0, |at| at + 1));
    let (pid, tid) = match memchr::memchr(b'/', ids) {
        Some(slash) => (number(&ids[..slash]), number(&ids[slash + 1..])),
        None => (None, number(ids)),
    };
    ProfileThread {
        pid: pid.unwrap_or(-1),
        tid: tid.unwrap_or(-1),
        comm: plain(comm.trim_ascii()),
    }
}

#[cfg(test)]
mod tests;
