//! Readings so far, and the part of them on the screen.

use pagewise_model::timeline::TimelinePoint;
use pagewise_model::units::Nanos;

/// A quantity at a time, both in plain units for drawing: seconds, and the plotted unit.
pub type Dot = (f64, f64);

/// CPU time comes in steps of 10 ms: a shorter span would show the steps, not the load.
const SHORTEST_CPU_STRETCH: Nanos = Nanos(500_000_000);

/// Maximum number of readings; beyond it, every second one of the older half is dropped. A day at
/// ten per second is 864,000.
const CAPACITY: usize = 1_000_000;

/// All readings, thinned out if there are too many.
#[derive(Default)]
pub struct History {
    points: Vec<TimelinePoint>,
}

/// Part of the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Window {
    /// First time shown.
    pub from: Nanos,
    /// Last time shown.
    pub to: Nanos,
}

impl History {
    /// Adds a reading.
    pub fn push(&mut self, point: TimelinePoint) {
        self.push_within(CAPACITY, point);
    }

    fn push_within(&mut self, capacity: usize, point: TimelinePoint) {
        if self.points.len() >= capacity {
            let half = capacity / 2;
            let mut at = 0;
            self.points.retain(|_| {
                at += 1;
                at > half || at % 2 == 0
            });
        }
        self.points.push(point);
    }

    /// The newest reading.
    #[must_use]
    pub fn last(&self) -> Option<&TimelinePoint> {
        self.points.last()
    }

    /// The newest reading at or before `time`.
    #[must_use]
    pub fn at(&self, time: Nanos) -> Option<&TimelinePoint> {
        let after = self.points.partition_point(|point| point.time <= time);
        self.points.get(after.checked_sub(1)?)
    }

    /// Readings in `window`, with one more on each side so that lines reach the edges.
    fn within(&self, window: Window) -> &[TimelinePoint] {
        let from = self
            .points
            .partition_point(|point| point.time < window.from);
        let to = self.points.partition_point(|point| point.time <= window.to);
        let range = from.saturating_sub(1)..(to + 1).min(self.points.len());
        self.points.get(range).unwrap_or_default()
    }

    /// A quantity over time; if several readings fall on one dot of the screen, the largest is
    /// shown.
    #[must_use]
    pub fn level(&self, window: Window, dots: usize, of: fn(&TimelinePoint) -> f64) -> Vec<Dot> {
        let points = self.within(window);
        let chunk = points.len().div_ceil(dots.max(1)).max(1);
        points
            .chunks(chunk)
            .filter_map(|chunk| {
                let last = chunk.last()?;
                Some((
                    last.time.as_secs_f64(),
                    chunk.iter().map(of).fold(0.0, f64::max),
                ))
            })
            .collect()
    }

    /// Growth per second of a cumulative quantity.
    #[must_use]
    pub fn rate(&self, window: Window, dots: usize, of: fn(&TimelinePoint) -> f64) -> Vec<Dot> {
        self.rate_over(Nanos(0), window, dots, of)
    }

    /// CPU used, as a share of one CPU in percent.
    #[must_use]
    pub fn cpu(&self, window: Window, dots: usize, of: fn(&TimelinePoint) -> f64) -> Vec<Dot> {
        self.rate_over(SHORTEST_CPU_STRETCH, window, dots, of)
    }

    fn rate_over(
        &self,
        shortest: Nanos,
        window: Window,
        dots: usize,
        of: fn(&TimelinePoint) -> f64,
    ) -> Vec<Dot> {
        let span = window.to - window.from;
        let step = Nanos(span.0 / u64::try_from(dots.max(1)).unwrap_or(1)).max(shortest);
        let points = self.within(window);
        let Some(mut begin) = points.first() else {
            return Vec::new();
        };
        let mut rates = Vec::new();
        for point in &points[1..] {
            let elapsed = point.time - begin.time;
            if elapsed >= step && elapsed.0 > 0 {
                let rate = (of(point) - of(begin)).max(0.0) / elapsed.as_secs_f64();
                rates.push((point.time.as_secs_f64(), rate));
                begin = point;
            }
        }
        rates
    }
}

/// Widths of the window that zooming steps through, in seconds.
const WIDTHS: [u64; 12] = [5, 10, 20, 30, 60, 120, 300, 600, 1800, 3600, 14400, 86400];
/// A minute: the widest window by default.
const DEFAULT_STEP: usize = 4;

/// The displayed part of the history: its width, and whether it follows new readings.
#[derive(Default)]
pub struct View {
    /// Index into [`WIDTHS`]; until the user chooses one, the whole history up to a minute.
    chosen: Option<usize>,
    /// Right edge while the view is paused.
    paused_at: Option<Nanos>,
}

impl View {
    /// The part to show when the newest reading is at `now`. A young history fills from the left.
    #[must_use]
    pub fn window(&self, now: Nanos) -> Window {
        let width = self.width(now);
        let to = self.paused_at.unwrap_or(now).max(width);
        Window {
            from: to - width,
            to,
        }
    }

    fn step(&self, now: Nanos) -> usize {
        let fitting = || {
            let narrow = WIDTHS[..DEFAULT_STEP].iter();
            narrow
                .take_while(|width| now.0 > **width * Nanos::SECOND.0)
                .count()
        };
        self.chosen.unwrap_or_else(fitting)
    }

    fn width(&self, now: Nanos) -> Nanos {
        Nanos(WIDTHS[self.step(now)] * Nanos::SECOND.0)
    }

    /// Whether the view is paused.
    #[must_use]
    pub fn is_paused(&self) -> bool {
        self.paused_at.is_some()
    }

    /// Pauses at `now`, or resumes.
    pub fn toggle_pause(&mut self, now: Nanos) {
        self.paused_at = match self.paused_at {
            Some(_) => None,
            None => Some(now),
        };
    }

    /// Shows a shorter span.
    pub fn zoom_in(&mut self, now: Nanos) {
        self.chosen = Some(self.step(now).saturating_sub(1));
    }

    /// Shows a longer span.
    pub fn zoom_out(&mut self, now: Nanos) {
        self.chosen = Some((self.step(now) + 1).min(WIDTHS.len() - 1));
    }

    /// Scrolls back by a quarter of a screen.
    pub fn scroll_back(&mut self, now: Nanos) {
        let width = self.width(now);
        let edge = self.paused_at.unwrap_or(now);
        self.paused_at = Some((edge - Nanos(width.0 / 4)).max(width.min(now)));
    }

    /// Scrolls forward by a quarter of a screen; follows new readings again at the end.
    pub fn scroll_forward(&mut self, now: Nanos) {
        let quarter = Nanos(self.width(now).0 / 4);
        self.paused_at = self
            .paused_at
            .map(|edge| edge + quarter)
            .filter(|edge| *edge < now);
    }

    /// Jumps to the newest reading.
    pub fn follow(&mut self) {
        self.paused_at = None;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn second(count: u64) -> Nanos {
        Nanos(count * Nanos::SECOND.0)
    }

    /// A reading each 100 ms for 100 s, 50 faults each.
    fn history() -> History {
        let mut history = History::default();
        for at in 0..=1000 {
            history.push(TimelinePoint {
                time: Nanos(at * 100_000_000),
                minor_faults: at * 50,
                user: Nanos(at / 10 * 500_000_000),
                ..TimelinePoint::default()
            });
        }
        history
    }

    fn faults(point: &TimelinePoint) -> f64 {
        point.minor_faults as f64
    }

    #[test]
    fn a_steady_rate_is_flat_at_every_zoom() {
        let history = history();
        let window = Window {
            from: second(40),
            to: second(100),
        };
        for dots in [20, 100, 5000] {
            let rates = history.rate(window, dots, faults);
            assert!(
                rates.len() <= dots + 1 && rates.len() >= 15,
                "{dots}: {}",
                rates.len()
            );
            assert!(rates.iter().all(|(_, rate)| (rate - 500.0).abs() < 1e-6));
            assert!(rates[0].0 >= 40.0 && rates.last().unwrap().0 >= 96.0);
        }
    }

    #[test]
    fn cpu_steps_of_the_clock_are_smoothed() {
        let window = Window {
            from: second(10),
            to: second(20),
        };
        let cpu = history().cpu(window, 10_000, |point| point.user.as_secs_f64() * 100.0);
        let mean = cpu.iter().map(|(_, percent)| percent).sum::<f64>() / f64::from(20);
        assert!((mean - 50.0).abs() < 6.0, "{cpu:?}");
        assert_eq!(cpu.len(), 20);
    }

    #[test]
    fn a_long_history_is_thinned_and_stays_in_order() {
        let mut history = History::default();
        for at in 0..1_005 {
            let point = TimelinePoint {
                time: Nanos(at),
                ..TimelinePoint::default()
            };
            history.push_within(1_000, point);
        }
        // A quarter is gone, and five came after that.
        assert_eq!(history.points.len(), 755);
        assert!(history.points.is_sorted_by_key(|point| point.time));
        assert_eq!(history.last().unwrap().time.0, 1_004);
    }

    #[test]
    fn scrolling_back_and_forward_ends_at_the_newest() {
        let now = second(600);
        let mut view = View::default();
        assert_eq!(view.window(now).from, second(540));
        view.scroll_back(now);
        assert_eq!(view.window(now).to, second(585));
        assert!(view.is_paused());
        view.scroll_forward(now);
        assert!(!view.is_paused());
        for _ in 0..100 {
            view.scroll_back(now);
        }
        assert_eq!(view.window(now).from, second(0));
        view.follow();
        view.toggle_pause(now);
        assert_eq!(view.window(second(900)).to, now);
    }

    #[test]
    fn a_young_history_fills_from_the_left() {
        let window = View::default().window(second(3));
        assert_eq!((window.from, window.to), (second(0), second(5)));
        let mut view = View::default();
        assert_eq!(view.window(second(25)).to, second(30));
        view.zoom_out(second(25));
        assert_eq!(view.window(second(25)).to, second(60));
        view.zoom_in(second(25));
        view.zoom_in(second(25));
        assert_eq!(view.window(second(25)).from, second(5));
    }
}
