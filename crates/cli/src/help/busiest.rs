//! Said to one who asks `doctor` about nothing: which processes fault now.

use crate::terminal;
use pagewise_linux::proc::{ProcRoot, Stat};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::thread;
use std::time::{Duration, Instant};

/// For how long faults are counted.
const WINDOW: Duration = Duration::from_secs(1);
/// More rows than this say nothing.
const MOST: usize = 8;
/// Columns of a process's name.
const NAME: usize = 40;

/// What a process did during the window.
struct Row {
    pid: i32,
    minor: u64,
    major: u64,
    system: f64,
    user: f64,
    name: String,
}

/// Counts for a second and tells on standard error.
pub fn tell() {
    let root = ProcRoot::default();
    let start = Instant::now();
    let before = readings(&root);
    thread::sleep(WINDOW);
    let after = readings(&root);
    let seconds = start.elapsed().as_secs_f64();
    let rows = rows(&before, &after, seconds, |stat| name(&root, stat));
    terminal::tell(&table(&rows));
}

/// By number and start, so that a number given anew is another process. Without ourselves.
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

/// Those that faulted, most faults first. A process that started meanwhile counts from zero.
fn rows(
    before: &Readings,
    after: &Readings,
    seconds: f64,
    name: impl Fn(&Stat) -> String,
) -> Vec<Row> {
    let mut rows: Vec<Row> = after
        .iter()
        .map(|(key, now)| {
            let then = before.get(key);
            let grown =
                |field: fn(&Stat) -> u64| field(now) - then.map_or(0, field).min(field(now));
            #[expect(clippy::cast_precision_loss, reason = "a second has less than 2^53 ns")]
            let share = |nanos: u64| nanos as f64 / 1e7 / seconds;
            Row {
                pid: now.pid,
                minor: grown(|stat| stat.minor_faults),
                major: grown(|stat| stat.major_faults),
                system: share(grown(|stat| stat.system.0)),
                user: share(grown(|stat| stat.user.0)),
                name: name(now),
            }
        })
        .filter(|row| row.minor + row.major > 0)
        .collect();
    rows.sort_by(|a, b| {
        let faults = |row: &Row| row.minor + row.major;
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
    let words: Vec<_> = words.iter().map(|word| word.to_string_lossy()).collect();
    let whole = match words.is_empty() {
        true => format!("[{}]", stat.comm),
        false => words.join(" "),
    };
    // One line each, whatever a process calls itself.
    let shown = |c: char| if c.is_control() { ' ' } else { c };
    whole.chars().map(shown).take(NAME).collect()
}

fn table(rows: &[Row]) -> String {
    let Some(first) = rows.first() else {
        return "\nNo visible process had a page fault during the last second.".to_owned();
    };
    let mut text = "\nMost page faults during the last second:\n\n    PID     minor   major  system    user  command\n".to_owned();
    for row in rows {
        writeln!(
            text,
            "{:7}  {:8}  {:6}  {:4.0} %  {:4.0} %  {}",
            row.pid, row.minor, row.major, row.system, row.user, row.name
        )
        .expect("a string takes it");
    }
    let first = first.pid;
    text + &format!(
        "\nsystem, user: CPU time, in % of one CPU. To see why: pagewise doctor -p {first} --duration 10s"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A process of this `/proc/PID/stat`.
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
        // 12 is another process by now.
        let after = readings_of(&[(10, 1, 5001, 0, 0), (11, 1, 40, 2, 50), (12, 9, 7, 0, 0)]);
        let rows = rows(&before, &after, 2.0, |stat| stat.comm.clone());
        let found: Vec<_> = rows
            .iter()
            .map(|row| (row.pid, row.minor, row.major))
            .collect();
        assert_eq!(found, [(11, 30, 2), (12, 7, 0), (10, 1, 0)]);
        let ticks = rows[0].system;
        assert!(
            (ticks - 25.0).abs() < 1e-9,
            "{ticks}: 50 ticks of 10 ms in 2 s"
        );
        let text = table(&rows);
        assert!(text.contains("doctor -p 11 --duration 10s"), "{text}");
        assert!(table(&[]).contains("No visible process"));
    }
}
