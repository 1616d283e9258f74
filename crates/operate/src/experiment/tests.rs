//! Real commands: a setting that helps, a useless one, a failing one, and a command with unsteady
//! times.

use super::*;
use pagewise_model::advice::{Setting, Settings};
use pagewise_model::run::RunCost;
use pagewise_model::units::Nanos;

fn command(script: &str) -> Vec<OsString> {
    ["sh", "-c", script].map(OsString::from).to_vec()
}

fn candidate(name: &str, value: &str) -> Candidate {
    let setting = Setting::Env {
        name: "CURE".to_owned(),
        value: value.to_owned(),
    };
    Candidate {
        name: name.to_owned(),
        settings: Settings(vec![setting]),
        fewer_faults: true,
        ..Candidate::default()
    }
}

/// tail keeps 20 MB in memory, unless cured: thousands of faults and tens of milliseconds.
const CHURN: &str = "[ \"$CURE\" = fails ] && exit 9; [ \"$CURE\" = yes ] || \
    head -c 20000000 /dev/zero | tail -c 19000000 >/dev/null; head -c 2000000 /dev/zero | \
    sha256sum";

fn quick(pairs: u32) -> Options {
    Options {
        stopping: Stopping {
            min_pairs: pairs,
            max_pairs: pairs,
            ..Stopping::default()
        },
        ..Options::default()
    }
}

#[test]
fn a_cure_is_proved_and_told_among_several() {
    let arms = [
        candidate("cure", "yes"),
        candidate("nothing", "no"),
        candidate("broken", "fails"),
    ];
    let proof = prove(&command(CHURN), &arms, &quick(7), &|_| ()).unwrap();
    assert_eq!(proof.winner.as_deref(), Some("cure"), "{proof:?}");
    assert!(
        proof.summary.starts_with("Proved: 'cure' makes it "),
        "{}",
        proof.summary
    );
    // Its trial run left it without a competitor, so the runs after that prove it.
    assert_eq!(proof.confirmation, None);
    let cured = &proof.comparisons[0];
    assert_eq!(cured.verdict, Verdict::Faster, "{cured:?}");
    assert!((3..=7).contains(&cured.pairs), "{cured:?}");
    let ran = proof.arms[1].runs.len();
    assert_eq!(ran, cured.pairs as usize + 1, "with its trial run");
    let rejected = "'broken' is rejected: with it, the command ends with status 9.";
    assert!(
        proof.notes.iter().any(|note| note == rejected),
        "{:?}",
        proof.notes
    );
    let names: Vec<&str> = proof.arms.iter().map(|arm| arm.name.as_str()).collect();
    assert_eq!(names, ["baseline", "cure", "nothing", "broken"]);
    let failed = proof.arms.iter().filter_map(|arm| arm.failed.as_deref());
    assert!(failed.eq(["the command ends with status 9"]));
    let useless = &proof.comparisons[1];
    assert!(
        useless.arm == "nothing" && useless.verdict != Verdict::Faster,
        "{useless:?}"
    );
}

#[test]
fn of_two_cures_one_is_chosen_and_confirmed_by_fresh_runs() {
    let arms = ["first", "second"].map(|name| candidate(name, "yes"));
    let proof = prove(&command(CHURN), &arms, &quick(7), &|_| ()).unwrap();
    let winner = proof.winner.as_deref().expect("a winner");
    assert!(["first", "second"].contains(&winner), "{proof:?}");
    let confirmation = proof.confirmation.unwrap();
    assert_eq!(confirmation.arm, winner);
    assert_eq!(confirmation.verdict, Verdict::Faster);
    assert!((3..=7).contains(&confirmation.pairs), "{confirmation:?}");
}

#[test]
fn a_command_that_ends_differently_each_time_ends_the_proof() {
    let folder = tempfile::tempdir().unwrap();
    let count = folder.path().join("count");
    // The first run, without the candidate's variable, succeeds; all later ones fail.
    let unchanged = format!("echo x >> {0}; [ $(wc -l < {0}) -lt 2 ]", count.display());
    let script = format!("[ -n \"$CURE\" ] && exit 0; {unchanged}");
    let proof = prove(
        &command(&script),
        &[candidate("any", "1")],
        &quick(7),
        &|_| (),
    )
    .unwrap();
    assert_eq!(proof.winner, None);
    let told = |note: &String| note.contains("unlike before");
    assert!(proof.notes.iter().any(told), "{:?}", proof.notes);
}

#[test]
fn a_budget_too_small_for_all_goes_to_the_first() {
    // Six pairs of one setting take some 4 s, seven of three more than twice as much.
    let arms = [
        candidate("cure", "yes"),
        candidate("second", "no"),
        candidate("third", "no"),
    ];
    let options = Options {
        budget: Duration::from_secs(7),
        stopping: Stopping {
            max_pairs: 6,
            ..Stopping::default()
        },
        ..Options::default()
    };
    let slow = command("[ \"$CURE\" = yes ] || sleep 0.3; sleep 0.2");
    let proof = prove(&slow, &arms, &options, &|_| ()).unwrap();
    let pairs: Vec<usize> = proof.arms.iter().map(|arm| arm.runs.len()).collect();
    // A result far beyond the noise needs fewer than six.
    assert!((3..=6).contains(&pairs[0]), "{proof:?}");
    assert_eq!(pairs, [pairs[0], pairs[0], 0, 0], "{proof:?}");
    assert_eq!(proof.comparisons.len(), 1);
    let note = proof.notes.iter().find(|note| note.contains("left out"));
    let note = note.expect("a note about the arms left out");
    assert!(
        note.contains("'second' and 'third' were left out"),
        "{note}"
    );
    assert!(note.contains("--budget "), "{note}");
}

#[test]
fn where_the_budget_does_not_cover_all_a_trial_run_of_each_chooses() {
    let of = |name: &str, value: &str| Candidate {
        fewer_faults: false,
        ..candidate(name, value)
    };
    let useless = ["a", "b", "c", "d", "e"].map(|name| of(name, name));
    let arms = [&useless[..], &[of("cure", "yes")]].concat();
    let slow = command(
        "[ \"$CURE\" ] && head -c 9000000 /dev/zero | tail -c 8000000 > /dev/null; \
         [ \"$CURE\" = yes ] && time=0.03 || time=0.1; sleep $time",
    );
    // Eight rounds of all seven would take 90 runs including those reserved for confirmation; as
    // many pairs of one, with a trial of each, 40: the budget is between the two, at this machine's
    // present speed.
    let began = Instant::now();
    for _ in 0..4 {
        std::process::Command::new("sh")
            .args(slow.iter().skip(1))
            .env("CURE", "a")
            .status()
            .unwrap();
    }
    let options = Options {
        budget: began.elapsed() / 4 * 58,
        ..Options::default()
    };
    let proof = prove(&slow, &arms, &options, &|_| ()).unwrap();
    let runs = |name: &str| {
        let arm = proof.arms.iter().find(|arm| arm.name == name);
        arm.map_or(0, |arm| arm.runs.len())
    };
    assert!(runs("cure") > 1, "{proof:?}");
    assert!(useless.iter().any(|one| runs(&one.name) == 1), "{proof:?}");
    let told = |note: &String| note.contains("gained least in a trial run");
    assert!(proof.notes.iter().any(told), "{:?}", proof.notes);
}

#[test]
fn a_first_run_that_hangs_is_ended_by_the_budget() {
    let options = Options {
        budget: Duration::from_secs(1),
        one_run: Some(Duration::from_millis(50)),
        ..Options::default()
    };
    let began = Instant::now();
    let error = prove(
        &command("sleep 60"),
        &[candidate("any", "1")],
        &options,
        &|_| (),
    )
    .unwrap_err();
    assert!(began.elapsed() < Duration::from_secs(30), "{error}");
    let told = error.to_string();
    assert!(
        told.starts_with("the unchanged command took 50.0 ms before"),
        "{told}"
    );
}

#[test]
fn a_budget_too_small_for_a_proof_tells_what_is_missing_and_holds() {
    let options = Options {
        budget: Duration::from_millis(1_500),
        ..Options::default()
    };
    let slow = command(
        "[ \"$CURE\" = yes ] || { head -c 9000000 /dev/zero | tail -c 8000000 >/dev/null; sleep 0.3; }; sleep 0.1",
    );
    let started = Instant::now();
    let proof = prove(&slow, &[candidate("cure", "yes")], &options, &|_| ()).unwrap();
    // A tenth, one run, and time lost to other load on this machine.
    assert!(
        started.elapsed() < Duration::from_secs(5),
        "{:?}",
        started.elapsed()
    );
    let found = &proof.comparisons[0];
    assert_eq!(found.verdict, Verdict::Undecided);
    assert!(found.pairs < 6, "{found:?}");
    assert_eq!(proof.winner, None);
    let told = |note: &String| note.starts_with("The time budget");
    assert!(proof.notes.iter().any(told), "{:?}", proof.notes);
}

#[test]
fn what_does_not_fit_is_not_begun() {
    let folder = tempfile::tempdir().unwrap();
    let began = folder.path().join("began");
    let script = format!("touch {}", began.display());
    let options = Options {
        budget: Duration::from_secs(25),
        one_run: Some(Duration::from_secs(30)),
        ..Options::default()
    };
    let proof = prove(
        &command(&script),
        &[candidate("cure", "yes")],
        &options,
        &|_| (),
    )
    .unwrap();
    assert!(!began.exists());
    assert!(
        proof.summary.starts_with("No proof: one run takes 30.0 s"),
        "{}",
        proof.summary
    );
    assert!(proof.summary.contains("--budget "), "{}", proof.summary);
}

#[test]
fn a_run_that_passes_the_budget_is_ended_and_told() {
    let options = Options {
        budget: Duration::from_secs(2),
        ..Options::default()
    };
    let hangs = command("[ \"$CURE\" = yes ] && sleep 100; sleep 0.05");
    let started = Instant::now();
    let proof = prove(&hangs, &[candidate("hangs", "yes")], &options, &|_| ()).unwrap();
    assert!(
        started.elapsed() < Duration::from_secs(9),
        "{:?}",
        started.elapsed()
    );
    let told = |note: &String| note.contains("ended in the middle of a round");
    assert!(proof.notes.iter().any(told), "{:?}", proof.notes);
}

#[test]
fn settings_that_do_not_reach_the_program_cost_one_trial() {
    let folder = tempfile::tempdir().unwrap();
    let count = folder.path().join("count");
    let script = format!(
        // Faults and memory are the same in each run, even on a busy machine: one process, no pipe.
        "echo x >> {}; i=0; while [ $i -lt 30000 ]; do i=$((i+1)); done",
        count.display()
    );
    let proof = prove(
        &command(&script),
        &[candidate("other", "1")],
        &Options::default(),
        &|_| (),
    )
    .unwrap();
    let runs = std::fs::read_to_string(&count).unwrap().lines().count();
    assert_eq!(runs, 3, "a first run, and one pair");
    assert_eq!(proof.comparisons[0].verdict, Verdict::NotReached);
    assert!(
        proof.summary.contains("does not reach the program"),
        "{}",
        proof.summary
    );
    let told = |note: &String| note.starts_with("'other' does not reach the program");
    assert!(proof.notes.iter().any(told), "{:?}", proof.notes);
}

#[test]
fn a_policy_of_memory_nodes_is_run_although_it_changes_no_faults() {
    if !pagewise_linux::sys::numa::policy_can_be_set() {
        skipped!("this kernel or container lets nobody set policies of memory nodes");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let policies = folder.path().join("policies");
    let script = format!(
        "grep -m 1 -o 'bind:0 heap\\|default heap' /proc/self/numa_maps >> {}; i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done",
        policies.display()
    );
    let bound = Candidate {
        name: "one node".into(),
        settings: Settings(vec![Setting::Numa {
            options: "--cpunodebind=0 --membind=0".into(),
        }]),
        ..Candidate::default()
    };
    let proof = prove(&command(&script), &[bound], &quick(3), &|_| ()).unwrap();
    assert_eq!(proof.comparisons[0].pairs, 3, "{proof:?}");
    assert_ne!(proof.comparisons[0].verdict, Verdict::NotReached);
    let policies = std::fs::read_to_string(&policies).unwrap();
    let of = |policy: &str| policies.lines().filter(|line| *line == policy).count();
    // Runs as short as on a fast machine are measured several at a time; one came before all pairs.
    let (bound, plain) = (of("bind:0 heap"), of("default heap"));
    assert!(
        bound >= 3 && bound % 3 == 0 && plain == bound + 1,
        "{policies}"
    );
}

#[test]
fn settings_for_fewer_faults_that_avoid_none_cost_one_trial_and_are_told_so() {
    // With the setting it uses 30 MB more, with the corresponding faults.
    let script = "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); done; \
        [ \"$CURE\" = no ] && head -c 40000000 /dev/zero | tail -c 30000000 >/dev/null; true";
    let proof = prove(
        &command(script),
        &[candidate("other", "no")],
        &Options::default(),
        &|_| (),
    )
    .unwrap();
    assert_eq!(proof.arms[1].runs.len(), 1, "{proof:?}");
    let told = |note: &String| {
        note.starts_with("'other' was dropped after a trial: it reaches the program, but avoids no")
    };
    assert!(proof.notes.iter().any(told), "{:?}", proof.notes);
    assert!(
        proof.winner.is_none() && proof.summary.starts_with("Not proved"),
        "{}",
        proof.summary
    );
}

#[test]
fn an_arm_without_hope_is_given_up_and_told() {
    // Slower by half with the setting, with the same number of faults.
    let script = "[ \"$CURE\" = no ] && sleep 0.06; head -c 4000000 /dev/zero | tail -c 3000000 >/dev/null; sleep 0.06";
    let slower = Candidate {
        fewer_faults: false,
        ..candidate("slower", "no")
    };
    let proof = prove(&command(script), &[slower], &Options::default(), &|_| ()).unwrap();
    let runs = proof.arms[1].runs.len();
    assert!((3..25).contains(&runs), "{proof:?}");
    let told = |note: &String| note.starts_with("'slower' was dropped after ");
    assert!(proof.notes.iter().any(told), "{:?}", proof.notes);
}

/// A run within a limit pays for each page that it makes room for; the number of faults does not
/// show what it saves.
#[test]
fn only_what_is_for_fewer_faults_is_doubted_for_how_few_they_are() {
    let run = |seconds: f64, faults: u64| RunCost {
        wall: Nanos::from_secs_f64(seconds),
        user: Nanos::from_secs_f64(seconds),
        major_faults: faults,
        ..RunCost::default()
    };
    let told = |fewer_faults: bool| {
        let arm = Candidate {
            name: "arm".to_owned(),
            fewer_faults,
            ..Candidate::default()
        };
        let (command, options) = (command("true"), quick(2));
        let mut experiment = Experiment::begin(&command, &[arm], &options, &|_| ()).unwrap();
        experiment.arms[0].runs = vec![run(3.0, 4_000); 6];
        experiment.arms[1].runs = vec![run(1.0, 1_000); 6];
        experiment.notes.clear();
        experiment.note_doubt("arm");
        experiment.notes
    };
    assert!(told(true)[0].contains("something else changed too"));
    assert_eq!(told(false), Vec::<String>::new());
}

#[test]
fn a_command_that_cannot_start_is_an_error() {
    let nowhere = [OsString::from("/no/such/program")];
    let error = prove(&nowhere, &[], &quick(2), &|_| ()).unwrap_err();
    assert!(error.to_string().contains("/no/such/program"));
}

#[test]
fn each_run_gets_the_same_input() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("in");
    std::fs::write(&file, "expected\n").unwrap();
    let options = Options {
        input: Input::File(file),
        ..quick(2)
    };
    let reads = command("read line; [ \"$line\" = expected ]");
    let proof = prove(&reads, &[candidate("any", "1")], &options, &|_| ()).unwrap();
    assert!(
        !proof.notes.iter().any(|note| note.contains("status")),
        "{:?}",
        proof.notes
    );
}

/// Maps a file and touches each of its pages.
const READER: &str = r#"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
int main(int argc, char **argv) {
    struct stat about;
    int fd = argc > 1 ? open(argv[1], O_RDONLY) : -1, sum = 0;
    if (fd < 0 || fstat(fd, &about)) return 2;
    const char *at = mmap(0, about.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED) return 2;
    for (long i = 0; i < about.st_size; i += 4096) sum += at[i];
    return sum == 1;
}
"#;

#[test]
fn each_run_begins_with_cold_files_on_their_disk() {
    // A temporary folder may be in memory, so its files have no disk to be read from.
    let disk = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tmp");
    std::fs::create_dir_all(disk).unwrap();
    let folder = tempfile::tempdir_in(disk).unwrap();
    let (source, reader) = (folder.path().join("reader.c"), folder.path().join("reader"));
    std::fs::write(&source, READER).unwrap();
    let built = std::process::Command::new("cc")
        .args(["-O1", "-o"])
        .args([&reader, &source])
        .status()
        .expect("the C compiler that Rust links with");
    assert!(built.success());
    let file = folder.path().join("data");
    std::fs::write(&file, vec![1; 24 << 20]).unwrap();
    let reads = |cold: Vec<PathBuf>| -> Vec<u64> {
        let options = Options { cold, ..quick(3) };
        let command = [reader.clone().into(), file.clone().into()];
        let proof = prove(&command, &[candidate("any", "1")], &options, &|_| ()).unwrap();
        let runs = proof.arms.iter().flat_map(|arm| &arm.runs);
        runs.map(|run| run.major_faults).collect()
    };
    let (cold, warm) = (reads(vec![file.clone()]), reads(Vec::new()));
    assert!(
        cold.len() >= 2 && cold.iter().all(|&faults| faults > 0),
        "{cold:?}"
    );
    // The first warm run may still read what the last cold one left on disk.
    assert!(
        warm.iter().filter(|&&faults| faults > 0).count() <= 1,
        "{warm:?}"
    );
}

#[test]
fn a_confirmation_runs_under_the_same_program_as_what_it_confirms() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("runs");
    let command = command(&format!("echo ${{UNDER:-alone}} >> {}", file.display()));
    let wrapped = Candidate {
        name: "wrapped".to_owned(),
        under: ["env", "UNDER=env"].map(OsString::from).to_vec(),
        ..Candidate::default()
    };
    let options = quick(2);
    let experiment = Experiment::begin(&command, &[wrapped], &options, &|_| ()).unwrap();
    let mut fresh = experiment.fresh(1);
    std::fs::remove_file(&file).unwrap();
    assert_eq!(fresh.round(&[1]).unwrap(), Outcome::Complete);
    let runs = std::fs::read_to_string(&file).unwrap();
    let mut runs: Vec<&str> = runs.lines().collect();
    runs.sort_unstable();
    runs.dedup();
    assert_eq!(runs, ["alone", "env"]);
}

#[test]
fn an_arm_far_behind_another_gets_one_run() {
    // Time on the CPU, the same in each run; and memory, by which settings are seen to arrive.
    let spin = "case \"$CURE\" in best) n=3;; worse) n=15;; *) n=18;; esac; \
                [ -z \"$CURE\" ] || dd if=/dev/zero of=/dev/null bs=16M count=1 2>/dev/null; \
                head -c ${n}0000000 /dev/zero | sha256sum";
    let arms = [candidate("worse", "worse"), candidate("best", "best")];
    let arms = arms.map(|arm| Candidate {
        fewer_faults: false,
        ..arm
    });
    let proof = prove(&command(spin), &arms, &quick(6), &|_| ()).unwrap();
    assert_eq!(proof.winner.as_deref(), Some("best"), "{proof:?}");
    let pairs = |name: &str| {
        let mut found = proof.comparisons.iter();
        found.find(|one| one.arm == name).map(|one| one.pairs)
    };
    assert_eq!(pairs("worse"), Some(1), "{proof:?}");
    let told = |note: &String| note.starts_with("'worse' was dropped after a trial: it took ");
    assert!(proof.notes.iter().any(told), "{:?}", proof.notes);
}
