//! Findings to draw and to test with: a builder, no recording.
//!
//! [`churning`] is modelled on `python3 -c "… zlib.compress …"` under glibc 2.36, whose counts and
//! ratios are measured (760,841 → 951 faults, system share 76 → 2 %, ×7.9 [7.2, 8.6]); values not
//! measured there are drawn from a seeded generator. Every field is filled, so that the schema test
//! covers all of them. [`bare`] is the opposite: every optional field absent.
#![allow(
    dead_code,
    unused_imports,
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "shared by several test targets that each use a part; small made-up numbers"
)]

mod picture;
mod profile;
mod runs;

pub use profile::{names, profile};

use pagewise_model::account::{
    Account, KernelEntry, KernelWork, ProcessTime, TaskSum, Tasks, ThreadTime, TimePart,
};
use pagewise_model::advice::{Advice, Risk, Setting, Settings};
use pagewise_model::allocator::{Allocator, AllocatorKind};
use pagewise_model::answer::{Document, Subject};
use pagewise_model::delays::{Delay, Delays};
use pagewise_model::findings::{
    Cause, Churn, ChurnRoute, Diagnosis, FaultMap, FaultTime, FileReads, Findings, FlameNode,
    MmCallCost, RegionKind, Run, Severity, Share, ThreadShare,
};
use pagewise_model::histogram::Histogram;
use pagewise_model::host::HostSnapshot;
use pagewise_model::kernel_threads::KernelThread;
use pagewise_model::loss::{LossKind, Losses};
use pagewise_model::numa::{MemoryNode, MemoryNodes, OnNode, ProcessOnNodes};
use pagewise_model::recording::{Collection, HugePageUse};
use pagewise_model::run::{Ending, RunCost};
use pagewise_model::timeline::Timeline;
use pagewise_model::units::{Bytes, Estimate, Nanos};
use std::collections::BTreeMap;

/// A small linear congruential generator (Knuth's MMIX constants), so that samples repeat.
pub struct Noise(pub u64);

impl Noise {
    /// Uniform between 0 and 1.
    pub fn unit(&mut self) -> f64 {
        self.0 = self
            .0
            .wrapping_mul(6_364_136_223_846_793_005)
            .wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 11) as f64 / (1_u64 << 53) as f64
    }

    /// Mean 0 and about unit deviation: the centred sum of twelve uniform draws.
    pub fn normal(&mut self) -> f64 {
        (0..12).map(|_| self.unit()).sum::<f64>() - 6.0
    }
}

pub fn estimate(value: f64, low: f64, high: f64) -> Estimate {
    Estimate { value, low, high }
}

fn strings(items: &[&str]) -> Vec<String> {
    items.iter().map(|&item| item.to_owned()).collect()
}

/// A program that suffers from heap churn, with a proved cure.
pub fn churning() -> Findings {
    let run = Run {
        started_unix_ms: 1_763_713_800_000,
        cost: runs::baseline_cost(),
        ending: Ending::Exited(0),
        allocators: allocators(),
        account: account(),
        file_reads: vec![FileReads {
            path: "/srv/index.bin".to_owned(),
            is_code: false,
            mapped: Bytes(600 << 20),
            reads: 105,
            in_order: Some(0.1),
        }],
        huge_pages: Some(HugePageUse {
            held: Bytes(64 << 20),
            zeros: Some(0.1),
        }),
        by_cause: by_cause(),
        by_region: by_region(),
        by_thread: by_thread(),
        samples: 7_612,
        time: fault_time(),
        churn: churn(),
        sites: picture::sites(),
        flame: picture::flame(),
        fault_map: picture::fault_map(),
        timeline: picture::timeline(),
        kernel_threads: vec![KernelThread {
            name: "khugepaged".into(),
            cpu: Nanos(12_000_000),
        }],
        memory: None,
        numa: Some(MemoryNodes {
            nodes: vec![MemoryNode {
                id: 0,
                cpus: vec![0, 1],
                memory: Some(Bytes(16 << 30)),
                counters: BTreeMap::from([("numa_miss".into(), 3)]),
            }],
            balancing: BTreeMap::from([("numa_hint_faults".into(), 12)]),
            policy_can_be_set: true,
            processes: vec![ProcessOnNodes {
                pid: 100,
                name: "churn".into(),
                policy: "default".into(),
                nodes: vec![OnNode {
                    node: 0,
                    memory: Bytes(8 << 20),
                    files: Bytes(1 << 20),
                    time: Some(Estimate::exact(1.0)),
                }],
                share_of_cpu: Some(1.0),
                misplaced: Some(Estimate::exact(0.0)),
            }],
        }),
        collection: Collection {
            whole_machine: false,
            attached: false,
            fault_windows: Vec::new(),
            mode: "sampled".into(),
            latency_windows: vec![
                (Nanos(40_000_000), Nanos(42_000_000)),
                (Nanos(940_000_000), Nanos(942_000_000)),
                (Nanos(1_840_000_000), Nanos(1_842_000_000)),
            ],
            call_windows: vec![(Nanos(12_000_000), Nanos(1_900_000_000))],
            mapping_windows: vec![(Nanos(12_000_000), Nanos(1_900_000_000))],
            own_cost: Nanos(31_000_000),
            notes: strings(&[
                "System calls on memory could not be traced without privileges: where memory is \
                 returned is inferred from mappings. Run as root, or set \
                 kernel.perf_event_paranoid to -1, to see the calls.",
            ]),
        },
        profile: None,
    };
    let verdict = "Memory is returned to the kernel, then requested again 40,000 times: page \
                   faults cost 67 % of the CPU time, and 99.5 % of them are avoidable. Two \
                   settings of the C library make this run 7.9 times as fast.";
    Document {
        host: host(),
        diagnoses: diagnoses(),
        advice: advice(),
        proof: Some(runs::proof()),
        losses: losses(),
        ..Document::new(run)
            .about(Subject {
                command: strings(&[
                    "python3",
                    "-c",
                    "import zlib,os\nb=os.urandom(2048)\nfor _ in range(40000): zlib.compress(b)",
                ]),
                pids: vec![48_211],
            })
            .with_verdict(verdict)
    }
}

/// A program without potential gains.
pub fn healthy() -> Findings {
    let mut findings = bare();
    findings.subject.command = strings(&["gcc", "-O2", "-c", "parser.c"]);
    findings.cost = RunCost {
        wall: Nanos(1_913_000_000),
        user: Nanos(1_790_000_000),
        system: Nanos(96_000_000),
        minor_faults: 21_402,
        max_rss: Bytes(81 << 20),
        ..RunCost::default()
    };
    findings.ending = Ending::Exited(0);
    findings.verdict = "Nothing to gain here: page faults cost 2.3 % of the CPU time, and almost \
                        all of them touch memory for the first time."
        .into();
    findings.diagnoses = vec![Diagnosis {
        headline: "Memory management costs this program next to nothing".into(),
        explanation: "Each page is touched for the first time once and then kept.".into(),
        evidence: strings(&["21,402 faults on 20,911 distinct pages"]),
        share_of_cpu: Some(estimate(0.023, 0.018, 0.029)),
        ..Diagnosis::named("healthy", Severity::Healthy)
    }];
    findings.by_cause = vec![share(Cause::FirstTouch, 21_402.0, 300.0, None)];
    findings
}

/// Every optional field absent.
pub fn bare() -> Findings {
    Document::new(Run::default()).about(Subject::of_processes(vec![1]))
}

/// [`churning`] with names that try to break out of the output format.
pub fn hostile() -> Findings {
    let mut findings = churning();
    let evil = "</script><script>window.pwned=1</script><img src=x onerror=window.pwned=1>";
    let control = "esc\u{1b}[31mred\u{7}\u{202e}txt.exe\u{0}";
    findings.subject.command = strings(&[evil, control]);
    findings.flame.children[0].name = evil.into();
    findings.flame.children[0].module = control.into();
    findings.sites[0].culprit = evil.into();
    findings.sites[0].stack[0] = control.into();
    findings.by_thread[0].comm = evil.into();
    findings.host.hostname = evil.into();
    findings.collection.notes.push("<!-- <script> ".into());
    findings
}

/// As much as an analysis of ten million faults retains: 60,000 frames, a full fault map, hours of
/// timeline, a thousand threads.
pub fn large() -> Findings {
    let mut findings = churning();
    picture::enlarge(&mut findings);
    findings.by_thread = (0..1_000)
        .map(|tid| ThreadShare {
            pid: 48_211,
            tid: 48_211 + tid,
            comm: format!("worker-{tid}"),
            faults: f64::from(10_000 - tid),
        })
        .collect();
    findings
}

fn diagnoses() -> Vec<Diagnosis> {
    vec![
        Diagnosis {
            headline: "The C library gives memory back after each call and takes it again at once"
                .into(),
            explanation: "Each zlib.compress() allocates 268 KB and frees it. glibc then returns \
                          the top of the heap to the kernel; the next call asks for it again, and \
                          the kernel must hand out and zero every page anew."
                .into(),
            evidence: strings(&[
                "760,841 page faults touched only 834 distinct pages",
                "756,912 faults (99.5 %) hit pages that the heap had held before and returned",
                "System time is 76 % of the CPU time; without faults it would be about 9 %",
                "The heap shrank and grew again 40,012 times in 2.31 s",
            ]),
            share_of_cpu: Some(estimate(0.672, 0.621, 0.718)),
            ..Diagnosis::named("churn.brk", Severity::Severe)
        },
        Diagnosis {
            headline: "Starting Python maps and touches 1,940 pages of code".into(),
            explanation: "This happens once at the start and is normal.".into(),
            evidence: strings(&["1,940 faults on file pages, all in the first 30 ms"]),
            share_of_cpu: Some(estimate(0.004, 0.003, 0.006)),
            share_of_elapsed: Some(estimate(0.031, 0.012, 0.060)),
            ..Diagnosis::named("file.minor", Severity::Note)
        },
    ]
}

fn advice() -> Vec<Advice> {
    vec![
        Advice {
            rule: "glibc.both_thresholds".into(),
            cures: vec![],
            headline: "Tell glibc to keep freed memory instead of returning it".into(),
            reason: "With both thresholds raised, the 268 KB that each call frees stays in the \
                     heap, and 99.5 % of the faults vanish. Raising only one of them would switch \
                     off glibc's own adaptation and could make the program slower."
                .into(),
            settings: Settings(vec![
                Setting::GlibcTunable {
                    name: "glibc.malloc.trim_threshold".into(),
                    value: "1048576".into(),
                },
                Setting::GlibcTunable {
                    name: "glibc.malloc.mmap_threshold".into(),
                    value: "33554432".into(),
                },
            ]),
            manual: None,
            predicted_speedup: estimate(7.1, 5.2, 8.8),
            faults_avoided: 0.995,
            rss_price: Bytes(1 << 20),
            risk: Risk::Low,
            caveat: Some("Up to 1 MiB that was returned between calls now stays in use.".into()),
        },
        Advice {
            rule: "jemalloc.no_decay".into(),
            cures: vec![],
            headline: "Replace the allocator by jemalloc that never returns memory".into(),
            reason: "jemalloc keeps freed pages when decay is off.".into(),
            settings: Settings(vec![
                Setting::Preload {
                    path: "/usr/lib/x86_64-linux-gnu/libjemalloc.so.2".into(),
                },
                Setting::Env {
                    name: "MALLOC_CONF".into(),
                    value: "dirty_decay_ms:-1,muzzy_decay_ms:-1".into(),
                },
            ]),
            manual: Some("Install the package libjemalloc2 first.".into()),
            predicted_speedup: estimate(6.4, 4.1, 8.3),
            faults_avoided: 0.992,
            rss_price: Bytes(6 << 20),
            risk: Risk::Medium,
            caveat: None,
        },
    ]
}

fn account() -> Account {
    let fault = KernelEntry {
        id: "fault".into(),
        label: "page faults".into(),
        time: estimate(1.54e9, 1.42e9, 1.65e9),
        functions: vec!["clear_page_rep".into()],
    };
    let heap = KernelEntry {
        id: "call.map".into(),
        label: "mapping and unmapping memory (brk)".into(),
        time: estimate(2e8, 1.6e8, 2.5e8),
        functions: vec!["unmap_page_range".into()],
    };
    let work = KernelWork {
        id: "anonymous".into(),
        time: estimate(1.4e9, 1.3e9, 1.5e9),
        in_faults: estimate(1.4e9, 1.3e9, 1.5e9),
    };
    Account {
        samples: 296,
        kernel: estimate(1.74e9, 1.64e9, 1.83e9),
        entries: vec![fault, heap],
        work: vec![work],
        faults: vec![
            TimePart::plain("zeroing", "zeroing pages", estimate(1.2e9, 1.1e9, 1.3e9)),
            TimePart::plain(
                "handling",
                "handling the fault",
                estimate(3.4e8, 1.2e8, 5.5e8),
            ),
        ],
        unexplained: estimate(0.0, 0.0, 1e7),
        cpu: vec![
            TimePart::plain("fault", "page faults", estimate(1.54e9, 1.42e9, 1.65e9)),
            TimePart {
                places: vec!["zlib_compress".into()],
                ..TimePart::plain(
                    "own",
                    "the program's own code",
                    estimate(4.55e8, 3.3e8, 5.9e8),
                )
            },
            TimePart::plain(
                "call.map",
                "mapping and unmapping memory (brk)",
                estimate(2e8, 1.6e8, 2.5e8),
            ),
            TimePart::plain(
                "allocator",
                "the memory allocator's code",
                estimate(9e7, 6e7, 1.3e8),
            ),
        ],
        delays: Some(delays()),
        tasks: Some(tasks()),
        elapsed: vec![
            elapsed("cpu", "on a CPU", None, estimate(2.258e9, 2.16e9, 2.29e9)),
            elapsed(
                "disk",
                "waiting for a disk",
                Some("io_schedule"),
                estimate(5.4e7, 2e7, 1.5e8),
            ),
        ],
    }
}

/// A shell that waits for a program with six threads, one of which computes.
fn tasks() -> Tasks {
    let sum = |threads, parts: &[(&str, &str, f64)]| {
        let parts = parts.iter().map(|&(id, label, nanos)| TimePart {
            places: match id {
                "children" => vec!["do_wait".into()],
                "locks" => vec!["futex_do_wait".into()],
                _ => Vec::new(),
            },
            ..TimePart::plain(id, label, estimate(nanos, nanos * 0.9, nanos * 1.1))
        });
        let parts: Vec<TimePart> = parts.collect();
        let lifetime = parts.iter().map(|part| part.time.value).sum::<f64>();
        TaskSum {
            threads,
            lifetime: Nanos::from_secs_f64(lifetime * 1e-9),
            parts,
        }
    };
    let busy = sum(
        1,
        &[
            ("cpu", "on a CPU", 2.2e9),
            ("ready", "ready to run, waiting for a CPU", 5e7),
            ("unexplained", "unexplained", 2e7),
        ],
    );
    let idle = sum(
        1,
        &[
            ("locks", "waiting for locks between threads", 2e9),
            ("cpu", "on a CPU", 1e6),
        ],
    );
    let thread = |tid, name: &str, all: &TaskSum| ThreadTime {
        tid,
        name: name.into(),
        began: Nanos(4_000_000),
        all: all.clone(),
        delays: None,
    };
    let mut threads = vec![thread(4243, "python3", &busy)];
    threads.extend((4244..4249).map(|tid| thread(tid, "pool", &idle)));
    let shell = sum(
        1,
        &[
            ("children", "waiting for child processes", 2.28e9),
            ("cpu", "on a CPU", 2e6),
        ],
    );
    Tasks {
        processes: vec![
            ProcessTime {
                pid: 4243,
                parent: 4242,
                name: "python3".into(),
                began: Nanos(4_000_000),
                lifetime: busy.lifetime,
                all: TaskSum::total(threads.iter().map(|one| &one.all)).expect("threads"),
                threads,
                others: None,
            },
            ProcessTime {
                pid: 4242,
                parent: 1,
                name: "sh".into(),
                began: Nanos(0),
                lifetime: shell.lifetime,
                threads: vec![thread(4242, "sh", &shell)],
                all: shell,
                others: None,
            },
        ],
        others: None,
        unseen: Some(sum(3, &[("unexplained", "unexplained", 9e6)])),
        elsewhere: Nanos(80_000_000),
    }
}

fn elapsed(id: &str, label: &str, place: Option<&str>, time: Estimate) -> TimePart {
    TimePart {
        id: id.into(),
        label: label.into(),
        time,
        places: place.into_iter().map(str::to_owned).collect(),
        shares: Vec::new(),
        who: place.map(|_| "python3".into()).into_iter().collect(),
        next: place.map(|_| "pagewise record -e off-cpu {who} shows more".into()),
    }
}

fn allocators() -> Vec<Allocator> {
    vec![
        Allocator {
            kind: AllocatorKind::Glibc,
            version: Some("2.36".into()),
            evidence: "/usr/lib/x86_64-linux-gnu/libc.so.6 is mapped".into(),
            settings: BTreeMap::new(),
            is_static: false,
            ..Default::default()
        },
        Allocator {
            kind: AllocatorKind::Cpython,
            version: None,
            evidence: "symbol _PyObject_Malloc in python3.11".into(),
            settings: [("PYTHONMALLOC".to_owned(), "pymalloc".to_owned())].into(),
            is_static: false,
            ..Default::default()
        },
    ]
}

fn share<K>(key: K, faults: f64, error: f64, time_ns: Option<u64>) -> Share<K> {
    Share {
        key,
        faults: estimate(faults, (faults - error).max(0.0), faults + error),
        time: time_ns.map(Nanos),
    }
}

fn by_cause() -> Vec<Share<Cause>> {
    vec![
        share(
            Cause::RefaultAfterBrk,
            756_912.0,
            1_900.0,
            Some(1_531_000_000),
        ),
        share(Cause::FileMinor, 1_940.0, 180.0, Some(2_100_000)),
        share(Cause::FirstTouch, 1_602.0, 160.0, Some(2_400_000)),
        share(Cause::WriteAfterRead, 241.0, 60.0, Some(600_000)),
        share(Cause::CopyOnWrite, 110.0, 41.0, Some(330_000)),
        share(Cause::StackGrowth, 33.0, 20.0, Some(41_000)),
        share(Cause::FileMajor, 3.0, 0.0, Some(180_000)),
    ]
}

fn by_region() -> Vec<Share<RegionKind>> {
    vec![
        share(RegionKind::Heap, 757_733.0, 1_950.0, Some(1_533_000_000)),
        share(RegionKind::FilePrivate, 2_294.0, 190.0, Some(3_200_000)),
        share(RegionKind::Anonymous, 781.0, 110.0, Some(1_200_000)),
        share(RegionKind::Stack, 33.0, 20.0, Some(41_000)),
    ]
}

fn by_thread() -> Vec<ThreadShare> {
    vec![
        ThreadShare {
            pid: 48_211,
            tid: 48_211,
            comm: "python3".into(),
            faults: 760_420.0,
        },
        ThreadShare {
            pid: 48_211,
            tid: 48_214,
            comm: "python3:gc".into(),
            faults: 421.0,
        },
    ]
}

/// Latencies around `middle` ns with a long tail, as faults have.
fn latencies(noise: &mut Noise, count: u32, middle: f64) -> Histogram {
    let mut histogram = Histogram::default();
    for _ in 0..count {
        let tail = if noise.unit() < 0.01 { 2.2 } else { 0.0 };
        histogram.record((middle * (0.28 * noise.normal() + tail).exp()) as u64);
    }
    histogram
}

fn fault_time() -> FaultTime {
    let mut noise = Noise(7);
    let by_cause = vec![
        (
            Cause::RefaultAfterBrk,
            latencies(&mut noise, 6_100, 1_350.0),
        ),
        (Cause::FirstTouch, latencies(&mut noise, 310, 1_480.0)),
        (Cause::FileMinor, latencies(&mut noise, 420, 690.0)),
        (Cause::CopyOnWrite, latencies(&mut noise, 90, 2_900.0)),
        (Cause::FileMajor, latencies(&mut noise, 3, 60_000.0)),
    ];
    let mut measured = Histogram::default();
    by_cause.iter().for_each(|(_, part)| measured.merge(part));
    FaultTime {
        measured: Some(measured),
        by_cause,
        total_ns: Some(estimate(1_537e6, 1_420e6, 1_642e6)),
        method: "measured".into(),
        share_of_cpu: Some(estimate(0.672, 0.621, 0.718)),
        share_of_wall: Some(estimate(0.665, 0.615, 0.711)),
        forks: 0,
        populate_requested: Bytes(0),
        spawned: 0,
        mm_calls: vec![
            MmCallCost {
                call: "brk".into(),
                calls: 80_031,
                bytes: Bytes(10_480_000_000),
                time: Some(Nanos(121_000_000)),
            },
            MmCallCost {
                call: "mmap".into(),
                calls: 412,
                bytes: Bytes(61_000_000),
                time: None,
            },
        ],
        lock_wait: Some(Nanos(420_000)),
        lock_waits: 17,
    }
}

fn churn() -> Churn {
    let mut released = Histogram::default();
    let mut noise = Noise(11);
    for _ in 0..4_000 {
        released.record(((33.0 + 34.0 * noise.unit()).floor() as u64) * 4096);
    }
    released.record_many(135_168, 36_012);
    Churn {
        refault_ratio: Some(estimate(0.9989, 0.9987, 0.9991)),
        faults: Some(estimate(756_912.0, 755_012.0, 758_812.0)),
        bytes: Bytes(756_912 * 4096),
        released_sizes: released.clone(),
        routes: vec![ChurnRoute {
            cause: Cause::RefaultAfterBrk,
            region: RegionKind::Heap,
            faults: 756_912.0,
            released_sizes: released,
        }],
        allocator_blocks: None,
        release_sites: vec![picture::site(
            "main;Py_RunMain;_PyEval_EvalFrameDefault;zlib_compress;deflateEnd;free;_int_free;systrim",
            39_800.0,
            "deflateEnd",
        )],
        regrow_sites: vec![picture::site(
            "main;Py_RunMain;_PyEval_EvalFrameDefault;zlib_compress;deflateInit2_;malloc;_int_malloc;sysmalloc",
            40_012.0,
            "deflateInit2_",
        )],
        refault_sites: vec![
            picture::site(
                "main;Py_RunMain;_PyEval_EvalFrameDefault;zlib_compress;deflateInit2_;deflateReset;memset",
                508_200.0,
                "deflateReset",
            ),
            picture::site(
                "main;Py_RunMain;_PyEval_EvalFrameDefault;zlib_compress;deflate;deflate_slow",
                248_712.0,
                "deflate_slow",
            ),
        ],
    }
}

fn losses() -> Losses {
    let mut losses = Losses::default();
    losses.add(LossKind::KernelFaultsInvisible, 1_204);
    losses.add(LossKind::UnpairedFault, 41);
    losses.add(LossKind::TimelineGap, 1);
    losses
}

fn host() -> HostSnapshot {
    let settings = [
        ("vm.swappiness", "60"),
        ("vm.overcommit_memory", "0"),
        ("thp.enabled", "always [madvise] never"),
        ("thp.defrag", "always defer defer+madvise [madvise] never"),
        ("mitigations.meltdown", "Not affected"),
        ("cgroup.memory.max", "max"),
        ("kernel.perf_event_paranoid", "2"),
    ];
    HostSnapshot {
        hostname: "build-03".into(),
        kernel: "6.18.1".into(),
        architecture: "x86_64".into(),
        cpu: "Intel(R) Xeon(R) Platinum 8488C".into(),
        cpus: 2,
        memory_bytes: 16_383_176_704,
        page_size: 4096,
        settings: settings
            .iter()
            .map(|&(name, value)| (name.to_owned(), value.to_owned()))
            .collect(),
        counters: [("ksm.pages_shared".to_owned(), "0".to_owned())].into(),
    }
}

fn delays() -> Delays {
    let delay = |count: u64, time: u64| {
        Some(Delay {
            count,
            time: Nanos(time),
        })
    };
    Delays {
        tasks: 3,
        ready: delay(120, 4_000_000),
        disk: delay(12, 5_160_000),
        swap: delay(0, 0),
        reclaim: delay(352, 21_600_000),
        thrashing: delay(5, 950_000),
        compaction: delay(1, 80_000),
        copying: delay(40, 160_000),
    }
}
