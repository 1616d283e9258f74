//! Faults one by one, for tables: a second pass over a trace whose tracing cost is known.

use super::collector::{Collector, KeptFault};
use super::layer::Layer;
use super::outline::outline;
use super::probe::Calibration;
use super::shapes::Shape;
use super::tally::reduce;
use pagewise_formats::function_graph::{CallTree, Line, NameId, Names, Sink};
use pagewise_model::fault_row::{FaultRow, PathRow};
use pagewise_model::trace_note::TraceNote;
use rustc_hash::FxHashMap;

/// Takes a trace's calls and emits a row for each fault.
#[derive(Debug)]
pub struct Rows<F> {
    collector: Collector,
    calibration: Calibration,
    /// By shape.
    path_ids: Vec<u64>,
    emit: F,
}

impl<F: FnMut(FaultRow)> Rows<F> {
    /// Rows corrected by a calibration go to `emit`.
    pub fn new(calibration: Calibration, emit: F) -> Self {
        Self {
            collector: Collector::keeping_faults(),
            calibration,
            path_ids: Vec::new(),
            emit,
        }
    }

    /// The call trees that the rows refer to, in order of appearance. Trees of equal functions are
    /// one, whatever the numbers of their shapes.
    #[must_use]
    pub fn paths(&self, names: &Names) -> Vec<PathRow> {
        let mut found: Vec<PathRow> = Vec::new();
        let mut places: FxHashMap<u64, usize> = FxHashMap::default();
        for (shape, &path_id) in self.collector.shapes.all.iter().zip(&self.path_ids) {
            let faults = shape.latency[Layer::Fault as usize].count;
            if let Some(&place) = places.get(&path_id) {
                found[place].faults += faults;
                continue;
            }
            places.insert(path_id, found.len());
            found.push(PathRow {
                path_id,
                class: shape.class,
                faults,
                calls: shape.calls_inside() as u64,
                outline: outline(&shape.tokens, names),
            });
        }
        found
    }

    #[allow(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "nanoseconds, not negative"
    )]
    fn row(&self, tree: &CallTree, fault: &KeptFault) -> FaultRow {
        let shape = &self.collector.shapes.all[fault.shape];
        let outside = self.calibration.per_call_ns - self.calibration.inside_ns;
        let lock_cost = self.calibration.cost(calls_in(shape, Layer::Lock));
        FaultRow {
            start_ns: tree.start,
            cpu: tree.cpu,
            pid: tree.pid,
            class: shape.class,
            path_id: self.path_ids[fault.shape],
            calls: shape.calls_inside() as u64,
            total_ns: fault.total,
            on_cpu_ns: fault.on,
            corrected_on_cpu_ns: reduce(fault.on, self.calibration.cost(shape.calls_inside())),
            error_ns: self.calibration.error(calls_of(shape)).ceil() as u64,
            self_ns: fault.own,
            corrected_self_ns: reduce(fault.own, outside * f64::from(fault.direct_calls)),
            interrupts_ns: fault.interrupts,
            runnable_ns: fault.runnable,
            blocked_ns: fault.blocked,
            off_cpu_ns: fault.unknown,
            lock_before_ns: fault.lock_before,
            lock_ns: fault.lock,
            corrected_lock_ns: reduce(fault.lock, lock_cost),
        }
    }
}

impl<F: FnMut(FaultRow)> Sink for Rows<F> {
    fn tree(&mut self, tree: &CallTree, names: &Names) {
        self.collector.tree(tree, names);
        for fault in self.collector.take_faults() {
            for shape in &self.collector.shapes.all[self.path_ids.len()..] {
                self.path_ids.push(path_id(shape, names));
            }
            let row = self.row(tree, &fault);
            (self.emit)(row);
        }
    }

    fn event(&mut self, line: &Line<'_>, text: &[u8]) {
        self.collector.event(line, text);
    }

    fn note(&mut self, note: TraceNote) {
        self.collector.note(note);
    }
}

fn calls_of(shape: &Shape) -> f64 {
    shape.calls_inside() as f64
}

fn calls_in(shape: &Shape, layer: Layer) -> usize {
    let places = shape.places.iter().filter(|place| place.layer == layer);
    places.map(|place| place.calls_inside as usize).sum()
}

/// FNV-1a over each function's name and depth: the same on every host and in every run. The top bit
/// is always clear, since most table formats use signed numbers.
fn path_id(shape: &Shape, names: &Names) -> u64 {
    let mut hash = 0xcbf2_9ce4_8422_2325_u64;
    let mut add = |byte: u8| hash = (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    for token in &shape.tokens {
        names.text(NameId(token.name())).bytes().for_each(&mut add);
        add(0);
        token.depth().to_le_bytes().into_iter().for_each(&mut add);
    }
    hash >> 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use pagewise_formats::function_graph::read_bytes;
    use pagewise_model::fault_paths::{Class, Source};

    const TRACE: &str = "\
   1.000000 |   0)   a-7    |               |  down_read() {
   1.000001 |   0)   a-7    |   1.000 us    |    __cond_resched();
   1.000009 |   0)   a-7    |   8.000 us    |  }
   2.000000 |   0)   a-7    |               |  handle_mm_fault() {
   2.000001 |   0)   a-7    |               |    page_add_new_anon_rmap() {
   2.000002 |   0)   a-7    |   1.000 us    |      __mod_lruvec_page_state();
   2.000004 |   0)   a-7    |   4.000 us    |    }
   2.000005 |   0)   a-7    |   2.000 us    |    irq_enter_rcu();
   2.000012 |   0)   a-7    | + 12.000 us   |  }
   3.000000 |   1)   b-8    |               |  handle_mm_fault() {
   3.000001 |   1)   b-8    |   1.000 us    |    _raw_spin_lock();
   3.000003 |   1)   b-8    |   3.000 us    |  }
";

    #[test]
    fn a_row_has_every_part_of_the_time() {
        let calibration = Calibration {
            per_call_ns: 1000.0,
            inside_ns: 400.0,
            error_ns: 30.0,
            source: Source::OwnTrace,
            withdrawn: None,
        };
        let mut found = Vec::new();
        let mut rows = Rows::new(calibration, |row| found.push(row));
        let summary = read_bytes(TRACE.as_bytes(), &mut rows);
        let paths = rows.paths(&summary.names);
        assert_eq!(found.len(), 2);
        assert_eq!(
            found[0],
            FaultRow {
                start_ns: Some(2_000_000_000),
                cpu: Some(0),
                pid: Some(7),
                class: Class::Anonymous,
                path_id: paths[0].path_id,
                calls: 2,
                total_ns: 12_000,
                on_cpu_ns: 10_000,
                corrected_on_cpu_ns: 8_000,
                error_ns: 60,
                self_ns: 6_000,
                corrected_self_ns: 5_400,
                interrupts_ns: 2_000,
                runnable_ns: 0,
                blocked_ns: 0,
                off_cpu_ns: 0,
                lock_before_ns: 8_000,
                lock_ns: 0,
                corrected_lock_ns: 0,
            }
        );
        assert_eq!((found[1].pid, found[1].lock_before_ns), (Some(8), 0));
        assert_eq!(paths.len(), 2);
        assert_eq!(paths[0].faults, 1);
        assert!(paths.iter().all(|path| path.path_id >> 63 == 0));
        assert_eq!(paths[1].outline, "handle_mm_fault { _raw_spin_lock }");
    }
}
