//! Real processes. No outcome here depends on how long something takes.

use super::*;
use crate::experiment::prove;
use pagewise_compare::Stopping;
use pagewise_linux::process::Input;
use pagewise_model::advice::{Setting, Settings};
use pagewise_model::proof::Verdict;
use pagewise_model::run::Ending;
use std::path::{Path, PathBuf};

const MINUTE: Duration = Duration::from_secs(60);

fn command(script: &str) -> Vec<OsString> {
    ["sh", "-c", script].map(OsString::from).to_vec()
}

fn with(name: &str, value: &str) -> Candidate {
    Candidate {
        name: value.to_owned(),
        settings: Settings(vec![Setting::Env {
            name: name.to_owned(),
            value: value.to_owned(),
        }]),
        ..Candidate::default()
    }
}

/// How one run of a command ends.
fn ending(command: &[OsString], arm: &Candidate, options: &Options) -> Ending {
    match Live::new(command, options).run(arm, MINUTE).unwrap() {
        Run::Ended(finished) => finished.ending,
        other => panic!("{other:?}"),
    }
}

fn built(folder: &Path, source: &str) -> PathBuf {
    let (file, program) = (folder.join("program.c"), folder.join("program"));
    std::fs::write(&file, source).unwrap();
    let built = std::process::Command::new("cc")
        .args(["-O1", "-o"])
        .args([&program, &file])
        .status()
        .expect("the C compiler that Rust links with");
    assert!(built.success());
    program
}

#[test]
fn settings_reach_the_program_and_its_status_comes_back() {
    let command = command("[ \"$CURE\" = yes ] || exit 9");
    let of = |arm: &Candidate| ending(&command, arm, &Options::default());
    assert_eq!(of(&Candidate::default()), Ending::Exited(9));
    assert_eq!(of(&with("CURE", "yes")), Ending::Exited(0));
}

#[test]
fn a_program_that_runs_the_command_gets_it_as_arguments() {
    let under = Candidate {
        under: ["env", "CURE=yes"].map(OsString::from).to_vec(),
        ..Candidate::default()
    };
    let command = command("[ \"$CURE\" = yes ]");
    assert_eq!(
        ending(&command, &under, &Options::default()),
        Ending::Exited(0)
    );
}

#[test]
fn each_run_gets_the_same_input() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("in");
    std::fs::write(&file, "expected\n").unwrap();
    let options = Options {
        input: Input::File(file),
        ..Options::default()
    };
    let command = command("read line; [ \"$line\" = expected ]");
    for _ in 0..3 {
        let ending = ending(&command, &Candidate::default(), &options);
        assert_eq!(ending, Ending::Exited(0));
    }
}

#[test]
fn a_run_past_its_time_is_ended() {
    let folder = tempfile::tempdir().unwrap();
    let pid = folder.path().join("pid");
    let command = command(&format!("echo $$ > {}; exec sleep 1000", pid.display()));
    let options = Options::default();
    let runner = Live::new(&command, &options);
    // On a busy machine a run may be ended before its shell has written.
    let id = loop {
        let run = runner.run(&Candidate::default(), Duration::from_millis(100));
        assert!(matches!(run, Ok(Run::TooLong)), "{run:?}");
        let written = std::fs::read_to_string(&pid).unwrap_or_default();
        if let Some(id) = written.strip_suffix('\n') {
            break id.to_owned();
        }
    };
    assert!(!Path::new("/proc").join(id).exists(), "it was waited for");
}

#[test]
fn a_command_that_cannot_start_is_an_error() {
    let nowhere = [OsString::from("/no/such/program")];
    let error = prove(&nowhere, &[], &Options::default(), &|_| ()).unwrap_err();
    assert!(error.to_string().contains("/no/such/program"), "{error}");
}

#[test]
fn a_policy_of_memory_nodes_reaches_the_program() {
    if !pagewise_linux::sys::numa::policy_can_be_set() {
        skipped!("this kernel or container lets nobody set policies of NUMA nodes");
        return;
    }
    let bound = Candidate {
        settings: Settings(vec![Setting::Numa {
            options: "--cpunodebind=0 --membind=0".into(),
        }]),
        ..Candidate::default()
    };
    let of = |policy: &str, arm: &Candidate| {
        let command = command(&format!("grep -q '{policy} heap' /proc/self/numa_maps"));
        ending(&command, arm, &Options::default())
    };
    assert_eq!(of("bind:0", &bound), Ending::Exited(0));
    assert_eq!(of("default", &Candidate::default()), Ending::Exited(0));
}

/// Exits with 1 if at most a tenth of its file's pages is in memory, otherwise with 0.
const LOOKER: &str = r#"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
int main(int argc, char **argv) {
    static unsigned char in[1 << 16];
    struct stat about;
    int fd = argc > 1 ? open(argv[1], O_RDONLY) : -1, sum = 0, pages;
    if (fd < 0 || fstat(fd, &about)) return 2;
    pages = (about.st_size + 4095) / 4096;
    void *at = mmap(0, about.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (at == MAP_FAILED || mincore(at, about.st_size, in)) return 2;
    for (int i = 0; i < pages; i++) sum += in[i] & 1;
    return sum <= pages / 10;
}
"#;

#[test]
fn each_run_starts_with_cold_files_on_their_disk() {
    // A temporary folder may be in memory, so its files have no disk to be read from.
    let disk = concat!(env!("CARGO_MANIFEST_DIR"), "/../../target/tmp");
    std::fs::create_dir_all(disk).unwrap();
    let folder = tempfile::tempdir_in(disk).unwrap();
    let looker = built(folder.path(), LOOKER);
    let file = folder.path().join("data");
    std::fs::write(&file, vec![1; 4 << 20]).unwrap();
    let command = [looker.into(), file.clone().into()];
    let look = |cold: Vec<PathBuf>| {
        let options = Options {
            cold,
            ..Options::default()
        };
        ending(&command, &Candidate::default(), &options)
    };
    assert_eq!(look(Vec::new()), Ending::Exited(0), "just written");
    for _ in 0..2 {
        assert_eq!(look(vec![file.clone()]), Ending::Exited(1));
        // As the program that reads it.
        std::fs::read(&file).unwrap();
    }
}

/// tail keeps 20 MB in memory, unless cured: five thousand faults more, and ten times the CPU time.
const CHURN: &str = "[ \"$CURE\" = yes ] || head -c 20000000 /dev/zero | tail -c 19000000 \
    >/dev/null; head -c 2000000 /dev/zero | cksum";

/// The whole way once, from processes to the answer. CPU times differ tenfold, so that no interval
/// of eight pairs reaches 1 unless half of the runs are slowed down tenfold by others: less than
/// one failure in 10,000 runs (none in those of docs/notes/flaky-tests.md).
#[test]
fn real_runs_prove_a_setting_that_avoids_faults() {
    let options = Options {
        stopping: Stopping {
            max_pairs: 8,
            ..Stopping::default()
        },
        budget: 10 * MINUTE,
        ..Options::default()
    };
    let fix = Candidate {
        fewer_faults: true,
        ..with("CURE", "yes")
    };
    let proof = prove(&command(CHURN), &[fix], &options, &|_| ()).unwrap();
    assert_eq!(proof.winner.as_deref(), Some("yes"), "{proof:?}");
    assert_eq!(proof.comparisons[0].verdict, Verdict::Faster, "{proof:?}");
    let (plain, fixed) = (&proof.arms[0].runs, &proof.arms[1].runs);
    let faults = |runs: &[pagewise_model::run::RunCost]| runs.iter().map(|run| run.faults()).max();
    assert!(
        plain
            .iter()
            .all(|run| Some(run.faults()) > faults(fixed).map(|most| most + 2_000)),
        "{proof:?}"
    );
}
