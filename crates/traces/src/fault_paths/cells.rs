//! Sums over the faults of one shape by duration: they show what distinguishes slow faults from
//! fast ones.
//!
//! A cell contains the faults of a shape whose whole time falls into one interval of 9 %, with the
//! self time of each of their calls. For any threshold chosen later, and any cost of the tracer
//! found later, the tail's functions follow from the cells by addition.

use super::tally::reduce;
use pagewise_model::histogram::bucket_of;

/// Histogram buckets (128 per power of two) in one cell: eight cells per power of two.
const BUCKETS: u32 = 16;

/// Time of a fault apart from its work on the CPU, ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Waits {
    pub runnable: u64,
    pub blocked: u64,
    /// Off the CPU for an unknown reason.
    pub unknown: u64,
    /// Waiting for the lock before the fault.
    pub lock: u64,
}

impl Waits {
    pub(crate) fn sum(self) -> u64 {
        let off = self.runnable.saturating_add(self.blocked);
        off.saturating_add(self.unknown).saturating_add(self.lock)
    }

    fn add(&mut self, other: Self) {
        self.runnable += other.runnable;
        self.blocked += other.blocked;
        self.unknown += other.unknown;
        self.lock += other.lock;
    }
}

/// Faults of one shape that took about equally long.
#[derive(Clone, Debug)]
pub(crate) struct Cell {
    key: u32,
    pub faults: u64,
    /// Whole time, ns.
    pub whole: u64,
    pub waits: Waits,
    /// Self time by node of the shape, ns.
    pub own: Box<[u64]>,
}

/// The cells of a shape, from fast to slow.
#[derive(Clone, Debug, Default)]
pub(crate) struct Cells(Vec<Cell>);

impl Cells {
    /// Adds a fault that spent `on` ns on the CPU.
    #[inline]
    pub(super) fn add(&mut self, on: u64, waits: Waits, own: impl ExactSizeIterator<Item = u64>) {
        let whole = on.saturating_add(waits.sum());
        let key = bucket_of(whole) / BUCKETS;
        let at = match self.0.binary_search_by_key(&key, |cell| cell.key) {
            Ok(at) => at,
            Err(at) => {
                self.0.insert(at, Cell::new(key, own.len()));
                at
            }
        };
        let cell = &mut self.0[at];
        cell.faults += 1;
        cell.whole = cell.whole.saturating_add(whole);
        cell.waits.add(waits);
        for (sum, own) in cell.own.iter_mut().zip(own) {
            *sum += own;
        }
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &Cell> {
        self.0.iter()
    }
}

impl Cell {
    fn new(key: u32, nodes: usize) -> Self {
        Self {
            key,
            faults: 0,
            whole: 0,
            waits: Waits::default(),
            own: vec![0; nodes].into(),
        }
    }

    /// Mean whole time minus the tracer's `cost` of one such fault, ns.
    pub(crate) fn mean_ns(&self, cost: f64) -> f64 {
        self.whole as f64 / self.faults.max(1) as f64 - cost
    }
}

/// One fault, without its calls.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Logged {
    pub shape: u32,
    /// Its number among all faults of the trace.
    pub number: u64,
    /// When it ended, by the trace's clock.
    pub end_ns: Option<u64>,
    /// Time on the CPU, as traced.
    pub on: u64,
    pub waits: Waits,
    /// Start of its times by layer in [`FaultLog::layers`].
    layers: u32,
}

impl Logged {
    /// Whole time as traced.
    pub(crate) fn whole(&self) -> u64 {
        self.on.saturating_add(self.waits.sum())
    }

    /// Whole time without the tracer's `cost`.
    pub(crate) fn corrected(&self, cost: f64) -> u64 {
        reduce(self.whole(), cost)
    }
}

/// Faults in a log; a longer one is thinned evenly. 56 bytes each, and 8 for each layer.
const MOST_LOGGED: usize = 1 << 18;

/// The faults in the order in which they ended; if there are many, every second, fourth, …
#[derive(Clone, Debug)]
pub(crate) struct FaultLog {
    pub faults: Vec<Logged>,
    layers: Vec<u64>,
    /// One fault in this many is logged.
    pub every: u64,
    met: u64,
}

impl Default for FaultLog {
    fn default() -> Self {
        Self {
            faults: Vec::new(),
            layers: Vec::new(),
            every: 1,
            met: 0,
        }
    }
}

impl FaultLog {
    /// Adds a fault with the times of its shape's layers, in the order of the layers.
    #[inline]
    pub(super) fn add(
        &mut self,
        shape: usize,
        end_ns: Option<u64>,
        on: u64,
        waits: Waits,
        layers: impl Iterator<Item = u64>,
    ) {
        let number = self.met;
        self.met += 1;
        if !number.is_multiple_of(self.every) {
            return;
        }
        if self.faults.len() >= MOST_LOGGED {
            self.thin();
            if !number.is_multiple_of(self.every) {
                return;
            }
        }
        self.faults.push(Logged {
            shape: u32::try_from(shape).unwrap_or(u32::MAX),
            number,
            end_ns,
            on,
            waits,
            layers: u32::try_from(self.layers.len()).unwrap_or(u32::MAX),
        });
        self.layers.extend(layers);
    }

    /// A fault's times by layer as traced, in the order of its shape's layers.
    pub(crate) fn layers(&self, fault: usize) -> &[u64] {
        let from = self.faults[fault].layers as usize;
        let next = self.faults.get(fault + 1);
        let to = next.map_or(self.layers.len(), |next| next.layers as usize);
        &self.layers[from..to]
    }

    #[cold]
    fn thin(&mut self) {
        let mut kept = Vec::with_capacity(MOST_LOGGED / 2);
        let mut layers = Vec::with_capacity(self.layers.len() / 2);
        for fault in (0..self.faults.len()).step_by(2) {
            let at = u32::try_from(layers.len()).unwrap_or(u32::MAX);
            layers.extend_from_slice(self.layers(fault));
            kept.push(Logged {
                layers: at,
                ..self.faults[fault]
            });
        }
        self.faults = kept;
        self.layers = layers;
        self.every *= 2;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_cell_adds_up_what_its_faults_took() {
        let mut cells = Cells::default();
        let waits = Waits {
            blocked: 5,
            ..Waits::default()
        };
        cells.add(1000, waits, [600, 400].into_iter());
        cells.add(1001, waits, [601, 400].into_iter());
        cells.add(9000, Waits::default(), [8000, 1000].into_iter());
        let found: Vec<_> = cells
            .iter()
            .map(|cell| {
                (
                    cell.faults,
                    cell.whole,
                    cell.waits.blocked,
                    cell.own.to_vec(),
                )
            })
            .collect();
        assert_eq!(
            found,
            [
                (2, 2011, 10, vec![1201, 800]),
                (1, 9000, 0, vec![8000, 1000])
            ]
        );
    }

    #[test]
    fn a_long_log_is_thinned_evenly() {
        let mut log = FaultLog::default();
        let all = (MOST_LOGGED * 2 + MOST_LOGGED / 2) as u64;
        for number in 0..all {
            let layers = [number; 3];
            log.add(
                0,
                None,
                number,
                Waits::default(),
                layers.into_iter().take((number % 4) as usize),
            );
        }
        assert_eq!((log.every, log.met), (4, all));
        for (at, fault) in log.faults.iter().enumerate() {
            assert_eq!(fault.number, at as u64 * 4);
            assert_eq!(fault.on, fault.number);
            assert!(log.layers(at).is_empty());
        }
        assert_eq!(log.faults.len() as u64, all / 4);
    }
}
