//! Opens inputs named by the user: files, standard input, compressed or not.

use anyhow::{Context, Result};
use pagewise_formats::sniff::{self, Format, PACKED_HEAD};
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

/// Bytes that a compressed input may always expand to, and how many for each compressed byte beyond
/// that: recordings shrink to a tenth, a file made to fill the disk to a thousandth or less.
const ALWAYS: u64 = 256 << 20;
const MOST_FOR_A_BYTE: u64 = 200;

/// Opens a file, or standard input for `-`; decompresses gzip and zstd.
pub fn open(path: &Path) -> Result<Box<dyn Read + Send>> {
    let name = path.display();
    let raw: Box<dyn Read + Send> = if path == Path::new("-") {
        Box::new(io::stdin())
    } else {
        let file = File::open(path).with_context(|| format!("cannot open {name}"))?;
        Box::new(file)
    };
    let (head, raw) =
        peek(raw, PACKED_HEAD as u64).with_context(|| format!("cannot read {name}"))?;
    let packed = Arc::<AtomicU64>::default();
    let counted = |raw| Counted {
        raw,
        read: Arc::clone(&packed),
    };
    Ok(match sniff::packed(&head) {
        Some(Format::Gzip) => {
            let raw = BufReader::with_capacity(1 << 18, counted(raw));
            let decoder = flate2::read::MultiGzDecoder::new(raw);
            Box::new(Unpacked::new(decoder, "gzip", packed))
        }
        Some(_) => {
            let decoder = zstd::Decoder::new(counted(raw))
                .with_context(|| format!("{name} starts like zstd but cannot be decompressed"))?;
            Box::new(Unpacked::new(decoder, "zstd", packed))
        }
        None => raw,
    })
}

/// A reader that counts the bytes read.
struct Counted<R> {
    raw: R,
    read: Arc<AtomicU64>,
}

impl<R: Read> Read for Counted<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.raw.read(buffer)?;
        self.read.fetch_add(read as u64, Ordering::Relaxed);
        Ok(read)
    }
}

/// A decompressed input, whose errors explain the likely cause and a remedy.
struct Unpacked<R> {
    unpacked: R,
    by: &'static str,
    /// Bytes read before decompression, and returned after it.
    packed: Arc<AtomicU64>,
    given: u64,
}

impl<R> Unpacked<R> {
    fn new(unpacked: R, by: &'static str, packed: Arc<AtomicU64>) -> Self {
        Self {
            unpacked,
            by,
            packed,
            given: 0,
        }
    }

    /// Stops an input that was made to fill the disk.
    fn check_size(&self) -> io::Result<()> {
        let packed = self.packed.load(Ordering::Relaxed);
        let most = packed.saturating_mul(MOST_FOR_A_BYTE).max(ALWAYS);
        if self.given <= most {
            return Ok(());
        }
        let by = self.by;
        let text = format!(
            "it unpacks to more than {MOST_FOR_A_BYTE} times its size, which no recording does; if you trust it: {by} -dc FILE | pagewise report -"
        );
        Err(io::Error::new(io::ErrorKind::FileTooLarge, text))
    }
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let read = self.unpacked.read(buffer).map_err(|error| {
            let by = self.by;
            let text = format!(
                "it is truncated or damaged ({by}: {error}); read the intact part with {by} -dc FILE | pagewise report -"
            );
            io::Error::new(error.kind(), text)
        })?;
        self.given += read as u64;
        self.check_size()?;
        Ok(read)
    }
}

/// The first bytes (fewer at the end of the input) and a reader that still includes them.
pub fn peek(
    mut input: Box<dyn Read + Send>,
    len: u64,
) -> io::Result<(Vec<u8>, Box<dyn Read + Send>)> {
    let mut head = Vec::new();
    input.by_ref().take(len).read_to_end(&mut head)?;
    let whole = Cursor::new(head.clone()).chain(input);
    Ok((head, Box::new(whole)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::io::Write;

    /// Zeros, compressed by each compressor.
    fn packed(folder: &Path, zeros: u64) -> [std::path::PathBuf; 2] {
        let [gzip, zstd] = ["zeros.gz", "zeros.zst"].map(|name| folder.join(name));
        let mut out = flate2::write::GzEncoder::new(
            File::create(&gzip).unwrap(),
            flate2::Compression::default(),
        );
        io::copy(&mut io::repeat(0).take(zeros), &mut out).unwrap();
        out.finish().unwrap().flush().unwrap();
        let out = File::create(&zstd).unwrap();
        zstd::stream::copy_encode(io::repeat(0).take(zeros), out, 1).unwrap();
        [gzip, zstd]
    }

    #[test]
    fn what_was_made_to_fill_the_disk_is_not_unpacked() {
        let folder = tempfile::tempdir().unwrap();
        for path in packed(folder.path(), ALWAYS + (1 << 20)) {
            let mut input = open(&path).unwrap();
            let error = io::copy(&mut input, &mut io::sink()).unwrap_err();
            assert_eq!(error.kind(), io::ErrorKind::FileTooLarge, "{error}");
        }
        for path in packed(folder.path(), 1 << 20) {
            let mut input = open(&path).unwrap();
            assert_eq!(io::copy(&mut input, &mut io::sink()).unwrap(), 1 << 20);
        }
    }
}
