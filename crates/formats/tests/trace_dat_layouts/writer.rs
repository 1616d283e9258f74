//! Writes small trace.dat files after trace-cmd.dat.v6(5) and trace-cmd.dat.v7(5), with the record
//! layouts of several kernels and every kind of item that a page can contain.

use std::io::Write;

pub const PAGE: usize = 4096;
pub const KALLSYMS: &str = "0000000000000000 A percpu\n\
    ffffffff81000100 T handle_mm_fault\nffffffff81000200 t schedule\n\
    ffffffff81000300 T alias_of_nothing\nffffffffc0000000 t ext4_fault\t[ext4]\n";
pub const FAULT: u64 = 0xffff_ffff_8100_0100;
pub const SCHEDULE: u64 = 0xffff_ffff_8100_0200;
pub const EXT4: u64 = 0xffff_ffff_c000_0000;

/// How a kernel lays out an entry and an exit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kernel {
    /// 4.18 and 5.10: the exit's depth at 40.
    Old,
    /// 6.1: at 16.
    Middle,
    /// Since 6.13: depth of eight bytes in the entry, the returned value in the exit.
    New,
}

fn format(id: u16, name: &str, fields: &[(&str, usize, usize, u8)]) -> String {
    let common = [
        ("unsigned short common_type", 0, 2, 0),
        ("unsigned char common_flags", 2, 1, 0),
        ("unsigned char common_preempt_count", 3, 1, 0),
        ("int common_pid", 4, 4, 1),
    ];
    let mut text = format!("name: {name}\nID: {id}\nformat:\n");
    for (declared, offset, size, signed) in common.iter().chain(fields) {
        text += &format!("\tfield:{declared};\toffset:{offset};\tsize:{size};\tsigned:{signed};\n");
    }
    text + "\nprint fmt: \"\"\n"
}

impl Kernel {
    fn formats(self) -> [String; 2] {
        let func = ("unsigned long func", 8, 8, 0);
        let (entry_depth, exit): (_, Vec<_>) = match self {
            Self::Old => (
                ("int depth", 16, 4, 1),
                vec![
                    ("unsigned long long calltime", 16, 8, 0),
                    ("unsigned long long rettime", 24, 8, 0),
                    ("unsigned long overrun", 32, 8, 0),
                    ("int depth", 40, 4, 1),
                ],
            ),
            Self::Middle => (
                ("int depth", 16, 4, 1),
                vec![
                    ("int depth", 16, 4, 1),
                    ("unsigned int overrun", 20, 4, 0),
                    ("unsigned long long calltime", 24, 8, 0),
                    ("unsigned long long rettime", 32, 8, 0),
                ],
            ),
            Self::New => (
                ("unsigned long depth", 16, 8, 0),
                vec![
                    ("unsigned long retval", 16, 8, 0),
                    ("int depth", 24, 4, 1),
                    ("unsigned int overrun", 28, 4, 0),
                    ("unsigned long long calltime", 32, 8, 0),
                    ("unsigned long long rettime", 40, 8, 0),
                ],
            ),
        };
        let mut exit_fields = vec![func];
        exit_fields.extend(exit);
        [
            format(11, "funcgraph_entry", &[func, entry_depth]),
            format(10, "funcgraph_exit", &exit_fields),
        ]
    }

    pub fn entry(self, pid: u32, func: u64, depth: u32) -> Vec<u8> {
        let mut record = head(11, pid);
        record.extend(func.to_le_bytes());
        match self {
            Self::New => record.extend(u64::from(depth).to_le_bytes()),
            _ => record.extend(depth.to_le_bytes()),
        }
        record
    }

    pub fn exit(self, pid: u32, func: u64, depth: u32, (from, to): (u64, u64)) -> Vec<u8> {
        let mut record = head(10, pid);
        record.extend(func.to_le_bytes());
        let times = [from.to_le_bytes(), to.to_le_bytes()].concat();
        match self {
            Self::Old => {
                record.extend(times);
                record.extend(0_u64.to_le_bytes());
                record.extend(depth.to_le_bytes());
            }
            Self::Middle => {
                record.extend(depth.to_le_bytes());
                record.extend(0_u32.to_le_bytes());
                record.extend(times);
            }
            Self::New => {
                record.extend((-12_i64).to_le_bytes());
                record.extend(depth.to_le_bytes());
                record.extend(0_u32.to_le_bytes());
                record.extend(times);
            }
        }
        record
    }
}

fn head(id: u16, pid: u32) -> Vec<u8> {
    let mut record = id.to_le_bytes().to_vec();
    record.extend([0, 0]);
    record.extend(pid.to_le_bytes());
    record
}

const SWITCH: u16 = 300;

fn switch_format() -> String {
    let fields = [
        ("char prev_comm[16]", 8, 16, 0),
        ("pid_t prev_pid", 24, 4, 1),
        ("int prev_prio", 28, 4, 1),
        ("long prev_state", 32, 8, 1),
        ("char next_comm[16]", 40, 16, 0),
        ("pid_t next_pid", 56, 4, 1),
        ("int next_prio", 60, 4, 1),
    ];
    format(SWITCH, "sched_switch", &fields)
}

pub fn switch(prev: u32, state: u64, next: u32) -> Vec<u8> {
    let mut record = head(SWITCH, prev);
    record.extend(*b"prev ==> x\0\0\0\0\0\0");
    record.extend(prev.to_le_bytes());
    record.extend(120_u32.to_le_bytes());
    record.extend(state.to_le_bytes());
    record.extend(*b"next\0\0\0\0\0\0\0\0\0\0\0\0");
    record.extend(next.to_le_bytes());
    record.extend(120_u32.to_le_bytes());
    record
}

/// A page under construction.
pub struct Page {
    time: u64,
    flags: u64,
    stored: Option<u64>,
    data: Vec<u8>,
    now: u64,
}

impl Page {
    pub fn at(time: u64) -> Self {
        Self {
            time,
            flags: 0,
            stored: None,
            data: Vec::new(),
            now: time,
        }
    }

    /// Marks records as missed before this page.
    pub fn missed(mut self, count: Option<u64>) -> Self {
        self.flags = 1 << 31 | u64::from(count.is_some()) << 30;
        self.stored = count;
        self
    }

    fn word(&mut self, kind: u32, delta: u64) {
        let delta = u32::try_from(delta).expect("27 bits");
        self.data.extend((kind | delta << 5).to_le_bytes());
    }

    /// A record at a given time, preceded by a time extend if necessary.
    pub fn record(mut self, time: u64, mut record: Vec<u8>) -> Self {
        let mut delta = time - self.now;
        if delta >> 27 != 0 {
            self.word(30, delta & ((1 << 27) - 1));
            let high = u32::try_from(delta >> 27).expect("59 bits");
            self.data.extend(high.to_le_bytes());
            delta = 0;
        }
        self.now = time;
        record.resize(record.len().next_multiple_of(4), 0);
        let words = u32::try_from(record.len() / 4).expect("a short record");
        if words <= 28 {
            self.word(words, delta);
        } else {
            self.word(0, delta);
            self.data.extend((words * 4 + 4).to_le_bytes());
        }
        self.data.extend(record);
        self
    }

    /// An absolute time stamp.
    pub fn stamp(mut self, time: u64) -> Self {
        self.word(31, time & ((1 << 27) - 1));
        let high = u32::try_from(time >> 27).expect("59 bits");
        self.data.extend(high.to_le_bytes());
        self.now = time;
        self
    }

    /// A record that was discarded, `bytes` long after its first word.
    pub fn discarded(mut self, bytes: u32) -> Self {
        self.word(29, 1);
        self.now += 1;
        self.data.extend(bytes.to_le_bytes());
        self.data.extend(vec![0xff; bytes as usize - 4]);
        self
    }

    pub fn bytes(mut self) -> Vec<u8> {
        let length = self.data.len() as u64;
        let mut page = self.time.to_le_bytes().to_vec();
        page.extend((length | self.flags).to_le_bytes());
        if let Some(count) = self.stored {
            self.data.extend(count.to_le_bytes());
        } else if self.data.len() + 20 < PAGE {
            // The end of a page that isn't full.
            self.data.extend(29_u32.to_le_bytes());
        }
        page.extend(self.data);
        page.resize(PAGE, 0);
        page
    }
}

fn sized(text: &str) -> Vec<u8> {
    let mut out = (text.len() as u64).to_le_bytes().to_vec();
    out.extend(text.as_bytes());
    out
}

fn short_sized(text: &str) -> Vec<u8> {
    let len = u32::try_from(text.len()).expect("short");
    [&len.to_le_bytes(), text.as_bytes()].concat()
}

const HEADER_PAGE: &str = "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
    \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
    \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
    \tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n";

fn header_info() -> Vec<u8> {
    let page = sized(HEADER_PAGE);
    [&b"header_page\0"[..], &page, b"header_event\0", &sized("")].concat()
}

fn tracer_formats(kernel: Kernel) -> Vec<u8> {
    let [entry, exit] = kernel.formats();
    [&2_u32.to_le_bytes()[..], &sized(&entry), &sized(&exit)].concat()
}

fn event_formats() -> Vec<u8> {
    let one = 1_u32.to_le_bytes();
    [&one[..], b"sched\0", &one, &sized(&switch_format())].concat()
}

const COMMS: &str = "7 redis server\n8 bash\n";

fn magic(version: &str) -> Vec<u8> {
    let mut out = b"\x17\x08\x44tracing".to_vec();
    out.extend(version.as_bytes());
    out.extend([0, 0, 8]);
    out.extend(u32::try_from(PAGE).expect("4096").to_le_bytes());
    out
}

/// A file of version 6 with these pages for each CPU.
pub fn version_6(kernel: Kernel, cpus: &[Vec<u8>]) -> Vec<u8> {
    let mut out = magic("6");
    out.extend(header_info());
    out.extend(tracer_formats(kernel));
    out.extend(event_formats());
    out.extend(short_sized(KALLSYMS));
    out.extend(short_sized(""));
    out.extend(sized(COMMS));
    out.extend(u32::try_from(cpus.len()).expect("few").to_le_bytes());
    out.extend(b"options  \0");
    out.extend(option(4, b"[local] global mono\0"));
    out.extend([0, 0]);
    out.extend(b"flyrecord\0");
    let mut offset = (out.len() + 16 * cpus.len()).next_multiple_of(PAGE);
    let data = offset;
    for pages in cpus {
        out.extend((offset as u64).to_le_bytes());
        out.extend((pages.len() as u64).to_le_bytes());
        offset += pages.len();
    }
    out.resize(data, 0);
    out.extend(cpus.concat());
    out
}

fn option(id: u16, value: &[u8]) -> Vec<u8> {
    let len = u32::try_from(value.len()).expect("short");
    [&id.to_le_bytes()[..], &len.to_le_bytes(), value].concat()
}

fn packed(packing: &str, bytes: &[u8]) -> Vec<u8> {
    let body = match packing {
        "zstd" => zstd::encode_all(bytes, 3).expect("zstd"),
        "zlib" => {
            let level = flate2::Compression::default();
            let mut out = flate2::write::ZlibEncoder::new(Vec::new(), level);
            out.write_all(bytes).expect("zlib");
            out.finish().expect("zlib")
        }
        _ => return bytes.to_vec(),
    };
    let sizes = [body.len(), bytes.len()].map(|len| u32::try_from(len).expect("short"));
    [&sizes[0].to_le_bytes()[..], &sizes[1].to_le_bytes(), &body].concat()
}

fn section(id: u16, packing: &str, bytes: &[u8]) -> Vec<u8> {
    let flags = u16::from(packing != "none");
    let body = packed(packing, bytes);
    let mut out = [id.to_le_bytes(), flags.to_le_bytes()].concat();
    out.extend(0_u32.to_le_bytes());
    out.extend((body.len() as u64).to_le_bytes());
    out.extend(body);
    out
}

/// A file of version 7, packed by `none`, `zlib` or `zstd`, a chunk per page.
pub fn version_7(kernel: Kernel, packing: &str, cpus: &[Vec<u8>]) -> Vec<u8> {
    let mut out = magic("7");
    out.extend(packing.as_bytes());
    out.extend(b"\x001\0");
    let place_of_options = out.len();
    out.extend([0; 8]);
    let mut options = Vec::new();
    let sections = [
        (16, header_info()),
        (17, tracer_formats(kernel)),
        (18, event_formats()),
        (19, short_sized(KALLSYMS)),
        (21, sized(COMMS)),
    ];
    for (id, body) in sections {
        options.extend(option(id, &(out.len() as u64).to_le_bytes()));
        out.extend(section(id, packing, &body));
    }
    let mut buffer = (out.len() as u64).to_le_bytes().to_vec();
    buffer.extend(b"\0local\0");
    buffer.extend(u32::try_from(PAGE).expect("4096").to_le_bytes());
    buffer.extend(u32::try_from(cpus.len()).expect("few").to_le_bytes());
    out.extend([3, 0, u8::from(packing != "none"), 0, 0, 0, 0, 0]);
    out.extend([0; 8]);
    for (cpu, pages) in (0_u32..).zip(cpus) {
        let chunks: Vec<Vec<u8>> = pages
            .chunks(PAGE)
            .map(|page| packed(packing, page))
            .collect();
        let body = chunks.concat();
        buffer.extend(cpu.to_le_bytes());
        buffer.extend((out.len() as u64).to_le_bytes());
        buffer.extend((body.len() as u64).to_le_bytes());
        if packing != "none" {
            out.extend(u32::try_from(chunks.len()).expect("few").to_le_bytes());
        }
        out.extend(body);
    }
    options.extend(option(3, &buffer));
    options.extend(option(0, &0_u64.to_le_bytes()));
    let place = (out.len() as u64).to_le_bytes();
    out[place_of_options..place_of_options + 8].copy_from_slice(&place);
    out.extend(section(0, packing, &options));
    out
}

pub const MS: u64 = 1_000_000;

/// Two CPUs. On the first a fault of task 7 sleeps for 300 ms and continues on the second, with a
/// leaf in a module; then a fault of task 8 with a gap in it, and a complete one.
pub fn cpus(kernel: Kernel) -> Vec<Vec<u8>> {
    let start = 10_000 * MS;
    let first = Page::at(start)
        .record(start, kernel.entry(7, FAULT, 0))
        .discarded(12)
        .record(start + 1000, kernel.entry(7, SCHEDULE, 1))
        .record(start + 2000, switch(7, 2, 8))
        .stamp(start + 400 * MS)
        .record(start + 400 * MS, kernel.entry(8, FAULT, 0));
    let after_gap = start + 500 * MS;
    let second = Page::at(after_gap)
        .missed(Some(77))
        .record(after_gap, kernel.exit(8, FAULT, 0, (0, 1)))
        .record(after_gap + 5, kernel.entry(8, FAULT, 0))
        .record(after_gap + 900, kernel.exit(8, FAULT, 0, (100, 990)));
    let third = Page::at(after_gap + MS).missed(None);
    let other = Page::at(start + 5000)
        .record(start + 300 * MS, switch(0, 0, 7))
        .record(
            start + 300 * MS + 100,
            kernel.exit(7, SCHEDULE, 1, (1, 1 + 300 * MS)),
        )
        .record(start + 300 * MS + 200, kernel.entry(7, EXT4 + 8, 1))
        .record(
            start + 300 * MS + 300,
            kernel.exit(7, EXT4 + 8, 1, (20, 70)),
        )
        .record(
            start + 300 * MS + 400,
            kernel.exit(7, FAULT, 0, (0, 301 * MS)),
        )
        .record(start + 301 * MS, vec![0xaa; 400]);
    vec![
        [first.bytes(), second.bytes(), third.bytes()].concat(),
        other.bytes(),
    ]
}

/// A file of each kernel in each version and packing, with its description.
pub fn files() -> Vec<(Kernel, String, Vec<u8>)> {
    let kernels = [Kernel::Old, Kernel::Middle, Kernel::New];
    let of = |kernel: Kernel| {
        let cpus = cpus(kernel);
        let six = (kernel, "6".to_owned(), version_6(kernel, &cpus));
        let seven = ["none", "zlib", "zstd"].map(|packing| {
            let file = version_7(kernel, packing, &cpus);
            (kernel, format!("7, {packing}"), file)
        });
        seven.into_iter().chain([six])
    };
    kernels.into_iter().flat_map(of).collect()
}
