//! Opening what the user names: files, standard input, compressed or not.

use anyhow::{Context, Result};
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::path::Path;

const GZIP: &[u8] = &[0x1f, 0x8b];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];

/// Opens a file, or standard input for `-`; gzip and zstd are told by their first bytes.
pub fn open(path: &Path) -> Result<Box<dyn Read + Send>> {
    let name = path.display();
    let raw: Box<dyn Read + Send> = if path == Path::new("-") {
        Box::new(io::stdin())
    } else {
        let file = File::open(path).with_context(|| format!("cannot open {name}"))?;
        Box::new(file)
    };
    let (head, raw) = peek(raw, 4).with_context(|| format!("cannot read {name}"))?;
    if head.starts_with(GZIP) {
        let raw = BufReader::with_capacity(1 << 18, raw);
        return Ok(Box::new(Unpacked {
            unpacked: flate2::read::MultiGzDecoder::new(raw),
            by: "gzip",
        }));
    }
    if head.starts_with(ZSTD) {
        let decoder = zstd::Decoder::new(raw)
            .with_context(|| format!("{name} begins like zstd but can't be decompressed"))?;
        return Ok(Box::new(Unpacked {
            unpacked: decoder,
            by: "zstd",
        }));
    }
    Ok(raw)
}

/// A decompressed input, whose errors say what is likely wrong and what can be done.
struct Unpacked<R> {
    unpacked: R,
    by: &'static str,
}

impl<R: Read> Read for Unpacked<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.unpacked.read(buffer).map_err(|error| {
            let by = self.by;
            let text = format!(
                "it is cut off or damaged ({by}: {error}); what is whole can be read by \
                 {by} -dc FILE | pagewise report -"
            );
            io::Error::new(error.kind(), text)
        })
    }
}

/// The first bytes (fewer at the end of the input) and a reader that still has them.
pub fn peek(
    mut input: Box<dyn Read + Send>,
    len: u64,
) -> io::Result<(Vec<u8>, Box<dyn Read + Send>)> {
    let mut head = Vec::new();
    input.by_ref().take(len).read_to_end(&mut head)?;
    let whole = Cursor::new(head.clone()).chain(input);
    Ok((head, Box::new(whole)))
}
