//! Reads a process tree at a steady beat, on a separate thread, into a [`Timeline`].
//!
//! The beat does not drift: each reading is due at a multiple of the interval after the first. It
//! widens by itself if a reading costs more than 1 % of a CPU, and a note records this. Figures
//! that cost more than a few microseconds (proportional set size, pressure) have a slower beat of
//! their own.
//!
//! [`Sampler::start`] takes the first reading before it returns, so that "since observation
//! started" means since that call.

use super::ProcessReading;
use super::reading::{Probe, Reading};
use super::sampler_options::{SHORTEST_INTERVAL, SamplerOptions};
use crate::sys::machine;
use pagewise_model::run::RunCost;
use pagewise_model::timeline::{PressurePoint, Timeline, TimelinePoint};
use pagewise_model::units::Nanos;
use std::sync::{Arc, Condvar, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

/// Readings closer than this are merged into one.
const JUST_NOW: Nanos = Nanos(10_000_000);

/// A reading may cost one part in this many of the interval: 1 % of a CPU.
const COST_SHARE: u64 = 100;

/// This many readings in a row must be too costly before the interval is widened: a single one may
/// have been preempted.
const COSTLY_IN_A_ROW: u32 = 8;

/// A running sampler. Dropping it ends it too.
#[derive(Debug)]
pub struct Sampler {
    stop: Arc<Stop>,
    thread: Option<JoinHandle<Timeline>>,
    /// The timeline if no thread could be started.
    alone: Timeline,
}

/// Tells a waiting thread to end.
#[derive(Debug, Default)]
pub(super) struct Stop {
    wanted: Mutex<bool>,
    changed: Condvar,
}

impl Sampler {
    /// Starts to read `pid` and its descendants each `interval`.
    ///
    /// Never fails: if the process is gone or unreadable, the timeline is empty and its notes
    /// explain why.
    #[must_use]
    pub fn start(pid: i32, interval: Duration) -> Self {
        Self::start_with(pid, SamplerOptions::every(interval), |_, _, _| {})
    }

    /// The same with options; `observe` gets each point with its processes, and the pressure if
    /// that was read, too; the first point on the caller's thread.
    #[must_use]
    pub fn start_with(
        pid: i32,
        options: SamplerOptions,
        observe: impl FnMut(&TimelinePoint, &[ProcessReading], Option<&PressurePoint>) + Send + 'static,
    ) -> Self {
        let mut beat = Beat::new(pid, options, Box::new(observe));
        beat.take();
        let stop = Arc::new(Stop::default());
        let watched = Arc::clone(&stop);
        let thread = std::thread::Builder::new()
            .name("pagewise-timeline".to_string())
            .spawn(move || beat.run(&watched));
        let mut alone = Timeline::default();
        if let Err(error) = &thread {
            let note = format!("No timeline: no thread could be started for it ({error}).");
            alone.notes.push(note);
        }
        Self {
            stop,
            thread: thread.ok(),
            alone,
        }
    }

    /// Takes the last reading and returns everything. Does not wait for the next beat: a waiting
    /// sampler is woken.
    #[must_use]
    pub fn stop(mut self) -> Timeline {
        self.stop.now();
        let Some(thread) = self.thread.take() else {
            return std::mem::take(&mut self.alone);
        };
        thread.join().unwrap_or_else(|_| Timeline {
            notes: vec!["The timeline was lost: its thread failed.".to_string()],
            ..Timeline::default()
        })
    }

    /// Like [`stop`](Self::stop), for a root process that was already waited for: its last counters
    /// can no longer be read, so the last point takes them from the result of `wait4(2)`.
    #[must_use]
    pub fn stop_after(self, cost: &RunCost) -> Timeline {
        let mut timeline = self.stop();
        if let Some(last) = timeline.points.last_mut() {
            last.minor_faults = last.minor_faults.max(cost.minor_faults);
            last.major_faults = last.major_faults.max(cost.major_faults);
            last.user = last.user.max(cost.user);
            last.system = last.system.max(cost.system);
        }
        timeline
    }
}

impl Drop for Sampler {
    fn drop(&mut self) {
        self.stop.now();
    }
}

impl Stop {
    pub(super) fn now(&self) {
        *self.wanted.lock().unwrap_or_else(PoisonError::into_inner) = true;
        self.changed.notify_all();
    }

    /// Waits until `deadline` (indefinitely without one); true if a stop came first.
    pub(super) fn wait_until(&self, deadline: Option<Instant>) -> bool {
        let mut wanted = self.wanted.lock().unwrap_or_else(PoisonError::into_inner);
        while !*wanted {
            wanted = match deadline.map(|at| at.saturating_duration_since(Instant::now())) {
                Some(left) if left.is_zero() => return false,
                Some(left) => {
                    let woken = self.changed.wait_timeout(wanted, left);
                    woken.unwrap_or_else(PoisonError::into_inner).0
                }
                None => self
                    .changed
                    .wait(wanted)
                    .unwrap_or_else(PoisonError::into_inner),
            };
        }
        true
    }
}

type Observer = Box<dyn FnMut(&TimelinePoint, &[ProcessReading], Option<&PressurePoint>) + Send>;

/// The thread's state.
struct Beat {
    probe: Probe,
    began: Instant,
    interval: Duration,
    pace: Pace,
    timeline: Timeline,
    ended: bool,
    observe: Observer,
}

impl Beat {
    fn new(pid: i32, options: SamplerOptions, observe: Observer) -> Self {
        let interval = options.interval.max(SHORTEST_INTERVAL);
        let mut timeline = Timeline {
            interval: Nanos::from(interval),
            ..Timeline::default()
        };
        let probe = Probe::new(pid, options, &mut timeline.notes);
        Self {
            ended: probe.is_empty(),
            probe,
            began: Instant::now(),
            interval,
            pace: Pace::default(),
            timeline,
            observe,
        }
    }

    fn run(mut self, stop: &Stop) -> Timeline {
        let mut due = self.began + self.interval;
        while !stop.wait_until((!self.ended).then_some(due)) {
            self.take();
            due += self.interval;
            let now = Instant::now();
            while due <= now {
                due += self.interval;
                self.timeline.gaps += 1;
            }
        }
        self.take();
        self.take_last_pressure();
        self.timeline.notes.append(&mut self.probe.notes);
        self.timeline
    }

    /// The machine's counts after the last reading belong to the run. A reading from just before is
    /// replaced, so that no rate covers next to no time.
    fn take_last_pressure(&mut self) {
        let end = Nanos::from(self.began.elapsed());
        let Some(last) = self.probe.last_pressure(end) else {
            return;
        };
        let all = &mut self.timeline.pressure;
        if all.len() > 1 && all.last().is_some_and(|one| end - one.time < JUST_NOW) {
            all.pop();
        }
        all.push(last);
    }

    /// Takes one reading, unless the tree has ended.
    fn take(&mut self) {
        if self.ended {
            return;
        }
        let begin = machine::thread_cpu_time();
        let reading = self.probe.read(Nanos::from(self.began.elapsed()));
        let cost = machine::thread_cpu_time() - begin;
        self.keep(&reading);
        self.widen(cost, reading.point.processes);
    }

    fn keep(&mut self, reading: &Reading) {
        self.ended = reading.point.processes == 0;
        self.timeline.gaps += u64::from(reading.unreadable > 0);
        self.timeline.points.push(reading.point);
        self.timeline.pressure.extend(reading.pressure);
        (self.observe)(
            &reading.point,
            &reading.processes,
            reading.pressure.as_ref(),
        );
    }

    fn widen(&mut self, cost: Nanos, processes: u32) {
        let Some(interval) = self.pace.judge(cost, self.interval) else {
            return;
        };
        self.timeline.notes.push(format!(
            "One reading of {processes} processes took {cost} of CPU time, so the timeline's interval was widened from {} to {}, to stay below 1 % of a CPU.",
            Nanos::from(self.interval),
            Nanos::from(interval),
        ));
        self.interval = interval;
    }
}

/// Decides whether the beat is too fast for its cost.
#[derive(Debug, Default)]
struct Pace {
    costly_in_a_row: u32,
    cheapest: Nanos,
}

impl Pace {
    /// A longer interval, once readings have been too costly for long enough.
    fn judge(&mut self, cost: Nanos, interval: Duration) -> Option<Duration> {
        let budget = Nanos(Nanos::from(interval).0 / COST_SHARE);
        if cost <= budget {
            self.costly_in_a_row = 0;
            return None;
        }
        self.cheapest = match self.costly_in_a_row {
            0 => cost,
            _ => self.cheapest.min(cost),
        };
        self.costly_in_a_row += 1;
        if self.costly_in_a_row < COSTLY_IN_A_ROW {
            return None;
        }
        self.costly_in_a_row = 0;
        let needed = Duration::from_nanos(self.cheapest.0.saturating_mul(COST_SHARE));
        let doublings = (0..16).map(|power| interval * (1 << power));
        doublings.into_iter().find(|longer| *longer >= needed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::proc::ProcRoot;
    use pagewise_model::units::Bytes;
    use std::io::{BufRead, BufReader, Write};
    use std::process::{Command, Stdio};
    use std::sync::mpsc;

    #[test]
    fn points_cover_the_start_and_the_stop() {
        let mut child = Command::new("sh")
            .args(["-c", "echo ready; read line"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        assert_eq!(output.lines().next().unwrap().unwrap(), "ready");
        let pid = i32::try_from(child.id()).unwrap();
        let (sender, receiver) = mpsc::channel();
        let hour = SamplerOptions::every(Duration::from_secs(3600));
        let sampler = Sampler::start_with(pid, hour, move |point, processes, _| {
            sender.send((*point, processes.len())).unwrap();
        });
        let (first, processes) = receiver.try_recv().unwrap();
        assert_eq!((first.processes, processes), (1, 1));
        let begin = Instant::now();
        let timeline = sampler.stop();
        assert!(
            begin.elapsed() < Duration::from_secs(60),
            "stop must not wait for the beat"
        );
        child.kill().unwrap();
        child.wait().unwrap();
        assert_eq!(timeline.points.len(), 2);
        assert_eq!(timeline.points[0], first);
        assert!(timeline.points[0].pss.is_some(), "{timeline:?}");
        assert!(timeline.points[1].rss > Bytes(0), "{timeline:?}");
        assert_eq!(timeline.pressure.len(), 2, "at the start and at the end");
    }

    #[test]
    fn children_that_end_are_counted_once() {
        let script = "echo ready; read line; for i in 1 2 3 4 5 6 7 8; do sh -c 'true; true'; \
                      done; echo done; read line";
        let mut child = Command::new("sh")
            .args(["-c", script])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let mut input = child.stdin.take().unwrap();
        let mut output = BufReader::new(child.stdout.take().unwrap()).lines();
        let faults = || {
            let stat = ProcRoot::default().stat(pid).unwrap().unwrap();
            stat.minor_faults + stat.children_minor_faults
        };
        output.next().unwrap().unwrap();
        let before_start = faults();
        let sampler = Sampler::start(pid, SHORTEST_INTERVAL);
        let after_start = faults();
        input.write_all(b"go\n").unwrap();
        output.next().unwrap().unwrap();
        let before_stop = faults();
        let timeline = sampler.stop();
        let after_stop = faults();
        drop(input);
        child.wait().unwrap();
        let points = timeline.points.iter();
        let counted: Vec<u64> = points.map(|point| point.minor_faults).collect();
        assert!(counted.is_sorted(), "{counted:?}");
        let truth = before_stop - after_start..=after_stop - before_start;
        assert!(
            truth.contains(counted.last().unwrap()),
            "{counted:?}, {truth:?}"
        );
        assert!(
            *truth.start() > 8 * 20,
            "eight shells fault more than {truth:?}"
        );
    }

    #[test]
    fn a_process_that_is_gone_gives_a_note() {
        let mut child = Command::new("true").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        child.wait().unwrap();
        let timeline = Sampler::start(pid, SHORTEST_INTERVAL).stop();
        assert!(timeline.points.is_empty());
        assert!(timeline.notes[0].contains(&format!("no process {pid}")));
    }

    #[test]
    fn what_wait_told_completes_the_last_point() {
        let mut child = Command::new("sleep").arg("60").spawn().unwrap();
        let pid = i32::try_from(child.id()).unwrap();
        let sampler = Sampler::start(pid, SHORTEST_INTERVAL);
        child.kill().unwrap();
        child.wait().unwrap();
        // More of both than a sleep has; it has major faults too if its file was not cached.
        let cost = RunCost {
            minor_faults: 1_000_000,
            major_faults: 2_000_000,
            ..RunCost::default()
        };
        let timeline = sampler.stop_after(&cost);
        let last = timeline.points.last().unwrap();
        assert_eq!(
            (last.minor_faults, last.major_faults),
            (1_000_000, 2_000_000)
        );
    }

    #[test]
    fn several_costly_readings_widen_the_interval() {
        let mut pace = Pace::default();
        let interval = Duration::from_millis(100);
        let (cheap, costly) = (Nanos(50_000), Nanos(3_100_000));
        for _ in 0..COSTLY_IN_A_ROW - 1 {
            assert_eq!(pace.judge(costly, interval), None);
        }
        assert_eq!(pace.judge(cheap, interval), None);
        for _ in 0..COSTLY_IN_A_ROW - 1 {
            assert_eq!(pace.judge(costly, interval), None);
        }
        let wider = pace.judge(costly, interval);
        assert_eq!(wider, Some(Duration::from_millis(400)));
    }
}
