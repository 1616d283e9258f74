use super::*;
use pagewise_model::delays::Delay;
use pagewise_model::run::RunCost;
use std::time::Duration;

const MS: u64 = 1_000_000;
const START: Nanos = Nanos(1_000 * MS);

fn ms(millis: u64) -> Nanos {
    Nanos(millis * MS)
}

fn at(millis: u64) -> Nanos {
    START + ms(millis)
}

fn seen(tid: i32, run: u64, place: Option<u32>, last: u64) -> SeenTask {
    let sleep = Sleep {
        place,
        looks: 40,
        time: ms(800),
    };
    SeenTask {
        pid: 10,
        tid,
        parent: 1,
        name: "worker".to_owned(),
        began: START,
        last: at(last),
        is_over: false,
        run: ms(run),
        ready: ms(50),
        sleeps: vec![sleep],
    }
}

fn sidecar(seen: Vec<SeenTask>, counted: Vec<CountedTask>) -> Sidecar {
    Sidecar {
        pid: 10,
        started_clock: START,
        cost: RunCost {
            wall: ms(1_000),
            user: ms(500),
            ..RunCost::default()
        },
        looks: Some(Looks {
            places: vec!["hrtimer_nanosleep".to_owned(), "io_schedule".to_owned()],
            tasks: seen,
            ..Looks::default()
        }),
        tasks: counted,
        ..Sidecar::default()
    }
}

fn lives(of: &[(i32, u64, u64)]) -> Lives {
    let mut lives = Lives::default();
    for &(tid, began, ended) in of {
        lives.begin(10, tid, at(began));
        lives.end(10, tid, at(ended));
    }
    lives
}

fn tasks_of(lives: &Lives, sidecar: &Sidecar) -> Tasks {
    tasks(lives, sidecar, KernelTable::shipped()).expect("a thread was counted")
}

/// Parts with their milliseconds.
fn parts(sum: &TaskSum) -> Vec<(&str, u128)> {
    let parts = sum.parts.iter();
    let all: f64 = sum.parts.iter().map(|part| part.time.value).sum();
    assert!((all - nanos(sum.lifetime)).abs() < 1.0, "{sum:?}");
    parts
        .map(|part| {
            let rounded = Duration::from_secs_f64(part.time.value * 1e-9 + 0.5e-3);
            (&*part.id, rounded.as_millis())
        })
        .collect()
}

#[test]
fn a_lifetime_is_running_ready_waiting_and_what_nothing_tells() {
    let sidecar = sidecar(vec![seen(10, 300, Some(0), 980)], Vec::new());
    let tasks = tasks_of(&lives(&[(10, 0, 1_000)]), &sidecar);
    let thread = &tasks.processes[0].threads[0];
    assert_eq!(
        parts(&thread.all),
        [
            ("sleep", 630),
            ("cpu", 300),
            ("ready", 50),
            ("unexplained", 20)
        ]
    );
    // It may have run after the last look at it.
    let cpu = thread.all.parts.iter().find(|part| part.id == "cpu");
    assert!(cpu.is_some_and(|cpu| cpu.time.covers(320e6) && !cpu.time.covers(330e6)));
    assert_eq!(tasks.elsewhere, ms(200));
    assert_eq!(tasks.unseen, None);
}

#[test]
fn one_that_was_read_after_its_end_leaves_nothing_open() {
    let over = SeenTask {
        is_over: true,
        ..seen(10, 300, Some(0), 980)
    };
    let tasks = tasks_of(&lives(&[(10, 0, 1_000)]), &sidecar(vec![over], Vec::new()));
    let message = parts(&tasks.processes[0].all);
    assert_eq!(message, [("sleep", 650), ("cpu", 300), ("ready", 50)]);
}

#[test]
fn what_the_kernel_counted_to_wait_for_blocks_is_that() {
    let counted = CountedTask {
        pid: 10,
        tid: 10,
        parent: 1,
        name: "reader".to_owned(),
        ended: at(1_000),
        lifetime: ms(990),
        run: ms(100),
        delays: Delays {
            tasks: 1,
            ready: Some(Delay {
                count: 3,
                time: ms(40),
            }),
            disk: Some(Delay {
                count: 9,
                time: ms(600),
            }),
            ..Delays::default()
        },
    };
    for (place, rest) in [(Some(1), "unexplained"), (Some(0), "sleep")] {
        let mut looked = seen(10, 90, place, 980);
        looked.sleeps[0].looks = 9;
        let sidecar = sidecar(vec![looked], vec![counted.clone()]);
        let tasks = tasks_of(&lives(&[(10, 0, 1_000)]), &sidecar);
        let process = &tasks.processes[0];
        assert_eq!(process.name, "reader");
        let mut message = parts(&process.all);
        message.retain(|(_, millis)| *millis > 10);
        let left = if rest == "sleep" { 250 } else { 260 };
        assert_eq!(
            message,
            [("disk", 600), (rest, left), ("cpu", 100), ("ready", 40)]
        );
    }
}

#[test]
fn threads_that_ended_unseen_are_counted() {
    let sidecar = sidecar(vec![seen(10, 300, Some(0), 980)], Vec::new());
    let lives = lives(&[(10, 0, 1_000), (11, 100, 103), (12, 200, 204)]);
    let unseen = tasks_of(&lives, &sidecar).unseen.expect("two threads");
    assert_eq!(
        (unseen.threads, parts(&unseen)),
        (2, vec![("unexplained", 7)])
    );
}

#[test]
fn threads_beyond_the_bound_are_added_up_and_nothing_is_lost() {
    let many = (10..60).map(|tid| seen(tid, u64::try_from(tid).unwrap_or(0), Some(0), 1_000));
    let sidecar = sidecar(many.collect(), Vec::new());
    let tasks = tasks_of(&Lives::default(), &sidecar);
    let process = &tasks.processes[0];
    let others = process.others.as_ref().expect("more than are told");
    assert_eq!((process.threads.len(), others.threads), (MOST, 50 - 16));
    assert_eq!(process.threads[0].tid, 59);
    let of_each = process.threads.iter().map(|thread| thread.all.part("cpu"));
    let sum = of_each.sum::<f64>() + others.part("cpu");
    assert!((sum - process.all.part("cpu")).abs() < 1.0);
    assert_eq!(process.all.lifetime, ms(50_000));
}

#[test]
fn without_looks_that_tell_what_for_waiting_is_unexplained() {
    let mut brief = seen(10, 300, Some(0), 1_000);
    brief.sleeps[0].looks = 1;
    let tasks = tasks_of(&Lives::default(), &sidecar(vec![brief], Vec::new()));
    let message = parts(&tasks.processes[0].all);
    assert_eq!(message, [("unexplained", 650), ("cpu", 300), ("ready", 50)]);
}

#[test]
fn nothing_is_told_of_nothing() {
    let table = KernelTable::shipped();
    let none = sidecar(Vec::new(), Vec::new());
    assert_eq!(tasks(&Lives::default(), &none, table), None);
}
