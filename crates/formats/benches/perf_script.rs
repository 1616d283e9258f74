//! MB/s of CPU time from the text of perf script to a profile, on one core.
//!
//! `cargo bench -p pagewise-formats --bench perf_script [-- SCRIPT.txt]`; without a file, 512 MiB of
//! samples with chains of 12 frames out of 3,000, generated while they are read.

use pagewise_formats::perf_script;
use std::fmt::Write;
use std::io::{self, Read};

const BYTES: usize = 512 << 20;

struct Made {
    random: u64,
    text: Vec<u8>,
    at: usize,
    given: usize,
}

impl Made {
    fn below(&mut self, limit: u64) -> u64 {
        self.random = self
            .random
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1);
        (self.random >> 33) % limit
    }

    /// Samples that share their outer frames, as real ones do.
    fn samples(&mut self) -> String {
        let mut text = String::new();
        for _ in 0..4000 {
            let (pid, cpu, us) = (1000 + self.below(40), self.below(8), self.below(1_000_000));
            let _ = writeln!(
                text,
                "redis-server  {pid}/{pid} [{cpu:03}] 4711.{us:06}:     250000 cpu-clock:pppH: "
            );
            let stack = self.below(60);
            for frame in 0..12 {
                let function = if frame < 3 {
                    self.below(50) * 60 + stack
                } else {
                    stack * 50 + frame
                };
                let offset = self.below(8) * 4;
                let _ = writeln!(
                    text,
                    "\tffffffff{function:08x} some_kernel_function_{function}+0x{offset:x} ([kernel.kallsyms])"
                );
            }
            text.push('\n');
        }
        text
    }
}

impl Read for Made {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.given >= BYTES {
            return Ok(0);
        }
        if self.at == self.text.len() {
            self.at = 0;
        }
        let rest = &self.text[self.at..];
        let len = rest.len().min(buffer.len());
        buffer[..len].copy_from_slice(&rest[..len]);
        self.at += len;
        self.given += len;
        Ok(len)
    }
}

fn cpu_ns() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let first = text.split_whitespace().next().expect("a number");
    first.parse().expect("a number")
}

fn main() {
    let path = std::env::args().skip(1).find(|a| a != "--bench");
    for _ in 0..3 {
        let mut made = Made {
            random: 7,
            text: Vec::new(),
            at: 0,
            given: 0,
        };
        made.text = (0..8)
            .map(|_| made.samples())
            .collect::<String>()
            .into_bytes();
        let begin = cpu_ns();
        let (profile, bytes) = match &path {
            Some(path) => {
                let file = std::fs::File::open(path).expect("a readable file");
                let size = file.metadata().expect("a size").len();
                (perf_script::read(file).expect("a readable file"), size)
            }
            None => (
                perf_script::read(made).expect("memory is readable"),
                BYTES as u64,
            ),
        };
        println!(
            "{} MB/s of CPU time: {} samples, {} frames, {} nodes of stacks",
            bytes * 1000 / (cpu_ns() - begin).max(1),
            profile.samples.len(),
            profile.frames.len(),
            profile.stacks.len()
        );
    }
}
