//! The file of a trace, compressed or not.

use crate::destination;
use anyhow::Context;
use pagewise_model::trace_note::TraceNote;
use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

/// zstd's usual level: traces shrink to about a twentieth, at some 200 MB/s.
const LEVEL: i32 = 3;

/// A trace file being written.
pub struct Output {
    path: PathBuf,
    writer: Writer,
    /// Bytes of text, before compression.
    written: u64,
}

enum Writer {
    Plain(BufWriter<File>),
    Zstd(Box<zstd::Encoder<'static, File>>),
}

impl Output {
    /// Creates the file, readable only by its owner, since a trace reveals memory addresses.
    ///
    /// # Errors
    /// If it can't be created.
    pub fn create(path: &Path) -> anyhow::Result<Self> {
        destination::keep_previous(path);
        let cannot = || format!("cannot write {}", path.display());
        let file = destination::begin(path)?;
        let writer = match path.extension().is_some_and(|extension| extension == "zst") {
            true => Writer::Zstd(Box::new(
                zstd::Encoder::new(file, LEVEL).with_context(cannot)?,
            )),
            false => Writer::Plain(BufWriter::with_capacity(1 << 18, file)),
        };
        Ok(Self {
            path: path.to_owned(),
            writer,
            written: 0,
        })
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Bytes of text so far.
    pub fn written(&self) -> u64 {
        self.written
    }

    /// Adds the kernel's text.
    ///
    /// # Errors
    /// If writing fails, as on a full disk.
    pub fn text(&mut self, text: &[u8]) -> anyhow::Result<()> {
        self.written += text.len() as u64;
        match &mut self.writer {
            Writer::Plain(file) => file.write_all(text),
            Writer::Zstd(encoder) => encoder.write_all(text),
        }
        .with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Adds a note of ours.
    ///
    /// # Errors
    /// As [`Output::text`].
    pub fn note(&mut self, note: &TraceNote) -> anyhow::Result<()> {
        self.text(format!("{}\n", note.to_line()).as_bytes())
    }

    /// Passes buffered text on to the file, so that a kill loses nothing written so far.
    ///
    /// # Errors
    /// As [`Output::text`].
    pub fn flush(&mut self) -> anyhow::Result<()> {
        match &mut self.writer {
            Writer::Plain(file) => file.flush(),
            Writer::Zstd(encoder) => encoder.flush(),
        }
        .with_context(|| format!("cannot write {}", self.path.display()))
    }

    /// Completes the file; returns its size.
    ///
    /// # Errors
    /// As [`Output::text`].
    pub fn finish(self) -> anyhow::Result<u64> {
        let finished: io::Result<File> = match self.writer {
            Writer::Plain(file) => file.into_inner().map_err(io::IntoInnerError::into_error),
            Writer::Zstd(encoder) => encoder.finish(),
        };
        let file = finished.with_context(|| format!("cannot write {}", self.path.display()))?;
        Ok(file.metadata().map_or(0, |metadata| metadata.len()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_compressed_trace_reads_as_the_plain_one() {
        let folder = tempfile::tempdir().unwrap();
        for name in ["a.txt", "a.txt.zst"] {
            let path = folder.path().join(name);
            let mut output = Output::create(&path).unwrap();
            output.text(b"one\n").unwrap();
            output.flush().unwrap();
            output.note(&TraceNote::Lost { cpu: 0, events: 1 }).unwrap();
            output.finish().unwrap();
            let mut bytes = std::fs::read(&path).unwrap();
            if name.ends_with(".zst") {
                bytes = zstd::decode_all(&*bytes).unwrap();
            }
            let text = String::from_utf8(bytes).unwrap();
            assert_eq!(
                text,
                "one\n# pagewise: {\"lost\":{\"cpu\":0,\"events\":1}}\n"
            );
        }
    }

    #[test]
    fn an_earlier_trace_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("t");
        std::fs::write(&path, "old").unwrap();
        Output::create(&path).unwrap().finish().unwrap();
        let old = std::fs::read_to_string(folder.path().join("t.old")).unwrap();
        assert_eq!(old, "old");
    }
}
