//! What is counted once: a host, or a host on a day, with all its runs.

use crate::data::{Identifier, Run};
use pagewise_model::quantity::counted;
use std::collections::{BTreeMap, BTreeSet, HashMap};

/// CPU-hours per day of one CPU that is always busy.
const HOURS_A_DAY: f64 = 24.0;
const DAY_NS: f64 = 86_400e9;

/// Units in the order of their keys.
#[derive(Debug, Default)]
pub struct Units {
    /// What makes each a unit, such as the host's name.
    pub keys: Vec<String>,
    /// The first run of each: its kernel, CPU and role.
    pub first: Vec<Run>,
    /// Observed nanoseconds of each.
    pub elapsed_ns: Vec<f64>,
    /// CPU time of each in nanoseconds.
    pub cpu_ns: Vec<f64>,
    /// The most memory that a run of each held.
    pub peak_bytes: Vec<f64>,
    /// The unit of each run.
    pub of_run: HashMap<Identifier, u32>,
    /// CPU time of each run in nanoseconds.
    pub cpu_of_run: HashMap<Identifier, f64>,
    /// Folders of all units, and of each.
    pub folders: BTreeSet<usize>,
    /// Folders of each unit.
    pub folders_of: Vec<BTreeSet<usize>>,
    /// Runs that do not say for how long they observed, and are left out.
    pub timeless: usize,
    /// Runs of commands, of all that count.
    pub commands: usize,
    runs: usize,
}

impl Units {
    /// Groups runs by a key; runs without one are left out.
    pub fn by(runs: &[Run], key: impl Fn(&Run) -> Option<String>) -> Self {
        let mut groups: BTreeMap<String, Vec<&Run>> = BTreeMap::new();
        let mut units = Self::default();
        for run in runs {
            if run.elapsed_ns <= 0.0 {
                units.timeless += 1;
                continue;
            }
            if let Some(key) = key(run) {
                units.runs += 1;
                units.commands += usize::from(run.scope == "run");
                groups.entry(key).or_default().push(run);
            }
        }
        for (number, (key, runs)) in (0..).zip(groups) {
            units.keys.push(key);
            units.first.push(runs[0].clone());
            units
                .elapsed_ns
                .push(runs.iter().map(|run| run.elapsed_ns).sum());
            units.cpu_ns.push(runs.iter().map(|run| run.cpu_ns).sum());
            let peaks = runs.iter().map(|run| run.peak_bytes);
            units.peak_bytes.push(peaks.fold(0.0, f64::max));
            units.of_run.extend(runs.iter().map(|run| (run.id, number)));
            units
                .cpu_of_run
                .extend(runs.iter().map(|run| (run.id, run.cpu_ns)));
            units
                .folders_of
                .push(runs.iter().map(|run| run.folder).collect());
            units.folders.extend(runs.iter().map(|run| run.folder));
        }
        units
    }

    /// One unit per host.
    pub fn hosts(runs: &[Run]) -> Self {
        Self::by(runs, |run| Some(run.host.clone()))
    }

    /// What a nanosecond of each of some units weighs, so that sums are nanoseconds per day and host.
    pub fn scales(&self, some: impl Iterator<Item = usize>) -> Vec<f64> {
        let some: Vec<usize> = some.collect();
        let mut scales = vec![0.0; self.len()];
        for &unit in &some {
            scales[unit] = DAY_NS / self.elapsed_ns[unit] / some.len() as f64;
        }
        scales
    }

    /// The unit of a run, and the run's CPU time.
    pub fn get(&self, run: &[u8]) -> Option<(usize, f64)> {
        let run = Identifier::try_from(run).ok()?;
        let unit = *self.of_run.get(&run)?;
        Some((
            unit as usize,
            self.cpu_of_run.get(&run).copied().unwrap_or(0.0),
        ))
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.keys.len()
    }

    /// Nanoseconds of CPU time while observed as CPU-hours per day.
    pub fn rates(&self, weights: &[f64]) -> Vec<f64> {
        let pairs = weights.iter().zip(&self.elapsed_ns);
        pairs
            .map(|(weight, elapsed)| weight / elapsed * HOURS_A_DAY)
            .collect()
    }

    /// What belongs to figures per day.
    pub fn if_all_day(&self) -> &'static str {
        match self.commands > 0 {
            true => ", if the commands that were observed ran all day",
            false => "",
        }
    }

    /// What a reader should know about runs that are left out, and about those of commands.
    pub fn notes(&self) -> impl Iterator<Item = String> {
        let commands = (self.commands > 0).then(|| {
            format!(
                "{} of {} are runs of a command (record -- CMD, doctor -- CMD), not of a host. Figures per day \
                 are what these commands would use if they ran all day. pagewise record -a observes hosts.",
                self.commands,
                counted(self.runs as u64, "recording")
            )
        });
        let timeless = (self.timeless > 0).then(|| {
            format!(
                "{} without times (folded stacks, results without times): left out.",
                counted(self.timeless as u64, "recording")
            )
        });
        commands.into_iter().chain(timeless)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(id: u8, host: &str, elapsed_s: f64) -> Run {
        Run {
            id: [id; 16],
            host: host.to_owned(),
            folder: id.into(),
            elapsed_ns: elapsed_s * 1e9,
            ..Run::default()
        }
    }

    #[test]
    fn runs_of_commands_are_no_days_of_hosts() {
        let command = Run {
            scope: "run".to_owned(),
            ..run(1, "a", 2.0)
        };
        let units = Units::hosts(&[command, run(2, "b", 10.0)]);
        assert!(units.if_all_day().contains("ran all day"));
        let note = units.notes().next().unwrap();
        assert!(
            note.starts_with("1 of 2 recordings are runs of a command"),
            "{note}"
        );
        let units = Units::hosts(&[run(2, "b", 10.0)]);
        assert_eq!((units.if_all_day(), units.notes().count()), ("", 0));
    }

    #[test]
    fn runs_of_a_host_add_up_to_its_rate() {
        let runs = [
            run(1, "b", 10.0),
            run(2, "a", 20.0),
            run(3, "b", 30.0),
            run(4, "a", 0.0),
        ];
        let units = Units::hosts(&runs);
        assert_eq!(units.keys, ["a", "b"]);
        assert_eq!((units.of_run[&[3; 16]], units.timeless), (1, 1));
        // Half a CPU on a, one and a half on b.
        assert_eq!(units.rates(&[10e9, 60e9]), [12.0, 36.0]);
        assert_eq!(units.folders_of[1], BTreeSet::from([1, 3]));
    }
}
