//! The file that the recorder's thread writes to, as long as it can.

use super::super::ballast::Ballast;
use super::super::notes::Note;
use pagewise_formats::perf_data::Writer;
use std::fs::File;
use std::path::{Path, PathBuf};

/// Spans from this size on are written from where they lie.
const WRITE_THROUGH: usize = 128 << 10;

pub(super) struct Output {
    writer: Writer<File>,
    path: PathBuf,
    /// Disk space for the end of the file, reserved beside it.
    ballast: Option<Ballast>,
    /// Why the file no longer grows.
    failure: Option<String>,
    /// Bytes of records that could not be written.
    lost: u64,
    /// Small pieces of a round, written together.
    batch: Vec<u8>,
    /// The file's size at the end of the last round.
    rounded_at: u64,
    /// Whether an odd number of rounds was written.
    is_odd_round: bool,
}

impl Output {
    pub fn new(writer: Writer<File>) -> Self {
        Self {
            rounded_at: writer.data_size(),
            writer,
            path: PathBuf::new(),
            ballast: None,
            failure: None,
            lost: 0,
            batch: Vec::new(),
            is_odd_round: false,
        }
    }

    /// The file's path, for messages and the reserved space.
    pub fn is_at(&mut self, path: &Path) {
        self.path = path.to_owned();
    }

    /// Reserves space, which is released when the disk is full.
    pub fn reserve(&mut self) {
        self.ballast = Ballast::beside(&self.path);
    }

    /// Writes records of before the first round.
    pub fn write_earlier(&mut self, records: &[u8]) {
        self.write(records);
        self.rounded_at = self.writer.data_size();
    }

    /// Adds records to the round.
    pub fn add(&mut self, records: &[u8]) {
        if records.len() < WRITE_THROUGH {
            self.batch.extend_from_slice(records);
        } else {
            self.flush();
            self.write(records);
        }
    }

    /// Adds records to the round that `complete` changes first.
    pub fn add_completed(&mut self, records: &[u8], complete: impl FnOnce(&mut [u8])) {
        let start = self.batch.len();
        self.batch.extend_from_slice(records);
        complete(&mut self.batch[start..]);
    }

    /// Ends a round, unless nothing was written in it. With `in_pairs`, two rounds count as one: a
    /// record that waited for a round to be known as ours must not come after others of its time.
    pub fn end_round(&mut self, in_pairs: bool) {
        self.flush();
        let grew = self.writer.data_size() > self.rounded_at;
        self.rounded_at = self.writer.data_size();
        if !grew || self.failure.is_some() {
            return;
        }
        self.is_odd_round = !self.is_odd_round && in_pairs;
        if !self.is_odd_round {
            let outcome = self.writer.finished_round();
            self.note(outcome.map_err(|error| error.to_string()), 0);
        }
    }

    fn flush(&mut self) {
        let mut batch = std::mem::take(&mut self.batch);
        self.write(&batch);
        batch.clear();
        self.batch = batch;
    }

    fn write(&mut self, records: &[u8]) {
        if records.is_empty() {
            return;
        }
        if self.failure.is_some() {
            self.lost += records.len() as u64;
            return;
        }
        let outcome = self.writer.records(records);
        self.note(outcome.map_err(|error| error.to_string()), records.len());
    }

    /// After the first failure nothing more is written, and the reserved space is released for the
    /// end.
    fn note(&mut self, outcome: Result<(), String>, bytes: usize) {
        if let Err(reason) = outcome {
            self.lost += bytes as u64;
            self.failure = Some(reason);
            self.ballast = None;
        }
    }

    /// Bytes of records that could not be written, and the reason.
    pub fn lost(&self) -> (u64, Option<Note>) {
        let note = self.failure.clone().map(|reason| Note::DiskFull {
            path: self.path.clone(),
            reason,
        });
        (self.lost, note)
    }

    pub fn into_writer(self) -> Writer<File> {
        self.writer
    }
}
