//! Faults that were recorded in windows only: the number of faults that each stands for.

use pagewise_model::units::Nanos;

/// Windows with their share of the adjacent pauses.
#[derive(Clone, Debug, Default)]
pub(super) struct WindowWeights {
    /// The windows, in time order.
    windows: Vec<Window>,
    /// Index of the window of the newest fault: faults come in time order.
    at: usize,
}

#[derive(Clone, Copy, Debug)]
struct Window {
    end: Nanos,
    length: u64,
    stands_for: u64,
    /// The pause after it.
    rest: u64,
}

impl WindowWeights {
    /// A window stands for itself and for half of each adjacent pause; the last one for all of the
    /// pause after it, which is known if there is an empty window at the end of the recording.
    pub(super) fn new(windows: &[(Nanos, Nanos)]) -> Self {
        let last = windows.last().filter(|(begin, end)| begin == end);
        let ended = last.map(|&(begin, _)| begin);
        let windows = &windows[..windows.len() - usize::from(ended.is_some())];
        let pause = |before: usize| {
            let (earlier, later) = (windows.get(before), windows.get(before + 1));
            match (earlier, later) {
                (Some(&(_, end)), Some(&(begin, _))) => (begin - end).0,
                _ => 0,
            }
        };
        let behind = |at: usize, end: Nanos| match ended {
            Some(ended) if at + 1 == windows.len() => (ended - end).0,
            _ => 0,
        };
        let stretch = |(at, &(begin, end)): (usize, &(Nanos, Nanos))| {
            let length = (end - begin).0.max(1);
            let before = at.checked_sub(1).map_or(0, pause);
            Window {
                end,
                length,
                stands_for: length + before / 2 + pause(at) / 2 + behind(at, end),
                rest: pause(at) + behind(at, end),
            }
        };
        Self {
            windows: windows.iter().enumerate().map(stretch).collect(),
            at: 0,
        }
    }

    /// Index of the window of the newest fault; [`Self::count`] after the last one.
    pub(super) fn at(&self) -> usize {
        self.at
    }

    /// Number of windows.
    pub(super) fn count(&self) -> usize {
        self.windows.len()
    }

    /// Whether faults went unrecorded between windows.
    pub(super) fn has_rests(&self) -> bool {
        self.windows.iter().any(|window| window.rest > 0)
    }

    /// Nanoseconds that a window stands for.
    pub(super) fn stretch(&self, window: usize) -> Option<f64> {
        self.windows.get(window).map(|w| w.stands_for as f64)
    }

    /// Nanoseconds between a window and the next one, or the end of the recording.
    pub(super) fn rest_behind(&self, window: usize) -> f64 {
        self.windows.get(window).map_or(0.0, |w| w.rest as f64)
    }

    /// Number of faults that a fault recorded at `time` with this `period` stands for. After the
    /// last window, or without windows: `period`.
    pub(super) fn stands_for(&mut self, period: u64, time: Nanos) -> u64 {
        while self.windows.get(self.at).is_some_and(|w| w.end < time) {
            self.at += 1;
        }
        let Some(window) = self.windows.get(self.at) else {
            return period;
        };
        let faults = u128::from(period) * u128::from(window.stands_for);
        let rounded = (faults + u128::from(window.length) / 2) / u128::from(window.length);
        u64::try_from(rounded).unwrap_or(u64::MAX)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fault_stands_for_half_of_the_pauses_beside_its_window() {
        let windows = [(Nanos(0), Nanos(100)), (Nanos(300), Nanos(400))];
        let mut weights = WindowWeights::new(&windows);
        assert_eq!(weights.stands_for(499, Nanos(50)), 998);
        assert_eq!(weights.stands_for(1, Nanos(350)), 2);
        assert_eq!(weights.stands_for(7, Nanos(900)), 7);
    }

    #[test]
    fn all_windows_together_stand_for_the_whole_time() {
        let windows = [(10, 50), (260, 310), (500, 560), (560, 570)];
        let weights = WindowWeights::new(&windows.map(|(from, to)| (Nanos(from), Nanos(to))));
        let total: u64 = weights.windows.iter().map(|window| window.stands_for).sum();
        assert_eq!(total, 570 - 10);
    }

    #[test]
    fn the_last_window_stands_for_the_rest_of_the_recording() {
        let windows = [(Nanos(0), Nanos(100)), (Nanos(400), Nanos(400))];
        let mut weights = WindowWeights::new(&windows);
        assert_eq!(weights.stands_for(10, Nanos(50)), 40);
    }

    #[test]
    fn without_windows_a_fault_stands_for_its_period() {
        assert_eq!(WindowWeights::default().stands_for(61, Nanos(5)), 61);
    }
}
