//! Samples of CPU time: a row per stack, with its weight on each host. Stacks are summed by their
//! identifiers; frames are looked up once, in the files of as few hosts as have them all.

use super::{ByRun, Identifier};
use crate::commands::units::Units;
use crate::distributed::{PARTS, Question, Rest};
use crate::engine::Engine;
use anyhow::Result;
use datafusion::arrow::array::{Array, AsArray, RecordBatch};
use datafusion::arrow::datatypes::{Float64Type, UInt32Type};
use datafusion::logical_expr::AggregateUDF;
use pagewise_model::profile::{
    Frame, FrameId, FrameKind, NO_CPU, Profile, ProfileEvent, ProfileSample, ProfileThread,
    WeightUnit,
};
use std::collections::{BTreeSet, HashMap};

/// A function, whatever its build.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Function {
    /// Its name without the compiler's numbered copies.
    pub name: String,
    /// The file that it is in.
    pub module: String,
    /// Whether it is code of the kernel.
    pub is_kernel: bool,
}

/// A stack with its weights.
struct Stack {
    /// Functions, outermost first.
    functions: Vec<u32>,
    /// By unit, each once.
    weights: Vec<(u32, f64)>,
}

/// Samples of all units.
#[derive(Default)]
pub struct Samples {
    /// All functions.
    pub functions: Vec<Function>,
    stacks: Vec<Stack>,
    /// Stacks by the function at their end, and by each function in them.
    own: Vec<Vec<u32>>,
    on: Vec<Vec<u32>>,
    units: usize,
    /// Weight of stacks whose frames no file has.
    pub unnamed: f64,
}

impl Samples {
    /// Reads the samples of these units: CPU time, or one event.
    pub fn read(engine: &mut Engine, units: &Units, event: Option<&str>) -> Result<Self> {
        engine.register(AggregateUDF::from(ByRun::new(units.of_run.clone())));
        let which = match event {
            Some(event) => format!("event = '{}'", event.replace('\'', "''")),
            // Nanoseconds of waiting are not CPU time.
            None => "unit = 'ns' AND event NOT LIKE 'off-cpu%'".to_owned(),
        };
        let batches = of_stacks(engine, units, &which)?;
        let mut ids: Vec<Identifier> = Vec::new();
        let mut weights: Vec<Vec<(u32, f64)>> = Vec::new();
        for batch in &batches {
            sums(batch, &mut ids, &mut weights);
        }
        drop(batches);
        // In one order, whichever thread was first: the same question reads the same files.
        let mut rows: Vec<_> = ids.into_iter().zip(weights).collect();
        rows.sort_unstable_by_key(|row| row.0);
        let (ids, weights): (Vec<_>, Vec<_>) = rows.into_iter().unzip();
        let frames = Frames::look_up(engine, units, &ids, &weights)?;
        Ok(Self::new(ids, weights, &frames, units.len()))
    }

    fn new(
        ids: Vec<Identifier>,
        weights: Vec<Vec<(u32, f64)>>,
        frames: &Frames,
        units: usize,
    ) -> Self {
        let mut samples = Self {
            units,
            ..Self::default()
        };
        let mut numbers: HashMap<Function, u32> = HashMap::new();
        let mut number_of: HashMap<Identifier, Option<u32>> = HashMap::new();
        for (id, weights) in ids.iter().zip(weights) {
            let Some(list) = frames.stacks.get(id) else {
                samples.unnamed += weights.iter().map(|pair| pair.1).sum::<f64>();
                continue;
            };
            let innermost = list.last().and_then(|frame| frames.frames.get(frame));
            if innermost.is_some_and(Frame::is_idle) {
                continue;
            }
            let functions: Vec<u32> = list
                .iter()
                .filter_map(|frame| {
                    let number = || {
                        let function = function(frames.frames.get(frame)?);
                        let next = numbers.len() as u32;
                        let number = *numbers.entry(function.clone()).or_insert(next);
                        if number == next {
                            samples.functions.push(function);
                        }
                        Some(number)
                    };
                    *number_of.entry(*frame).or_insert_with(number)
                })
                .collect();
            samples.stacks.push(Stack { functions, weights });
        }
        samples.index();
        samples
    }

    fn index(&mut self) {
        self.own = vec![Vec::new(); self.functions.len()];
        self.on = vec![Vec::new(); self.functions.len()];
        for (number, stack) in self.stacks.iter().enumerate() {
            let number = number as u32;
            if let Some(&own) = stack.functions.last() {
                self.own[own as usize].push(number);
            }
            for &function in &stack.functions {
                let list = &mut self.on[function as usize];
                // A recursive function is there once.
                if list.last() != Some(&number) {
                    list.push(number);
                }
            }
        }
    }

    /// Weight of everything by unit.
    pub fn all(&self) -> Vec<f64> {
        self.sum(0..self.stacks.len() as u32)
    }

    /// Samples of each unit, where all weigh the same: its rarest stack has at least one. At most as many
    /// as there are.
    pub fn counts(&self) -> Vec<f64> {
        let mut least = vec![f64::INFINITY; self.units];
        for &(unit, weight) in self.stacks.iter().flat_map(|stack| &stack.weights) {
            if weight > 0.0 {
                least[unit as usize] = least[unit as usize].min(weight);
            }
        }
        let all = self.all();
        all.iter()
            .zip(least)
            .map(|(all, least)| all / least)
            .collect()
    }

    /// Weight of the kernel's functions by unit.
    pub fn kernel(&self) -> Vec<f64> {
        let is_kernel = |number: &u32| {
            let own = self.stacks[*number as usize].functions.last();
            own.is_some_and(|&own| self.functions[own as usize].is_kernel)
        };
        self.sum((0..self.stacks.len() as u32).filter(is_kernel))
    }

    /// Weight of the function itself by unit.
    pub fn own(&self, function: usize) -> Vec<f64> {
        self.sum(self.own[function].iter().copied())
    }

    /// Weight of the function and all that it called, by unit.
    pub fn with_callees(&self, function: usize) -> Vec<f64> {
        self.sum(self.on[function].iter().copied())
    }

    fn sum(&self, stacks: impl Iterator<Item = u32>) -> Vec<f64> {
        let mut sums = vec![0.0; self.units];
        for number in stacks {
            for &(unit, weight) in &self.stacks[number as usize].weights {
                sums[unit as usize] += weight;
            }
        }
        sums
    }

    /// The functions whose own weight is largest, by number.
    pub fn heaviest(&self, most: usize) -> Vec<usize> {
        let weight = |stacks: &Vec<u32>| {
            let weights = stacks
                .iter()
                .flat_map(|&number| &self.stacks[number as usize].weights);
            weights.map(|pair| pair.1).sum()
        };
        let mut weighed: Vec<(f64, usize)> = self
            .own
            .iter()
            .map(weight)
            .enumerate()
            .map(|(at, weight)| (weight, at))
            .collect();
        weighed.retain(|(weight, _)| *weight > 0.0);
        weighed.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        weighed
            .into_iter()
            .take(most)
            .map(|(_, function)| function)
            .collect()
    }

    /// The functions whose own weight is largest on one unit.
    pub fn heaviest_on(&self, unit: usize, most: usize) -> Vec<usize> {
        let weight = |stacks: &Vec<u32>| -> f64 {
            let weights = stacks
                .iter()
                .flat_map(|&number| &self.stacks[number as usize].weights);
            weights
                .filter(|pair| pair.0 as usize == unit)
                .map(|pair| pair.1)
                .sum()
        };
        let weighed = self.own.iter().map(weight).enumerate();
        let mut weighed: Vec<(usize, f64)> = weighed.filter(|pair| pair.1 > 0.0).collect();
        weighed.sort_by(|a, b| b.1.total_cmp(&a.1).then(a.0.cmp(&b.0)));
        weighed.into_iter().take(most).map(|pair| pair.0).collect()
    }

    /// Stacks of functions with their weights by unit, the heaviest first: stacks of different builds
    /// are one if their functions are.
    pub fn paths(&self, most: usize) -> Vec<(Vec<&str>, Vec<f64>)> {
        let mut merged: HashMap<&[u32], (f64, Vec<u32>)> = HashMap::new();
        for (number, stack) in self.stacks.iter().enumerate() {
            let entry = merged.entry(&stack.functions).or_default();
            entry.0 += stack.weights.iter().map(|pair| pair.1).sum::<f64>();
            entry.1.push(number as u32);
        }
        let mut paths: Vec<_> = merged.into_iter().collect();
        paths.sort_by(|a, b| b.1.0.total_cmp(&a.1.0).then(a.0.cmp(b.0)));
        let paths = paths
            .into_iter()
            .take(most)
            .map(|(functions, (_, stacks))| {
                let names = functions
                    .iter()
                    .map(|&at| &*self.functions[at as usize].name);
                (names.collect(), self.sum(stacks.into_iter()))
            });
        paths.collect()
    }

    /// All stacks as one profile, where a nanosecond of each unit weighs what `scales` says.
    pub fn profile(&self, scales: &[f64]) -> Profile {
        let mut profile = Profile {
            events: vec![ProfileEvent {
                name: "CPU time".to_owned(),
                unit: WeightUnit::Nanoseconds,
                frequency: None,
            }],
            threads: vec![ProfileThread {
                pid: -1,
                tid: -1,
                comm: "fleet".into(),
                cgroup: "".into(),
            }],
            ..Profile::default()
        };
        profile.frames = self.functions.iter().map(Function::frame).collect();
        for stack in &self.stacks {
            let pairs = stack.weights.iter();
            let weight: f64 = pairs
                .map(|&(unit, weight)| weight * scales[unit as usize])
                .sum();
            let frames = stack.functions.iter().map(|&at| FrameId(at));
            profile.samples.push(ProfileSample {
                time: 0,
                thread: 0,
                cpu: NO_CPU,
                event: 0,
                weight: weight.round() as u64,
                stack: profile.stacks.intern(frames),
            });
        }
        profile
    }

    /// The number of a function by its name; of several with this name, the heaviest.
    pub fn named(&self, name: &str) -> Option<usize> {
        let with_name = |&at: &usize| self.functions[at].name == name;
        let heaviest = self.heaviest(usize::MAX).into_iter().find(with_name);
        heaviest.or_else(|| (0..self.functions.len()).find(with_name))
    }
}

impl Function {
    fn frame(&self) -> Frame {
        Frame {
            name: self.name.as_str().into(),
            module: self.module.as_str().into(),
            kind: match self.is_kernel {
                true => FrameKind::Kernel,
                false => FrameKind::User,
            },
            unnamed: None,
        }
    }
}

fn function(frame: &Frame) -> Function {
    let comparable = frame.comparable();
    Function {
        name: comparable.name.into(),
        module: comparable.module.into(),
        is_kernel: comparable.kind == FrameKind::Kernel,
    }
}

/// The sums of the stacks of these samples. A cluster, which does not know `by_run`, sums by stack and
/// run: a row for each pair, which this process adds up while they arrive.
fn of_stacks(engine: &mut Engine, units: &Units, which: &str) -> Result<Vec<RecordBatch>> {
    let tables = [("samples", &units.folders)];
    let by_run = |table: &str| {
        format!("SELECT stack_id, by_run(run_id, weight) AS sums FROM {table} GROUP BY stack_id")
    };
    match engine.is_distributed() {
        false => engine.query(&by_run(&format!("samples WHERE {which}")), &tables),
        true => engine.ask(
            &Question {
                sql: &format!(
                    "SELECT stack_id, run_id, sum(weight) AS weight FROM samples WHERE {which} \
                     GROUP BY stack_id, run_id"
                ),
                rest: Some(Rest {
                    columns: ["stack_id", "run_id", "weight"],
                    sql: &by_run(PARTS),
                }),
            },
            &tables,
        ),
    }
}

/// The rows of a batch: stacks, and the sums of their units.
fn sums(batch: &RecordBatch, ids: &mut Vec<Identifier>, weights: &mut Vec<Vec<(u32, f64)>>) {
    let stacks = batch.column(0).as_binary_view();
    let lists = batch.column(1).as_list::<i32>();
    for row in 0..batch.num_rows() {
        let list = lists.value(row);
        let Ok(id) = Identifier::try_from(stacks.value(row)) else {
            continue;
        };
        if list.is_empty() {
            continue;
        }
        let pairs = list.as_struct();
        let units = pairs
            .column(0)
            .as_primitive::<UInt32Type>()
            .values()
            .iter()
            .copied();
        let sums = pairs
            .column(1)
            .as_primitive::<Float64Type>()
            .values()
            .iter()
            .copied();
        ids.push(id);
        weights.push(units.zip(sums).collect());
    }
}

/// Stacks and frames by their identifiers.
#[derive(Default)]
struct Frames {
    stacks: HashMap<Identifier, Vec<Identifier>>,
    frames: HashMap<Identifier, Frame>,
}

/// Rounds of reading: in the second and third, other hosts stand in for files that cannot be used.
const ROUNDS: usize = 3;

impl Frames {
    /// Looks up the frames of these stacks. A host that sampled a stack has its frames.
    fn look_up(
        engine: &mut Engine,
        units: &Units,
        ids: &[Identifier],
        weights: &[Vec<(u32, f64)>],
    ) -> Result<Self> {
        let mut frames = Self::default();
        let mut tried = vec![false; units.len()];
        for _ in 0..ROUNDS {
            let missing = (0..ids.len()).filter(|&at| !frames.has(&ids[at]));
            let missing: Vec<usize> = missing.collect();
            let chosen = cover(&missing, weights, &tried);
            if chosen.is_empty() {
                break;
            }
            for &unit in &chosen {
                tried[unit as usize] = true;
            }
            let folders = chosen
                .iter()
                .flat_map(|&unit| &units.folders_of[unit as usize]);
            let folders: BTreeSet<usize> = folders.copied().collect();
            frames.read(
                engine,
                &folders,
                missing.iter().map(|&at| ids[at]).collect(),
            )?;
        }
        Ok(frames)
    }

    fn has(&self, stack: &Identifier) -> bool {
        let list = self.stacks.get(stack);
        list.is_some_and(|list| list.iter().all(|frame| self.frames.contains_key(frame)))
    }

    fn read(
        &mut self,
        engine: &mut Engine,
        folders: &BTreeSet<usize>,
        wanted: BTreeSet<Identifier>,
    ) -> Result<()> {
        let stacks = engine.query(
            "SELECT stack_id, frames FROM stacks",
            &[("stacks", folders)],
        )?;
        for batch in &stacks {
            let (ids, lists) = (
                batch.column(0).as_binary_view(),
                batch.column(1).as_list::<i32>(),
            );
            for row in 0..batch.num_rows() {
                let Ok(id) = Identifier::try_from(ids.value(row)) else {
                    continue;
                };
                if wanted.contains(&id) && !self.stacks.contains_key(&id) {
                    let list = lists.value(row);
                    let list = list.as_binary_view().iter().flatten();
                    let list = list
                        .filter_map(|frame| Identifier::try_from(frame).ok())
                        .collect();
                    self.stacks.insert(id, list);
                }
            }
        }
        let sql = "SELECT frame_id, function, module, kind FROM frames";
        for batch in &engine.query(sql, &[("frames", folders)])? {
            let ids = batch.column(0).as_binary_view();
            let [function, module, kind] =
                [1, 2, 3].map(|column: usize| batch.column(column).as_string_view());
            for row in 0..batch.num_rows() {
                let Ok(id) = Identifier::try_from(ids.value(row)) else {
                    continue;
                };
                self.frames.entry(id).or_insert_with(|| Frame {
                    name: function.value(row).into(),
                    module: module.value(row).into(),
                    kind: kind_of(kind.value(row)),
                    unnamed: None,
                });
            }
        }
        Ok(())
    }
}

fn kind_of(name: &str) -> FrameKind {
    match name {
        "kernel" => FrameKind::Kernel,
        "inlined" => FrameKind::Inlined,
        "jit" => FrameKind::Jit,
        "task" => FrameKind::Task,
        _ => FrameKind::User,
    }
}

/// Few units that together have all these stacks: rare stacks choose first, and choose the unit with
/// most stacks.
fn cover(missing: &[usize], weights: &[Vec<(u32, f64)>], tried: &[bool]) -> Vec<u32> {
    let mut is_chosen = vec![false; tried.len()];
    let mut of_unit = vec![0_u32; tried.len()];
    for &at in missing {
        for &(unit, _) in &weights[at] {
            of_unit[unit as usize] += 1;
        }
    }
    let mut rarest = missing.to_vec();
    rarest.sort_by_key(|&at| weights[at].len());
    for at in rarest {
        let units = weights[at].iter().map(|pair| pair.0);
        if units.clone().any(|unit| is_chosen[unit as usize]) {
            continue;
        }
        let untried = units.filter(|&unit| !tried[unit as usize]);
        if let Some(best) = untried.max_by_key(|&unit| of_unit[unit as usize]) {
            is_chosen[best as usize] = true;
        }
    }
    (0..)
        .zip(is_chosen)
        .filter(|pair| pair.1)
        .map(|pair| pair.0)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_hosts_cover_all_stacks() {
        let on = |units: &[u32]| units.iter().map(|&unit| (unit, 1.0)).collect::<Vec<_>>();
        let weights = [on(&[0, 1, 2]), on(&[1, 2]), on(&[2]), on(&[0, 3])];
        let all = [0, 1, 2, 3];
        let chosen = cover(&all, &weights, &[false; 4]);
        assert_eq!(chosen, [0, 2]);
        // A host whose files could not be used is not asked again.
        let chosen = cover(&all, &weights, &[false, false, true, false]);
        assert_eq!(chosen, [0, 1]);
    }
}
