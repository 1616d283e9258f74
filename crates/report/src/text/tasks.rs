//! Time by process and thread: how each spent its lifetime.

use super::columns::{Column, Row, figures, words};
use super::page::{Ink, Page, shorten};
use crate::visible::visible;
use pagewise_model::account::{ProcessTime, TaskSum, Tasks, TimePart};
use pagewise_model::findings::Findings;
use pagewise_model::quantity::{count, counted, percent};
use pagewise_model::units::Nanos;

/// Processes shown, and threads of each; the page shows all that are reported.
const PROCESSES: usize = 6;
const THREADS: usize = 4;
/// Columns of a name.
const NAME: usize = 22;
/// Share of CPU time without a known thread that is worth mentioning.
const LEAST: f64 = 0.01;

/// The processes with their threads, if there is more than one thread.
pub fn by_task(page: &mut Page, findings: &Findings) {
    let Some(tasks) = &findings.account.tasks else {
        return;
    };
    if !tasks.tells_apart() {
        return;
    }
    let heads: [Column<'_>; 7] = [
        words("process and id (threads)"),
        figures("lived"),
        figures("CPU"),
        figures("ready"),
        figures("waited"),
        figures("open"),
        words("mostly"),
    ];
    let shown = tasks.processes.iter().take(PROCESSES);
    let mut rows: Vec<Row> = shown.flat_map(of_process).collect();
    rows.extend(others(tasks));
    page.table("Time by process and thread", &heads, rows);
    for note in notes(tasks, findings) {
        page.indented(2, Ink::Faint, &note);
    }
}

fn of_process(process: &ProcessTime) -> Vec<Row> {
    let name = match process.all.threads {
        1 => format!("{} {}", visible(&process.name), process.pid),
        more => format!("{} {} ({more})", visible(&process.name), process.pid),
    };
    let mut rows = vec![row(&name, process.lifetime, &process.all)];
    if process.all.threads < 2 {
        return rows;
    }
    for thread in process.threads.iter().take(THREADS) {
        let name = format!("  {} {}", visible(&thread.name), thread.tid);
        rows.push(row(&name, thread.all.lifetime, &thread.all).in_ink(Ink::Faint));
    }
    let folded = process
        .threads
        .iter()
        .skip(THREADS)
        .map(|thread| &thread.all);
    let folded = TaskSum::total(folded.chain(&process.others));
    rows.extend(folded.map(|sum| {
        let name = format!("  {}", of_others(sum.threads));
        row(&name, sum.lifetime, &sum).in_ink(Ink::Faint)
    }));
    rows
}

/// The sum of everything not shown individually.
fn others(tasks: &Tasks) -> Vec<Row> {
    let folded = tasks.processes.iter().skip(PROCESSES);
    let folded = TaskSum::total(folded.map(|process| &process.all).chain(&tasks.others));
    let folded = folded.map(|sum| row(&of_others(sum.threads), sum.lifetime, &sum));
    folded.into_iter().collect()
}

fn of_others(threads: u64) -> String {
    match threads {
        1 => "1 other".to_owned(),
        more => format!("{} others", count(more)),
    }
}

fn row(name: &str, lived: Nanos, sum: &TaskSum) -> Row {
    let all = sum.lifetime.as_secs_f64() * 1e9;
    let share = |time: f64| percent(if all > 0.0 { time / all } else { 0.0 });
    let waits = || sum.waits();
    let waited: f64 = waits().map(|part| part.time.value).sum();
    let mostly = waits().next().filter(|part| part.time.value * 10.0 >= all);
    Row::new([
        shorten(name, NAME),
        lived.to_string(),
        share(sum.part("cpu")),
        share(sum.part("ready")),
        share(waited),
        share(sum.part("unexplained")),
        mostly.map_or(String::new(), wait),
    ])
}

fn wait(part: &TimePart) -> String {
    let place = part.places.first();
    let place = place.map_or(String::new(), |place| format!(" ({})", visible(place)));
    format!("{}{place}", visible(&part.label))
}

/// CPU time not seen on any thread, and threads that ended unseen.
fn notes(tasks: &Tasks, findings: &Findings) -> Vec<String> {
    let all = findings.cost.cpu().as_secs_f64();
    let elsewhere = tasks.elsewhere.as_secs_f64();
    let unseen = tasks
        .unseen
        .as_ref()
        .map(|unseen| format!("{} ended unseen.", counted(unseen.threads, "thread")));
    let rest = (elsewhere >= LEAST * all && all > 0.0).then(|| {
        format!(
            "{} of the CPU time ({}) belongs to no thread seen: it was used by threads that ended unseen, or by others after they were last seen.",
            percent(elsewhere / all),
            tasks.elsewhere,
        )
    });
    unseen.into_iter().chain(rest).collect()
}
