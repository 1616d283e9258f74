//! Elapsed time of a single-threaded program, corrected by the kernel's counters: each wait of the
//! thread is a wait of the program.

use super::combined;
use super::tasks::FOR_BLOCKS;
use pagewise_model::account::{Tasks, TimePart};
use pagewise_model::delays::Delays;
use pagewise_model::units::Estimate;

/// Sets the waits for disk blocks to the counted time, and the other parts to the rest.
pub(crate) fn count_waits(parts: &mut [TimePart], delays: Option<Delays>, tasks: Option<&Tasks>) {
    let alone = tasks.is_some_and(|tasks| !tasks.tells_apart());
    let counted = delays.and_then(|delays| delays.disk).filter(|_| alone);
    let Some(counted) = counted.map(|disk| disk.time.0 as f64) else {
        return;
    };
    let is_counted = |part: &TimePart| FOR_BLOCKS.contains(&&*part.id);
    let sum = |of: fn(&Estimate) -> f64, of_blocks: bool| -> f64 {
        let some = parts.iter().filter(|part| is_counted(part) == of_blocks);
        some.map(|part| of(&part.time)).sum()
    };
    let seen = Estimate {
        value: sum(|time| time.value, true),
        low: sum(|time| time.low, true),
        high: sum(|time| time.high, true),
    };
    let others = sum(|time| time.value, false);
    if seen.value <= 0.0 || others <= 0.0 {
        return;
    }
    let all = seen.value + others;
    let (time, _) = combined(Estimate::exact(counted.min(all)), seen);
    for part in parts {
        let share = part.time.value / seen.value;
        part.time = match is_counted(part) {
            true => time.scaled(share),
            false => part.time.scaled((all - time.value) / others),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_model::account::{ProcessTime, TaskSum};
    use pagewise_model::delays::Delay;
    use pagewise_model::units::Nanos;

    fn scaled(counted_ms: u64, threads: u64) -> Vec<f64> {
        let about = |millis: f64| Estimate {
            value: millis * 1e6,
            low: millis * 0.8e6,
            high: millis * 1.2e6,
        };
        let mut parts = [
            TimePart::plain("disk", "", about(500.0)),
            TimePart::plain("cpu", "", about(400.0)),
            TimePart::plain("sleep", "", about(100.0)),
        ];
        let process = ProcessTime {
            all: TaskSum {
                threads,
                ..TaskSum::default()
            },
            ..ProcessTime::default()
        };
        let tasks = Tasks {
            processes: vec![process],
            ..Tasks::default()
        };
        let delays = Delays {
            disk: Some(Delay {
                count: 1,
                time: Nanos(counted_ms * 1_000_000),
            }),
            ..Delays::default()
        };
        count_waits(&mut parts, Some(delays), Some(&tasks));
        parts.map(|part| part.time.value / 1e6).to_vec()
    }

    #[test]
    fn waits_of_one_thread_are_what_was_counted() {
        assert_eq!(scaled(550, 1), [550.0, 360.0, 90.0]);
        // With two threads, the waits may have overlapped.
        assert_eq!(scaled(550, 2), [500.0, 400.0, 100.0]);
        // A count that the looks contradict is not used: other waits are counted as waits for
        // blocks too.
        assert_eq!(scaled(10, 1), [500.0, 400.0, 100.0]);
    }
}
