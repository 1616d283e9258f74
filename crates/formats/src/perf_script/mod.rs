//! The text of `perf script`: samples with their call chains, with any combination of columns.
//!
//! One pass; memory use is that of the profile. A sample is a first line ([`header`]) and the
//! frames after it, innermost first, up to a blank line or the next first line.

mod blocks;
mod chains;
mod comments;
mod frame;
mod header;
mod parallel;
mod times;

use super::profile_text::{Known, plain};
use super::text::{BLOCK, Block, Source};
use blocks::{split_at_blank, split_line};
use chains::{Chain, Chains};
use header::Header;
use memchr::memmem::Finder;
use pagewise_model::host::HostSnapshot;
use pagewise_model::loss::{LossKind, Losses};
use pagewise_model::profile::{
    FrameId, NO_CPU, NodeId, Profile, ProfileEvent, ProfileSample, ProfileThread, Samples,
    WeightUnit,
};
use std::io::{self, Read};
use times::in_time_order;

/// Largest number of events that a profile distinguishes.
const MOST_EVENTS: usize = u16::MAX as usize;

/// Reads a whole text.
///
/// # Errors
/// When reading fails. Lines that cannot be parsed are counted among the profile's losses.
pub fn read(input: impl Read) -> io::Result<Profile> {
    read_in_turn(blocks::stream(input, BLOCK))
}

/// Reads a whole text on this many threads, with the same result.
///
/// # Errors
/// When reading fails.
pub fn read_on(threads: usize, input: impl Read + Send) -> io::Result<Profile> {
    match threads {
        0 | 1 => read(input),
        _ => parallel::read(threads, blocks::stream(input, BLOCK)),
    }
}

/// Reads a whole text that is in memory, such as a mapped file, with the same result. `release` is
/// called now and then with the number of bytes from the start that are no longer needed.
pub fn read_mapped(threads: usize, text: &[u8], release: impl FnMut(usize) + Send) -> Profile {
    let blocks = blocks::in_memory(text, BLOCK, release);
    let profile = match threads {
        0 | 1 => read_in_turn(blocks),
        _ => parallel::read(threads, blocks),
    };
    // Reading from memory cannot fail.
    profile.unwrap_or_default()
}

fn read_in_turn(mut blocks: impl Source) -> io::Result<Profile> {
    let mut reader = Reader::default();
    let mut buffer = Vec::new();
    while let Some((block, text)) = blocks.next(&mut buffer)? {
        reader.block(text, block);
    }
    Ok(in_time_order(reader.into_profile()))
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
            _ if frame::is_frame(line) => frames += 1,
            _ if frame::is_about_frame(line) || header::task_event(line).is_some() => {}
            _ => others += 1,
        }
    }
    samples > 0 && others * 4 <= samples + frames
}

/// How many samples are looked up together: few enough that their texts are still in the
/// processor's cache.
const BATCH: usize = 64;

/// Samples found in the text, in order.
#[derive(Default)]
struct Batch<'t> {
    headers: Vec<Header<'t>>,
    chains: Vec<Chain<'t>>,
}

/// The columns of a first line that is followed by frames.
#[inline]
fn header_before_chain<'t>(line: &'t [u8], after: &[u8]) -> Option<Header<'t>> {
    let line = line.strip_suffix(b"\r").unwrap_or(line);
    let is_first = after.first() == Some(&b'\t') && !matches!(line.first(), Some(b'\t' | b'#'));
    is_first.then(|| header::parse(line)).flatten()
}

struct Reader {
    chains: Chains,
    tasks: Known<u32>,
    threads: Threads,
    event_names: Known<u16>,
    /// The last sample's event.
    last_event: (Vec<u8>, u16),
    events: Vec<ProfileEvent>,
    samples: Samples,
    losses: Losses,
    host: HostSnapshot,
    command: Vec<String>,
    /// The sample whose frames are being read; the next field has the frames.
    open: Option<ProfileSample>,
    chain: Vec<FrameId>,
    has_times: bool,
    /// The frame on the sample's first line, which is one only if no others follow.
    on_first_line: Vec<u8>,
    /// Whether a blank line followed the sample's first line.
    after_blank: bool,
    /// Inside the lines of a sample that cannot be kept.
    skipping: bool,
    blank_line: Finder<'static>,
}

impl Default for Reader {
    fn default() -> Self {
        Self {
            chains: Chains::default(),
            tasks: Known::default(),
            threads: Threads::default(),
            event_names: Known::default(),
            last_event: Default::default(),
            events: Vec::new(),
            samples: Samples::default(),
            losses: Losses::default(),
            host: HostSnapshot::default(),
            command: Vec::new(),
            open: None,
            chain: Vec::new(),
            has_times: false,
            on_first_line: Vec::new(),
            after_blank: false,
            skipping: false,
            blank_line: Finder::new(b"\n\n"),
        }
    }
}

impl Reader {
    /// Reads whole samples.
    fn block(&mut self, text: &[u8], block: Block) {
        if block.left_out > 0 {
            self.losses.add(LossKind::MalformedRecord, 1);
        }
        let mut batch = Batch::default();
        let mut rest = text;
        while !rest.is_empty() {
            let (line, after) = split_line(rest);
            match header_before_chain(line, after) {
                Some(header) => {
                    let (chain, behind) = split_at_blank(&self.blank_line, after);
                    batch.headers.push(header);
                    batch.chains.push(self.chains.chain(chain));
                    rest = behind;
                    if batch.headers.len() == BATCH {
                        self.batch(&mut batch);
                    }
                }
                None => {
                    self.batch(&mut batch);
                    self.line(line);
                    rest = after;
                }
            }
        }
        self.batch(&mut batch);
        self.end_of_sample();
        self.skipping = false;
    }

    /// Takes samples that consist of a first line and a chain, and empties the batch.
    fn batch(&mut self, batch: &mut Batch<'_>) {
        self.chains.look_up(&mut batch.chains);
        for (header, chain) in batch.headers.drain(..).zip(&batch.chains) {
            self.end_of_sample();
            self.begin(&header);
            self.whole_chain(chain);
        }
        batch.chains.clear();
    }

    /// Takes the chain of the sample that was begun.
    #[inline]
    fn whole_chain(&mut self, chain: &Chain<'_>) {
        if self.chain.is_empty()
            && let Some(sample) = self.open
            && let Some(stack) = self.chains.stack(chain)
        {
            self.open = None;
            self.on_first_line.clear();
            return self.samples.push(ProfileSample { stack, ..sample });
        }
        for line in chain.text.split(|&b| b == b'\n') {
            self.line(line);
        }
        self.line(b"");
    }

    #[inline]
    fn line(&mut self, line: &[u8]) {
        let line = line.strip_suffix(b"\r").unwrap_or(line);
        if self.after_blank && !matches!(line.first(), None | Some(b'\t')) {
            self.end_of_sample();
        }
        match line.first() {
            Some(b'\t') => self.frame(line),
            // Some tools put a blank line between a sample's first line and its frames.
            None if self.has_no_frame() && !self.after_blank => {
                self.after_blank = true;
            }
            None => {
                self.end_of_sample();
                self.skipping = false;
            }
            Some(b'#') if self.open.is_none() => {
                comments::take(line, &mut self.host, &mut self.command);
            }
            Some(_) => self.first_line_or_frame(line),
        }
    }

    /// Whether a sample is open of which only the first line was read, and no function.
    fn has_no_frame(&self) -> bool {
        self.open.is_some() && self.chain.is_empty() && self.on_first_line.is_empty()
    }

    fn frame(&mut self, line: &[u8]) {
        if self.open.is_some() {
            // An address on the first line of a sample with a chain is that of the data.
            self.on_first_line.clear();
            self.after_blank = false;
            self.chain.push(self.chains.frame(line));
        } else if !self.skipping && !line.trim_ascii().is_empty() {
            self.losses.add(LossKind::MalformedRecord, 1);
        }
    }

    fn first_line_or_frame(&mut self, line: &[u8]) {
        let text = line.trim_ascii();
        if text.is_empty() {
            return self.end_of_sample();
        }
        let is_open = self.open.is_some();
        match header::parse(line) {
            // An address and a function's name may look like an id and an event.
            Some(header) if header.is_anchored() || !is_open || !frame::is_frame(line) => {
                self.end_of_sample();
                return self.begin(&header);
            }
            _ => {}
        }
        if is_open && frame::is_frame(line) {
            return self.frame(line);
        }
        if let Some(event) = header::task_event(text) {
            self.end_of_sample();
            return self.task_event(event);
        }
        if is_open && !self.has_no_frame() && frame::is_about_frame(line) {
            if frame::says_inlined(line)
                && let Some(last) = self.chain.last_mut()
            {
                *last = self.chains.inlined(*last);
            }
            return;
        }
        if !self.skipping {
            self.losses.add(LossKind::MalformedRecord, 1);
        }
    }

    /// A record that is not a sample, as added by `--show-task-events` and similar options.
    fn task_event(&mut self, event: &[u8]) {
        self.skipping = true;
        let mut words = event.split(|&b| b == b' ');
        let loss = match words.next() {
            Some(b"PERF_RECORD_LOST" | b"PERF_RECORD_LOST_SAMPLES") => LossKind::RingOverrun,
            Some(b"PERF_RECORD_THROTTLE") => LossKind::Throttled,
            _ => return,
        };
        // "lost 12"; a pause counts as one.
        let count = words.find_map(header::digits).unwrap_or(1);
        self.losses.add(loss, count);
    }

    fn begin(&mut self, header: &Header<'_>) {
        if let Some(event) = header.task_event() {
            return self.task_event(event);
        }
        let Some(event) = self.event(header) else {
            self.losses.add(LossKind::UnknownRecord, 1);
            self.skipping = true;
            return;
        };
        self.skipping = false;
        self.has_times |= header.time.is_some();
        self.open = Some(ProfileSample {
            time: header.time.unwrap_or(0),
            thread: self.thread(header.task),
            cpu: header.cpu.unwrap_or(NO_CPU),
            event,
            weight: header.period.unwrap_or(1),
            stack: NodeId::ROOT,
        });
        // Without a call chain, the function is on the first line.
        if let Some(code) = frame::on_first_line(header.rest) {
            self.on_first_line.extend_from_slice(code);
        }
    }

    #[inline]
    fn event(&mut self, header: &Header<'_>) -> Option<u16> {
        // Damaged text may have an empty one, which is that of no sample before.
        let named = header.event.filter(|name| !name.is_empty());
        let name = named.unwrap_or(b"samples");
        if name == self.last_event.0 {
            return Some(self.last_event.1);
        }
        let event = self.other_event(name, header.period)?;
        self.last_event.0.clear();
        self.last_event.0.extend_from_slice(name);
        self.last_event.1 = event;
        Some(event)
    }

    /// An event other than that of the last sample.
    fn other_event(&mut self, name: &[u8], period: Option<u64>) -> Option<u16> {
        let key = self.event_names.key(name);
        if let Some(event) = self.event_names.find(key) {
            return Some(event);
        }
        let new = self::event(name, period);
        let next = self.events.len();
        // Only the names of one event on several kinds of cores are two spellings of one.
        let known = memchr::memchr(b'/', name)
            .and_then(|_| self.events.iter().position(|known| known.name == new.name));
        let at = known.unwrap_or(next);
        let event = u16::try_from(at).ok().filter(|_| at < MOST_EVENTS)?;
        if at == next {
            self.events.push(new);
        }
        self.event_names.add(key, event);
        Some(event)
    }

    #[inline]
    fn thread(&mut self, task: &[u8]) -> u32 {
        let key = self.tasks.key(task);
        if let Some(thread) = self.tasks.find(key) {
            return thread;
        }
        let thread = self.threads.intern(self::thread(task));
        self.tasks.add(key, thread);
        thread
    }

    #[inline]
    fn end_of_sample(&mut self) {
        self.after_blank = false;
        if let Some(mut sample) = self.open.take() {
            if !self.on_first_line.is_empty() {
                self.chain.push(self.chains.frame(&self.on_first_line));
                self.on_first_line.clear();
            }
            let stacks = &mut self.chains.stacks;
            sample.stack = stacks.intern(self.chain.iter().rev().copied());
            self.samples.push(sample);
            self.chain.clear();
        }
    }

    /// What was read, with times as in the text.
    fn into_profile(self) -> Profile {
        let (frames, stacks) = self.chains.into_parts();
        Profile {
            frames,
            stacks,
            threads: self.threads.values,
            events: self.events,
            samples: self.samples,
            has_times: self.has_times,
            losses: self.losses,
            host: self.host,
            command: self.command,
            ..Profile::default()
        }
    }
}

/// Threads, each kept once, however its ids are written.
#[derive(Default)]
struct Threads {
    values: Vec<ProfileThread>,
    numbers: Known<u32>,
}

impl Threads {
    fn intern(&mut self, thread: ProfileThread) -> u32 {
        let ids = [thread.pid, thread.tid].map(|id| u64::from(id.cast_unsigned()));
        let key = self
            .numbers
            .key_within(ids[0] << 32 | ids[1], thread.comm.as_bytes());
        if let Some(known) = self.numbers.find(key) {
            return known;
        }
        let new = u32::try_from(self.values.len()).unwrap_or(u32::MAX);
        self.values.push(thread);
        self.numbers.add(key, new);
        new
    }
}

fn event(name: &[u8], period: Option<u64>) -> ProfileEvent {
    let text = plain(name);
    let text = ProfileEvent::on_any_core(&text);
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
        cgroup: Box::default(),
    }
}

#[cfg(test)]
mod tests;
