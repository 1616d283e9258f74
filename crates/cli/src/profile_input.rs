//! Profiles from files of any kind: perf.data, text of `perf script`, folded stacks.

use crate::bytes;
use crate::open::{self, Opened, Text};
use anyhow::{Context, Result, bail};
use pagewise_formats::perf_data::PerfData;
use pagewise_formats::{folded, perf_script};
use pagewise_model::profile::Profile;
use pagewise_model::units::Nanos;
use pagewise_operate::analysis;
use std::io::Read;
use std::num::NonZero;
use std::path::Path;
use std::thread;

/// Reads a text input that is already open. A file is mapped, anything else is read as a stream.
///
/// # Errors
/// If it can't be read or has no sample.
pub fn read_text(kind: Text, input: impl Read + Send, path: &Path) -> Result<Profile> {
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    let profile = match (kind, bytes::mapped(path)?) {
        (Text::Folded, _) => folded::read(input)?,
        (Text::PerfScript, None) => perf_script::read_on(threads, input)?,
        (Text::PerfScript, Some(text)) => {
            perf_script::read_mapped(threads, &text, |bytes| text.release(bytes))
        }
    };
    if profile.samples.is_empty() {
        bail!("it has no samples");
    }
    Ok(profile)
}

/// The part of a profile within a range of time.
///
/// # Errors
/// If the profile ends before that.
pub fn within(profile: &Profile, from: Nanos, to: Nanos) -> Result<Profile> {
    if from > profile.span {
        bail!(
            "the range starts at {from}, and the recording ends after {}",
            profile.span
        );
    }
    Ok(profile.within(from, to))
}

/// Opens and reads a file of any kind.
///
/// # Errors
/// If it is not a profile, or has no sample.
pub fn open(path: &Path) -> Result<Profile> {
    let bytes = match open::open(path)? {
        Opened::Profile(kind, input) => return read_text(kind, input, path),
        Opened::PerfData(bytes) | Opened::Document(bytes) => bytes,
        Opened::Other(_, input) => open::whole(input, path)?,
        Opened::Trace(_) => bail!("it is a function_graph trace, which has no samples"),
    };
    let data = PerfData::parse(&bytes)?;
    of_recording(&data, |offset| bytes.release(offset))
}

/// The profile of everything that a recording sampled.
///
/// # Errors
/// If it has no sample.
pub fn of_recording(data: &PerfData<'_>, done: impl FnMut(usize)) -> Result<Profile> {
    Some(analysis::profile(data, done))
        .filter(|profile| !profile.samples.is_empty())
        .context("it has no samples with a stack or an address")
}
