use super::*;
use std::process::Command;

fn task(tid: i32, pid: i32, parent: i32) -> CountedTask {
    CountedTask {
        pid,
        tid,
        parent,
        ..CountedTask::default()
    }
}

#[test]
fn threads_and_children_belong_to_a_program_in_any_order() {
    let tasks = [
        task(12, 12, 11),
        task(11, 11, 10),
        task(15, 10, 1),
        task(10, 10, 1),
        task(20, 20, 1),
    ];
    let own = descendants(&tasks, 10);
    assert_eq!(own, BTreeSet::from([10, 11, 12]));
}

/// The kernel's counts arrive for the first process and for children that live for a moment.
#[test]
fn each_task_of_a_program_is_counted() {
    let Some(watch) = DelayWatch::begin() else {
        skipped!("delay accounting takes CAP_NET_ADMIN and Linux 5.17");
        return;
    };
    let mut shell = Command::new("sh")
        .args(["-c", "for i in 1 2 3; do true & done; (:; :) | cat; wait"])
        .spawn()
        .expect("a shell");
    shell.wait().expect("it ends");
    let pid = i32::try_from(shell.id()).expect("a process id");
    let found = watch.stop(pid).expect("its tasks are reported");
    assert!((6..12).contains(&found.len()), "{found:?}");
    let ready = found.iter().filter_map(|task| task.delays.ready);
    assert!(ready.map(|ready| ready.count).sum::<u64>() > 0, "{found:?}");
    let first = found.iter().find(|task| task.tid == pid);
    let first = first.expect("the shell itself");
    assert_eq!((&*first.name, first.pid), ("sh", pid));
    assert!(first.run <= first.lifetime, "{first:?}");
}
