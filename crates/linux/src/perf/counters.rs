//! Counters next to a recording: what `perf stat` shows, over time.
//!
//! Counting costs next to nothing, unlike sampling, so these run all the time. A counter that the
//! machine lacks (most virtual machines have none of the CPU's) is left out and named.

use super::{Target, opening, threads};
use crate::proc::ProcRoot;
use crate::sys::perf_event::{self, Counted, EventFd, SCALED_FORMAT, monotonic_now};
use pagewise_model::recording::Counter;
use pagewise_model::units::Nanos;
use perf_event_open_sys::bindings::{self, perf_event_attr};
use std::path::Path;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

/// Events of the last-level cache and the TLB encode cache id, operation and result in one word
const DTLB_LOADS_MISSED: u64 = 3 | 1 << 16;

/// Counted events, by perf's names. Faults are not among them: `/proc` counts them exactly, and an
/// open fault event makes each fault slower.
const COUNTERS: [(&str, u32, u64); 9] = [
    (
        "cycles",
        bindings::PERF_TYPE_HARDWARE,
        bindings::PERF_COUNT_HW_CPU_CYCLES as u64,
    ),
    (
        "instructions",
        bindings::PERF_TYPE_HARDWARE,
        bindings::PERF_COUNT_HW_INSTRUCTIONS as u64,
    ),
    (
        "cache-references",
        bindings::PERF_TYPE_HARDWARE,
        bindings::PERF_COUNT_HW_CACHE_REFERENCES as u64,
    ),
    (
        "cache-misses",
        bindings::PERF_TYPE_HARDWARE,
        bindings::PERF_COUNT_HW_CACHE_MISSES as u64,
    ),
    (
        "bus-cycles",
        bindings::PERF_TYPE_HARDWARE,
        bindings::PERF_COUNT_HW_BUS_CYCLES as u64,
    ),
    (
        "dTLB-load-misses",
        bindings::PERF_TYPE_HW_CACHE,
        DTLB_LOADS_MISSED,
    ),
    (
        "task-clock",
        bindings::PERF_TYPE_SOFTWARE,
        bindings::PERF_COUNT_SW_TASK_CLOCK as u64,
    ),
    (
        "context-switches",
        bindings::PERF_TYPE_SOFTWARE,
        bindings::PERF_COUNT_SW_CONTEXT_SWITCHES as u64,
    ),
    (
        "cpu-migrations",
        bindings::PERF_TYPE_SOFTWARE,
        bindings::PERF_COUNT_SW_CPU_MIGRATIONS as u64,
    ),
];

/// With more descriptors than this, counters are read only at the start and the end: reading
/// thousands of them each time would cost more than it is worth.
const OFTEN: usize = 400;

/// Running counters.
#[derive(Debug)]
pub struct Counters {
    stop: Sender<()>,
    thread: JoinHandle<Vec<Counter>>,
    missing: Vec<&'static str>,
}

/// One counter, for each thread or CPU.
struct Open {
    name: &'static str,
    events: Vec<EventFd>,
    last: f64,
    times: Counted,
    points: Vec<(Nanos, f64)>,
}

impl Counters {
    /// Opens the counters that the machine has, for all threads of the target (and those that they
    /// start later), and reads them every `interval`. `None` if nothing can be counted.
    #[must_use]
    pub fn start(target: &Target, interval: Duration) -> Option<Self> {
        let (mut open, mut missing) = (Vec::new(), Vec::new());
        for (name, kind, config) in COUNTERS {
            match open_all(target, kind, config, name) {
                Some(events) => open.push(Open {
                    name,
                    events,
                    last: 0.0,
                    times: Counted::default(),
                    points: Vec::new(),
                }),
                None => missing.push(name),
            }
        }
        let descriptors: usize = open.iter().map(|counter| counter.events.len()).sum();
        if descriptors == 0 {
            return None;
        }
        let interval = match descriptors {
            0..=OFTEN => interval,
            _ => Duration::MAX,
        };
        let (stop, stopped) = channel();
        let thread = std::thread::Builder::new()
            .name("pagewise-counter".to_owned())
            .spawn(move || {
                loop {
                    let waited = stopped.recv_timeout(interval.min(Duration::from_secs(1 << 30)));
                    open.iter_mut().for_each(Open::take);
                    if waited != Err(RecvTimeoutError::Timeout) {
                        return open.into_iter().filter_map(Open::finish).collect();
                    }
                }
            })
            .ok()?;
        Some(Self {
            stop,
            thread,
            missing,
        })
    }

    /// Names of the counters that this machine lacks.
    #[must_use]
    pub fn missing(&self) -> &[&'static str] {
        &self.missing
    }

    /// Reads once more and returns everything.
    #[must_use]
    pub fn stop(self) -> Vec<Counter> {
        // The thread keeps the other end open until it gets this message.
        let _ = self.stop.send(());
        self.thread.join().unwrap_or_default()
    }
}

impl Open {
    fn take(&mut self) {
        let now = monotonic_now();
        let mut sum = 0.0;
        let mut times = Counted::default();
        for counted in self
            .events
            .iter()
            .filter_map(|event| event.read_counted().ok())
        {
            sum += counted.scaled().unwrap_or(0.0);
            times.enabled += counted.enabled;
            times.running += counted.running;
        }
        // Each scaling is a new estimate, so a sum may come out smaller than the one before.
        self.points.push((now, (sum - self.last).max(0.0)));
        self.last = self.last.max(sum);
        self.times = times;
    }

    /// `None` for a counter that never ran: its value is unknown, not zero.
    fn finish(self) -> Option<Counter> {
        if self.times.running == 0 {
            return None;
        }
        let counted = self.times.running as f64 / self.times.enabled.max(1) as f64;
        Some(Counter {
            name: self.name.to_owned(),
            counted,
            points: self.points,
        })
    }
}

/// Software events that the kernel raises in its own code: without privileges they are never
/// counted, and their 0 would look like a measurement (`perf_exclude_event`, kernel/events/core.c).
const RAISED_IN_KERNEL: [&str; 2] = ["context-switches", "cpu-migrations"];

fn open_all(target: &Target, kind: u32, config: u64, name: &str) -> Option<Vec<EventFd>> {
    let mut attr = perf_event_attr::default();
    (attr.type_, attr.config, attr.read_format) = (kind, config, SCALED_FORMAT);
    attr.set_exclude_hv(1);
    let places: Vec<(i32, i32)> = match target {
        Target::Gated(pid) => vec![(*pid, -1)],
        Target::Pids(pids) => {
            let threads = opening::threads_of(pids, &ProcRoot::default());
            threads.into_iter().map(|tid| (tid, -1)).collect()
        }
        Target::System => {
            let cpus = threads::online_cpus(Path::new("/sys"));
            cpus.into_iter().map(|cpu| (-1, cpu)).collect()
        }
    };
    attr.set_inherit(u64::from(*target != Target::System));
    if matches!(target, Target::Gated(_)) {
        attr.set_disabled(1);
        attr.set_enable_on_exec(1);
    }
    let mut events = Vec::with_capacity(places.len());
    for (tid, cpu) in places {
        match perf_event::open(&mut attr, tid, cpu, None) {
            Ok(event) => events.push(event),
            // Without privileges, events of the kernel are not counted.
            Err(error) if error.raw_os_error() == Some(libc::EACCES) => {
                if RAISED_IN_KERNEL.contains(&name) {
                    return None;
                }
                attr.set_exclude_kernel(1);
                events.push(perf_event::open(&mut attr, tid, cpu, None).ok()?);
            }
            // The thread has ended meanwhile.
            Err(error) if error.raw_os_error() == Some(libc::ESRCH) => {}
            Err(_) => return None,
        }
    }
    (!events.is_empty()).then_some(events)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sys::machine;

    #[test]
    fn our_own_time_and_switches_are_counted() {
        let ours = i32::try_from(std::process::id()).unwrap();
        let Some(counters) = Counters::start(&Target::Pids(vec![ours]), Duration::from_millis(5))
        else {
            skipped!("perf events are not allowed here");
            return;
        };
        // By the CPU's clock: on a busy machine, elapsed time is mostly that of others.
        let until = machine::thread_cpu_time() + Nanos(30_000_000);
        while machine::thread_cpu_time() < until {
            std::hint::black_box(until);
        }
        // A switch.
        std::thread::sleep(Duration::from_millis(1));
        let counted = counters.stop();
        let sum = |name: &str| {
            let counter = counted.iter().find(|counter| counter.name == name)?;
            Some(counter.points.iter().map(|(_, value)| value).sum::<f64>())
        };
        assert!(sum("task-clock").is_some_and(|ns| ns > 2e7), "{counted:?}");
        // Without privileges the kernel's own events are absent; a 0 would look like a measurement.
        assert!(
            sum("context-switches").is_none_or(|count| count >= 1.0),
            "{counted:?}"
        );
        if perf_event::is_root() {
            assert!(sum("context-switches").is_some());
        }
    }
}
