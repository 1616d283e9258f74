//! Writes small trace.dat files and memory traces of every layout: seeds for `fuzz/smoke`, which
//! would never get past the headers by chance.
//!
//!     cargo run -p pagewise-formats --example fuzz_seeds -- FOLDER

#[path = "../tests/trace_dat_layouts/writer.rs"]
mod writer;

use pagewise_formats::memory_trace::{Mapping, Writer};
use std::error::Error;
use std::fs;
use std::path::{Path, PathBuf};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::args_os().nth(1);
    let folder = PathBuf::from(folder.ok_or("give a folder to write into")?);
    traces(&folder.join("trace_dat"))?;
    memory(&folder.join("memory_trace"))
}

fn traces(folder: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(folder)?;
    for (number, (.., file)) in writer::files().into_iter().enumerate() {
        fs::write(folder.join(format!("layout-{number}.dat")), file)?;
    }
    Ok(())
}

fn memory(folder: &Path) -> Result<(), Box<dyn Error>> {
    fs::create_dir_all(folder)?;
    for (name, writer) in [
        ("addresses", Writer::new(Vec::new())?),
        ("pages", Writer::by_page(Vec::new())?),
    ] {
        fs::write(folder.join(name), accesses(writer)?)?;
    }
    let lackey = "I  04001000,3\n S 1ffe000,8\n L 1ffe008,4\n M 0421c7cc,4\n";
    fs::write(folder.join("lackey"), lackey)?;
    Ok(())
}

fn accesses(mut writer: Writer<Vec<u8>>) -> Result<Vec<u8>, Box<dyn Error>> {
    writer.mapping(&Mapping {
        start: 0x40_0000,
        bytes: 0x20_0000,
        is_anonymous: true,
        name: "[heap]".to_owned(),
    })?;
    writer.note("made for fuzzing")?;
    for at in 0..200_u64 {
        let address = 0x40_0000 + at * 0x1230 % 0x20_0000;
        writer.access(1 + at / 90, address, at % 3 == 0)?;
        writer.instructions(7);
    }
    Ok(writer.finish(2)?)
}
