//! The final message of `watch`: the numbers of time(1), on standard error.

use pagewise_model::quantity::count;
use pagewise_model::timeline::{Timeline, TimelinePoint};
use pagewise_model::units::{Bytes, Nanos};
use pagewise_operate::watch::SubjectEnd;

/// Prints one line of numbers, and further notes for the user.
pub fn print(timeline: &Timeline, end: &SubjectEnd) {
    if let Some(line) = line(timeline, end) {
        eprintln!("{line}");
    }
    for note in timeline.notes.iter().chain(&end.note) {
        eprintln!("{note}");
    }
    if timeline.gaps > 0 {
        let gaps = timeline.gaps;
        eprintln!(
            "{gaps} points are missing from the timeline: a reading failed or came too late."
        );
    }
    if let Some(file) = &end.output {
        eprintln!("The command's output is in {}", file.display());
    }
}

fn line(timeline: &Timeline, end: &SubjectEnd) -> Option<String> {
    let last = &totals(timeline.points.last()?, end);
    let mut parts = vec![
        format!(
            "{} minor faults{}, {} major",
            count(last.minor_faults),
            rate_words(last),
            count(last.major_faults)
        ),
        format!(
            "{} elapsed, {} user, {} system{}",
            elapsed_words(last.time),
            last.user,
            last.system,
            system_share(last)
        ),
    ];
    parts.extend(sizes(timeline, end));
    parts.extend(end.words());
    Some(parts.join("; "))
}

/// Below this time, readings of counters are not enough for a rate, or for how long a process that
/// we did not start was there.
const SHORTEST: Nanos = Nanos(1_000_000);

fn rate_words(last: &TimelinePoint) -> String {
    if last.time < SHORTEST {
        return String::new();
    }
    let rate = per_second(last.minor_faults, last.time);
    format!(" ({}/s)", count(rate))
}

fn elapsed_words(time: Nanos) -> String {
    if time < SHORTEST {
        return format!("less than {SHORTEST}");
    }
    time.to_string()
}

/// The largest sizes; `None` if a program ended before any could be read.
fn sizes(timeline: &Timeline, end: &SubjectEnd) -> Option<String> {
    let peak = |of: fn(&TimelinePoint) -> Bytes| timeline.points.iter().map(of).max();
    let by_wait = end.finished.as_ref().map(|finished| finished.cost.max_rss);
    let resident = match peak(|point| point.rss)? {
        Bytes(0) => by_wait?,
        seen => seen,
    };
    match peak(|point| point.vsize)? {
        Bytes(0) => Some(format!("peak RSS {resident}")),
        size => Some(format!("peak RSS {resident}, size {size}")),
    }
}

/// The last point, with the results of `wait4(2)`, which are exact at the end.
fn totals(last: &TimelinePoint, end: &SubjectEnd) -> TimelinePoint {
    let mut totals = *last;
    if let Some(finished) = &end.finished {
        let cost = &finished.cost;
        totals.time = cost.wall;
        totals.minor_faults = last.minor_faults.max(cost.minor_faults);
        totals.major_faults = last.major_faults.max(cost.major_faults);
        totals.user = last.user.max(cost.user);
        totals.system = last.system.max(cost.system);
    }
    totals
}

fn system_share(last: &TimelinePoint) -> String {
    let cpu = last.user + last.system;
    match last.system.0.saturating_mul(100).checked_div(cpu.0) {
        Some(percent) => format!(" ({percent} % of CPU time)"),
        None => String::new(),
    }
}

/// `count` in `time`, as a whole number per second.
pub fn per_second(count: u64, time: Nanos) -> u64 {
    let product = u128::from(count) * 1_000_000_000;
    let rate = product.checked_div(u128::from(time.0)).unwrap_or(0);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_tells_what_time_tells() {
        let point = TimelinePoint {
            time: Nanos::SECOND,
            rss: Bytes(64 << 20),
            vsize: Bytes(128 << 20),
            minor_faults: 49_500,
            user: Nanos(600_000_000),
            system: Nanos(200_000_000),
            ..TimelinePoint::default()
        };
        let timeline = Timeline {
            points: vec![point],
            ..Timeline::default()
        };
        let end = SubjectEnd {
            finished: None,
            output: None,
            note: None,
            was_asked: true,
        };
        assert_eq!(
            line(&timeline, &end).unwrap(),
            "49,500 minor faults (49,500/s), 0 major; 1.00 s elapsed, 600 ms user, 200 ms system \
             (25 % of CPU time); peak RSS 64.0 MiB, size 128 MiB"
        );
    }

    #[test]
    fn a_process_that_is_gone_at_once_has_no_rate_and_no_sizes() {
        let point = TimelinePoint {
            time: Nanos(1_070),
            minor_faults: 75,
            ..TimelinePoint::default()
        };
        let timeline = Timeline {
            points: vec![point],
            ..Timeline::default()
        };
        let end = SubjectEnd {
            finished: None,
            output: None,
            note: None,
            was_asked: false,
        };
        assert_eq!(
            line(&timeline, &end).unwrap(),
            "75 minor faults, 0 major; less than 1.00 ms elapsed, 0 ns user, 0 ns system"
        );
    }

    #[test]
    fn no_time_is_no_rate() {
        assert_eq!(per_second(5, Nanos(0)), 0);
    }
}
