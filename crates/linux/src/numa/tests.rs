//! On folders that look like machines with several nodes.

use super::*;
use std::fs;

/// A machine: its procfs and sysfs in one folder.
struct Machine(tempfile::TempDir);

impl Machine {
    /// With these nodes: CPUs, and memory in KiB (0 for none).
    fn with(nodes: &[(&str, u64)]) -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        let numbers = |wanted: &dyn Fn(&(&str, u64)) -> bool| {
            let ids = (0..).zip(nodes).filter(|(_, node)| wanted(node));
            pagewise_model::numa::list(&ids.map(|(id, _)| id).collect::<Vec<u32>>())
        };
        machine.put("devices/system/node/online", &(numbers(&|_| true) + "\n"));
        machine.put(
            "devices/system/node/has_memory",
            &(numbers(&|node| node.1 > 0) + "\n"),
        );
        for (id, (cpus, memory)) in nodes.iter().enumerate() {
            let folder = format!("devices/system/node/node{id}");
            machine.put(&format!("{folder}/cpulist"), &format!("{cpus}\n"));
            let total = format!("Node {id} MemTotal:       {memory} kB\nNode {id} MemFree: 1 kB\n");
            machine.put(&format!("{folder}/meminfo"), &total);
            machine.numastat(id, 5, 7);
        }
        machine.put(
            "vmstat",
            "nr_free_pages 1\nnuma_hint_faults 100\nnuma_pages_migrated 3\npgfault 9\n",
        );
        machine
    }

    fn put(&self, file: &str, text: &str) {
        let path = self.0.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn numastat(&self, id: usize, miss: u64, other: u64) {
        let text = format!(
            "numa_hit 1000\nnuma_miss {miss}\nnuma_foreign 0\ninterleave_hit 2\nlocal_node 993\nother_node {other}\n"
        );
        self.put(&format!("devices/system/node/node{id}/numastat"), &text);
    }

    /// A process with so much memory on each node.
    fn process(&self, pid: i32, pages: &[u64]) {
        let sum: u64 = pages.iter().sum();
        self.put(&format!("{pid}/statm"), &format!("{sum} {sum} 0 0 0 0 0\n"));
        self.put(&format!("{pid}/comm"), "server\n");
        let held = (0..).zip(pages).filter(|(_, pages)| **pages > 0);
        let counts: String = held
            .map(|(node, pages): (u32, _)| format!(" N{node}={pages}"))
            .collect();
        let line = format!("7f0000000000 default anon={sum}{counts} kernelpagesize_kB=4\n");
        self.put(&format!("{pid}/numa_maps"), &line);
    }

    fn watch(&self) -> Option<NodeWatch> {
        NodeWatch::begin_at(ProcRoot::at(self.0.path()), self.0.path(), true)
    }

    /// As if it had begun this long ago.
    fn watched_for(&self, seconds: u64) -> NodeWatch {
        let mut watch = self.watch().expect("several nodes");
        watch.began = Instant::now()
            .checked_sub(Duration::from_secs(seconds))
            .unwrap();
        watch
    }
}

const GIB: u64 = 1 << 20;

#[test]
fn one_node_with_memory_is_not_watched() {
    assert!(Machine::with(&[("0-7", 16 * GIB)]).watch().is_none());
    // A second node that has CPUs alone leaves no choice.
    assert!(
        Machine::with(&[("0-3", 16 * GIB), ("4-7", 0)])
            .watch()
            .is_none()
    );
    let none = tempfile::tempdir().unwrap();
    assert!(NodeWatch::begin_at(ProcRoot::at(none.path()), none.path(), true).is_none());
}

#[test]
fn counters_are_told_as_what_they_grew_by_meanwhile() {
    let machine = Machine::with(&[("0-1", 16 * GIB), ("2-3", 8 * GIB)]);
    let watch = machine.watch().unwrap();
    machine.numastat(1, 25, 7);
    machine.put(
        "vmstat",
        "numa_hint_faults 350\nnuma_pages_migrated 3\nnuma_pte_updates 8\n",
    );
    let (seen, notes) = watch.stop();
    assert!(notes.is_empty(), "{notes:?}");
    let ids: Vec<_> = seen
        .nodes
        .iter()
        .map(|node| (node.id, &node.cpus[..]))
        .collect();
    assert_eq!(ids, [(0, &[0, 1][..]), (1, &[2, 3])]);
    assert_eq!(seen.nodes[1].memory, Some(Bytes(8 << 30)));
    assert_eq!(seen.nodes[1].counters["numa_miss"], 20);
    assert_eq!(seen.nodes[0].counters["numa_miss"], 0);
    // What was not counted at first has grown by no one knows how much.
    let grown: Vec<_> = seen
        .balancing
        .iter()
        .map(|(name, grown)| (&**name, *grown))
        .collect();
    assert_eq!(
        grown,
        [("numa_hint_faults", 250), ("numa_pages_migrated", 0)]
    );
    assert!(seen.policy_can_be_set);
}

#[test]
fn memory_is_averaged_over_the_time_between_readings() {
    let machine = Machine::with(&[("0", GIB), ("1", GIB), ("2", GIB), ("", GIB)]);
    let mut watch = machine.watched_for(90);
    // Read 10 s after the look before, and again 10 s later, with a look in between that was too
    // expensive.
    watch.last = Duration::from_secs(80);
    machine.process(7, &[30_000, 0, 0, 10_000]);
    watch.look(7);
    watch.nanos_per_page = 1_000_000;
    watch.began = Instant::now().checked_sub(Duration::from_secs(97)).unwrap();
    watch.look(7);
    watch.nanos_per_page = NANOS_PER_PAGE;
    machine.process(7, &[0, 40_000, 0, 0]);
    watch.began = Instant::now()
        .checked_sub(Duration::from_secs(100))
        .unwrap();
    watch.look(7);
    let (seen, notes) = watch.stop();
    assert!(notes.is_empty(), "it was read before: {notes:?}");
    assert_eq!(seen.nodes[3].cpus, [0_u32; 0], "a node of memory alone");
    let [process] = &seen.processes[..] else {
        panic!("{seen:?}");
    };
    assert_eq!(
        (process.pid, &*process.name, &*process.policy),
        (7, "server", "default")
    );
    let near = |node: usize, id: u32, pages: u64| {
        let one = process.nodes[node];
        assert_eq!(one.node, id);
        assert!(one.memory.0.abs_diff(pages * 4096) <= pages * 41, "{one:?}");
    };
    near(0, 0, 15_000);
    near(1, 1, 20_000);
    near(2, 3, 5_000);
}

#[test]
fn what_would_cost_too_much_is_left_out_and_told() {
    let machine = Machine::with(&[("0", GIB), ("1", GIB)]);
    // 4 GiB take 27 ms: too much of one second, little of a minute.
    machine.process(7, &[1 << 20, 0]);
    let mut watch = machine.watched_for(1);
    watch.look(7);
    let (seen, notes) = watch.stop();
    assert!(seen.processes.is_empty());
    let [note] = &notes[..] else {
        panic!("{notes:?}");
    };
    assert!(
        note.contains("the 4.00 GiB of server (7)") && note.contains("1 %"),
        "{note}"
    );
    let mut watch = machine.watched_for(60);
    watch.look(7);
    let (seen, notes) = watch.stop();
    assert_eq!((seen.processes.len(), notes.len()), (1, 0));
    // Read while it was small, and never again.
    let mut watch = machine.watched_for(60);
    machine.process(7, &[10_000, 0]);
    watch.look(7);
    machine.process(7, &[1 << 20, 0]);
    watch.nanos_per_page = 1_000;
    watch.look(7);
    let (seen, notes) = watch.stop();
    assert_eq!((seen.processes.len(), notes.len()), (1, 1), "{notes:?}");
    // A small process is not worth a reading.
    machine.process(8, &[100, 100]);
    let mut watch = machine.watched_for(60);
    watch.look(8);
    assert!(watch.stop().0.processes.is_empty());
}

#[test]
fn what_is_malformed_is_told_and_what_is_absent_is_not() {
    let machine = Machine::with(&[("0", GIB), ("1", GIB)]);
    machine.process(7, &[10_000, 0]);
    machine.put(
        "7/numa_maps",
        "7f0000000000 default N0=some kernelpagesize_kB=4\n",
    );
    let mut watch = machine.watched_for(60);
    watch.look(7);
    watch.look(7);
    // A process that is gone.
    watch.look(9);
    let (seen, notes) = watch.stop();
    assert!(seen.processes.is_empty());
    assert_eq!(notes.len(), 1, "{notes:?}");
    assert!(
        notes[0].contains("7/numa_maps:1: expected address policy"),
        "{notes:?}"
    );
    machine.put("devices/system/node/has_memory", "0,x\n");
    let (seen, notes) = machine.watch().expect("there may be nodes").stop();
    assert!(seen.nodes.is_empty());
    assert!(
        notes[0].contains("has_memory:1: expected numbers such as 0-3,8"),
        "{notes:?}"
    );
}
