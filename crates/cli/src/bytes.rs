//! A recording's bytes: mapped from its file, or unpacked into a temporary one.

use anyhow::{Context, Result, bail};
use pagewise_formats::sniff::{PACKED_HEAD, packed};
use pagewise_linux::sys::mapped_file::MappedFile;
use pagewise_model::units::Bytes;
use std::fs::File;
use std::io::{self, Read, Seek};
use std::path::Path;

/// Minimum free space after unpacking, or a tenth of the previously free space if that is less.
const SPARED: u64 = 1 << 30;

/// Maps the recording at `path`. Standard input (`-`), pipes and compressed files go through an
/// unnamed temporary file first, so that memory stays small whatever their length.
pub fn open(path: &Path) -> Result<MappedFile> {
    let name = path.display();
    let file = match plain_file(path)? {
        Some(file) => file,
        None => unpacked(path)?,
    };
    MappedFile::map(&file).with_context(|| format!("cannot map {name}"))
}

/// Maps the file at `path` if it is a regular file and not compressed.
pub fn mapped(path: &Path) -> Result<Option<MappedFile>> {
    let Some(file) = plain_file(path)? else {
        return Ok(None);
    };
    let mapped =
        MappedFile::map(&file).with_context(|| format!("cannot map {}", path.display()))?;
    Ok(Some(mapped))
}

/// The file itself, if it is a regular file and not compressed.
fn plain_file(path: &Path) -> Result<Option<File>> {
    if path == Path::new("-") {
        return Ok(None);
    }
    let name = path.display();
    let mut file = File::open(path).with_context(|| format!("cannot open {name}"))?;
    let metadata = file
        .metadata()
        .with_context(|| format!("cannot read {name}"))?;
    if metadata.is_dir() {
        match path.join("data.0").exists() {
            true => bail!(
                "{name} is a directory that perf record --threads wrote, which is not supported: perf script -i {name} | pagewise report - reads it"
            ),
            false => bail!("{name} is a directory, not a recording"),
        }
    }
    if !metadata.is_file() {
        return Ok(None);
    }
    let mut head = Vec::new();
    file.by_ref()
        .take(PACKED_HEAD as u64)
        .read_to_end(&mut head)
        .with_context(|| format!("cannot read {name}"))?;
    Ok(packed(&head).is_none().then_some(file))
}

/// The same for an input that is already being read: it goes through an unnamed temporary file.
pub fn spooled(input: Box<dyn Read + Send>, path: &Path) -> Result<MappedFile> {
    let file = copied(input, path)?;
    MappedFile::map(&file).with_context(|| format!("cannot map {}", path.display()))
}

fn unpacked(path: &Path) -> Result<File> {
    copied(crate::input::open(path)?, path)
}

fn copied(input: Box<dyn Read + Send>, path: &Path) -> Result<File> {
    let file = tempfile::tempfile().context("cannot make a temporary file")?;
    let system = rustix::fs::fstatvfs(&file).context("cannot inspect the temporary folder")?;
    let free = system.f_bavail.saturating_mul(system.f_frsize);
    copied_into(file, free - SPARED.min(free / 10), input, path)
}

/// Copies up to `room` bytes.
fn copied_into(mut file: File, room: u64, input: impl Read, path: &Path) -> Result<File> {
    let name = path.display();
    let copied = io::copy(&mut input.take(room.saturating_add(1)), &mut file);
    if copied.with_context(|| format!("cannot unpack {name}"))? > room {
        bail!(
            "cannot unpack {name}: it needs more than the {} that {} has to spare; set TMPDIR to a folder with more room",
            Bytes(room),
            std::env::temp_dir().display()
        );
    }
    file.rewind()?;
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn no_more_is_unpacked_than_there_is_room_for() {
        let into = |room| {
            let file = tempfile::tempfile().unwrap();
            copied_into(file, room, &b"12345678"[..], Path::new("big.zst"))
        };
        assert_eq!(io::read_to_string(into(8).unwrap()).unwrap(), "12345678");
        let error = into(7).unwrap_err().to_string();
        assert!(
            error.contains("more than the 7 B") && error.contains("TMPDIR"),
            "{error}"
        );
    }
}
