//! perf itself opens what [`Writer`] writes: same counts, same names, no warnings.
//!
//! Needs the `perf` program; without it the tests print a message and pass.

#[macro_use]
#[path = "../../../tests/skipped.rs"]
mod skipped;

use pagewise_formats::perf_data::synthesise::{self, MapsLine, SampleId};
use pagewise_formats::perf_data::{
    BuildId, Features, SourceAttr, TracingData, Writer, sample_type,
};
use pagewise_model::recording::Sidecar;
use std::io::BufWriter;
use std::path::Path;
use std::process::{Command, Output};

const SAMPLE_TYPE: u64 = sample_type::IDENTIFIER
    | sample_type::IP
    | sample_type::TID
    | sample_type::TIME
    | sample_type::ADDR
    | sample_type::PERIOD;
const FAULTS_ID: u64 = 71;
const BRK_ID: u64 = 72;
/// Flag bits of `perf_event_attr`: mmap, comm, task, sample_id_all, mmap2.
const FLAGS: u64 = (1 << 8) | (1 << 9) | (1 << 13) | (1 << 18) | (1 << 23);

fn perf() -> Option<Command> {
    let found = Command::new("perf").arg("--version").output().is_ok();
    if !found {
        skipped!("perf is not installed, so nothing was compared with it");
    }
    found.then(|| Command::new("perf"))
}

fn attr(kind: u32, config: u64, extra_sample_type: u64) -> Vec<u8> {
    let mut attr = vec![0; 136];
    attr[..4].copy_from_slice(&kind.to_le_bytes());
    attr[4..8].copy_from_slice(&136_u32.to_le_bytes());
    attr[8..16].copy_from_slice(&config.to_le_bytes());
    attr[16..24].copy_from_slice(&1_u64.to_le_bytes());
    attr[24..32].copy_from_slice(&(SAMPLE_TYPE | extra_sample_type).to_le_bytes());
    attr[40..48].copy_from_slice(&FLAGS.to_le_bytes());
    attr
}

fn sample(id: u64, time: u64, address: u64, raw: Option<&[u8]>) -> Vec<u8> {
    let mut body = Vec::new();
    for word in [id, 0x40_1000] {
        body.extend_from_slice(&word.to_le_bytes());
    }
    for id in [500_u32, 501] {
        body.extend_from_slice(&id.to_le_bytes());
    }
    for word in [time, address, 1] {
        body.extend_from_slice(&word.to_le_bytes());
    }
    if let Some(raw) = raw {
        body.extend_from_slice(&u32::try_from(raw.len()).expect("small").to_le_bytes());
        body.extend_from_slice(raw);
    }
    let mut out = Vec::new();
    out.extend_from_slice(&9_u32.to_le_bytes());
    out.extend_from_slice(&2_u16.to_le_bytes());
    out.extend_from_slice(&u16::try_from(8 + body.len()).expect("small").to_le_bytes());
    out.extend_from_slice(&body);
    out
}

fn brk_format() -> TracingData {
    let format = "name: sys_enter_brk\nID: 900\nformat:\n\
        \tfield:unsigned short common_type;\toffset:0;\tsize:2;\tsigned:0;\n\
        \tfield:unsigned char common_flags;\toffset:2;\tsize:1;\tsigned:0;\n\
        \tfield:unsigned char common_preempt_count;\toffset:3;\tsize:1;\tsigned:0;\n\
        \tfield:int common_pid;\toffset:4;\tsize:4;\tsigned:1;\n\n\
        \tfield:int __syscall_nr;\toffset:8;\tsize:4;\tsigned:1;\n\
        \tfield:unsigned long brk;\toffset:16;\tsize:8;\tsigned:0;\n\n\
        print fmt: \"brk: 0x%08lx\", ((unsigned long)(REC->brk))\n";
    TracingData {
        page_size: 4096,
        header_page: "\tfield: u64 timestamp;\toffset:0;\tsize:8;\tsigned:0;\n\
            \tfield: local_t commit;\toffset:8;\tsize:8;\tsigned:1;\n\
            \tfield: int overwrite;\toffset:8;\tsize:1;\tsigned:1;\n\
            \tfield: char data;\toffset:16;\tsize:4080;\tsigned:1;\n"
            .into(),
        header_event: "# compressed entry header\n".into(),
        events: vec![("syscalls".into(), "sys_enter_brk".into(), format.into())],
        ..TracingData::default()
    }
}

fn sidecar() -> Sidecar {
    let text = include_str!("fixtures/sidecar.json");
    serde_json::from_str(text).expect("the fixture is a sidecar")
}

/// 100 faults and 5 calls of brk of one process, with mapping, name and fork.
fn write_recording(path: &Path) {
    let sources = [
        SourceAttr {
            name: "page-faults".into(),
            attr: attr(1, 2, 0),
            ids: vec![FAULTS_ID],
        },
        SourceAttr {
            name: "syscalls:sys_enter_brk".into(),
            attr: attr(2, 900, sample_type::RAW),
            ids: vec![BRK_ID],
        },
    ];
    let file = BufWriter::new(std::fs::File::create(path).expect("temporary file"));
    let known = Features {
        version: "pagewise 0.1.0".into(),
        cmdline: vec!["pagewise".into(), "record".into()],
        ..Features::default()
    };
    let mut writer = Writer::with_preface(file, &sources, &known).expect("header");
    let of = SampleId {
        sample_type: SAMPLE_TYPE,
        pid: 500,
        tid: 501,
        ..SampleId::default()
    };
    let map = MapsLine {
        start: 0x40_0000,
        length: 0x2000,
        file_offset: 0,
        major: 8,
        minor: 1,
        inode: 4711,
        protection: 5,
        flags: 2,
        path: b"/nonexistent/program",
    };
    let mut data = synthesise::fork(1, 1, &of);
    data.extend(synthesise::comm(b"program", false, &of));
    data.extend(synthesise::mmap2(&map, &of).expect("short path"));
    data.extend(
        synthesise::kernel_mmap(0xffff_ffff_8100_0000, 0xffff_ffff_8200_0000, &of)
            .expect("address"),
    );
    for n in 0..100 {
        data.extend(sample(
            FAULTS_ID,
            1_000_000 + n * 10,
            0x7000_0000 + n * 4096,
            None,
        ));
    }
    writer.records(&data).expect("records");
    writer.finished_round().expect("round");
    for n in 0..5_u64 {
        let mut raw = vec![0; 28];
        raw[..2].copy_from_slice(&900_u16.to_le_bytes());
        raw[16..24].copy_from_slice(&(0x1000 * n).to_le_bytes());
        let record = sample(BRK_ID, 2_000_000 + n * 10, 0, Some(&raw));
        writer.records(&record).expect("record");
    }
    let features = Features {
        hostname: "host.example".into(),
        os_release: "6.18.0".into(),
        arch: "x86_64".into(),
        version: "pagewise".into(),
        cpus_online: 2,
        cpus_available: 4,
        cpu_desc: "A processor".into(),
        total_mem_kib: 123_456,
        cmdline: vec!["pagewise".into(), "record".into()],
        build_ids: vec![BuildId {
            pid: -1,
            kernel: false,
            id: vec![0xab; 20],
            path: "/nonexistent/program".into(),
        }],
        tracing_data: Some(brk_format()),
        sample_time: Some((1_000_000, 2_000_040)),
        sidecar: Some(sidecar()),
    };
    writer.finish(&features).expect("features");
}

fn run(mut perf: Command, arguments: &[&str], file: &Path) -> Output {
    let output = perf.args(arguments).arg("-i").arg(file).output();
    let output = output.expect("perf was found before");
    assert!(output.status.success(), "perf {arguments:?}: {output:?}");
    output
}

fn stdout(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned()
}

fn stderr(output: &Output) -> String {
    String::from_utf8_lossy(&output.stderr).into_owned()
}

#[test]
fn perf_reads_events_names_and_features() {
    let Some(_) = perf() else { return };
    let directory = tempfile::tempdir().expect("temporary directory");
    let path = directory.path().join("perf.data");
    write_recording(&path);

    let list = run(Command::new("perf"), &["evlist"], &path);
    let names: Vec<String> = stdout(&list).lines().take(2).map(str::to_owned).collect();
    assert_eq!(names, ["page-faults", "syscalls:sys_enter_brk"]);
    assert_eq!(stderr(&list), "");

    let script = run(
        Command::new("perf"),
        &["script", "-F", "comm,tid,time,event,trace"],
        &path,
    );
    let text = stdout(&script);
    assert_eq!(text.matches("page-faults").count(), 100, "{text}");
    assert_eq!(text.matches("syscalls:sys_enter_brk").count(), 5, "{text}");
    assert!(text.contains("program   501"), "{text}");
    assert!(text.contains("brk: 0x00004000"), "{text}");
    assert!(!stderr(&script).contains("unknown feature"), "{script:?}");

    let report = run(Command::new("perf"), &["report", "--stdio"], &path);
    assert!(
        stdout(&report).contains("100  of event 'page-faults'"),
        "{report:?}"
    );

    let header = run(Command::new("perf"), &["report", "--header-only"], &path);
    let text = stdout(&header);
    assert_eq!(stderr(&header), "");
    assert!(!text.contains("unknown feature"), "{text}");
    for fact in [
        "host.example",
        "6.18.0",
        "nrcpus online : 2",
        "nrcpus avail : 4",
        "123456 kB",
    ] {
        assert!(text.contains(fact), "{fact} is missing in {text}");
    }
    let ids = run(Command::new("perf"), &["buildid-list"], &path);
    assert!(stdout(&ids).contains(&"ab".repeat(20)), "{ids:?}");
}
