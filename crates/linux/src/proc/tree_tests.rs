use super::*;
use std::collections::BTreeMap;
use std::fs;

/// A `/proc` of written files that tests change between readings.
struct Fake {
    folder: tempfile::TempDir,
    newest: i32,
    parents: BTreeMap<i32, i32>,
}

/// One process's line: own and waited-for minor faults.
struct Line {
    pid: i32,
    parent: i32,
    state: char,
    own: u64,
    children: u64,
    start: u64,
}

impl Fake {
    fn new() -> Self {
        let fake = Self {
            folder: tempfile::tempdir().unwrap(),
            newest: 0,
            parents: BTreeMap::new(),
        };
        fake.write("uptime", "1.00 1.00\n");
        fake
    }

    fn write(&self, path: &str, text: &str) {
        let path = self.folder.path().join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    fn put(&mut self, line: &Line) {
        let Line {
            pid,
            parent,
            state,
            own,
            children,
            start,
        } = line;
        let text = format!(
            "{pid} (p{pid}) {state} {parent} 1 1 0 -1 0 {own} {children} 0 0 {own} 0 {children} 0 \
             20 0 2 0 {start} 8192 1 0\n"
        );
        self.write(&format!("{pid}/stat"), &text);
        if self.parents.insert(*pid, *parent) != Some(*parent) {
            self.write_lists();
        }
    }

    fn set(&mut self, pid: i32, parent: i32, own: u64, children: u64) {
        self.put(&Line {
            pid,
            parent,
            state: 'S',
            own,
            children,
            start: 500,
        });
    }

    fn end(&mut self, pid: i32) {
        self.parents.remove(&pid);
        fs::remove_dir_all(self.folder.path().join(pid.to_string())).unwrap();
        self.write_lists();
    }

    fn write_lists(&mut self) {
        self.newest += 1;
        self.write("loadavg", &format!("0.1 0.1 0.1 1/9 {}\n", self.newest));
        for pid in self.parents.keys() {
            let children = self.parents.iter().filter(|(_, parent)| *parent == pid);
            let list: String = children.map(|(child, _)| format!("{child} ")).collect();
            self.write(&format!("{pid}/task/{pid}/children"), &list);
        }
    }

    fn tree(&self, pid: i32) -> Tree {
        let proc = ProcRoot::at(self.folder.path());
        Tree::new(proc, pid).unwrap().unwrap()
    }
}

/// A reading without the search's rate limit, so that tests do not wait.
fn minor(tree: &mut Tree) -> u64 {
    tree.search.not_before = Instant::now();
    tree.read().point.minor_faults
}

#[test]
fn what_was_counted_before_is_left_out() {
    let mut fake = Fake::new();
    fake.put(&Line {
        pid: 10,
        parent: 1,
        state: 'S',
        own: 1000,
        children: 50,
        start: 5,
    });
    let mut tree = fake.tree(10);
    fake.set(11, 10, 30, 0);
    assert_eq!(minor(&mut tree), 30);
    fake.put(&Line {
        pid: 10,
        parent: 1,
        state: 'S',
        own: 1001,
        children: 50,
        start: 5,
    });
    let reading = tree.read();
    assert_eq!(reading.point.minor_faults, 31);
    assert_eq!((reading.point.processes, reading.point.threads), (2, 4));
    assert_eq!(reading.processes[0].minor_faults, 1);
}

/// Whichever is named first, a process below another counts once.
#[test]
fn several_processes_are_one_sum_and_none_of_them_counts_twice() {
    for roots in [[10, 11, 20, 99], [20, 11, 99, 10]] {
        let mut fake = Fake::new();
        let mut put = |pid, parent, own, start| {
            fake.put(&Line {
                pid,
                parent,
                state: 'S',
                own,
                children: 0,
                start,
            });
        };
        put(10, 1, 1000, 5);
        put(11, 10, 200, 6);
        put(20, 1, 30, 7);
        let proc = ProcRoot::at(fake.folder.path());
        let mut tree = Tree::of_several(proc, &roots).unwrap().unwrap();
        assert_eq!(minor(&mut tree), 0);
        for (pid, parent, own, start) in [(10, 1, 1001, 5), (11, 10, 220, 6), (20, 1, 330, 7)] {
            fake.put(&Line {
                pid,
                parent,
                state: 'S',
                own,
                children: 0,
                start,
            });
        }
        let reading = tree.read();
        assert_eq!(reading.point.minor_faults, 1 + 20 + 300);
        assert_eq!(reading.point.processes, 3);
        fake.end(10);
        fake.end(11);
        assert_eq!(
            tree.read().point.processes,
            1,
            "the others are still watched"
        );
    }
    let proc = ProcRoot::at(Fake::new().folder.path());
    assert!(Tree::of_several(proc, &[1, 2]).unwrap().is_none());
}

#[test]
fn a_child_that_was_waited_for_counts_once() {
    let mut fake = Fake::new();
    fake.set(10, 1, 0, 0);
    let mut tree = fake.tree(10);
    fake.set(11, 10, 100, 0);
    assert_eq!(minor(&mut tree), 100);
    fake.end(11);
    fake.set(10, 1, 0, 120);
    assert_eq!(minor(&mut tree), 120);
}

#[test]
fn a_parent_that_waits_after_it_was_read_counts_its_child_once() {
    let mut fake = Fake::new();
    fake.set(10, 1, 0, 0);
    let mut tree = fake.tree(10);
    fake.set(11, 10, 100, 0);
    assert_eq!(minor(&mut tree), 100);
    fake.end(11);
    assert_eq!(minor(&mut tree), 100, "still in no parent's figure");
    fake.set(10, 1, 5, 120);
    assert_eq!(minor(&mut tree), 125);
    assert_eq!(minor(&mut tree), 125);
}

#[test]
fn a_child_that_nobody_waits_for_is_kept() {
    let mut fake = Fake::new();
    fake.set(10, 1, 0, 0);
    let mut tree = fake.tree(10);
    fake.set(11, 10, 100, 0);
    minor(&mut tree);
    fake.end(11);
    for own in 1..5 {
        fake.set(10, 1, own, 0);
        assert_eq!(minor(&mut tree), 100 + own);
    }
}

#[test]
fn a_subtree_that_ends_at_once_counts_once() {
    let mut fake = Fake::new();
    fake.set(10, 1, 0, 0);
    let mut tree = fake.tree(10);
    fake.set(11, 10, 100, 0);
    fake.set(12, 11, 40, 0);
    assert_eq!(minor(&mut tree), 140);
    fake.end(12);
    fake.end(11);
    fake.set(10, 1, 0, 145);
    assert_eq!(minor(&mut tree), 145);
}

#[test]
fn an_orphan_stays_in_the_tree() {
    let mut fake = Fake::new();
    fake.set(10, 1, 0, 0);
    let mut tree = fake.tree(10);
    fake.set(11, 10, 7, 0);
    fake.set(12, 11, 40, 0);
    assert_eq!(minor(&mut tree), 47);
    fake.end(11);
    fake.set(12, 1, 60, 0);
    fake.set(10, 1, 0, 7);
    assert_eq!(minor(&mut tree), 67);
    fake.end(12);
    assert_eq!(minor(&mut tree), 67);
    fake.set(10, 1, 0, 7);
    assert_eq!(minor(&mut tree), 67);
}

#[test]
fn a_pid_that_is_used_again_is_another_process() {
    let mut fake = Fake::new();
    fake.set(10, 1, 0, 0);
    let mut tree = fake.tree(10);
    fake.set(11, 10, 100, 0);
    minor(&mut tree);
    fake.put(&Line {
        pid: 11,
        parent: 10,
        state: 'S',
        own: 3,
        children: 0,
        start: 900,
    });
    fake.set(10, 1, 0, 100);
    assert_eq!(
        minor(&mut tree),
        100,
        "the new one is found in the next round"
    );
    fake.write("loadavg", "0.1 0.1 0.1 1/9 4000\n");
    assert_eq!(minor(&mut tree), 103);
}

#[test]
fn without_lists_of_children_parents_are_searched() {
    let mut fake = Fake::new();
    fake.set(10, 1, 1, 0);
    fake.set(11, 10, 20, 0);
    fake.set(12, 11, 300, 0);
    fake.set(13, 1, 4000, 0);
    for pid in [10, 11, 12, 13] {
        fs::remove_dir_all(fake.folder.path().join(format!("{pid}/task"))).unwrap();
    }
    let mut tree = fake.tree(10);
    assert_eq!(tree.living().collect::<Vec<_>>(), [10, 11, 12]);
    assert_eq!(tree.read().point.vsize, Bytes(3 * 8192));
}

#[test]
fn a_zombie_keeps_its_counters_and_has_no_memory() {
    let mut fake = Fake::new();
    fake.set(10, 1, 0, 0);
    let mut tree = fake.tree(10);
    fake.put(&Line {
        pid: 10,
        parent: 1,
        state: 'Z',
        own: 9,
        children: 0,
        start: 500,
    });
    let point = tree.read().point;
    assert_eq!(
        (point.minor_faults, point.processes, point.rss),
        (9, 0, Bytes(0))
    );
}

/// Random histories of forks, faults, waited-for and abandoned ends: the tree's total must never
/// go back, never exceed the truth, and be exact once everything has been quiet for two readings.
#[test]
fn random_histories_add_up() {
    for seed in 1..20_u64 {
        let mut random = seed;
        let mut next = |bound: u64| {
            random = random
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            (random >> 33) % bound
        };
        let mut fake = Fake::new();
        fake.set(10, 1, 0, 0);
        let mut tree = fake.tree(10);
        let mut own: BTreeMap<i32, u64> = BTreeMap::from([(10, 0)]);
        let (mut waited, mut truth, mut last, mut pid) = (0, 0, 0, 10);
        for _ in 0..60 {
            match next(4) {
                0 => {
                    pid += 1;
                    own.insert(pid, 0);
                }
                1 if own.len() > 1 => {
                    let victims: Vec<i32> = own.keys().copied().filter(|p| *p != 10).collect();
                    let victim = victims[usize::try_from(next(victims.len() as u64)).unwrap()];
                    waited += own.remove(&victim).unwrap();
                    if fake.parents.contains_key(&victim) {
                        fake.end(victim);
                    }
                }
                _ => {
                    for faults in own.values_mut() {
                        let more = next(100);
                        *faults += more;
                        truth += more;
                    }
                }
            }
            for (&pid, &faults) in &own {
                let (parent, children) = if pid == 10 { (1, waited) } else { (10, 0) };
                fake.set(pid, parent, faults, children);
            }
            let seen = minor(&mut tree);
            assert!(
                seen >= last && seen <= truth,
                "seed {seed}: {last} {seen} {truth}"
            );
            last = seen;
        }
        minor(&mut tree);
        assert_eq!(minor(&mut tree), truth, "seed {seed}");
    }
}
