use super::*;
use pagewise_model::recording::Collection;

const HEAP: u64 = 0x5555_0000_0000;
const PAGE: u64 = 4096;
const MIB: u64 = 1 << 20;
const F: StackId = StackId(1);
const G: StackId = StackId(2);
const H: StackId = StackId(3);

/// A look at these ranges of process 7, at time 1000.
fn touches(ranges: &[(u64, u64, bool)], attached: bool) -> Touches {
    use pagewise_model::memory::{PageRun, PageState, Presence};
    let run = |&(start, end, is_huge): &(u64, u64, bool)| PageRun {
        start,
        end,
        state: match is_huge {
            true => PageState::HugeAnonymous,
            false => PageState::Anonymous,
        },
    };
    let presence = Presence::new(ranges.iter().map(run).collect());
    Touches::new(&Sidecar {
        present: vec![PresentPages::new(
            (7, String::new()),
            Nanos(1000),
            &presence,
        )],
        collection: Collection {
            attached,
            ..Collection::default()
        },
        ..Sidecar::default()
    })
}

/// A stack touches every so many-th page of a range.
fn touch(touches: &mut Touches, (start, end): (u64, u64), every: u64, stack: StackId) {
    let step = usize::try_from(every * PAGE).unwrap();
    for page in (start..end).step_by(step) {
        let weight = every as f64;
        touches.fault(
            (7, Nanos(1)),
            page,
            Cause::FirstTouch,
            (Some(stack), weight),
        );
    }
}

fn shares(touches: Touches) -> (Vec<(StackId, f64)>, f64) {
    let shared = touches.shared(|_| true).remove(0);
    let mib = |bytes: f64| (bytes / MIB as f64 * 10.0).round() / 10.0;
    let stacks = shared.stacks.iter();
    (
        stacks
            .map(|(stack, owned)| (*stack, mib(owned.bytes)))
            .collect(),
        mib(shared.unseen),
    )
}

/// The same pages were touched twice as densely before: by weight, they would be mostly F's.
#[test]
fn memory_that_was_mapped_anew_has_no_older_touches() {
    let (start, middle, end) = (HEAP, HEAP + 50 * MIB, HEAP + 100 * MIB);
    let mut found = touches(&[(start, end, false)], false);
    touch(&mut found, (start, end), 8, F);
    found.returned(7, (middle, end), Nanos(2));
    touch(&mut found, (middle + PAGE, end), 16, G);
    // What happens after the look, or to others, changes nothing.
    found.returned(7, (start, end), Nanos(2000));
    found.returned(8, (start, end), Nanos(2));
    let (stacks, _) = shares(found);
    assert_eq!(stacks.len(), 2);
    for ((stack, mib), expected) in stacks.into_iter().zip([F, G]) {
        assert_eq!(stack, expected);
        assert!((mib - 50.0).abs() < 2.0, "{mib}");
    }
}

#[test]
fn pages_that_were_given_back_count_for_nobody() {
    // F touched 300 MiB, of which the first 200 are gone; G touched 100.
    let (f, g) = (HEAP, HEAP + 300 * MIB);
    let mut found = touches(&[(f + 200 * MIB, g + 100 * MIB, false)], false);
    touch(&mut found, (f, g), 13, F);
    touch(&mut found, (g, g + 100 * MIB), 13, G);
    assert_eq!(shares(found), (vec![(F, 100.0), (G, 100.0)], 0.0));
}

#[test]
fn memory_touched_again_belongs_to_the_last_that_did() {
    let (start, end) = (HEAP, HEAP + 40 * MIB);
    let mut found = touches(&[(start, end, false)], false);
    for round in 0..50 {
        touch(&mut found, (start + round % 13 * PAGE, end), 13, F);
    }
    touch(&mut found, (start + 5 * PAGE, end), 7, G);
    let (stacks, unseen) = shares(found);
    let of = |stack| {
        stacks
            .iter()
            .find(|one| one.0 == stack)
            .map_or(0.0, |one| one.1)
    };
    // A few older faults of each stretch still count.
    assert!(
        of(G) > 24.0 && of(F) + of(G) > 39.8 && unseen == 0.0,
        "{stacks:?}"
    );
}

#[test]
fn a_fault_on_a_huge_page_stands_for_all_of_it() {
    let huge = 0x7f00_0000_0000;
    let mut found = touches(
        &[
            (HEAP, HEAP + 30 * MIB, false),
            (huge, huge + 60 * MIB, true),
        ],
        false,
    );
    touch(&mut found, (HEAP, HEAP + 30 * MIB), 11, F);
    for page in 0..30 {
        let address = huge + page * 2 * MIB + 5 * PAGE;
        let stack = if page < 20 { G } else { H };
        found.fault(
            (7, Nanos(1)),
            address,
            Cause::FirstTouch,
            (Some(stack), 1.0),
        );
    }
    assert_eq!(shares(found), (vec![(F, 30.0), (G, 40.0), (H, 20.0)], 0.0));
}

#[test]
fn what_was_touched_before_the_recording_is_nobodys() {
    let mut found = touches(&[(HEAP, HEAP + 100 * MIB, false)], true);
    touch(&mut found, (HEAP + 90 * MIB, HEAP + 100 * MIB), 5, F);
    assert_eq!(shares(found), (vec![(F, 10.0)], 90.0));
}

#[test]
fn memory_that_was_filled_without_faults_is_nobodys() {
    // Mapped with MAP_POPULATE beside a heap.
    let filled = 0x7f00_0000_0000;
    let mut found = touches(
        &[
            (HEAP, HEAP + 50 * MIB, false),
            (filled, filled + 80 * MIB, false),
        ],
        false,
    );
    touch(&mut found, (HEAP, HEAP + 50 * MIB), 13, F);
    assert_eq!(shares(found), (vec![(F, 50.0)], 80.0));
}

#[test]
fn a_fork_inherits_and_a_program_begins_anew() {
    let (start, end) = (HEAP, HEAP + 20 * MIB);
    let mut found = touches(&[(start, end, false)], false);
    touch(&mut found, (start, end), 13, F);
    found.executed(7, Nanos(2));
    touch(&mut found, (start, end), 13, G);
    assert_eq!(shares(found), (vec![(G, 20.0)], 0.0));

    let mut found = touches(&[(start, end, false)], false);
    touch(&mut found, (start, end), 13, F);
    found.forked(1, 7, Nanos(2));
    touch(&mut found, (start, start + 5 * MIB), 5, G);
    assert_eq!(shares(found), (vec![(G, 5.0)], 15.0));
}

#[test]
fn faults_after_the_look_and_on_pages_that_are_there_count_for_nothing() {
    let (start, end) = (HEAP, HEAP + 4 * MIB);
    let mut found = touches(&[(start, end, false)], false);
    touch(&mut found, (start, end), 1, F);
    found.fault((7, Nanos(1001)), start, Cause::FirstTouch, (Some(G), 500.0));
    found.fault(
        (7, Nanos(900)),
        start,
        Cause::WriteProtect,
        (Some(G), 500.0),
    );
    assert_eq!(shares(found), (vec![(F, 4.0)], 0.0));
}
