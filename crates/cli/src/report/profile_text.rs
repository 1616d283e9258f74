//! Reports on profiles that come as text: of `perf script`, or folded stacks.

use super::{Args, recording};
use anyhow::Result;
use pagewise_model::formats::{folded, perf_script};
use pagewise_model::profile::Profile;
use std::io::{self, Read};
use std::path::Path;

/// A kind of text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Text {
    /// `perf script`'s.
    PerfScript,
    /// Folded stacks.
    Folded,
}

/// The kind of a text that begins so, if it is one of a profile.
pub fn kind(head: &[u8]) -> Option<Text> {
    if perf_script::looks_like(head) {
        return Some(Text::PerfScript);
    }
    folded::looks_like(head).then_some(Text::Folded)
}

fn read(kind: Text, input: impl Read) -> io::Result<Profile> {
    match kind {
        Text::PerfScript => perf_script::read(input),
        Text::Folded => folded::read(input),
    }
}

/// Reports on a text.
///
/// # Errors
/// When it can't be read or holds no sample.
pub fn report(kind: Text, input: impl Read, file: &Path, args: &Args) -> Result<()> {
    recording::report_profile(read(kind, input)?, file, args)
}
