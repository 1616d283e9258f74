//! Makes the tables of a fleet from those of real recordings, for bench/fleet and tests.
//!
//! Usage: generate FROM TO [key=value …], where FROM has a folder per program, each written by
//! `pagewise report … --export parquet`. Keys and their defaults:
//!
//! ```text
//! hosts=1000        hosts, each with 100,000 samples a day on average
//! samples=100000    samples per host and day
//! days=1            days, from 2026-11-22 on
//! bad=20            hosts with a bad setting
//! compaction=0.12   more CPU time on these, in the kernel's compaction
//! regression=0.03   more CPU time in one function of the first program, on the last day of several
//! seed=1
//! ```
//!
//! What is real: functions, stacks and their weights, kinds of threads, findings and settings of the
//! programs. What is drawn: each host's role (which programs it runs, how much), kernel (of three),
//! builds (three of each program; a build is another build id for all its frames), how busy it is on
//! each day, and each single sample. Times are those of 144 recordings of ten seconds per day.

use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::compute::{cast, concat_batches};
use datafusion::arrow::datatypes::{DataType, Float64Type, Int64Type};
use datafusion::parquet::arrow::arrow_reader::ParquetRecordBatchReaderBuilder;
use pagewise_model::profile::{Frame, FrameKind};
use pagewise_report::exports::parquet::{Column, ParquetWriter, Value};
use pagewise_report::exports::tables::identity::{self, Identifier};
use pagewise_report::exports::tables::schema;
use pagewise_stats::Random;
use std::collections::{BTreeMap, HashMap};
use std::error::Error;
use std::fs::{self, File};
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::{env, thread};

type Fallible<T> = Result<T, Box<dyn Error + Send + Sync>>;

const KERNELS: [&str; 3] = ["5.14.0-503.el9", "6.1.0-28-amd64", "6.12.0-1-amd64"];
const ROLES: [&str; 4] = ["web", "db", "cache", "batch"];
const CPUS: [&str; 2] = ["Xeon Gold 6338", "EPYC 7763"];
/// Recordings of ten seconds per day.
const RECORDINGS: u64 = 144;
const RECORDED_NS: u64 = RECORDINGS * 10_000_000_000;
/// What a sample stands for.
const PERIOD_NS: u64 = 10_101_010;
const FIRST_DAY_MS: u64 = 1_795_305_600_000;
const DAY_MS: u64 = 86_400_000;

/// A recorded program.
struct Program {
    name: String,
    stacks: Vec<Stack>,
    frames: Vec<Frame>,
    settings: Vec<(String, String)>,
    findings: Vec<Finding>,
}

struct Stack {
    thread_kind: String,
    /// Outermost first.
    frames: Vec<usize>,
    weight: f64,
}

#[derive(Clone)]
struct Finding {
    id: String,
    severity: String,
    headline: String,
    share: f64,
    advice: Option<String>,
    advice_headline: Option<String>,
    speed_up: [Option<f64>; 3],
    price: Option<u64>,
}

/// What a fleet is made of.
struct Plan {
    programs: Vec<Program>,
    hosts: usize,
    samples: f64,
    days: u64,
    bad: usize,
    /// More CPU time on hosts with the bad setting.
    compaction: f64,
    regression: f64,
    seed: u64,
}

fn main() -> Fallible<()> {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let [from, to, keys @ ..] = &*arguments else {
        return Err("usage: generate FROM TO [key=value …]".into());
    };
    let mut settings: BTreeMap<&str, &str> = BTreeMap::new();
    for key in keys {
        let (key, value) = key.split_once('=').ok_or("settings are key=value")?;
        settings.insert(key, value);
    }
    let number = |key: &str, usual: f64| settings.get(key).map_or(Ok(usual), |value| value.parse());
    let plan = Plan {
        programs: programs(Path::new(from))?,
        hosts: number("hosts", 1000.0)? as usize,
        samples: number("samples", 100_000.0)?,
        days: number("days", 1.0)? as u64,
        bad: number("bad", 20.0)? as usize,
        compaction: number("compaction", 0.12)?,
        regression: number("regression", 0.03)?,
        seed: number("seed", 1.0)? as u64,
    };
    let next = AtomicUsize::new(0);
    let rows = AtomicUsize::new(0);
    let failed: Mutex<Option<Box<dyn Error + Send + Sync>>> = Mutex::new(None);
    thread::scope(|scope| {
        for _ in 0..thread::available_parallelism().map_or(1, |n| n.get()) {
            scope.spawn(|| {
                let mut builds = Builds::default();
                loop {
                    let host = next.fetch_add(1, Ordering::Relaxed);
                    if host >= plan.hosts {
                        return;
                    }
                    match plan.write_host(host, Path::new(to), &mut builds) {
                        Ok(count) => rows.fetch_add(count, Ordering::Relaxed),
                        Err(error) => {
                            *failed.lock().expect("no other thread panics") = Some(error);
                            return;
                        }
                    };
                }
            });
        }
    });
    match failed.into_inner()? {
        Some(error) => Err(error),
        None => {
            let bad = (0..plan.hosts)
                .map(|host| plan.host(host))
                .filter(|host| host.is_bad);
            let bad: String = bad.map(|host| host.name + "\n").collect();
            fs::write(Path::new(to).join("bad-hosts.txt"), bad)?;
            let rows = rows.into_inner();
            println!(
                "{} programs, {} hosts, {} days, {rows} rows of samples",
                plan.programs.len(),
                plan.hosts,
                plan.days
            );
            Ok(())
        }
    }
}

/// Stacks of a program in one build on one kernel, with their identifiers.
#[derive(Default)]
struct Builds(HashMap<(usize, usize, usize), Vec<Named>>);

/// A stack's identifier, and those of its frames.
type Named = (Identifier, Vec<Identifier>);

fn build_id(program: &str, build: usize) -> String {
    identity::hexadecimal(&identity::of_text(&format!("{program} {build}")))
}

fn id_of(frame: &Frame, program: &str, build: usize, kernel: usize) -> (Identifier, String) {
    let build_id = match frame.kind {
        FrameKind::Kernel => build_id(KERNELS[kernel], 0),
        _ => build_id(&format!("{program} {}", frame.module), build),
    };
    (identity::of_frame(frame, Some(&build_id), None), build_id)
}

impl Builds {
    fn modules(
        &mut self,
        plan: &Plan,
        program: usize,
        build: usize,
        kernel: usize,
    ) -> &[(Identifier, Vec<Identifier>)] {
        self.0.entry((program, build, kernel)).or_insert_with(|| {
            let program = &plan.programs[program];
            let stacks = program.stacks.iter().map(|stack| {
                let frames = stack.frames.iter();
                let frames =
                    frames.map(|&at| id_of(&program.frames[at], &program.name, build, kernel).0);
                let frames: Vec<Identifier> = frames.collect();
                (identity::of_stack(&frames), frames)
            });
            stacks.collect()
        })
    }
}

/// A host: what stays from day to day.
struct Host {
    name: String,
    role: usize,
    kernel: usize,
    cpu: usize,
    is_bad: bool,
    busy: f64,
    /// Build and share of each program.
    programs: Vec<(usize, usize, f64)>,
}

impl Plan {
    fn host(&self, number: usize) -> Host {
        let mut random = Random::seeded(self.seed << 32 | number as u64);
        let role = number % ROLES.len();
        // A role runs the programs whose number leaves the same remainder, or one that it shares.
        let runs = |program: &usize| program % ROLES.len() == role || program.is_multiple_of(5);
        let programs: Vec<usize> = (0..self.programs.len()).filter(runs).collect();
        let programs = programs.into_iter().map(|program| {
            let build = [0, 0, 0, 1, 1, 2][random.below(6)];
            let usual = 1.0 + (program * 7 % 5) as f64;
            (program, build, usual * varied(&mut random, 0.1))
        });
        let programs: Vec<_> = programs.collect();
        let whole: f64 = programs.iter().map(|program| program.2).sum();
        // Bad hosts are spread over all roles and kernels.
        let step = (self.hosts / self.bad.max(1)).max(1);
        Host {
            name: format!("{}-{number:05}", ROLES[role]),
            role,
            kernel: [0, 1, 1, 2, 2, 2][random.below(6)],
            cpu: random.below(CPUS.len()),
            is_bad: number % step == number / step % step && number / step < self.bad,
            busy: varied(&mut random, 0.1),
            programs: programs
                .into_iter()
                .map(|(p, b, share)| (p, b, share / whole))
                .collect(),
        }
    }

    /// Writes all days of a host, and returns the rows of its samples.
    fn write_host(&self, number: usize, to: &Path, builds: &mut Builds) -> Fallible<usize> {
        let host = self.host(number);
        let mut rows = 0;
        for day in 0..self.days {
            let date = format!("2026-11-{:02}", 22 + day);
            let folder = to.join(format!(
                "day={date}/role={}/host={}",
                ROLES[host.role], host.name
            ));
            fs::create_dir_all(&folder)?;
            rows += self.write_day(&host, number, day, &folder, builds)?;
        }
        Ok(rows)
    }

    fn write_day(
        &self,
        host: &Host,
        number: usize,
        day: u64,
        folder: &Path,
        builds: &mut Builds,
    ) -> Fallible<usize> {
        let seed = (self.seed << 32 | number as u64) ^ (day + 1) << 56;
        let mut random = Random::seeded(seed);
        let run_id = identity::of_text(&format!("{} {day} {}", host.name, self.seed));
        let mut stacks: Vec<(&Stack, Identifier, Vec<Identifier>)> = Vec::new();
        let mut weights: Vec<f64> = Vec::new();
        let busy = host.busy * varied(&mut random, 0.05);
        for &(program, build, share) in &host.programs {
            let share = share * varied(&mut random, 0.05);
            let ids = builds.modules(self, program, build, host.kernel);
            for (stack, (id, frames)) in self.programs[program].stacks.iter().zip(ids) {
                stacks.push((stack, *id, frames.clone()));
                weights.push(share * stack.weight);
            }
        }
        let usual: f64 = weights.iter().sum();
        weights
            .iter_mut()
            .for_each(|weight| *weight *= busy / usual);
        // The regression is in the heaviest stack of the program that all roles run.
        if self.days > 1 && day + 1 == self.days {
            let first = &self.programs[0].stacks;
            let heaviest =
                (0..first.len()).max_by(|&a, &b| first[a].weight.total_cmp(&first[b].weight));
            let at = stacks.iter().position(|(stack, ..)| {
                heaviest.is_some_and(|at| std::ptr::eq(*stack, &first[at]))
            });
            if let Some(at) = at {
                weights[at] += busy * self.regression;
            }
        }
        let compaction = compaction();
        let mut more: Vec<(Identifier, String, Frame)> = Vec::new();
        let planted = Stack {
            thread_kind: "kcompactd#".to_owned(),
            frames: Vec::new(),
            weight: 0.0,
        };
        if host.is_bad {
            more = compaction
                .into_iter()
                .map(|frame| {
                    let (id, build_id) = id_of(&frame, "", 0, host.kernel);
                    (id, build_id, frame)
                })
                .collect();
            let ids: Vec<Identifier> = more.iter().map(|frame| frame.0).collect();
            stacks.push((&planted, identity::of_stack(&ids), ids));
            weights.push(busy * self.compaction);
        }
        let whole: f64 = weights.iter().sum();
        let rows = self.write_samples(folder, &run_id, &stacks, &weights, whole, &mut random)?;
        let used = write_stacks(folder, stacks.iter().map(|(_, id, frames)| (*id, frames)))?;
        self.write_frames(folder, host, &used, &more)?;
        let cpu_ns = whole * self.samples * PERIOD_NS as f64;
        write_run(folder, &run_id, host, day, cpu_ns as u64)?;
        self.write_settings(folder, &run_id, host)?;
        self.write_findings(folder, &run_id, host, &mut random)?;
        Ok(rows)
    }

    fn write_samples(
        &self,
        folder: &Path,
        run_id: &Identifier,
        stacks: &[(&Stack, Identifier, Vec<Identifier>)],
        weights: &[f64],
        whole: f64,
        random: &mut Random,
    ) -> Fallible<usize> {
        let draws = Draws::new(weights);
        let samples = (self.samples * whole) as u64;
        let mut counts = vec![0_u64; stacks.len()];
        let mut rows = 0;
        table(folder, "samples", schema::SAMPLES, |file| {
            let mut drawn = 0;
            for recording in 0..RECORDINGS {
                let until = samples * (recording + 1) / RECORDINGS;
                while drawn < until {
                    counts[draws.draw(random)] += 1;
                    drawn += 1;
                }
                for (count, (stack, id, _)) in counts.iter_mut().zip(stacks) {
                    let count = std::mem::take(count);
                    if count > 0 {
                        rows += 1;
                        file.write(&[
                            Value::Bytes(run_id),
                            Value::Text("cpu-clock"),
                            Value::Text("ns"),
                            Value::Optional(Some(recording * 600_000)),
                            Value::Text(&stack.thread_kind),
                            Value::Bytes(id),
                            Value::Integer(count),
                            Value::Integer(count * PERIOD_NS),
                        ])?;
                    }
                }
            }
            Ok(())
        })?;
        Ok(rows)
    }

    fn write_frames(
        &self,
        folder: &Path,
        host: &Host,
        used: &[Identifier],
        more: &[(Identifier, String, Frame)],
    ) -> io::Result<()> {
        let mut frames: BTreeMap<Identifier, (String, &Frame)> = BTreeMap::new();
        for &(program, build, _) in &host.programs {
            let program = &self.programs[program];
            for frame in &program.frames {
                let (id, build_id) = id_of(frame, &program.name, build, host.kernel);
                if used.binary_search(&id).is_ok() {
                    frames.insert(id, (build_id, frame));
                }
            }
        }
        frames.extend(
            more.iter()
                .map(|(id, build_id, frame)| (*id, (build_id.clone(), frame))),
        );
        table(folder, "frames", schema::FRAMES, |file| {
            for (id, (build_id, frame)) in &frames {
                let kind = match frame.kind {
                    FrameKind::Kernel => "kernel",
                    _ => "user",
                };
                file.write(&[
                    Value::Bytes(id),
                    Value::OptionalText(Some(build_id)),
                    Value::Optional(None),
                    Value::Text(&frame.name),
                    Value::Text(&frame.module),
                    Value::Text(kind),
                ])?;
            }
            Ok(())
        })
    }

    fn write_settings(&self, folder: &Path, run_id: &Identifier, host: &Host) -> io::Result<()> {
        table(folder, "settings", schema::SETTINGS, |file| {
            for (name, value) in &self.programs[0].settings {
                let value = match &**name {
                    "thp.defrag" if host.is_bad => "always",
                    "thp.defrag" => "madvise",
                    _ => value,
                };
                file.write(&[Value::Bytes(run_id), Value::Text(name), Value::Text(value)])?;
            }
            Ok(())
        })
    }

    fn write_findings(
        &self,
        folder: &Path,
        run_id: &Identifier,
        host: &Host,
        random: &mut Random,
    ) -> io::Result<()> {
        // What the programs of the host lose to one cause adds up, and so does what its cure saves.
        let mut sums: BTreeMap<&str, (&Finding, f64, [f64; 3])> = BTreeMap::new();
        for &(program, _, share) in &host.programs {
            for finding in &self.programs[program].findings {
                let share = finding.share * share * varied(random, 0.1);
                let sum = sums.entry(&finding.id).or_insert((finding, 0.0, [0.0; 3]));
                sum.1 += share;
                for (saved, speed_up) in sum.2.iter_mut().zip(finding.speed_up) {
                    *saved += share * speed_up.map_or(0.0, |speed_up| 1.0 - 1.0 / speed_up);
                }
            }
        }
        table(folder, "findings", schema::FINDINGS, |file| {
            for (finding, share, saved) in sums.values() {
                let is_advised = finding.advice.is_some();
                let speed_up = saved.map(|saved| is_advised.then_some(1.0 / (1.0 - saved)));
                file.write(&[
                    Value::Bytes(run_id),
                    Value::Text(&finding.id),
                    Value::Text(&finding.severity),
                    Value::Text(&finding.headline),
                    Value::OptionalReal(Some(*share)),
                    Value::OptionalReal(Some(share * 0.9)),
                    Value::OptionalReal(Some(share * 1.1)),
                    Value::OptionalReal(None),
                    Value::OptionalReal(None),
                    Value::OptionalReal(None),
                    Value::OptionalText(finding.advice.as_deref()),
                    Value::OptionalText(finding.advice_headline.as_deref()),
                    Value::OptionalText(is_advised.then_some("low")),
                    Value::OptionalReal(speed_up[0]),
                    Value::OptionalReal(speed_up[1]),
                    Value::OptionalReal(speed_up[2]),
                    Value::OptionalText(is_advised.then_some("predicted")),
                    Value::OptionalReal(None),
                    Value::Optional(finding.price),
                    Value::OptionalReal(None),
                ])?;
            }
            Ok(())
        })
    }
}

/// The kernel's way into compaction from a fault (mm/page_alloc.c and mm/compaction.c of Linux 6.12).
fn compaction() -> Vec<Frame> {
    let names = [
        "asm_exc_page_fault",
        "do_user_addr_fault",
        "handle_mm_fault",
        "do_huge_pmd_anonymous_page",
        "__alloc_pages_slowpath",
        "try_to_compact_pages",
        "compact_zone",
        "isolate_migratepages_block",
    ];
    let frame = |name: &str| Frame {
        name: name.into(),
        module: "[kernel]".into(),
        kind: FrameKind::Kernel,
        unnamed: None,
    };
    names.map(frame).into()
}

fn write_run(
    folder: &Path,
    run_id: &Identifier,
    host: &Host,
    day: u64,
    cpu_ns: u64,
) -> io::Result<()> {
    table(folder, "runs", schema::RUNS, |file| {
        file.write(&[
            Value::Bytes(run_id),
            Value::Integer(schema::VERSION),
            Value::Text("run"),
            Value::Text("machine"),
            Value::Optional(Some(FIRST_DAY_MS + day * DAY_MS)),
            Value::Optional(Some(RECORDED_NS)),
            Value::Optional(Some(cpu_ns)),
            Value::Optional(Some(cpu_ns / 3)),
            Value::Optional(Some(1_000_000)),
            Value::Optional(Some(100)),
            Value::Optional(Some(8 << 30)),
            Value::Text(&host.name),
            Value::Text(KERNELS[host.kernel]),
            Value::Text("x86_64"),
            Value::Text(CPUS[host.cpu]),
            Value::Optional(Some(64)),
            Value::Optional(Some(256 << 30)),
            Value::Optional(Some(4096)),
            Value::Text(""),
            Value::OptionalText(None),
            Value::OptionalText(None),
            Value::Text(""),
            Value::Integer(0),
        ])
    })
}

/// Writes stacks, each once, and returns the identifiers of their frames, sorted.
fn write_stacks<'a>(
    folder: &Path,
    stacks: impl Iterator<Item = (Identifier, &'a Vec<Identifier>)>,
) -> io::Result<Vec<Identifier>> {
    let stacks: BTreeMap<Identifier, &Vec<Identifier>> = stacks.collect();
    table(folder, "stacks", schema::STACKS, |file| {
        for (id, frames) in &stacks {
            file.write(&[Value::Bytes(id), Value::Identifiers(frames)])?;
        }
        Ok(())
    })?;
    let mut used: Vec<Identifier> = stacks
        .values()
        .flat_map(|frames| frames.iter().copied())
        .collect();
    used.sort_unstable();
    used.dedup();
    Ok(used)
}

fn table(
    folder: &Path,
    name: &'static str,
    columns: &'static [Column],
    fill: impl FnOnce(&mut ParquetWriter<BufWriter<File>>) -> io::Result<()>,
) -> io::Result<()> {
    let file = BufWriter::new(File::create(folder.join(format!("{name}.parquet")))?);
    let mut file = ParquetWriter::new(file, name, columns)?;
    fill(&mut file)?;
    file.finish()?;
    Ok(())
}

/// A factor around 1 whose logarithm has this standard deviation: the sum of twelve even draws is
/// nearly normal.
fn varied(random: &mut Random, deviation: f64) -> f64 {
    let sum: f64 = (0..12)
        .map(|_| random.bits() as f64 / u64::MAX as f64)
        .sum();
    ((sum - 6.0) * deviation).exp()
}

/// Draws numbers with given weights (Walker's alias method).
struct Draws {
    stays: Vec<f64>,
    other: Vec<usize>,
}

impl Draws {
    fn new(weights: &[f64]) -> Self {
        let mean = weights.iter().sum::<f64>() / weights.len() as f64;
        let mut stays: Vec<f64> = weights.iter().map(|weight| weight / mean).collect();
        let mut other: Vec<usize> = (0..weights.len()).collect();
        let (mut small, mut large): (Vec<usize>, Vec<usize>) =
            (0..weights.len()).partition(|&at| stays[at] < 1.0);
        while let (Some(low), Some(&high)) = (small.pop(), large.last()) {
            other[low] = high;
            stays[high] -= 1.0 - stays[low];
            if stays[high] < 1.0 {
                large.pop();
                small.push(high);
            }
        }
        Self { stays, other }
    }

    fn draw(&self, random: &mut Random) -> usize {
        let bits = random.bits();
        let at = ((u128::from(bits >> 32) * self.stays.len() as u128) >> 32) as usize;
        match (bits & 0xffff_ffff) as f64 / 4_294_967_296.0 < self.stays[at] {
            true => at,
            false => self.other[at],
        }
    }
}

fn programs(from: &Path) -> Fallible<Vec<Program>> {
    let mut folders: Vec<PathBuf> = fs::read_dir(from)?
        .map(|entry| Ok(entry?.path()))
        .collect::<io::Result<_>>()?;
    folders.sort();
    let mut programs = Vec::new();
    for folder in folders
        .iter()
        .filter(|folder| folder.join("samples.parquet").exists())
    {
        programs.push(program(folder)?);
    }
    match programs.is_empty() {
        true => Err(format!("{} has no program with samples", from.display()).into()),
        false => Ok(programs),
    }
}

fn program(folder: &Path) -> Fallible<Program> {
    let frames = read(&folder.join("frames.parquet"))?;
    let ids = bytes(&frames, "frame_id")?;
    let names = texts(&frames, "function")?;
    let modules = texts(&frames, "module")?;
    let kinds = texts(&frames, "kind")?;
    let number: HashMap<Vec<u8>, usize> = ids
        .into_iter()
        .enumerate()
        .map(|(at, id)| (id, at))
        .collect();
    let frames: Vec<Frame> = (0..names.len())
        .map(|at| Frame {
            name: names[at].as_str().into(),
            module: modules[at].as_str().into(),
            kind: match &*kinds[at] {
                "kernel" => FrameKind::Kernel,
                _ => FrameKind::User,
            },
            unnamed: None,
        })
        .collect();
    let stacks = read(&folder.join("stacks.parquet"))?;
    let ids = bytes(&stacks, "stack_id")?;
    let lists = stacks
        .column_by_name("frames")
        .ok_or("no frames")?
        .as_list::<i32>()
        .clone();
    let mut frames_of: HashMap<Vec<u8>, Vec<usize>> = HashMap::new();
    for (at, id) in ids.into_iter().enumerate() {
        let list = cast(&lists.value(at), &DataType::BinaryView)?;
        let list = list
            .as_binary_view()
            .iter()
            .flatten()
            .filter_map(|id| number.get(id).copied())
            .collect();
        frames_of.insert(id, list);
    }
    let samples = read(&folder.join("samples.parquet"))?;
    let (units, kinds) = (texts(&samples, "unit")?, texts(&samples, "thread_kind")?);
    let (ids, weights) = (bytes(&samples, "stack_id")?, integers(&samples, "weight")?);
    let mut sums: BTreeMap<(String, Vec<u8>), f64> = BTreeMap::new();
    for at in (0..units.len()).filter(|&at| units[at] == "ns") {
        *sums
            .entry((kinds[at].clone(), ids[at].clone()))
            .or_default() += weights[at] as f64;
    }
    let whole: f64 = sums.values().sum();
    let stacks = sums.into_iter().map(|((thread_kind, id), weight)| Stack {
        thread_kind,
        frames: frames_of.get(&id).cloned().unwrap_or_default(),
        weight: weight / whole,
    });
    let stacks = stacks.collect();
    let settings = read(&folder.join("settings.parquet"))?;
    let settings = texts(&settings, "name")?
        .into_iter()
        .zip(texts(&settings, "value")?)
        .collect();
    Ok(Program {
        name: folder
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned(),
        stacks,
        frames,
        settings,
        findings: findings(&read(&folder.join("findings.parquet"))?)?,
    })
}

fn findings(table: &RecordBatch) -> Fallible<Vec<Finding>> {
    let [ids, severities, headlines] = [
        texts(table, "finding")?,
        texts(table, "severity")?,
        texts(table, "headline")?,
    ];
    let (advice, advice_headline) = (texts(table, "advice")?, texts(table, "advice_headline")?);
    let [share, value, low, high] = [
        reals(table, "share_of_cpu")?,
        reals(table, "speedup")?,
        reals(table, "speedup_low")?,
        reals(table, "speedup_high")?,
    ];
    let price = integers(table, "price_bytes")?;
    let some = |text: &String| (!text.is_empty()).then(|| text.clone());
    let rows = (0..ids.len()).filter_map(|at| {
        Some(Finding {
            id: ids[at].clone(),
            severity: severities[at].clone(),
            headline: headlines[at].clone(),
            share: share[at].filter(|&share| share > 0.0)?,
            advice: some(&advice[at]),
            advice_headline: some(&advice_headline[at]),
            speed_up: [value[at], low[at], high[at]],
            price: u64::try_from(price[at])
                .ok()
                .filter(|_| !advice[at].is_empty()),
        })
    });
    Ok(rows.collect())
}

fn read(path: &Path) -> Fallible<RecordBatch> {
    let reader = ParquetRecordBatchReaderBuilder::try_new(File::open(path)?)?;
    let schema = reader.schema().clone();
    let batches = reader.build()?.collect::<Result<Vec<_>, _>>()?;
    Ok(concat_batches(&schema, &batches)?)
}

fn texts(table: &RecordBatch, name: &str) -> Fallible<Vec<String>> {
    let column = cast(table.column_by_name(name).ok_or(name)?, &DataType::Utf8View)?;
    Ok(column
        .as_string_view()
        .iter()
        .map(|text| text.unwrap_or("").to_owned())
        .collect())
}

fn bytes(table: &RecordBatch, name: &str) -> Fallible<Vec<Vec<u8>>> {
    let column = cast(
        table.column_by_name(name).ok_or(name)?,
        &DataType::BinaryView,
    )?;
    Ok(column
        .as_binary_view()
        .iter()
        .map(|bytes| bytes.unwrap_or(&[]).to_vec())
        .collect())
}

fn integers(table: &RecordBatch, name: &str) -> Fallible<Vec<i64>> {
    let column = table
        .column_by_name(name)
        .ok_or(name)?
        .as_primitive::<Int64Type>();
    Ok((0..column.len())
        .map(|at| {
            if column.is_valid(at) {
                column.value(at)
            } else {
                0
            }
        })
        .collect())
}

fn reals(table: &RecordBatch, name: &str) -> Fallible<Vec<Option<f64>>> {
    let column = table
        .column_by_name(name)
        .ok_or(name)?
        .as_primitive::<Float64Type>();
    Ok(column.iter().collect())
}
