//! Counting and following by records as the kernel writes them.

use super::*;
use crate::perf::kin::MISC_COMM_EXEC;
use crate::perf::plan::{Start, Unit};
use crate::perf::source::{Access, Fault, Source};

fn account() -> Account {
    let access = Access {
        kernel: true,
        counts_losses: true,
        cgroups: true,
        machine: true,
    };
    let unit = |role, source| Unit {
        role,
        sources: vec![source],
        start: Start::AtOnce,
        reach: match role {
            Role::Cpu => Reach::Machine,
            _ => Reach::Threads,
        },
    };
    let plan = Plan {
        units: vec![
            unit(Role::Lifetimes, Source::lifetimes(access)),
            unit(Role::Paired, Source::each_fault(Fault::MinorEnd, access)),
            unit(Role::Cpu, Source::cpu(99, false, access)),
            unit(Role::Mappings, Source::mappings(access)),
        ],
        ..Plan::default()
    };
    Account::new(&plan, &[vec![1], vec![7, 8], vec![20, 21], vec![30]])
}

fn record(kind: u32, words: &[u64]) -> Vec<u8> {
    let size = u16::try_from(8 + words.len() * 8).unwrap();
    let mut bytes = kind.to_le_bytes().to_vec();
    bytes.extend_from_slice(&[0, 0]);
    bytes.extend_from_slice(&size.to_le_bytes());
    bytes.extend(words.iter().flat_map(|word| word.to_le_bytes()));
    bytes
}

#[test]
fn samples_count_for_the_source_of_their_id() {
    let mut account = account();
    let span = [
        record(kind::SAMPLE, &[7, 0, 500, 0]),
        record(kind::SAMPLE, &[8, 0, 400, 0]),
        record(kind::SAMPLE, &[9, 0, 1, 0]),
        record(kind::LOST, &[7, 21]),
    ]
    .concat();
    account.count(&span);
    let counts: Vec<u64> = account.counts().iter().map(|count| count.count).collect();
    assert_eq!(counts, [0, 2, 0, 0]);
    assert_eq!(account.span(), Some((400, 500)));
    assert_eq!(account.losses(None).count(LossKind::UnknownRecord), 1);
    assert_eq!(account.losses(None).count(LossKind::RingOverrun), 21);
    assert_eq!(account.losses(Some(30)).count(LossKind::RingOverrun), 30);
    assert!(account.take_lost());
    assert!(!account.take_lost());
    let spent = account.take(Role::Paired);
    assert_eq!((spent.records, spent.cost), (2, account.total_cost()));
    assert_eq!(account.take(Role::Paired), Spent::default());
}

#[test]
fn samples_with_the_id_of_another_recorder_stay_out_of_the_file() {
    let account = account();
    let ours = [
        record(kind::SAMPLE, &[7, 0, 500, 0]),
        record(kind::LOST, &[9, 21]),
        record(kind::SAMPLE, &[20, 0, 600, 0]),
    ];
    let whole = ours.concat();
    assert!(matches!(
        account.without_strangers(&whole),
        Cow::Borrowed(_)
    ));
    let theirs = record(kind::SAMPLE, &[9, 0, 1, 0]);
    let mixed = [&theirs, &ours[0], &theirs, &ours[1], &ours[2], &theirs];
    let mixed: Vec<u8> = mixed.into_iter().flatten().copied().collect();
    assert_eq!(*account.without_strangers(&mixed), whole);
}

#[test]
fn ids_of_a_turn_are_replaced_by_their_source_s() {
    let mut account = account();
    account.adopt(Role::Paired, 0, 70);
    let mut records = [
        record(kind::SAMPLE, &[70, 0, 500, 0]),
        record(kind::LOST, &[70, 21, 0, 0, 70]),
        record(kind::SAMPLE, &[8, 70, 400, 0]),
    ]
    .concat();
    account.replace_ids(&mut records);
    let expected = [
        record(kind::SAMPLE, &[7, 0, 500, 0]),
        record(kind::LOST, &[70, 21, 0, 0, 7]),
        record(kind::SAMPLE, &[8, 70, 400, 0]),
    ];
    assert_eq!(records, expected.concat());
    account.forget(Role::Paired);
    account.adopt(Role::Paired, 0, 71);
    let mut late = record(kind::SAMPLE, &[70, 0, 600, 0]);
    account.replace_ids(&mut late);
    assert_eq!(
        late,
        record(kind::SAMPLE, &[7, 0, 600, 0]),
        "of the turn before"
    );
    account.forget(Role::Paired);
    account.forget(Role::Paired);
    assert!(!account.replaces_ids());
    account.count(&record(kind::SAMPLE, &[70, 0, 500, 0]));
    assert_eq!(account.losses(None).count(LossKind::UnknownRecord), 1);
}

#[test]
fn threads_are_followed_from_birth_to_death() {
    let mut account = account();
    account.add_threads(&[40]);
    account.count(&record(kind::FORK, &[40 | 40 << 32, 41 | 40 << 32, 0]));
    account.count(&record(kind::FORK, &[40 | 40 << 32, 42 | 40 << 32, 0]));
    account.count(&record(kind::EXIT, &[40 | 40 << 32, 41 | 40 << 32, 0]));
    assert_eq!(
        account.threads().iter().copied().collect::<Vec<_>>(),
        [40, 42]
    );
}

/// A sample of CPU time: id, code, process and thread, time.
fn cpu_sample(pid: u64, tid: u64) -> Vec<u8> {
    record(kind::SAMPLE, &[20, 0xc0de, pid | tid << 32, 500, 0])
}

#[test]
fn of_whole_cpus_only_what_is_ours_is_kept() {
    let mut account = account();
    account.add_threads(&[40]);
    account.count(&record(kind::FORK, &[50 | 40 << 32, 50 | 40 << 32, 0]));
    let fault = record(kind::SAMPLE, &[7, 99 | 99 << 32, 500, 0]);
    let (ours, child, thread) = (cpu_sample(40, 40), cpu_sample(50, 50), cpu_sample(40, 41));
    let foreign = cpu_sample(99, 99);
    let span = [&ours[..], &foreign, &child, &fault, &thread].concat();
    let kept = [&ours[..], &child, &fault, &thread].concat();
    assert_eq!(account.keep_ours(&span), kept);
    // What is dropped still cost someone.
    assert_eq!(account.take(Role::Cpu).records, 1);
}

#[test]
fn the_last_samples_of_a_thread_that_ended_are_kept() {
    let mut account = account();
    account.add_threads(&[40]);
    account.count(&record(kind::EXIT, &[40 | 1 << 32, 40 | 40 << 32, 0]));
    for kept in [true, true, false] {
        assert_eq!(!account.keep_ours(&cpu_sample(40, 40)).is_empty(), kept);
        account.end_round();
    }
}

#[test]
fn a_process_goes_on_when_a_second_thread_executes() {
    let mut account = account();
    account.add_threads(&[40, 41]);
    account.count(&record(kind::EXIT, &[40 | 1 << 32, 40 | 40 << 32, 0]));
    let mut exec = record(kind::COMM, &[40 | 40 << 32, 0]);
    exec[4..6].copy_from_slice(&MISC_COMM_EXEC.to_le_bytes());
    account.count(&exec);
    account.end_round();
    account.end_round();
    assert!(!account.keep_ours(&cpu_sample(40, 40)).is_empty());
}

/// A record of a kind with its words, and what ends it: the thread that wrote it, time, CPU, id.
fn side(kind: u32, words: &[u64], tid: u64, time: u64) -> Vec<u8> {
    record(kind, &[words, &[tid | tid << 32, time, 0, 1]].concat())
}

fn fork(child: u64, parent: u64, time: u64) -> Vec<u8> {
    let words = [child | parent << 32, child | parent << 32, time];
    side(kind::FORK, &words, parent, time)
}

fn mapping(tid: u64, time: u64) -> Vec<u8> {
    side(kind::MMAP2, &[tid | tid << 32, 0x1000, 0x1000], tid, time)
}

#[test]
fn of_all_lifetimes_those_of_our_descendants_are_kept() {
    let mut account = account();
    account.watch_all(Role::Lifetimes);
    account.add_threads(&[40]);
    // CPU 0 was emptied before 40 forked there; its child and grandchild went on on CPU 1.
    let first = [mapping(50, 11), fork(60, 50, 12), mapping(99, 13)].concat();
    assert!(account.keep_ours(&first).is_empty());
    let second = [fork(98, 99, 14), mapping(60, 15), fork(50, 40, 10)].concat();
    let kept = [
        fork(50, 40, 10),
        mapping(50, 11),
        fork(60, 50, 12),
        mapping(60, 15),
    ];
    assert_eq!(account.keep_ours(&second), kept.concat());
    account.count(&kept.concat());
    assert_eq!(account.take_births(), 2);
    assert_eq!(account.threads().len(), 3);
    assert!(account.keep_ours(&[]).is_empty(), "others are forgotten");
    assert_eq!(account.undecided, [] as [u8; 0]);
}

#[test]
fn a_birth_costs_each_source_that_reports_it_and_is_one_birth() {
    let mut account = account();
    account.add_threads(&[40]);
    let mut again = fork(50, 40, 10);
    let id = again.len() - 8;
    again[id..].copy_from_slice(&30_u64.to_le_bytes());
    account.count(&[fork(50, 40, 10), again].concat());
    assert_eq!(account.take_births(), 1);
    assert_eq!(account.take(Role::Lifetimes).records, 1);
    assert_eq!(account.take(Role::Mappings).records, 1);
}

#[test]
fn births_are_reported() {
    // pid 40, parent 40; thread 41, parent thread 40.
    let fork = record(kind::FORK, &[40 | 40 << 32, 41 | 40 << 32, 0]);
    let comm = record(kind::COMM, &[40, 0]);
    assert_eq!(side_band::births(&[comm, fork].concat()), [(41, 40)]);
}
