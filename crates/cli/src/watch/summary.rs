//! The last words of `watch`: the numbers of time(1), on standard error.

use super::subject::SubjectEnd;
use pagewise_model::timeline::{Timeline, TimelinePoint};
use pagewise_model::units::{Bytes, Nanos};

/// Prints one line of numbers, and what else the user should know.
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
    let peak = |of: fn(&TimelinePoint) -> Bytes| timeline.points.iter().map(of).max();
    let mut parts = vec![
        format!(
            "{} minor faults ({}/s), {} major",
            grouped(last.minor_faults),
            grouped(per_second(last.minor_faults, last.time)),
            grouped(last.major_faults)
        ),
        format!(
            "{} elapsed, {} user, {} system{}",
            last.time,
            last.user,
            last.system,
            system_share(last)
        ),
        format!(
            "peak RSS {}, size {}",
            peak(|point| point.rss)?,
            peak(|point| point.vsize)?
        ),
    ];
    parts.extend(end.words());
    Some(parts.join("; "))
}

/// The last point, with what `wait4(2)` told: it knows the end to the nanosecond.
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

/// `count` in `time`, as a whole number a second.
pub fn per_second(count: u64, time: Nanos) -> u64 {
    let product = u128::from(count) * 1_000_000_000;
    let rate = product.checked_div(u128::from(time.0)).unwrap_or(0);
    u64::try_from(rate).unwrap_or(u64::MAX)
}

/// `23,099,385`
pub fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::with_capacity(digits.len() + digits.len() / 3);
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!(grouped(0), "0");
        assert_eq!(grouped(999), "999");
        assert_eq!(grouped(1000), "1,000");
        assert_eq!(grouped(23_099_385), "23,099,385");
    }

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
    fn no_time_is_no_rate() {
        assert_eq!(per_second(5, Nanos(0)), 0);
    }
}
