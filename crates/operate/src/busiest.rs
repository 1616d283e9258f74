//! The processes that fault at present.

use pagewise_linux::proc::{ProcRoot, Stat};
use pagewise_model::busiest::Busy;
use pagewise_model::secrets;
use std::collections::BTreeMap;
use std::thread;
use std::time::{Duration, Instant};

/// Time for which faults are counted.
const WINDOW: Duration = Duration::from_secs(1);
/// More rows than this add nothing.
const MOST: usize = 8;
/// Counts for a second; returns the processes that faulted, most faults first.
#[must_use]
pub fn busiest() -> Vec<Busy> {
    let root = ProcRoot::default();
    let start = Instant::now();
    let before = readings(&root);
    thread::sleep(WINDOW);
    let after = readings(&root);
    let seconds = start.elapsed().as_secs_f64();
    ranked(&before, &after, seconds, |stat| name(&root, stat))
}

/// By process id and start time, as ids are reused. Without this process.
type Readings = BTreeMap<(i32, u64), Stat>;

fn readings(root: &ProcRoot) -> Readings {
    let ours = i32::try_from(std::process::id()).ok();
    let others = root.processes().into_iter();
    others
        .filter(|pid| Some(*pid) != ours)
        .filter_map(|pid| root.stat(pid).ok().flatten())
        .map(|stat| ((stat.pid, stat.start_ticks), stat))
        .collect()
}

/// Processes that faulted, most faults first. A process that started meanwhile counts from zero.
fn ranked(
    before: &Readings,
    after: &Readings,
    seconds: f64,
    name: impl Fn(&Stat) -> String,
) -> Vec<Busy> {
    let mut rows: Vec<Busy> = after
        .iter()
        .map(|(key, now)| {
            let then = before.get(key);
            let grown =
                |field: fn(&Stat) -> u64| field(now) - then.map_or(0, field).min(field(now));
            let share = |nanos: u64| nanos as f64 / 1e9 / seconds;
            Busy {
                pid: now.pid,
                minor: grown(|stat| stat.minor_faults),
                major: grown(|stat| stat.major_faults),
                system: share(grown(|stat| stat.system.0)),
                user: share(grown(|stat| stat.user.0)),
                command: name(now),
            }
        })
        .filter(|row| row.minor + row.major > 0)
        .collect();
    rows.sort_by(|a, b| {
        let faults = |row: &Busy| row.minor + row.major;
        faults(b)
            .cmp(&faults(a))
            .then(b.system.total_cmp(&a.system))
    });
    rows.truncate(MOST);
    rows
}

/// The command line, or the kernel's name for it in brackets.
fn name(root: &ProcRoot, stat: &Stat) -> String {
    let words = root.cmdline(stat.pid).ok().flatten().unwrap_or_default();
    let words = words.iter().map(|word| word.to_string_lossy().into_owned());
    let words = secrets::masked(&words.collect::<Vec<_>>());
    match words.is_empty() {
        true => format!("[{}]", stat.comm),
        false => words.join(" "),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Processes with these figures in `/proc/PID/stat`.
    fn readings_of(lines: &[(i32, u64, u64, u64, u64)]) -> Readings {
        let folder = tempfile::tempdir().unwrap();
        for (pid, start, minor, major, system) in lines {
            let own = folder.path().join(pid.to_string());
            std::fs::create_dir(&own).unwrap();
            let text = format!(
                "{pid} (x) R 1 1 1 0 -1 0 {minor} 0 {major} 0 0 {system} 0 0 20 0 1 0 {start} 0 0 0 0 0 0 0 \
                 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
            );
            std::fs::write(own.join("stat"), text).unwrap();
        }
        readings(&ProcRoot::at(folder.path()))
    }

    #[test]
    fn faults_of_the_window_alone_are_ranked() {
        let before = readings_of(&[(10, 1, 5000, 0, 0), (11, 1, 10, 0, 0), (12, 1, 70, 0, 0)]);
        // 12 has become another process.
        let after = readings_of(&[(10, 1, 5001, 0, 0), (11, 1, 40, 2, 50), (12, 9, 7, 0, 0)]);
        let rows = ranked(&before, &after, 2.0, |stat| stat.comm.clone());
        let found: Vec<_> = rows
            .iter()
            .map(|row| (row.pid, row.minor, row.major))
            .collect();
        assert_eq!(found, [(11, 30, 2), (12, 7, 0), (10, 1, 0)]);
        let ticks = rows[0].system;
        assert!(
            (ticks - 0.25).abs() < 1e-9,
            "{ticks}: 50 ticks of 10 ms in 2 s"
        );
    }
}
