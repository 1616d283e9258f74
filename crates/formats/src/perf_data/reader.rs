//! Reading perf.data: the file as a whole, and its events in time order.

use super::deferred::{Deferred, Joined, packed_of_stated_size};
use super::error::{Damage, ReadError, damage};
use super::features::BuildId;
use super::groups::Groups;
use super::header::{Cut, Header, Origin, next_record};
use super::layout::{RECORD_HEADER_SIZE, kernel_record, tool_record};
use super::order::{Outliers, Place, Waiting};
use super::record;
use super::sources::Sources;
use super::tracing_data::TracepointFormat;
use super::unpack::Unpacked;
use pagewise_model::event::{Callchain, Event, EventSource, Sample, SourceIndex};
use pagewise_model::loss::{LossKind, Losses};
use pagewise_model::recording::Sidecar;
use pagewise_model::units::Nanos;
use std::collections::BTreeMap;

/// A perf.data file in memory (usually a mapping of it), with its header parsed.
#[derive(Debug)]
pub struct PerfData<'a> {
    bytes: &'a [u8],
    header: Header,
    sources: Vec<EventSource>,
    layouts: Sources,
}

/// What a pass over the records left out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Reading {
    /// What could not be used. Does not include records that the *kernel* lost, which are
    /// [`Event::Lost`].
    pub losses: Losses,
    /// Records of known types that have nothing to do with memory (`PERF_RECORD_KSYMBOL`,
    /// `PERF_RECORD_ID_INDEX`, `PERF_RECORD_AUXTRACE`…), counted by type number.
    pub passed_over: BTreeMap<u32, u64>,
    /// Records left out because their times cannot be right; they are among the losses.
    pub outliers: Outliers,
    /// Where records end that can be followed, and the bytes after it, if they are not just the
    /// start of one more.
    pub damage: Option<Damage>,
}

impl Reading {
    /// What a reader must know about the records that were left out, in sentences.
    #[must_use]
    pub fn notes(&self) -> Vec<String> {
        let damage = self
            .damage
            .map(|damage| format!("The file is damaged: {damage}."));
        self.outliers
            .description()
            .into_iter()
            .chain(damage)
            .collect()
    }
}

impl<'a> PerfData<'a> {
    /// Parses the header of a file, in file or pipe mode.
    ///
    /// # Errors
    /// When this is not perf.data of this byte order, or ends before its records.
    pub fn parse(bytes: &'a [u8]) -> Result<Self, ReadError> {
        let header = Header::parse(bytes)?;
        let sources = header.sources.iter().map(|raw| {
            let name = raw.name.clone().unwrap_or_else(|| raw.attr.default_name());
            raw.attr.source(&name)
        });
        Ok(Self {
            bytes,
            sources: sources.collect(),
            layouts: Sources::new(&header.sources),
            header,
        })
    }

    /// What was recorded, indexed by [`SourceIndex`].
    #[must_use]
    pub fn sources(&self) -> &[EventSource] {
        &self.sources
    }

    /// The sidecar of a recording of ours; `None` for files of other tools, for cut files, and
    /// where [`Self::sidecar_error`] gives the reason.
    #[must_use]
    pub fn sidecar(&self) -> Option<&Sidecar> {
        self.header.sidecar.as_ref()
    }

    /// Whether our recorder made the file, though its end may be missing.
    #[must_use]
    pub fn is_own(&self) -> bool {
        self.header.has_preface || self.header.sidecar.is_some()
    }

    /// What is missing of a file whose end is not there.
    #[must_use]
    pub fn cut(&self) -> Option<Cut> {
        self.header.cut
    }

    /// Why a sidecar that is present could not be read.
    #[must_use]
    pub fn sidecar_error(&self) -> Option<&str> {
        self.header.sidecar_error.as_deref()
    }

    /// Machine and command recorded in the file.
    #[must_use]
    pub fn origin(&self) -> &Origin {
        &self.header.origin
    }

    /// Build ids of the files that were mapped, where the recorder listed them.
    #[must_use]
    pub fn build_ids(&self) -> &[BuildId] {
        &self.header.build_ids
    }

    /// Fields of a tracepoint source's payload.
    #[must_use]
    pub fn tracepoint(&self, source: SourceIndex) -> Option<&TracepointFormat> {
        let raw = self.header.sources.get(usize::from(source.0))?;
        let id = raw.attr.is_tracepoint().then_some(raw.attr.config)?;
        self.header.tracepoints.get(&id)
    }

    /// Passes on all events in time order. See [`Self::read`].
    ///
    /// # Errors
    /// None at present: errors in single records are counted.
    pub fn for_each(&self, visit: impl FnMut(Event<'_>)) -> Result<Losses, ReadError> {
        Ok(self.read(visit, |_| ()).losses)
    }

    /// Passes on all events in time order, with memory for two rounds of rings.
    ///
    /// Records without a time, such as recorders synthesise, come at once with the time of the
    /// event before them. `done` is called now and then with the offset up to which the file is no
    /// longer needed, so that a mapping can release those pages.
    pub fn read(&self, visit: impl FnMut(Event<'_>), done: impl FnMut(usize)) -> Reading {
        let records = self.bytes.get(self.header.data.clone());
        let output = Output {
            layouts: &self.layouts,
            groups: Groups::default(),
            deferred: Deferred::collect(&self.layouts, records.unwrap_or_default()),
            chain: Vec::new(),
            reading: Reading {
                losses: self.header.losses.clone(),
                ..Reading::default()
            },
            visit,
        };
        let pass = Pass {
            file: self.bytes,
            waiting: Waiting::default(),
            unpacked: Unpacked::default(),
            packed_is_damaged: false,
            output,
            done,
        };
        pass.run(self.header.data.clone())
    }
}

/// One pass over the records.
struct Pass<'a, V, D> {
    file: &'a [u8],
    waiting: Waiting,
    unpacked: Unpacked,
    packed_is_damaged: bool,
    output: Output<'a, V>,
    done: D,
}

/// What to do with a record before its turn.
enum Step<'r> {
    /// It waits for the others of its round.
    Wait(u64),
    /// It has no time: pass it on now.
    Now,
    EndRound,
    Unpack(&'r [u8]),
    PassOver,
    Lose(LossKind),
}

impl<V: FnMut(Event<'_>), D: FnMut(usize)> Pass<'_, V, D> {
    fn run(mut self, data: std::ops::Range<usize>) -> Reading {
        let end = data.end;
        let mut at = data.start;
        while at < end {
            let Some((kind, record, size)) = next_record(&self.file[at..end]) else {
                self.lose_rest(at, end);
                break;
            };
            self.take(kind, record, at);
            at = at.saturating_add(size);
            if kind == tool_record::FINISHED_ROUND {
                self.report_progress(at.min(end));
            }
        }
        self.lose(LossKind::Truncated, at.saturating_sub(end) as u64);
        let due = self.waiting.finish();
        self.hand_out(due);
        let cut_while_packed = self.unpacked.unseen().1.len() as u64;
        self.lose(LossKind::Truncated, cut_while_packed);
        self.lose(LossKind::OutOfOrder, self.waiting.late());
        self.output.reading.outliers = self.waiting.outliers();
        self.lose(LossKind::ImpossibleTime, self.output.reading.outliers.count);
        self.output.reading
    }

    #[inline]
    fn take(&mut self, kind: u32, record: &[u8], at: usize) {
        match step(self.output.layouts, kind, record) {
            Step::Wait(time) => self.waiting.push(time, Place::in_file(at)),
            Step::Now => self.hand_out_now(record),
            Step::EndRound => {
                let due = self.waiting.finish_round();
                self.hand_out(due);
            }
            Step::Unpack(packed) => self.unpack(packed),
            Step::PassOver => *self.output.reading.passed_over.entry(kind).or_default() += 1,
            Step::Lose(loss) => self.lose(loss, 1),
        }
    }

    /// Unpacks a record of records and takes the complete records in it.
    fn unpack(&mut self, packed: &[u8]) {
        if self.packed_is_damaged || self.unpacked.append(packed).is_err() {
            self.packed_is_damaged = true;
            self.lose(LossKind::MalformedRecord, 1);
            return;
        }
        let (offset, unseen) = self.unpacked.unseen();
        let mut at = 0;
        let mut untimed = Vec::new();
        while let Some((kind, record, size)) = next_record(unseen.get(at..).unwrap_or_default()) {
            match step(self.output.layouts, kind, record) {
                Step::Wait(time) => {
                    let place = Place::unpacked(offset + at as u64);
                    self.waiting.push(time, place);
                }
                Step::Now => untimed.push(offset + at as u64),
                Step::EndRound | Step::Unpack(_) | Step::PassOver => {
                    *self.output.reading.passed_over.entry(kind).or_default() += 1;
                }
                Step::Lose(loss) => self.output.reading.losses.add(loss, 1),
            }
            at += size;
        }
        let seen = at.min(unseen.len());
        if !is_cut(&unseen[seen..]) {
            self.packed_is_damaged = true;
            self.output.reading.losses.add(LossKind::MalformedRecord, 1);
        }
        for place in untimed {
            let time = Nanos(self.waiting.handed_out());
            let record = first_record(self.unpacked.from(place));
            self.output.emit(record, time);
        }
        self.unpacked.advance(seen);
    }

    fn hand_out_now(&mut self, record: &[u8]) {
        let time = Nanos(self.waiting.handed_out());
        self.output.emit(record, time);
    }

    /// Passes on the `due` oldest waiting records.
    fn hand_out(&mut self, due: usize) {
        for &(time, place) in &self.waiting.pairs()[..due] {
            let from = match place.offset() {
                Ok(offset) => self.file.get(offset..).unwrap_or_default(),
                Err(offset) => self.unpacked.from(offset),
            };
            let record = first_record(from);
            self.output.emit(record, Nanos(time));
        }
        self.waiting.remove(due);
        let still_packed = self
            .waiting
            .pairs()
            .iter()
            .filter_map(|p| p.1.offset().err());
        self.unpacked.forget_before(still_packed.min());
    }

    fn report_progress(&mut self, at: usize) {
        let oldest = self
            .waiting
            .pairs()
            .iter()
            .filter_map(|p| p.1.offset().ok());
        (self.done)(oldest.min().unwrap_or(at));
    }

    /// A record that claims to be longer than the file, or shorter than its own header: where the
    /// next one starts is unknown.
    fn lose_rest(&mut self, at: usize, end: usize) {
        self.output.reading.damage = damage(&self.file[at..end], at);
        let broken = u64::from(self.output.reading.damage.is_some());
        self.lose(LossKind::MalformedRecord, broken);
        self.lose(LossKind::Truncated, (end - at) as u64);
    }

    fn lose(&mut self, kind: LossKind, count: u64) {
        self.output.reading.losses.add(kind, count);
    }
}

#[inline]
fn step<'r>(layouts: &Sources, kind: u32, record: &'r [u8]) -> Step<'r> {
    let time = match kind {
        kernel_record::SAMPLE => layouts.sample_time(record),
        1..=kernel_record::LAST_KNOWN => layouts.other_time(record),
        tool_record::FINISHED_ROUND => return Step::EndRound,
        tool_record::COMPRESSED => return unpack_step(record.get(RECORD_HEADER_SIZE..)),
        tool_record::COMPRESSED2 => return unpack_step(packed_of_stated_size(record)),
        tool_record::FIRST..=tool_record::LAST_KNOWN => return Step::PassOver,
        _ => return Step::Lose(LossKind::UnknownRecord),
    };
    match time {
        Some(0 | u64::MAX) => Step::Now,
        Some(time) => Step::Wait(time),
        None => Step::Lose(LossKind::MalformedRecord),
    }
}

fn unpack_step(packed: Option<&[u8]>) -> Step<'_> {
    packed.map_or(Step::Lose(LossKind::MalformedRecord), Step::Unpack)
}

/// Whether these bytes, in which no record was found, could be the start of one.
fn is_cut(bytes: &[u8]) -> bool {
    damage(bytes, 0).is_none()
}

/// The record at the start of `bytes`, already found to be complete.
#[inline]
fn first_record(bytes: &[u8]) -> &[u8] {
    let size = bytes.get(6..).and_then(<[u8]>::first_chunk);
    let size = size.map_or(0, |&size| usize::from(u16::from_le_bytes(size)));
    bytes.get(..size).unwrap_or_default()
}

/// Passes events on.
struct Output<'a, V> {
    layouts: &'a Sources,
    groups: Groups,
    deferred: Deferred,
    /// The chain of the present sample, joined.
    chain: Vec<u8>,
    reading: Reading,
    visit: V,
}

impl<V: FnMut(Event<'_>)> Output<'_, V> {
    #[inline]
    fn emit(&mut self, record: &[u8], time: Nanos) {
        match record::decode(self.layouts, record, time) {
            Ok(Some(Event::Sample(sample))) => self.sample(record, sample),
            Ok(Some(event)) => {
                if let Event::Exit { tid, .. } = event {
                    self.groups.forget(tid);
                }
                (self.visit)(event);
            }
            Ok(None) => {
                let kind = super::cursor::u32_at(record, 0).unwrap_or(0);
                *self.reading.passed_over.entry(kind).or_default() += 1;
            }
            Err(record::Malformed) => self.reading.losses.add(LossKind::MalformedRecord, 1),
        }
    }

    #[inline]
    fn sample<'s>(&'s mut self, record: &[u8], mut sample: Sample<'s>) {
        let joined = self.deferred.join(sample.callchain, &mut self.chain);
        if let Joined::Missing = joined {
            self.reading.losses.add(LossKind::UserStackMissing, 1);
        }
        let Self {
            layouts,
            groups,
            visit,
            chain,
            ..
        } = self;
        if !matches!(joined, Joined::Whole) {
            sample.callchain = Callchain::from_le_bytes(chain);
        }
        match groups.of_sample(layouts, record, sample.tid) {
            None => visit(Event::Sample(sample)),
            Some(group) => group.into_iter().for_each(|(source, period)| {
                visit(Event::Sample(Sample {
                    source,
                    period,
                    ..sample
                }));
            }),
        }
    }
}
