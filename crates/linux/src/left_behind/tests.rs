//! A real process that has changed a machine of plain files is killed, and the next one puts
//! everything back.

use super::*;
use crate::delays::switch::Switch;
use crate::hugepages::actuator::Change;
use crate::hugepages::journal::{Entry, Subject};
use crate::hugepages::system;
use crate::journal::Lock;
use crate::tracefs::guard::Guard;
use pagewise_model::huge_pages::Slot;
use std::fs;
use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};

/// Passes the machine's folder to the test below, which runs as a separate process.
const MACHINE: &str = "PAGEWISE_TEST_MACHINE";

const FILES: [(&str, &str); 8] = [
    ("proc/sys/kernel/task_delayacct", "0"),
    (
        "sys/kernel/mm/transparent_hugepage/enabled",
        "always [madvise] never",
    ),
    (
        "sys/kernel/mm/transparent_hugepage/hugepages-64kB/enabled",
        "always inherit madvise [never]",
    ),
    ("tracing/current_tracer", "nop\n"),
    ("tracing/tracing_on", "1\n"),
    ("tracing/set_graph_function", ""),
    ("tracing/set_event", ""),
    ("tracing/max_graph_depth", "0\n"),
];

struct Machine(tempfile::TempDir);

impl Machine {
    fn idle() -> Self {
        let machine = Self(tempfile::tempdir().unwrap());
        for (file, text) in FILES {
            let path = machine.0.path().join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        fs::create_dir_all(machine.0.path().join("tracing/instances")).unwrap();
        machine
    }

    fn places(&self) -> Places {
        places(self.0.path())
    }

    /// Contents of the files, with the selected value where a file lists choices.
    fn values(&self) -> Vec<String> {
        let value = |(file, _): &(&str, &str)| {
            let text = fs::read_to_string(self.0.path().join(file)).unwrap();
            let chosen = crate::pseudo_file::bracketed(&text).map(str::to_owned);
            chosen.unwrap_or_else(|| text.trim().to_owned())
        };
        FILES.iter().map(value).collect()
    }

    /// A process that has changed everything and still runs.
    fn changed(&self) -> Child {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["--exact", "left_behind::tests::the_one_that_is_killed"])
            .args(["--ignored", "--nocapture"])
            .env(MACHINE, self.0.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        let mut lines = output.lines().map_while(Result::ok);
        assert!(lines.any(|line| line.ends_with("changed")), "it failed");
        child
    }
}

fn places(top: &Path) -> Places {
    Places {
        folders: vec![top.join("run"), top.join("none")],
        proc: top.join("proc"),
        sys: top.join("sys"),
        tracefs: Some(top.join("tracing")),
    }
}

#[test]
#[ignore = "another test starts it as a process of its own, to kill it"]
fn the_one_that_is_killed() {
    let top = PathBuf::from(std::env::var_os(MACHINE).expect("a machine"));
    let places = places(&top);
    let run = &places.folders[0];
    let _switch = Switch::on_at(&places.proc.join(switch::SWITCH), run).unwrap();

    let (mut guard, _) = Guard::begin(Control::at(top.join("tracing")), run, false).unwrap();
    let control = guard.top().clone();
    guard.instance().unwrap();
    for (file, value) in [
        ("tracing_on", "0"),
        ("max_graph_depth", "3"),
        ("current_tracer", "function_graph"),
    ] {
        guard.set(&control, file, value).unwrap();
    }

    let this = Owner::this("");
    let mut journal = page_sizes::Journal::open(run, &subject(&this)).unwrap();
    let wishes = ["64K=always".parse().unwrap()];
    system::write(&places.sys, &wishes, &mut journal).unwrap();
    println!("changed");
    loop {
        std::thread::park();
    }
}

fn subject(owner: &Owner) -> Subject {
    Subject {
        pid: owner.pid,
        start_ticks: owner.start_ticks,
        boot_id: owner.boot_id.clone(),
        comm: "x".to_owned(),
    }
}

#[test]
fn what_a_killed_process_changed_is_put_back_by_the_next_start() {
    let machine = Machine::idle();
    let before = machine.values();
    let mut child = machine.changed();
    let changed = machine.values();
    assert_ne!(changed, before);
    // As long as it lives, no other process may restore anything.
    assert_eq!(restore_in(&machine.places()), []);
    assert_eq!(machine.values(), changed);

    child.kill().unwrap();
    child.wait().unwrap();
    let restored = restore_in(&machine.places());
    assert_eq!(machine.values(), before);
    assert_eq!(
        fs::read_dir(machine.0.path().join("tracing/instances"))
            .unwrap()
            .count(),
        0
    );
    let pid = i32::try_from(child.id()).unwrap();
    let message: Vec<String> = restored.iter().map(ToString::to_string).collect();
    let expected = [
        format!("huge balance (process {pid}) was killed: restored 1 setting"),
        format!("delay accounting (process {pid}) was killed: restored 1 setting"),
        format!("trace (process {pid}) was killed: restored 4 settings"),
    ];
    assert_eq!(message, expected);
    assert_eq!(restore_in(&machine.places()), []);
}

#[test]
fn a_second_user_keeps_the_switch_after_a_kill() {
    let machine = Machine::idle();
    let places = machine.places();
    let mut child = machine.changed();
    let path = places.proc.join(switch::SWITCH);
    let other = Switch::on_at(&path, &places.folders[0]).unwrap();
    child.kill().unwrap();
    child.wait().unwrap();
    let restored = restore_in(&places);
    assert!(
        restored
            .iter()
            .all(|one| one.journal.file_name().unwrap() != switch::JOURNAL)
    );
    assert_eq!(fs::read_to_string(&path).unwrap(), "1");
    drop(other);
    assert_eq!(fs::read_to_string(&path).unwrap(), "0");
}

#[test]
fn another_boot_s_journals_go_and_a_spoilt_one_is_named() {
    let machine = Machine::idle();
    let run = &machine.places().folders[0];
    let mut tracing = tracing::Journal::open(run).unwrap();
    tracing.begin("another").unwrap();
    drop(tracing);
    let of_another = Subject {
        pid: 1,
        start_ticks: 1,
        boot_id: "another".to_owned(),
        comm: "x".to_owned(),
    };
    let gone = page_sizes::Journal::open(run, &of_another).unwrap();
    let gone_path = gone.path().to_owned();
    // As if another boot had written it.
    drop(gone);
    let text = fs::read_to_string(&gone_path).unwrap();
    fs::write(&gone_path, text.replace(&journal::boot_id(), "another")).unwrap();
    fs::write(run.join(switch::JOURNAL), "nonsense\n").unwrap();
    let restored = restore_in(&machine.places());
    assert_eq!(restored.len(), 1, "{restored:?}");
    let message = restored[0].to_string();
    assert!(
        message.contains("task-delayacct:1: not a line"),
        "{message}"
    );
    assert!(!gone_path.exists());
    assert_eq!(fs::read(run.join(tracing::NAME)).unwrap(), b"");
}

#[test]
fn page_sizes_of_a_process_that_runs_are_left_to_undo() {
    let machine = Machine::idle();
    let run = &machine.places().folders[0];
    let mut journal = page_sizes::Journal::open(run, &subject(&Owner::this(""))).unwrap();
    let entry = Entry {
        address: 0x20_0000,
        change: Change::Split,
        before: Slot::default(),
    };
    journal.note(entry).unwrap();
    let path = journal.path().to_owned();
    drop(journal);
    assert_eq!(restore_in(&machine.places()), []);
    assert_eq!(page_sizes::read(&path).unwrap().entries.len(), 1);
    // Another process has the lock: the journal may not be taken.
    let held = Journal::open(
        run,
        path.file_name().unwrap().to_str().unwrap(),
        Lock::Alone,
    );
    assert!(Journal::abandoned(&path).unwrap().is_none());
    drop(held);
}
