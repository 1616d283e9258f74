//! Records made byte by byte, independently of the reader.
#![allow(dead_code, reason = "each test program uses its part")]

use pagewise_formats::perf_data::{SourceAttr, Writer, sample_type};
use std::io::Cursor;

/// Flag bits of `perf_event_attr`: mmap, comm, task, `sample_id_all`, mmap2.
pub const FLAGS: u64 = (1 << 8) | (1 << 9) | (1 << 13) | (1 << 18) | (1 << 23);
/// The fields of a plain fault sample.
pub const PLAIN: u64 = sample_type::IDENTIFIER
    | sample_type::IP
    | sample_type::TID
    | sample_type::TIME
    | sample_type::ADDR
    | sample_type::PERIOD;

/// A `perf_event_attr` of version 8.
pub fn attr(kind: u32, config: u64, sample_type: u64, read_format: u64) -> Vec<u8> {
    let mut attr = vec![0; 136];
    let mut put = |offset: usize, word: u64| {
        attr[offset..offset + 8].copy_from_slice(&word.to_le_bytes());
    };
    put(0, u64::from(kind) | (136 << 32));
    put(8, config);
    put(16, 1);
    put(24, sample_type);
    put(32, read_format);
    put(40, FLAGS);
    put(80, 0x1c0);
    put(96, 0x3);
    attr
}

/// A page-faults source with one id.
pub fn faults(sample_type: u64, id: u64) -> SourceAttr {
    SourceAttr {
        name: "page-faults".into(),
        attr: attr(1, 2, sample_type, 0),
        ids: vec![id],
    }
}

/// A record from its parts.
pub fn record(kind: u32, misc: u16, body: &[u8]) -> Vec<u8> {
    let size = u16::try_from(8 + body.len()).expect("records are small");
    let mut out = kind.to_le_bytes().to_vec();
    out.extend_from_slice(&misc.to_le_bytes());
    out.extend_from_slice(&size.to_le_bytes());
    out.extend_from_slice(body);
    out
}

pub fn words(words: &[u64]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A sample with the layout [`PLAIN`], of thread 501 in process 500.
pub fn plain_sample(id: u64, time: u64, address: u64) -> Vec<u8> {
    let ids = 500 | (501 << 32);
    record(9, 2, &words(&[id, 0x40_1000, ids, time, address, 1]))
}

/// A whole file without features.
pub fn file(sources: &[SourceAttr], write: impl FnOnce(&mut Writer<Cursor<Vec<u8>>>)) -> Vec<u8> {
    let mut writer = Writer::new(Cursor::new(Vec::new()), sources).expect("in memory");
    write(&mut writer);
    let done = writer.finish(&pagewise_formats::perf_data::Features::default());
    done.expect("in memory").into_inner()
}
