use super::*;
use crate::made::Maker;
use pagewise_model::units::Nanos;

fn cost(user_ms: u64, system_ms: u64) -> RunCost {
    RunCost {
        wall: Nanos((user_ms + system_ms) * 1_000_000),
        user: Nanos(user_ms * 1_000_000),
        system: Nanos(system_ms * 1_000_000),
        ..RunCost::default()
    }
}

fn table() -> &'static KernelTable {
    KernelTable::shipped()
}

/// 300 samples: user code, reads, faults that allocate huge pages, and one function unknown to the
/// table.
fn mixed() -> Profile {
    let mut maker = Maker::default();
    maker.samples("main;work", 100);
    maker.samples(
        "main;read;do_syscall_64_k;__x64_sys_pread64_k;filemap_read_k",
        110,
    );
    maker.samples(
        "main;asm_exc_page_fault_k;handle_mm_fault_k;do_huge_pmd_anonymous_page_k;clear_k",
        80,
    );
    maker.samples("main;function_of_tomorrow_k", 10);
    maker.finish()
}

#[test]
fn samples_are_weighted_to_the_exact_cpu_time() {
    let account = super::account(Some(&mixed()), &cost(1000, 2000), table());
    assert_eq!(account.samples, 300);
    let entry = |id: &str| account.entry(id).unwrap();
    assert!((entry("call.read").value - 1.1e9).abs() < 1.0);
    assert!((entry("fault").value - 0.8e9).abs() < 1.0);
    assert!((account.kernel.value - 2.0e9).abs() < 1.0);
    assert!((account.unexplained.value - 0.1e9).abs() < 1.0);
    assert!(entry("fault").covers(0.9e9) && !entry("fault").covers(1.1e9));
    let huge = account.work("huge").unwrap();
    assert!((huge.in_faults.value - 0.8e9).abs() < 1.0);
}

#[test]
fn parts_add_up_to_the_cpu_time_with_the_allocators() {
    let mut maker = Maker::default();
    maker.samples("main;work", 100);
    maker.samples("main;malloc;_int_malloc", 60);
    maker.samples("main;asm_exc_page_fault_k;handle_mm_fault_k", 40);
    maker.samples("runtime.gcBgMarkWorker;runtime.scanobject", 20);
    let account = super::account(Some(&maker.finish()), &cost(1800, 400), table());
    let parts: Vec<(&str, f64, &[String])> = account
        .cpu
        .iter()
        .map(|part| {
            let milliseconds = (part.time.value / 1e6).round();
            (&*part.id, milliseconds, &*part.places)
        })
        .collect();
    let place = |name: &str| [name.to_owned()];
    assert_eq!(
        parts,
        [
            ("own", 1000.0, &place("work")[..]),
            ("allocator", 600.0, &place("_int_malloc")),
            ("fault", 400.0, &place("handle_mm_fault")),
            ("collector", 200.0, &place("runtime.gcBgMarkWorker")),
        ]
    );
    assert_eq!(account.cpu[0].shares, [100.0 / 220.0]);
    assert_eq!(account.allocator().map(|one| one.places.len()), Some(1));
}

#[test]
fn locks_and_zeroing_for_calloc_are_rows_of_their_own() {
    let locking = "start_thread;serve;___pthread_mutex_lock";
    let mut maker = Maker::default();
    maker.samples("main;work", 100);
    maker.samples(locking, 40);
    maker.samples("?a.out;lll_mutex_lock_optimized", 20);
    maker.samples(
        &format!("{locking};__x64_sys_futex_k;do_futex_k;futex_wait_k"),
        20,
    );
    maker.samples("main;pthread_cond_wait;__x64_sys_futex_k;do_futex_k", 10);
    maker.samples("main;default_calloc;__memset_avx2_unaligned_erms", 40);
    let account = super::account(Some(&maker.finish()), &cost(2000, 300), table());
    let part = |id: &str| {
        let part = account.part(id).expect("a row");
        ((part.time.value / 1e6).round(), part.places.join(" "))
    };
    assert_eq!(part(LOCKS), (600.0, "serve".to_owned()));
    assert_eq!(part(CALLOC), (400.0, "default_calloc".to_owned()));
    assert_eq!(part("own").0, 1000.0);
    let queue = account.work(QUEUE).expect("a queue").time.value;
    assert_eq!((queue / 1e6).round(), 200.0);
}

#[test]
fn a_librarys_allocator_shows_beneath_a_stripped_program() {
    let stripped = |allocator: &str| {
        let mut maker = Maker::default();
        maker.samples("?lua5.4", 140);
        maker.samples(allocator, 60);
        let account = super::account(Some(&maker.finish()), &cost(2000, 0), table());
        account.allocator().map(|part| part.time.value / 1e6)
    };
    assert_eq!(stripped("?lua5.4;malloc;_int_malloc"), Some(600.0));
    // An allocator linked into the program has no name either.
    assert_eq!(stripped("?lua5.4"), None);
}

#[test]
fn samples_decide_the_kernels_time_against_ticks() {
    // Samples show two thirds of the time in the kernel, wait4 a half.
    let account = super::account(Some(&mixed()), &cost(1500, 1500), table());
    assert!((account.kernel.value - 2.0e9).abs() < 1.0);
    assert!(account.kernel.covers(1.5e9));
    let all: f64 = account.cpu.iter().map(|part| part.time.value).sum();
    assert!((all - 3.0e9).abs() < 1.0);
}

#[test]
fn zeroing_and_copying_are_told_apart_from_other_work_of_faults() {
    let fault = "main;asm_exc_page_fault_k;handle_mm_fault_k";
    let mut maker = Maker::default();
    maker.samples("main;work", 100);
    maker.samples(&format!("{fault};folio_zero_user_k;clear_page_erms_k"), 60);
    maker.samples(&format!("{fault};wp_page_copy_k;copy_mc_fragile_k"), 10);
    maker.samples(&format!("{fault};mt_find_k"), 30);
    // A fork copies tables, no pages; a read clears a page outside faults.
    maker.samples("main;__x64_sys_clone_k;copy_page_range_k", 20);
    maker.samples("main;__x64_sys_read_k;clear_page_erms_k", 20);
    let message = super::account(Some(&maker.finish()), &cost(1000, 1400), table());
    let parts = message.faults.iter();
    let parts: Vec<(&str, f64)> = parts
        .map(|part| (&*part.id, (part.time.value / 1e6).round()))
        .collect();
    let expected = [("zeroing", 600.0), ("handling", 300.0), ("copying", 100.0)];
    assert_eq!(parts, expected);
    // If contents are written inside functions that do more, nothing is reported.
    assert!(
        super::account(Some(&mixed()), &cost(1000, 2000), table())
            .faults
            .is_empty()
    );
}

#[test]
fn an_entry_names_its_calls_and_where_they_spend_it() {
    let account = super::account(Some(&mixed()), &cost(1000, 2000), table());
    assert_eq!(account.entries[0].label, "reading (pread64)");
    assert_eq!(account.entries[0].functions, ["filemap_read"]);
}

#[test]
fn without_samples_of_the_kernel_its_time_is_unexplained() {
    let mut maker = Maker::default();
    maker.samples("main;work", 100);
    let user_only = maker.finish();
    for profile in [None, Some(&user_only)] {
        let account = super::account(profile, &cost(1000, 2000), table());
        assert!(!account.sees_kernel());
        let unexplained = account.unexplained;
        assert!((unexplained.value - 2e9).abs() < 1.0);
        assert!(unexplained.high - unexplained.low < 1.0);
        assert_eq!(account.entry("fault"), None, "absent, not 0");
        let own = account.cpu.iter().find(|part| part.id == "own");
        let own = own.map(|part| part.time.value.round());
        assert_eq!(own, profile.map(|_| 1e9), "its samples divide user time");
    }
}

#[test]
fn a_handful_of_samples_accounts_for_nothing() {
    let mut maker = Maker::default();
    maker.samples("main;asm_exc_page_fault_k", 10);
    assert!(!super::account(Some(&maker.finish()), &cost(10, 20), table()).sees_kernel());
}

fn between(low: f64, value: f64, high: f64) -> Estimate {
    Estimate { value, low, high }
}

#[test]
fn estimates_that_agree_give_the_narrower_interval() {
    let (windows, samples) = (between(1.0, 1.2, 1.4), between(0.5, 1.0, 1.5));
    assert_eq!(combined(windows, samples), (windows, false));
}

#[test]
fn only_windows_that_show_more_widen_the_interval() {
    let (windows, samples) = (between(0.2, 0.4, 0.8), between(95.0, 99.0, 100.0));
    assert_eq!(combined(windows, samples), (samples, true));
    let (windows, samples) = (between(50.0, 60.0, 70.0), between(5.0, 10.0, 15.0));
    assert_eq!(combined(windows, samples), (between(5.0, 10.0, 70.0), true));
}
